package store

import (
	"context"
	"time"

	"carronade/internal/digest"
	"carronade/internal/report"
)

// A Store keeps reports. Its methods may be called by several goroutines and,
// of the same place, by several processes at once.
type Store interface {
	// Place names the store for people, without secrets.
	Place() string
	// Begin keeps a report of a run that has just begun: what is known of it
	// before anything was measured. Until Finish it is listed as running, and
	// once its process is gone, as killed: Get makes the report from what was
	// kept until then.
	Begin(ctx context.Context, head *report.Document) (Writer, error)
	// Put keeps a finished report. One with the same id and hash is there
	// already, and nothing is done; with another hash it is an Exists, unless it
	// is a Remainder, in whose place the report is put.
	Put(ctx context.Context, d *report.Document) error
	// Get returns a report by its whole id.
	Get(ctx context.Context, id string) (*report.Document, error)
	// Rows returns the digests of reports, newest first. Filters that make no
	// sense for the reports that are there, such as one on a field that none
	// has, are an error that says what may have been meant.
	Rows(ctx context.Context, q Query) ([]digest.Row, error)
	// Find returns the ids that a prefix fits, newest first, at most n.
	Find(ctx context.Context, prefix string, n int) ([]string, error)
	// Delete forgets reports by their whole ids.
	Delete(ctx context.Context, ids ...string) error
	Close() error
}

// A Writer keeps a report while its run goes on. It has one owner. What the
// store does not take is offered again with what follows; Finish keeps the whole
// report, whatever was kept before, and returns its own error alone.
type Writer interface {
	// Interval keeps one more row of the series, encoded already. It takes the
	// place of the rows that it covers: those of its phase that neither start
	// before it nor end after it (an hour of seconds is joined in pairs from
	// then on, and the last row of a phase may be corrected).
	Interval(encoded report.Encoded)
	// Finish keeps the whole report and closes the writer. Intervals that were
	// kept and have not changed (their hashes say so) are not written again.
	Finish(ctx context.Context, d *report.Document) error
	// Abandon forgets the report: the run never began to measure.
	Abandon(ctx context.Context) error
}

// A Checker is a store that can tell more of its own wholeness than its reports
// do. Check returns an error that wraps ErrDamaged when something is wrong.
type Checker interface {
	Check(ctx context.Context) error
}

// A Query chooses reports. The zero Query is all of them.
type Query struct {
	Filters digest.Filters
	Since   time.Time // started then or later
	Limit   int       // the newest so many; 0: all
	Fields  []string  // only these fields are wanted; nil: all
}
