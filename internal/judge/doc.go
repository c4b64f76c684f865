// Package judge answers questions about stored reports: it sets runs that
// differ in one variable side by side (Collate), compares one setting with
// another (Compare), says what each of several settings changes (Vary), checks
// whether the newest revision is worse than earlier ones (Verify), and writes the
// tables that other tools print at the end of a run. It decides which reports may be compared with each other, and writes the
// results as text and tables. It does not know where reports are stored or what
// a terminal is.
//
// Its invariant: it gives a verdict only where the statistics support one, and
// the reader sees what speaks against the comparison before the verdict.
package judge
