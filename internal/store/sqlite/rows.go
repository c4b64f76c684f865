package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"carronade/internal/digest"
	"carronade/internal/store"
)

// Rows implements store.Store. Digests that an older or newer program made are
// made anew on the way.
func (s *Store) Rows(ctx context.Context, q store.Query) ([]digest.Row, error) {
	open, err := s.finishKilled(ctx)
	if err == nil {
		err = s.refresh(ctx)
	}
	if err != nil {
		return nil, s.fail("list the reports", err)
	}
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // one moment of the file
	if err != nil {
		return nil, s.fail("list the reports", err)
	}
	defer func() { _ = tx.Rollback() }()
	m := digest.NewMatcher(q.Filters)
	rows, err := scan(ctx, tx, q, m, open)
	if err != nil {
		return nil, s.fail("list the reports", err)
	}
	if err := m.Err(); err != nil {
		return nil, suggest(ctx, tx, q, err)
	}
	return rows, nil
}

// scan reads the rows that a query asks for.
func scan(ctx context.Context, q querier, query store.Query, m *digest.Matcher, open unended) ([]digest.Row, error) {
	// What the filters look at is decoded first: most rows end there.
	asked := digest.NewDecoder(query.Filters.Fields([]string{}))
	kept := digest.NewDecoder(query.Fields)
	var out []digest.Row
	err := each(ctx, q, query, func(id string, b []byte) (bool, error) {
		if made, ok := open.killed[id]; ok {
			b = made // what is kept was made when the run began
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

// suggest makes the error of filters again with all that the reports have, so
// that a label can be what was meant.
func suggest(ctx context.Context, q querier, query store.Query, err error) error {
	all := digest.NewDecoder(nil)
	m := digest.NewMatcher(query.Filters)
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

// each calls f with the kept digest of each report that a query's time allows,
// newest first, until f says that it has enough. The bytes are f's for the call.
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

// withoutSum checks it and takes it off.
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
