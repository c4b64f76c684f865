package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/store"
)

// Begin implements store.Store.
func (s *Store) Begin(ctx context.Context, head *report.Document) (store.Writer, error) {
	w, err := s.begin(ctx, head)
	if err != nil {
		return nil, s.fail("begin report "+head.ID, err)
	}
	return w, nil
}

func (s *Store) begin(ctx context.Context, head *report.Document) (*writer, error) {
	owner, err := json.Marshal(host.Self())
	if err != nil {
		return nil, err
	}
	p, err := s.encodeReport(head)
	if err != nil {
		return nil, err
	}
	p.hash = ""
	db, err := s.intervalDB()
	if err != nil {
		return nil, err
	}
	w := &writer{store: s, db: db, id: head.ID, owner: string(owner)}
	err = s.change(ctx, func(tx *sql.Tx) error {
		var there int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM reports WHERE id = ?", head.ID).Scan(&there); err != nil {
			return err
		}
		if there > 0 {
			return store.ErrExists
		}
		w.n, err = p.insert(ctx, tx, w.owner, time.Now().Unix())
		return err
	})
	if err != nil {
		return nil, err
	}
	w.start()
	return w, nil
}

// intervalDB returns the connection for intervals. Its commits survive the
// process at once and a power loss a little later, which saves a disk flush per
// interval during the measurement.
func (s *Store) intervalDB() (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readOnly {
		return nil, store.ErrReadOnly
	}
	if s.series == nil {
		path, err := filepath.Abs(s.path)
		if err != nil {
			return nil, err
		}
		db, err := s.format.Connect(path, "_pragma=synchronous(NORMAL)")
		if err != nil {
			return nil, err
		}
		s.series = db
	}
	return s.series, nil
}

// unfinished are the reports whose runs had not ended when they were last
// written.
type unfinished struct {
	running []string          // still running
	killed  map[string][]byte // their processes are gone: digests made from what was stored
}

// finishKilled handles reports whose runs had not ended: those whose process is
// gone are finished from what was stored. If the store cannot be written, or is
// full, nothing is finished: their digests are then in killed.
func (s *Store) finishKilled(ctx context.Context) (u unfinished, err error) {
	type entry struct {
		id, owner string
		beat      int64
	}
	var open []entry
	rows, err := s.db.QueryContext(ctx, "SELECT id, owner, beat FROM reports WHERE owner <> ''")
	if err != nil {
		return u, err
	}
	defer rows.Close()
	for rows.Next() {
		var e entry
		if err := rows.Scan(&e.id, &e.owner, &e.beat); err != nil {
			return u, err
		}
		open = append(open, e)
	}
	if err := rows.Err(); err != nil {
		return u, err
	}
	rows.Close()
	for _, e := range open {
		if store.Alive(e.owner, time.Unix(e.beat, 0)) {
			u.running = append(u.running, e.id)
			continue
		}
		err := s.finishOne(ctx, e.id, e.owner)
		if err != nil && !s.readOnly && !mayWait(err) {
			return u, err
		}
		if err == nil {
			continue
		}
		d, err := s.get(ctx, e.id)
		if errors.Is(err, store.ErrMissing) {
			continue // deleted in between
		}
		if err != nil {
			return u, err
		}
		row := store.RowOf(d)
		if u.killed == nil {
			u.killed = make(map[string][]byte)
		}
		if u.killed[e.id], err = row.MarshalBinary(); err != nil {
			return u, err
		}
	}
	return u, nil
}

// finishOne finishes the report of a killed run.
func (s *Store) finishOne(ctx context.Context, id, owner string) error {
	return s.change(ctx, func(tx *sql.Tx) error {
		var n int64
		err := tx.QueryRowContext(ctx, "SELECT n FROM reports WHERE id = ? AND owner = ?", id, owner).Scan(&n)
		if errors.Is(err, sql.ErrNoRows) {
			return nil // it ended after all, or another process finished it
		}
		if err != nil {
			return err
		}
		d, err := join(ctx, tx, id)
		if err != nil {
			return fmt.Errorf("assemble report %s, whose run was killed: %w", id, err)
		}
		p, err := s.encodeReport(d)
		if err != nil {
			return err
		}
		if err := p.encodeIntervals(d); err != nil {
			return err
		}
		return p.replace(ctx, tx, n)
	})
}

// replace stores the complete report in place of what is stored of report n.
func (p *encodedReport) replace(ctx context.Context, tx *sql.Tx, n int64) error {
	if _, err := tx.ExecContext(ctx, "DELETE FROM intervals WHERE k >= ? AND k < ?", n<<intervalBits, (n+1)<<intervalBits); err != nil {
		return err
	}
	if err := p.insertIntervals(ctx, tx, n); err != nil {
		return err
	}
	return p.finish(ctx, tx, n)
}

// finish marks report n, whose intervals are stored, as finished.
func (p *encodedReport) finish(ctx context.Context, tx *sql.Tx, n int64) error {
	if _, err := tx.ExecContext(ctx, "UPDATE reports SET hash = ?, head = ?, owner = '' WHERE n = ?", p.hash, p.head, n); err != nil {
		return err
	}
	return p.putDigest(ctx, tx, n)
}

// refresh makes the digests of another version of store.RowOf again. If the store
// cannot be written they stay as they are.
func (s *Store) refresh(ctx context.Context) error {
	if s.readOnly {
		return nil
	}
	const at = 256 // per transaction
	for {
		ids, err := s.stale(ctx, at)
		if err != nil || len(ids) == 0 {
			return err
		}
		err = s.change(ctx, func(tx *sql.Tx) error {
			for n := range ids {
				var head []byte
				if err := tx.QueryRowContext(ctx, "SELECT head FROM reports WHERE n = ?", n).Scan(&head); err != nil {
					return err
				}
				head, err := decompress(head)
				if err != nil {
					return err
				}
				var d report.Document // not checked against its hash: there may be thousands
				if err := json.Unmarshal(head, &d); err != nil {
					return err
				}
				p := &encodedReport{id: d.ID, row: store.RowOf(&d)}
				if err := p.putDigest(ctx, tx, n); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			if mayWait(err) {
				return nil
			}
			return fmt.Errorf("make digests again: %w", err)
		}
	}
}

// stale returns at most most reports with digests of another version.
func (s *Store) stale(ctx context.Context, most int) (map[int64]bool, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT n FROM digests WHERE version <> ? LIMIT ?", store.RowVersion, most)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := make(map[int64]bool)
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		out[n] = true
	}
	return out, rows.Err()
}
