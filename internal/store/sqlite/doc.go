// Package sqlite is the store of one person: a file of SQLite in WAL mode, with
// reports compressed and their digests beside them. Several processes may use
// it at once.
//
// It answers for what it returned for being there after the process was killed
// or the machine lost power, for never writing into a file that is damaged, of
// somebody else or of a newer carronade, and for saying so. It refuses to know
// what reports mean.
//
// Its invariant: a report is a row of reports; its intervals and its digest
// are there exactly while it is.
package sqlite
