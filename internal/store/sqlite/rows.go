package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"carronade/internal/store"
)

// Rows implements store.Store. Digests of an older or newer program are made
// again first.
func (s *Store) Rows(ctx context.Context, q store.Query) ([]store.Row, error) {
	open, err := s.finishKilled(ctx)
	if err == nil {
		err = s.refresh(ctx)
	}
	if err != nil {
		return nil, s.fail("list the reports", err)
	}
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // a consistent snapshot of the file
	if err != nil {
		return nil, s.fail("list the reports", err)
	}
	defer func() { _ = tx.Rollback() }()
	m := store.NewMatcher(q.Filters)
	rows, err := scan(ctx, tx, q, m, open)
	if err != nil {
		return nil, s.fail("list the reports", err)
	}
	if err := m.Err(); err != nil {
		return nil, suggest(ctx, tx, q, err)
	}
	return rows, nil
}

// scan reads the rows of a query.
func scan(ctx context.Context, q querier, query store.Query, m *store.Matcher, open unfinished) ([]store.Row, error) {
	// The fields of the filters are decoded first: most rows are dropped there.
	asked := store.NewRowDecoder(query.Filters.Fields([]string{}))
	kept := store.NewRowDecoder(query.Fields)
	var out []store.Row
	err := each(ctx, q, query, func(id string, b []byte) (bool, error) {
		if made, ok := open.killed[id]; ok {
			b = made // the stored one was made when the run began
		}
		if len(query.Filters) > 0 {
			row, err := asked.Row(b)
			if err != nil {
				return false, err
			}
			if !m.Match(&row) {
				return true, nil
			}
		}
		row, err := kept.Row(b)
		if err != nil {
			return false, err
		}
		row.Running = slices.Contains(open.running, id)
		out = append(out, row)
		return query.Limit <= 0 || len(out) < query.Limit, nil
	})
	return out, err
}

// suggest makes the error of the filters again, with all fields of the reports,
// so that it can suggest a label.
func suggest(ctx context.Context, q querier, query store.Query, err error) error {
	all := store.NewRowDecoder(nil)
	m := store.NewMatcher(query.Filters)
	_ = each(ctx, q, query, func(_ string, b []byte) (bool, error) {
		row, err := all.Row(b)
		if err == nil {
			m.Match(&row)
		}
		return true, err
	})
	if better := m.Err(); better != nil {
		return better
	}
	return err
}

// each calls f with the stored digest of each report in the time range of the
// query, newest first, until f returns false. The bytes are valid only during
// the call.
func each(ctx context.Context, q querier, query store.Query, f func(id string, row []byte) (more bool, err error)) error {
	since := int64(0)
	if !query.Since.IsZero() {
		since = query.Since.UnixNano()
	}
	rows, err := q.QueryContext(ctx, "SELECT id, row FROM digests WHERE started >= ? ORDER BY started DESC, n DESC", since)
	if err != nil {
		return err
	}
	defer rows.Close()
	for more := true; more && rows.Next(); {
		var id, b sql.RawBytes
		if err := rows.Scan(&id, &b); err != nil {
			return err
		}
		row, err := withoutSum(b)
		if err == nil {
			more, err = f(string(id), row)
		}
		if err != nil {
			return fmt.Errorf("%w (the digest of report %s: %w)", store.ErrDamaged, id, err)
		}
	}
	return rows.Err()
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// withSum appends a checksum.
func withSum(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// withoutSum checks and removes the checksum.
func withoutSum(b []byte) ([]byte, error) {
	const sum = 4
	if len(b) < sum {
		return nil, fmt.Errorf("it has %d bytes", len(b))
	}
	body := b[:len(b)-sum]
	if binary.LittleEndian.Uint32(b[len(b)-sum:]) != crc32.Checksum(body, castagnoli) {
		return nil, fmt.Errorf("its checksum is wrong")
	}
	return body, nil
}
