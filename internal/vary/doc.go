// Package vary plans experiments in which several settings vary at once, and estimates what
// each of them changes. A Design has the cells to run: all combinations of the values (Grid),
// or a part of them with two values each (Screen). Order is the order in which to run them.
// Analyze estimates the effects from what the cells measured, and Judge says which of them
// are real. The package is pure: it runs nothing, and knows neither settings nor reports.
//
// Effects are ratios, so the logarithms of the numbers are analysed. Every design here is
// orthogonal, so each effect is a contrast of the cells' means. The noise is the scatter
// between repetitions of a cell and nothing else. It stays right whatever the settings do to
// each other, unlike what a model leaves unexplained.
//
// Its invariant: a term is reported only if the design tells it from every other effect of
// one setting, and terms that the design cannot tell from each other are one term with all
// their names.
package vary
