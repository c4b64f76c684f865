// Package heyapm is hey-apm's command line: the single-run mode of 2018 with its
// profiles, and the generator of 2019 to 2023 with its counts, whichever the
// flags ask for. It answers for flags, profiles and lines; runs and numbers are
// those of workloads like any other. Its shell is not here.
//
// Facts about the tool are from its source (elastic/hey-apm). Profiles are what
// those of its source amount to, how many events of what make-up a request has,
// and none of their bytes.
//
// Its invariant: a secret that was given on the command line goes by reference
// from here on, and is in no report and in no line.
package heyapm
