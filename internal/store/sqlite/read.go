package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"carronade/internal/report"
	"carronade/internal/store"
)

// Get implements store.Store. A report is checked against its hash.
func (s *Store) Get(ctx context.Context, id string) (*report.Document, error) {
	d, err := s.get(ctx, id)
	return d, s.fail("read report "+id, err)
}

func (s *Store) get(ctx context.Context, id string) (*report.Document, error) {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // a consistent snapshot of the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	return join(ctx, tx, id)
}

const (
	oneReport          = "SELECT n, hash, owner, head FROM reports WHERE id = ?"
	oneReportUnindexed = "SELECT n, hash, owner, head FROM reports NOT INDEXED WHERE id = ?"
)

// join makes a document from its parts. One whose run is in progress, or was
// killed, is assembled.
func join(ctx context.Context, q querier, id string) (*report.Document, error) {
	var (
		n           int64
		hash, owner string
		head        []byte
	)
	err := q.QueryRowContext(ctx, oneReport, id).Scan(&n, &hash, &owner, &head)
	if err != nil && errors.Is(cause(err), store.ErrDamaged) { // the index may be damaged and the table intact
		err = q.QueryRowContext(ctx, oneReportUnindexed, id).Scan(&n, &hash, &owner, &head)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return nil, store.ErrMissing
	}
	if err != nil {
		return nil, err
	}
	if head, err = decompress(head); err != nil {
		return nil, err
	}
	intervals, err := series(ctx, q, n)
	if err != nil {
		return nil, err
	}
	d, err := report.Join(head, intervals)
	if err != nil {
		var of struct{ Schema string }
		if json.Unmarshal(head, &of) == nil && !report.KnownSchema(of.Schema) { // of another program
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	if owner != "" {
		return report.Assemble(d, d.Intervals), nil
	}
	if err := d.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	return d, nil
}

// series reads the JSON of a report's intervals in their order.
func series(ctx context.Context, q querier, n int64) ([][]byte, error) {
	rows, err := q.QueryContext(ctx, "SELECT data FROM intervals WHERE k >= ? AND k < ? ORDER BY at, k", n<<intervalBits, (n+1)<<intervalBits)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out [][]byte
	for rows.Next() {
		var b sql.RawBytes
		if err := rows.Scan(&b); err != nil {
			return nil, err
		}
		text, err := decompress(b)
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(text) { // one, while a run goes on
			out = append(out, bytes.TrimSuffix(line, []byte("\n")))
		}
	}
	return out, rows.Err()
}

// Find implements store.Store.
func (s *Store) Find(ctx context.Context, prefix string, n int) ([]string, error) {
	if n <= 0 {
		return nil, nil
	}
	if s.damaged {
		ids, err := s.remainingIDs(ctx)
		return slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, prefix) }), s.fail("look for reports", err)
	}
	ids, err := s.ids(ctx,
		"SELECT r.id FROM reports r JOIN digests d ON d.n = r.n WHERE r.id >= ? AND r.id < ? || char(1114111) ORDER BY d.started DESC, r.n DESC LIMIT ?",
		prefix, prefix, n)
	return ids, s.fail("look for reports", err)
}

// A querier is a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}
