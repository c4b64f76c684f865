package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlitefile"
)

// A writer stores a report during its run.
type writer struct {
	store *Store
	db    *sql.DB
	id    string
	n     int64
	owner string
	queue *store.Queue

	stored []storedInterval // used only by the queue until it is closed
	next   int64            // number of the next interval
}

// A storedInterval is an interval in the file.
type storedInterval struct {
	k            int64
	phase        string
	startS, endS float64
}

func (w *writer) start() {
	w.queue = store.NewQueue(w.keep, func(ctx context.Context) { _ = w.keep(ctx, nil) }) // a later beat may succeed
}

// Interval implements store.Writer. It does not wait for the disk.
func (w *writer) Interval(e report.Encoded) { w.queue.Add(e) }

// keep writes intervals, and removes those that one of them replaces. It also
// records that the process is alive.
func (w *writer) keep(ctx context.Context, batch []report.Encoded) error {
	ctx, stop := context.WithTimeout(ctx, 2*w.store.format.Patience)
	defer stop()
	rows, next := w.stored, w.next
	blobs := make([][]byte, len(batch))
	for i := range batch {
		blobs[i] = compress(batch[i].JSON)
	}
	err := w.store.format.Retry(ctx, func() error {
		rows, next = append(make([]storedInterval, 0, len(w.stored)+len(batch)), w.stored...), w.next
		return sqlitefile.InTransaction(ctx, w.db, func(tx *sql.Tx) error {
			if err := w.beat(ctx, tx); err != nil {
				return err
			}
			for i := range batch {
				e := &batch[i]
				rest := rows[:0] // of a copy
				for _, old := range rows {
					if old.phase != e.Phase || old.startS < e.StartS || old.endS > e.EndS {
						rest = append(rest, old)
						continue
					}
					if _, err := tx.ExecContext(ctx, "DELETE FROM intervals WHERE k = ?", old.k); err != nil {
						return err
					}
				}
				k := w.n<<intervalBits | next
				next++
				rows = append(rest, storedInterval{k, e.Phase, e.StartS, e.EndS})
				if _, err := tx.ExecContext(ctx, insertInterval, k, e.StartS, e.Sum[:], blobs[i]); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err == nil {
		w.stored, w.next = rows, next
	}
	return err
}

// beat records that the process is alive. It returns store.ErrGone if another process owns the report, or it was deleted.
func (w *writer) beat(ctx context.Context, tx *sql.Tx) error {
	r, err := tx.ExecContext(ctx, "UPDATE reports SET beat = ? WHERE n = ? AND owner = ?", time.Now().Unix(), w.n, w.owner)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return errors.Join(store.ErrGone, err)
	}
	return nil
}

// Finish implements store.Writer.
func (w *writer) Finish(ctx context.Context, d *report.Document) error {
	w.queue.Close()
	return w.store.fail("keep report "+d.ID, w.finish(ctx, d))
}

func (w *writer) finish(ctx context.Context, d *report.Document) error {
	p, err := w.store.encodeReport(d)
	if err != nil {
		return err
	}
	if d.ID != w.id {
		return errors.New("it was begun as report " + w.id)
	}
	return w.rewrite(ctx, p, d)
}

// rewrite stores the report in place of whatever exists under its id: this run
// has the correct one.
func (w *writer) rewrite(ctx context.Context, p *encodedReport, d *report.Document) error {
	if err := p.encodeIntervals(d); err != nil {
		return err
	}
	return w.store.change(ctx, func(tx *sql.Tx) error {
		var n int64
		err := tx.QueryRowContext(ctx, "SELECT n FROM reports WHERE id = ?", p.id).Scan(&n)
		if errors.Is(err, sql.ErrNoRows) {
			if n, err = p.insert(ctx, tx, "", 0); err == nil {
				err = p.insertIntervals(ctx, tx, n)
			}
			return err
		}
		if err != nil {
			return err
		}
		return p.replace(ctx, tx, n)
	})
}

// Abandon implements store.Writer.
func (w *writer) Abandon(ctx context.Context) error {
	w.queue.Close()
	err := w.store.change(ctx, func(tx *sql.Tx) error {
		var n int64
		err := tx.QueryRowContext(ctx, "SELECT n FROM reports WHERE id = ? AND owner = ?", w.id, w.owner).Scan(&n)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return remove(ctx, tx, n)
	})
	return w.store.fail("forget report "+w.id, err)
}

var _ store.Writer = (*writer)(nil)
