// Package measure contains what was measured: counts, histograms, the interval series,
// and the verdicts drawn from them, as plain structs that merge and encode. It does not
// depend on where the numbers come from.
//
// Its invariant: merging never loses an observation. Values outside a histogram's range
// are counted separately, and events without an answer enter the percentiles as
// censored at their age.
package measure
