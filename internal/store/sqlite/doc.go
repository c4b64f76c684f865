// Package sqlite is the store of one person: an SQLite file in WAL mode, with
// compressed reports and their digests. Several processes may use it at once.
//
// It guarantees that what it stored survives when the process is killed or the
// machine loses power, and that it never writes into a file that is damaged,
// not ours, or of a newer carronade; it reports those. It does not know what
// reports mean.
//
// Its invariant: a report is a row of reports; its intervals and its digest
// exist exactly as long as that row.
package sqlite
