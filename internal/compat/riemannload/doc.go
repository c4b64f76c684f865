// Package riemannload is the command line of the Riemann load tool of 2013: its
// flags, the console block and the CSV files that its metrics library wrote a
// second, and the four graphs that were drawn of them. It answers for flags,
// files and lines; runs and numbers are those of a workload like any other.
//
// Facts about the tool are from its source (mgodave/riemann-client, load-test)
// and from that of its metrics library (Yammer Metrics 2).
//
// Its invariant: the last console block and the last row of each file count
// what the report counts.
package riemannload
