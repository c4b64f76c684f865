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
// Only the prediction from a history (see outlook.go), the comparison of fewer
// than six values (see few.go) and the analysis of a design (see
// design_effects.go) assume a distribution of the samples.
// Medians and their intervals are order statistics. Two samples are compared by
// the U-test (Mann and Whitney 1947, golang.org/x/perf/benchmath), their
// difference has the interval that inverts the same test, and rows that are
// judged together are judged under Holm's procedure (1979). A bootstrap is not
// used: with six values its intervals are too short, and they can contradict
// the test beside them.
//
// In an experiment several settings vary at once. A Design has the cells to run: all combinations of
// the values (Grid), or a part of them with two values each (Screen). Order is the order in which to
// run them. Analyze estimates what each setting changes from what the cells measured, and
// JudgeEffects says which of these effects are real. Effects are ratios, so the logarithms of the
// numbers are analysed. Every design here is orthogonal, so each effect is a contrast of the cells'
// means. The noise is the scatter between repetitions of a cell and nothing else: it stays right
// whatever the settings do to each other, unlike what a model leaves unexplained. A term is reported
// only if the design tells it from every other effect of one setting, and terms that the design
// cannot tell from each other are one term with all their names.
package stats
