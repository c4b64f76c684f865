// Package sangrenel is sangrenel's command line: the five flags and the lines of
// 2014, and those of its last version of 2022, depending on the flags. It is
// responsible for flags, lines and series. Its runs are ordinary workloads.
//
// Its invariant: the flags that both generations share mean the same in both, except
// that each creates a missing topic with its own number of partitions.
package sangrenel
