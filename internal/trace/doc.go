// Package trace writes a file with a row for every batch of a run, or for sampled
// events, as Parquet: DuckDB, pandas and Spark read it. It answers for what a
// row holds, for not slowing down what it writes about, and for a file that can
// be read whatever ends the run. It refuses to know targets, and what the rows
// are good for.
//
// Rows go through a block of memory that belongs to one goroutine (a Feed), and
// whole blocks go to one writer. There is a fixed number of blocks: where the
// writer cannot keep up, rows are dropped and counted, and nobody waits.
//
// Its invariant: rows written and rows dropped are all rows there were.
package trace
