// Package sangrenel is sangrenel's command line: the five flags and the lines of
// 2014, and those of its last version of 2022, whichever the flags ask for. It
// answers for flags, lines and series; runs and numbers are those of a workload
// like any other.
//
// Its invariant: the flags that both generations share mean the same in both.
package sangrenel
