// Package parquettest reads Parquet files with programs that others wrote:
// DuckDB, and pandas with Arrow. It answers for the Python packages (fetched
// once with pip and the user's own settings, and kept in the user's cache) and
// for what both say of a file. It refuses to know what the files are about.
//
// Its invariant: a reader that is missing fails the test and says how to get it;
// nothing is skipped.
package parquettest
