// Package judge answers questions about kept reports: how runs that differ in
// one thing alone stand side by side (Collate), whether one setting is better
// than another (Compare), whether the newest revision is worse than what came
// before it (Verify), and the tables that other tools end with. It answers for
// which reports may be compared with each other, and for words and tables of
// what came of it; it refuses to know where reports are kept, and what a
// terminal is.
//
// Its invariant: a verdict is given only where the statistics carry it, and
// whoever reads one reads first what speaks against the comparison.
package judge
