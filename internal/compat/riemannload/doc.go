// Package riemannload is the command line of the Riemann load tool of 2013: its
// flags, the console block and the CSV rows that its metrics library wrote every
// second, and the four graphs drawn from them. It is responsible for flags, files
// and lines. Its runs are ordinary workloads.
// Facts about the tool come from its source (mgodave/riemann-client, load-test) and
// from that of its metrics library (Yammer Metrics 2).
// Its invariant: the last console block and the last row of each file have the
// counts of the report.
package riemannload
