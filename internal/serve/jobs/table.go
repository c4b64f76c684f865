package jobs

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"carronade/internal/store/sqlitefile"
	"carronade/protocol"
)

// format is that of jobs.db. Its ID is "Crnj".
var format = sqlitefile.Format{ID: 0x43726e6a, Patience: 10 * time.Second, Steps: []string{
	`
CREATE TABLE jobs (
  id        INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, also after deletion
  system    TEXT NOT NULL,
  user      TEXT NOT NULL,
  typed     TEXT NOT NULL,
  args      BLOB NOT NULL,              -- each ends with a zero byte
  dir       TEXT NOT NULL,
  env       BLOB NOT NULL,              -- each ends with a zero byte
  state     TEXT NOT NULL,
  submitted INTEGER NOT NULL,           -- ns since the epoch
  started   INTEGER NOT NULL DEFAULT 0, -- 0: not started
  ended     INTEGER NOT NULL DEFAULT 0, -- 0: not ended
  exit      INTEGER NOT NULL DEFAULT 0,
  reason    TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX jobs_open ON jobs (id) WHERE ended = 0;
CREATE INDEX jobs_ended ON jobs (ended) WHERE ended <> 0;
`,
}}

// A table is an open jobs.db.
type table struct {
	path string
	db   *sql.DB
}

// openTable opens the file, or makes it.
func openTable(ctx context.Context, path string) (*table, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = format.CheckHeader(file)
	file.Close()
	if err != nil {
		return nil, err
	}
	db, err := format.Prepare(ctx, path)
	if err != nil {
		if db != nil {
			db.Close()
		}
		return nil, err
	}
	return &table{path: path, db: db}, nil
}

func (t *table) close() error { return t.db.Close() }

// change runs a transaction that writes. It is on disk, or was not done. The
// context only keeps it from starting: a transaction that is broken off while
// it is committed may have been done or not.
func (t *table) change(ctx context.Context, do func(ctx context.Context, tx *sql.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	return format.Retry(ctx, func() error {
		return sqlitefile.InTransaction(ctx, t.db, func(tx *sql.Tx) error { return do(ctx, tx) })
	})
}

// add stores a queued job and sets its number.
func (t *table) add(ctx context.Context, j *Job) error {
	return t.change(ctx, func(ctx context.Context, tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, "INSERT INTO jobs (system, user, typed, args, dir, env, state, submitted) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			j.System, j.User, j.Typed, pack(j.Args), j.Dir, pack(j.Env), string(j.State), j.Submitted.UnixNano())
		if err != nil {
			return err
		}
		j.ID, err = r.LastInsertId()
		return err
	})
}

// begin stores that a job runs. It may be repeated.
func (t *table) begin(ctx context.Context, id int64, at time.Time) error {
	return t.change(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return one(tx.ExecContext(ctx, "UPDATE jobs SET state = ?, started = ? WHERE id = ? AND ended = 0", string(Running), at.UnixNano(), id))
	})
}

// end stores how a job ended, and deletes the oldest ended jobs beyond those
// that are kept. It returns the deleted. It may be repeated.
func (t *table) end(ctx context.Context, j *Job, keep int) (deleted []int64, err error) {
	err = t.change(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := one(tx.ExecContext(ctx, "UPDATE jobs SET state = ?, ended = ?, exit = ?, reason = ? WHERE id = ?",
			string(j.State), j.Ended.UnixNano(), j.Exit, j.Reason, j.ID)); err != nil {
			return err
		}
		deleted, err = prune(ctx, tx, keep)
		return err
	})
	return deleted, err
}

// recover stores that the running jobs were interrupted at a time, because
// their server is gone, and prunes.
func (t *table) recover(ctx context.Context, at time.Time, reason string, keep int) (deleted []int64, err error) {
	err = t.change(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE jobs SET state = ?, ended = max(started, ?), exit = -1, reason = ? WHERE state = ?",
			string(Interrupted), at.UnixNano(), reason, string(Running))
		if err != nil {
			return err
		}
		deleted, err = prune(ctx, tx, keep)
		return err
	})
	return deleted, err
}

// prune deletes all ended jobs but the newest.
func prune(ctx context.Context, tx *sql.Tx, keep int) (deleted []int64, err error) {
	rows, err := tx.QueryContext(ctx, "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE ended <> 0 ORDER BY ended DESC, id DESC LIMIT -1 OFFSET ?) RETURNING id", keep)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		deleted = append(deleted, id)
	}
	return deleted, rows.Err()
}

// one returns an error if a statement did not change exactly one job.
func one(r sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n != 1 {
		return errors.Join(fmt.Errorf("%d jobs were changed, not 1", n), err)
	}
	return nil
}

const columns = "SELECT id, system, user, typed, args, dir, env, state, submitted, started, ended, exit, reason FROM jobs"

