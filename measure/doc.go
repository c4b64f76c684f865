// Package measure holds what was measured: counts, histograms, the interval
// series, and the verdicts drawn from them, as plain structs that merge and
// encode. It refuses to know where numbers come from.
//
// Its invariant: merging never loses an observation. What lies outside a
// histogram's range is counted beside it, and what never got an answer enters
// the percentiles as censored at its age.
package measure
