// Package trace writes a file with a row for every batch of a run, or for sampled
// events, as Parquet, which DuckDB, pandas and Spark read. It is responsible for
// the contents of rows, for not slowing down the run, and for a file that is
// readable no matter how the run ends. It does not know targets or the use of the
// rows.
// Rows go into a block of memory that is owned by one goroutine (a Feed), and full
// blocks go to one writer. The number of blocks is limited: if the writer cannot
// keep up, rows are dropped and counted, and the goroutines do not wait.
//
// Its invariant: every row is either written or counted as dropped.
package trace