// find returns the selected jobs, oldest first.
func (t *table) find(ctx context.Context, f Filter) ([]Job, error) {
	var (
		where []string
		args  []any
	)
	if f.System != "" {
		where, args = append(where, "system = ?"), append(args, f.System)
	}
	if f.User != "" {
		where, args = append(where, "user = ?"), append(args, f.User)
	}
	if len(f.States) > 0 {
		for _, s := range f.States {
			args = append(args, string(s))
		}
		where = append(where, "state IN (?"+strings.Repeat(", ?", len(f.States)-1)+")")
		if !slices.ContainsFunc(f.States, State.Ended) {
			where = append(where, "ended = 0") // has an index
		}
	}
	query := columns
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	query += " ORDER BY id DESC"
	if f.Newest > 0 {
		query += " LIMIT ?"
		args = append(args, f.Newest)
	}
	rows, err := t.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Job
	for rows.Next() {
		j, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, j)
	}
	slices.Reverse(out)
	return out, rows.Err()
}

// get returns a job.
func (t *table) get(ctx context.Context, id int64) (Job, error) {
	j, err := scan(t.db.QueryRowContext(ctx, columns+" WHERE id = ?", id))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNoJob
	}
	return j, err
}

func scan(row interface{ Scan(to ...any) error }) (j Job, err error) {
	var (
		args, env                 []byte
		state                     string
		submitted, started, ended int64
	)
	err = row.Scan(&j.ID, &j.System, &j.User, &j.Typed, &args, &j.Dir, &env, &state, &submitted, &started, &ended, &j.Exit, &j.Reason)
	j.Args, j.Env, j.State = unpack(args), unpack(env), State(state)
	for _, t := range []struct {
		to *time.Time
		ns int64
	}{{&j.Submitted, submitted}, {&j.Started, started}, {&j.Ended, ended}} {
		if t.ns != 0 {
			*t.to = time.Unix(0, t.ns)
		}
	}
	return j, err
}

// waiting returns the jobs that have not ended, oldest first, without their
// requests' details.
func (t *table) waiting(ctx context.Context) (out []Job, err error) {
	rows, err := t.db.QueryContext(ctx, "SELECT id, system, user, state FROM jobs WHERE ended = 0 ORDER BY id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var (
			j     Job
			state string
		)
		if err := rows.Scan(&j.ID, &j.System, &j.User, &state); err != nil {
			return nil, err
		}
		j.State = State(state)
		out = append(out, j)
	}
	return out, rows.Err()
}

// pack joins texts, none of which has a zero byte, exactly.
func pack(texts []string) []byte {
	b := []byte{}
	for _, t := range texts {
		b = append(append(b, t...), 0)
	}
	return b
}

func unpack(b []byte) (texts []string) {
	for len(b) > 0 {
		t, rest, _ := bytes.Cut(b, []byte{0})
		texts, b = append(texts, string(t)), rest
	}
	return texts
}

// kinds are this package's errors for those of a file.
var kinds = map[error]error{
	sqlitefile.ErrReadOnly: ErrReadOnly,
	sqlitefile.ErrFull:     ErrFull,
	sqlitefile.ErrBusy:     ErrBusy,
	sqlitefile.ErrDamaged:  ErrDamaged,
	sqlitefile.ErrForeign:  ErrForeign,
	sqlitefile.ErrNewer:    ErrNewer,
}

// hints say what to do about an error.
var hints = []struct {
	is   error
	hint string
}{
	{ErrInUse, "stop that server, or use another data folder"},
	{ErrReadOnly, "use another data folder, or run as a user who may write to this one"},
	{ErrFull, "free some space on the disk of the data folder, and try again"},
	{ErrBusy, "close the program that has jobs.db open, and try again"},
	{ErrDamaged, "use another data folder, or rename jobs.db and the files jobs.db-* to begin with an empty list"},
	{ErrForeign, "use another data folder; this file was not changed"},
	{ErrNewer, "use the newer carronade, or another data folder"},
	{ErrNoJob, "the list of jobs shows the numbers; only the newest ended jobs are kept"},
}

// fail makes an error for users. One that is already for users, or is due to an
// interruption, is returned unchanged.
func fail(doing, dir string, err error) error {
	var ready *protocol.Error
	if err == nil || errors.As(err, &ready) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrClosed) {
		return err
	}
	if e, ok := errors.AsType[*sqlitefile.Error](sqlitefile.Cause(err)); ok {
		err = e.In(kinds[e.Kind])
	}
	out := &protocol.Error{Doing: doing, Err: err, Hint: "check the data folder " + filepath.Clean(dir)}
	for _, h := range hints {
		if errors.Is(err, h.is) {
			out.Hint = h.hint
		}
	}
	return out
}
