// Package bench makes the speed table of docs/performance.md: the built program
// beside its peers, on the same machine, against the same server, in turns. It
// answers for the peers being run as their makers mean them to be, and for
// medians, ratios and bounds. It imports nothing of the program: it drives the
// binary as a user does, and reads the report that a user would read.
//
// Its invariant: a number in the table is the median of runs that took turns
// with those it is compared with, and a run that failed leaves a line that says
// so instead of a number.
//
//	make bench                                    # the whole table
//	BENCH_RUNS=1 BENCH_SCALE=0.2 make bench       # a quick look
//	BENCH_ROWS='1 KiB|memory' make bench          # some of it
package bench
