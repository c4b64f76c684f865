// Package stats takes samples and gives estimates, comparisons and steps, each
// with its interval and with what makes it doubtful, as values. A sample is
// one number of each of several independent repetitions: the times inside one
// run follow each other and are no sample, and comparing two runs by them
// finds a difference in most pairs of equal ones.
//
// It answers for how often a verdict is wrong; it refuses to know what was
// measured. Its invariant: a verdict never contradicts the interval and the
// probability that stand beside it (where values are equal the interval of a
// difference may end at nothing itself, and never goes beyond), and the same
// samples give the same answer, to the bit, wherever and whenever they are
// compared.
//
// Nothing assumes how samples are distributed but Outlook, which says so.
// Medians and their intervals are order statistics, two samples meet in the
// U-test (Mann and Whitney 1947, golang.org/x/perf/benchmath), their
// difference is Hodges' and Lehmann's estimate with the interval that inverts
// that same test, and several rows that are judged together do so under
// Holm's procedure (1979). A bootstrap is not used: of six values it draws
// intervals that are too short, and they can deny what the test beside them
// says.
package stats
