// Package judge answers questions about stored reports: it shows runs that differ
// in one variable side by side (Collate), compares one setting with another
// (Compare), estimates the effects of several settings (Vary), checks whether the
// newest revision is worse than earlier ones (Verify), and writes the tables that
// other tools print at the end of a run. It decides which reports may be compared
// with each other, and writes the results as text and tables. It takes rows of
// reports; it opens no store, and does not depend on terminals.
//
// Its invariant: it gives a verdict only if the statistics support one, and the
// reader sees the reasons against the comparison before the verdict.
package judge
