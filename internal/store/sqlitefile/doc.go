// Package sqlitefile opens SQLite files that belong to this program: in WAL
// mode, with a full sync at each commit, and with a schema that is brought up
// to date. It translates SQLite's errors into a few kinds.
//
// It guarantees that a file is not changed if it is damaged, belongs to another
// program, or was written by a newer version of this one. It does not know what
// the tables mean.
package sqlitefile
