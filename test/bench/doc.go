// Package bench makes the speed table of docs/performance.md: it compares the built
// program with its peers, on the same machine, against the same server, alternating.
// It runs the peers as their authors intend, and computes medians, ratios and bounds.
// It runs the binary as a user does, and reads the report that a user would read.
//
// Its invariant: a number in the table is the median of runs that alternated with
// those it is compared with, and a failed run leaves a line that says so instead of a
// number.
//
//	make bench                                    # the whole table
//	BENCH_RUNS=1 BENCH_SCALE=0.2 make bench       # a quick look
//	BENCH_ROWS='1 KiB|memory' make bench          # some of it
package bench
