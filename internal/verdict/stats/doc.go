// Package stats computes estimates, comparisons and steps from samples. Each result has its interval
// and, if it is doubtful, the reason. A sample has one number from each of several independent
// repetitions. The times within one run are not a sample, because they depend on each other: if two
// equal runs are compared by them, most comparisons find a difference.
//
// The package is responsible for how often a verdict is wrong. It does not know what was measured. It
// has two invariants. A verdict never contradicts the interval and the probability that are shown next to
// it. (If values are equal, the interval of a difference may end exactly at 0, but does not go beyond.)
// And the same samples give the same result, to the bit, on every machine.
//
// The difference of two samples is the difference of the two medians that are shown next to it.
//
// Three parts of the package assume a distribution of the samples: the prediction from a history
// (outlook.go), the comparison of fewer than six values (few.go) and the analysis of a design
// (design_effects.go). All others do not:
//
//   - Medians and their intervals are order statistics.
//   - Two samples are compared by the U-test (Mann and Whitney 1947, golang.org/x/perf/benchmath).
//   - The interval of their difference has the values at which the same test would find no difference.
//   - Rows that are judged together are judged by Holm's procedure (1979).
//
// The package uses no bootstrap: with six values its intervals are too short, and they can contradict
// the test.
//
// In an experiment several settings vary at once. A Design has all combinations of their values, its
// cells. Order puts the cells into the order in which to run them. Analyze takes what the cells measured
// and estimates what each setting changes. JudgeEffects says which of these effects are real.
//
// Effects are ratios, so the package analyses the logarithms of the numbers. An effect is a contrast: the
// mean of some cells less the mean of the others. The noise is the scatter between the repetitions of a
// cell. The part that a model leaves unexplained is not used as noise: it would be too large when settings
// influence each other.
package stats
