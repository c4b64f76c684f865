package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlitefile"
)

// Put implements store.Store.
func (s *Store) Put(ctx context.Context, d *report.Document) error {
	return s.fail("keep report "+d.ID, s.put(ctx, d))
}

func (s *Store) put(ctx context.Context, d *report.Document) error {
	if err := d.Check(); err != nil {
		return err
	}
	p, err := s.encodeReport(d)
	if err != nil {
		return err
	}
	if err := p.encodeIntervals(d); err != nil {
		return err
	}
	return s.change(ctx, func(tx *sql.Tx) error {
		var (
			hash, owner string
			head        []byte
			beat, there int64
		)
		err := tx.QueryRowContext(ctx, "SELECT n, hash, owner, beat, head FROM reports WHERE id = ?", d.ID).Scan(&there, &hash, &owner, &beat, &head)
		if errors.Is(err, sql.ErrNoRows) {
			if there, err = p.insert(ctx, tx, "", 0); err != nil {
				return err
			}
			return p.insertIntervals(ctx, tx, there)
		}
		if err == nil {
			head, err = decompress(head)
		}
		switch {
		case err != nil:
			return err
		case owner == "" && hash == d.Hash:
			return nil
		case store.Remainder(head, d):
			return p.replace(ctx, tx, there)
		case owner != "" && store.Alive(owner, time.Unix(beat, 0)):
			return store.ErrRunning
		}
		return store.ErrExists
	})
}

// change runs a transaction that writes. If it returns no error, the data is on
// disk.
func (s *Store) change(ctx context.Context, f func(tx *sql.Tx) error) error {
	if s.readOnly {
		return store.ErrReadOnly
	}
	return s.format.Retry(ctx, func() error { return sqlitefile.InTransaction(ctx, s.db, f) })
}

// An encodedReport is a document as it is stored.
type encodedReport struct {
	id, hash string
	head     []byte
	row      store.Row
	series   []encodedBlock
}

// An encodedBlock is some intervals of a finished report as they are stored: their JSON in lines, as one frame. Intervals
// resemble each other, so together they take less.
type encodedBlock struct {
	at  float64
	sum [sha256.Size]byte
	b   []byte
}

// blockSize is the size of JSON from which a block is full.
const blockSize = 1 << 20

// encodeReport encodes everything except the intervals.
func (s *Store) encodeReport(d *report.Document) (*encodedReport, error) {
	if d.ID == "" {
		return nil, errors.New("the report has no id")
	}
	head, err := d.Head()
	if err != nil {
		return nil, err
	}
	p := &encodedReport{id: d.ID, hash: d.Hash, head: compress(head), row: store.RowOf(d)}
	return p, nil
}

// encodeIntervals encodes the intervals, in the document's order.
func (p *encodedReport) encodeIntervals(d *report.Document) error {
	if len(d.Intervals) >= 1<<intervalBits {
		return fmt.Errorf("%d intervals are more than a report can have", len(d.Intervals))
	}
	var text []byte
	first := 0
	for i := range d.Intervals {
		e, err := d.Intervals[i].Encode()
		if err != nil {
			return err
		}
		text = append(append(text, e.JSON...), '\n')
		if len(text) >= blockSize || i == len(d.Intervals)-1 {
			p.series = append(p.series, encodedBlock{float64(first), sha256.Sum256(text), compress(text)})
			text, first = text[:0], i+1
		}
	}
	return nil
}

// insert adds the report and its digest, and returns the report's number.
func (p *encodedReport) insert(ctx context.Context, tx *sql.Tx, owner string, beat int64) (int64, error) {
	r, err := tx.ExecContext(ctx, "INSERT INTO reports (id, hash, head, owner, beat) VALUES (?, ?, ?, ?, ?)", p.id, p.hash, p.head, owner, beat)
	if err != nil {
		return 0, err
	}
	n, err := r.LastInsertId()
	if err != nil {
		return 0, err
	}
	return n, p.putDigest(ctx, tx, n)
}

// putDigest stores the digest of report n, in place of an earlier one.
func (p *encodedReport) putDigest(ctx context.Context, tx *sql.Tx, n int64) error {
	row, err := p.row.MarshalBinary()
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO digests (n, id, started, version, row) VALUES (?, ?, ?, ?, ?)",
		n, p.id, p.row.At.UnixNano(), store.RowVersion, withSum(row))
	return err
}

const insertInterval = "INSERT INTO intervals (k, at, sum, data) VALUES (?, ?, ?, ?)"

// insertIntervals adds the series of report n, which must have none.
func (p *encodedReport) insertIntervals(ctx context.Context, tx *sql.Tx, n int64) error {
	add, err := tx.PrepareContext(ctx, insertInterval)
	if err != nil {
		return err
	}
	defer add.Close()
	for i := range p.series {
		e := &p.series[i]
		if _, err := add.ExecContext(ctx, n<<intervalBits|int64(i), e.at, e.sum[:], e.b); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements store.Store: it deletes all of the reports, or with an
// error none.
func (s *Store) Delete(ctx context.Context, ids ...string) error {
	open, err := s.finishKilled(ctx)
	if err != nil {
		return s.fail("delete reports", err)
	}
	alive := make(map[string]bool)
	for _, id := range open.running {
		alive[id] = true
	}
	for _, id := range ids {
		if alive[id] {
			return s.fail("delete report "+id, store.ErrRunning)
		}
	}
	err = s.change(ctx, func(tx *sql.Tx) error {
		for _, id := range ids {
			var n int64
			err := tx.QueryRowContext(ctx, "SELECT n FROM reports WHERE id = ?", id).Scan(&n)
			if errors.Is(err, sql.ErrNoRows) {
				return s.fail("delete report "+id, store.ErrMissing)
			}
			if err == nil {
				err = remove(ctx, tx, n)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return s.fail("delete reports", err)
	}
	// The file shrinks; if that fails, the reports are deleted anyway.
	_, _ = s.db.ExecContext(ctx, "PRAGMA incremental_vacuum")
	return nil
}

// remove removes report n.
func remove(ctx context.Context, tx *sql.Tx, n int64) error {
	for _, stmt := range []string{"DELETE FROM reports WHERE n = ?", "DELETE FROM digests WHERE n = ?"} {
		if _, err := tx.ExecContext(ctx, stmt, n); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM intervals WHERE k >= ? AND k < ?", n<<intervalBits, (n+1)<<intervalBits)
	return err
}
