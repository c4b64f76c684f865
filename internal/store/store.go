package store

import (
	"context"
	"time"

	"carronade/internal/report"
)

// A Store keeps reports. Its methods may be called by several goroutines and,
// for the same place, by several processes at once.
type Store interface {
	// Place is the store's address for users, without secrets.
	Place() string
	// Begin stores the report of a run that has just begun, without measurements. Until
	// Finish it is listed as running, and once its process is gone, as killed: Get then
	// makes the report from what was stored until then.
	Begin(ctx context.Context, head *report.Document) (Writer, error)
	// Put stores a finished report. If one with the same id and hash exists,
	// nothing is done; with another hash it is an ErrExists, unless the stored
	// one is a Remainder, which the report replaces.
	Put(ctx context.Context, d *report.Document) error
	// Get returns a report by its complete id.
	Get(ctx context.Context, id string) (*report.Document, error)
	// Rows returns the rows of reports, newest first. Filters that make no
	// sense for the stored reports, such as one on a field that none has, are
	// an error with a suggestion.
	Rows(ctx context.Context, q Query) ([]Row, error)
	// Find returns the ids that begin with a prefix, newest first, at most n.
	Find(ctx context.Context, prefix string, n int) ([]string, error)
	// Delete removes reports by their complete ids.
	Delete(ctx context.Context, ids ...string) error
	Close() error
}

// A Writer stores a report during its run. It has one owner. Intervals that the
// store does not accept are offered again with the next ones. Finish stores the
// complete report, whatever was stored before, and returns only its own error.
type Writer interface {
	// Interval stores one more row of the series, already encoded. It replaces
	// the rows that it covers: those of its phase that neither start before it
	// nor end after it (after an hour, rows are joined in pairs, and the last
	// row of a phase may be corrected).
	Interval(encoded report.Encoded)
	// Finish stores the complete report and closes the writer. Stored intervals
	// whose hashes have not changed are not written again.
	Finish(ctx context.Context, d *report.Document) error
	// Abandon removes the report: the run never began to measure.
	Abandon(ctx context.Context) error
}

// A Checker is a store that can check its integrity beyond that of its reports.
// Check returns an error that wraps ErrDamaged if something is wrong.
type Checker interface {
	Check(ctx context.Context) error
}

// A Query chooses reports. The zero Query is all of them.
type Query struct {
	Filters Filters
	Since   time.Time // started at this time or later
	Limit   int       // only this many of the newest; 0: all
	Fields  []string  // the requested fields; nil: all
}
