// Package heyapm is hey-apm's command line: the single-run mode of 2018 with its
// profiles, and the generator of 2019 to 2023 with its counts, depending on the
// flags. It is responsible for flags, profiles and lines. Its runs are ordinary
// workloads. The tool's shell is not included.
// Facts about the tool come from its source (elastic/hey-apm). The profiles have
// the numbers and kinds of events per request of those in its source, but none of
// their bytes.
// Its invariant: a secret given on the command line is replaced by a reference, and
// appears in no report and no line.
package heyapm
