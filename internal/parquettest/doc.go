// Package parquettest reads Parquet files with other programs: DuckDB, and pandas with
// Arrow. It fetches the Python packages (once, with pip and the user's settings, into
// the user's cache) and returns what both find in a file. It knows nothing about the
// content of the files.
//
// Its invariant: if a reader is missing, the test fails and says how to get it;
// nothing is skipped.
package parquettest
