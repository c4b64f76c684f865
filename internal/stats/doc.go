// Package stats computes estimates, comparisons and steps from samples, each
// with its interval and with the reason if it is doubtful. A sample is one
// number from each of several independent repetitions. The times within one run
// depend on each other and are not a sample: comparing two runs by them finds a
// difference in most pairs of equal runs.
//
// The package is responsible for how often a verdict is wrong. It does not know
// what was measured. Its invariant: a verdict never contradicts the interval
// and the probability shown beside it (with equal values, the interval of a
// difference may end exactly at 0, and never extends beyond), and the same
// samples give the same result, to the bit, on every machine.
//
// The difference of two samples is that of the medians shown beside it.
//
// Only the prediction from a history (see outlook.go) and the comparison of
// fewer than six values (see few.go) assume a distribution of the samples.
// Medians and their intervals are order statistics. Two samples are compared by
// the U-test (Mann and Whitney 1947, golang.org/x/perf/benchmath), their
// difference has the interval that inverts the same test, and rows that are
// judged together are judged under Holm's procedure (1979). A bootstrap is not
// used: with six values its intervals are too short, and they can contradict
// the test beside them.
package stats
