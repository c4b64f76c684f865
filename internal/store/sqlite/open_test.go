package sqlite

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/internal/advice"
	"carronade/internal/host"
	"carronade/internal/store"
	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/reporttest"
)

// filled makes a store of n reports, closes it and returns its path.
func filled(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reports.db")
	s := open(t, path)
	for i := range n {
		assert.OK(t, s.Put(t.Context(), reporttest.Document(i, 3)))
	}
	assert.OK(t, s.Close())
	return path
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b := assert.Value(os.ReadFile(path))(t)
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	assert.OK(t, os.WriteFile(path, b, 0o600))
}

// alter runs statements in a file, bypassing the store.
func alter(t *testing.T, path string, statements ...string) {
	t.Helper()
	db := assert.Value(sql.Open("sqlite", "file:"+path))(t)
	defer db.Close()
	for _, s := range statements {
		assert.Value(db.ExecContext(t.Context(), s))(t, "%s", s)
	}
}

// A file that is not a store, or not one that this program knows, is refused with a hint, and not changed.
func TestFilesThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(t *testing.T, path string) // changes a store of three reports
		want error
		hint string
	}{
		{"of a newer carronade", func(t *testing.T, path string) { alter(t, path, "PRAGMA user_version = 99") }, store.ErrNewer, "newer carronade"},
		{"another database", func(t *testing.T, path string) { alter(t, path, "PRAGMA application_id = 7") }, store.ErrForeign, "left as it is"},
		{"a database of another program", func(t *testing.T, path string) {
			assert.OK(t, os.Remove(path))
			alter(t, path, "CREATE TABLE recipes (name TEXT)")
		}, store.ErrForeign, "left as it is"},
		{"a text", func(t *testing.T, path string) { write(t, path, []byte(strings.Repeat("dear diary ", 100))) }, store.ErrForeign, "left as it is"},
		{"a short text", func(t *testing.T, path string) { write(t, path, []byte("x")) }, store.ErrForeign, "left as it is"},
		{"cut in its head", func(t *testing.T, path string) { write(t, path, read(t, path)[:60]) }, store.ErrDamaged, "--move-aside"},
		{"cut in the middle", func(t *testing.T, path string) { b := read(t, path); write(t, path, b[:len(b)/2]) }, store.ErrDamaged, "--move-aside"},
		{"overwritten", func(t *testing.T, path string) {
			b := read(t, path)
			copy(b[100:4096], bytes.Repeat([]byte("scribble"), 4096))
			write(t, path, b)
		}, store.ErrDamaged, "--move-aside"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filled(t, 3)
			tt.make(t, path)
			before := read(t, path)
			s, err := Open(t.Context(), path)
			if s != nil {
				s.Close()
			}
			var said *protocol.Error
			assert.True(t, errors.Is(err, tt.want) && errors.As(err, &said) && strings.Contains(said.Hint, tt.hint) && strings.Contains(said.Error(), path),
				"got %v (%+v), want %v with %q in its hint", err, said, tt.want, tt.hint)
			assert.True(t, bytes.Equal(read(t, path), before), "the file was changed")
		})
	}
}

func TestImpossiblePaths(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), []byte("x"))
	for _, path := range []string{dir, filepath.Join(dir, "file", "reports.db")} {
		var said *protocol.Error
		_, err := Open(t.Context(), path)
		assert.True(t, errors.As(err, &said) && said.Hint != "", "%s: got %v, want an error with a hint", path, err)
	}
}

// A file left by a process that was killed while making the store is completed by the next one.
func TestIncompleteStoreIsCompleted(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(t *testing.T, path string)
	}{
		{"empty", func(t *testing.T, path string) { write(t, path, nil) }},
		{"in WAL mode and empty", func(t *testing.T, path string) {
			alter(t, path, "PRAGMA page_size = 8192", "PRAGMA journal_mode = WAL")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "reports.db")
			tt.make(t, path)
			assert.OK(t, open(t, path).Put(t.Context(), reporttest.Document(0, 1)))
		})
	}
}

// A schema of an older version is updated with everything in it, and the older program refuses the updated file.
func TestMigration(t *testing.T) {
	path := filled(t, 3)
	next := format
	next.Steps = append(migrations[:len(migrations):len(migrations)], "ALTER TABLE reports ADD COLUMN stars INTEGER NOT NULL DEFAULT 3")
	s := assert.Value(openWith(t.Context(), path, next))(t)
	var stars int
	err := s.db.QueryRowContext(t.Context(), "SELECT sum(stars) FROM reports").Scan(&stars)
	assert.True(t, err == nil && stars == 9, "got %d and %v, want 9", stars, err)
	assert.Value(s.Get(t.Context(), reporttest.Head(1).ID))(t)
	// While it is open, and after.
	_, err = Open(t.Context(), path)
	assert.True(t, errors.Is(err, store.ErrNewer), "got %v, want %v", err, store.ErrNewer)
	s.Close()
	_, err = Open(t.Context(), path)
	assert.True(t, errors.Is(err, store.ErrNewer), "got %v, want %v", err, store.ErrNewer)
}

// A migration that fails leaves the file as it was.
func TestMigrationThatFails(t *testing.T) {
	path := filled(t, 2)
	next := format
	next.Steps = append(migrations[:len(migrations):len(migrations)], "CREATE TABLE one (n INTEGER); CREATE TABLE one (n INTEGER)")
	if s, err := openWith(t.Context(), path, next); err == nil {
		s.Close()
		t.Fatal("got no error from a failing migration")
	}
	s := open(t, path)
	var tables int
	err := s.db.QueryRowContext(t.Context(), "SELECT count(*) FROM sqlite_schema WHERE name = 'one'").Scan(&tables)
	assert.True(t, err == nil && tables == 0, "got %d tables of a failed migration and %v, want none", tables, err)
	ids, err := s.Find(t.Context(), "", 9)
	assert.True(t, err == nil && len(ids) == 2, "got %v and %v, want both reports", ids, err)
}

// The store waits while another process keeps it locked, and then returns an error.
func TestLocked(t *testing.T) {
	path := filled(t, 1)
	db := assert.Value(sql.Open("sqlite", "file:"+path))(t)
	defer db.Close()
	c := assert.Value(db.Conn(t.Context()))(t)
	defer c.Close()
	assert.Value(c.ExecContext(t.Context(), "BEGIN IMMEDIATE"))(t)
	impatient := format
	impatient.Patience = 50 * time.Millisecond
	s := assert.Value(openWith(t.Context(), path, impatient))(t) // readers do not wait
	defer s.Close()
	_, err := s.Get(t.Context(), reporttest.Head(0).ID)
	assert.True(t, err == nil, "got %v for reading while another writes", err)
	err = s.Put(t.Context(), reporttest.Document(1, 1))
	assert.True(t, errors.Is(err, store.ErrBusy), "got %v, want %v", err, store.ErrBusy)
	assert.Value(c.ExecContext(t.Context(), "COMMIT"))(t)
	assert.OK(t, s.Put(t.Context(), reporttest.Document(1, 1)), "after the lock was released")
}

func TestMoveAside(t *testing.T) {
	path := filled(t, 3)
	b := read(t, path)
	write(t, path, b[:len(b)-3])
	if _, err := Open(t.Context(), path); !errors.Is(err, store.ErrDamaged) {
		t.Fatalf("got %v, want %v", err, store.ErrDamaged)
	}
	to := assert.Value(MoveAside(path))(t)
	assert.True(t, bytes.Equal(read(t, to), b[:len(b)-3]), "the damaged file was changed")
	old := assert.Value(OpenDamaged(t.Context(), to))(t)
	defer old.Close()
	saved := 0
	for i := range 3 {
		if _, err := old.Get(t.Context(), reporttest.Head(i).ID); err == nil {
			saved++
		}
	}
	assert.True(t, saved != 0, "no report can be read from a store that lacks three bytes")
	ids, err := open(t, path).Find(t.Context(), "", 9)
	assert.True(t, err == nil && len(ids) == 0, "got %v and %v, want a new store", ids, err)
	_, err = MoveAside(filepath.Join(t.TempDir(), "nothing"))
	assert.True(t, err != nil, "got no error for a missing file")
}

// A refused file is never changed, and no file crashes the program.
func FuzzOpen(f *testing.F) {
	path := filepath.Join(f.TempDir(), "reports.db")
	s := assert.Value(Open(f.Context(), path))(f)
	assert.OK(f, s.Put(f.Context(), reporttest.Document(0, 1)))
	s.Close()
	whole := assert.Value(os.ReadFile(path))(f)
	f.Add(whole)
	f.Add(whole[:len(whole)-8192])
	f.Add(whole[:50])
	f.Add([]byte{})
	f.Add([]byte("SQLite format 3\x00"))
	for _, at := range []int{16, 20, 40, 60, 68, 100, 108, 8192, 9000, 20000} {
		b := bytes.Clone(whole)
		b[at] ^= 0xff
		f.Add(b)
	}
	id := reporttest.Head(0).ID
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "reports.db")
		write(t, path, b)
		s, err := Open(t.Context(), path)
		if err != nil {
			assert.True(t, bytes.Equal(read(t, path), b), "refused (%v) and changed", err)
			return
		}
		_, _ = s.Rows(t.Context(), store.Query{})
		_, _ = s.Find(t.Context(), "", 10)
		d, err := s.Get(t.Context(), id)
		if err == nil {
			assert.OK(t, d.Check(), "got an incomplete report")
		}
		s.Close()
	})
}

// The default place is made with its folders. Elsewhere a missing folder is an error, and nothing is made.
func TestFolderOfTheStore(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_DATA_HOME", filepath.Join(home, "data"))
	own, err := Default()
	assert.OK(t, err)
	s := assert.Value(Open(t.Context(), own))(t)
	assert.OK(t, s.Close())
	s = assert.Value(Open(t.Context(), filepath.Join(home, "here.db")))(t)
	assert.OK(t, s.Close())
	missing := filepath.Join(home, "mistyped", "reports.db")
	_, err = Open(t.Context(), missing)
	assert.True(t, errors.Is(err, store.ErrAbsent), "the error %v is not that the store is absent", err)
	assert.ErrorHas(t, err, "the folder "+filepath.Dir(missing)+" does not exist")
	_, err = os.Stat(filepath.Dir(missing))
	assert.True(t, errors.Is(err, fs.ErrNotExist), "the folder was made: %v", err)
}

// page is the page size of a new store, in bytes.
const page = 8192

// Everything intact in a damaged file is read, wherever the damage is, and never an incomplete report.
func TestOpenDamaged(t *testing.T) {
	const n = 40
	path := filled(t, n)
	whole := read(t, path)
	pages := len(whole) / page
	for _, tt := range []struct {
		name  string
		wreck func(b []byte) []byte
		least int // reports that must be readable
	}{
		{"no damage", func(b []byte) []byte { return b }, n},
		{"the last page is lost", func(b []byte) []byte { return b[:len(b)-page] }, n - 2},
		{"cut within a page", func(b []byte) []byte { return b[:len(b)-page-100] }, n - 4},
		{"the last quarter is lost", func(b []byte) []byte { return b[:pages*3/4*page] }, n / 2},
		{"a page of zeros in the middle", func(b []byte) []byte { clear(b[pages/2*page : (pages/2+1)*page]); return b }, n / 2},
		{"a page of noise near the end", func(b []byte) []byte {
			copy(b[(pages-3)*page:], bytes.Repeat([]byte("noise"), page/5))
			return b
		}, n / 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wrecked := tt.wreck(bytes.Clone(whole))
			path := filepath.Join(t.TempDir(), "reports.db")
			write(t, path, wrecked)
			s := assert.Value(OpenDamaged(t.Context(), path))(t)
			defer s.Close()
			ids, err := s.Find(t.Context(), "", 1<<20)
			got := 0
			for _, id := range ids {
				d, err := s.Get(t.Context(), id)
				switch {
				case err == nil && d.Check() != nil:
					t.Errorf("report %s is incomplete: %v", id, d.Check())
				case err == nil:
					got++
				case !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrMissing):
					t.Errorf("report %s: %v", id, err)
				}
			}
			t.Logf("%d of %d reports (%d ids, %v)", got, n, len(ids), err)
			assert.True(t, got >= tt.least, "got %d reports of %d, want %d", got, n, tt.least)
			assert.True(t, bytes.Equal(read(t, path), wrecked), "the damaged file was changed")
			left, _ := filepath.Glob(path + "-*")
			assert.True(t, len(left) == 0, "reading left files: %v", left)
		})
	}
}

// A reader makes no store.
func TestOpenExisting(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "none.db"), filepath.Join(dir, "no folder", "none.db")} {
		s, err := OpenExisting(t.Context(), path)
		if s != nil {
			s.Close()
		}
		assert.True(t, errors.Is(err, store.ErrAbsent) && advice.Hint(err) != "",
			"got %v with the hint %q, want %v and a hint", err, advice.Hint(err), store.ErrAbsent)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("got %v and %v, want no files", left, err)
	}
	s := assert.Value(OpenExisting(t.Context(), filled(t, 2)))(t)
	defer s.Close()
	ids, err := s.Find(t.Context(), reporttest.Head(1).ID, 9)
	assert.True(t, err == nil && len(ids) == 1, "got %v and %v, want a report", ids, err)
	assert.OK(t, s.Delete(t.Context(), reporttest.Head(1).ID))
}

// orphan begins report n with intervals and changes its owner to a process that is gone, or on another host.
func orphan(t *testing.T, s *Store, n, intervals int, change func(*host.Identity), heard time.Time) store.Writer {
	t.Helper()
	w := assert.Value(s.Begin(t.Context(), reporttest.Head(n)))(t)
	for i := range intervals {
		iv := reporttest.Interval(n, i)
		e := assert.Value(iv.Encode())(t)
		w.Interval(e)
	}
	reporttest.Await(t, s, reporttest.Head(n).ID, intervals)
	id := host.Self()
	change(&id)
	owner := assert.Value(json.Marshal(id))(t)
	assert.Value(s.db.ExecContext(t.Context(), "UPDATE reports SET owner = ?, beat = ? WHERE id = ?",
		string(owner), heard.Unix(), reporttest.Head(n).ID))(t)
	return w
}

func gone(id *host.Identity)      { id.PID = 1 << 30 }
func again(id *host.Identity)     { id.Start += "0" }
func elsewhere(id *host.Identity) { id.Host = "another" }

// The report of a run whose process is gone is made from what was stored.
func TestKilled(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(*host.Identity)
		heard   time.Time
		running bool
	}{
		{"its process is gone", gone, time.Now(), false},
		{"its PID was reused", again, time.Now(), false},
		{"on another host, heard of recently", elsewhere, time.Now().Add(-store.Pulse), true},
		{"on another host, silent", elsewhere, time.Now().Add(-2 * store.Missing), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, filepath.Join(t.TempDir(), "reports.db"))
			assert.OK(t, s.Put(t.Context(), reporttest.Document(0, 2)))
			w := orphan(t, s, 1, 5, tt.change, tt.heard)
			id := reporttest.Head(1).ID
			rows, err := s.Rows(t.Context(), store.Query{})
			assert.Must(t, err == nil && len(rows) == 2 && rows[0].ID == id && rows[0].Running == tt.running,
				"got %+v and %v, want %s, running: %v", rows, err, id, tt.running)
			got := rows[0].Text("stopped")
			assert.True(t, tt.running || got == string(load.Killed), "got stopped %q, want %q", got, load.Killed)
			d := assert.Value(s.Get(t.Context(), id))(t)
			assert.OK(t, d.Check())
			assert.True(t, d.Partial && len(d.Intervals) == 5 && d.Totals.Acked == 50_000,
				"got partial %v, %d intervals, %d acked, want a partial report of 5 with 50,000",
				d.Partial, len(d.Intervals), d.Totals.Acked)
			// The process was alive after all: its report counts.
			want := reporttest.Document(1, 6)
			assert.OK(t, w.Finish(t.Context(), want))
			if got, err := s.Get(t.Context(), id); err != nil || got.Hash != want.Hash || len(got.Intervals) != 6 {
				t.Errorf("got %v, want the report that the run finished", err)
			}
		})
	}
}

// A finished report is not assembled again, and is listed with its numbers.
func TestKilledIsFinished(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports.db")
	s := open(t, path)
	orphan(t, s, 1, 5, gone, time.Now())
	assert.Value(s.Rows(t.Context(), store.Query{}))(t)
	var owners int
	if err := s.db.QueryRowContext(t.Context(), "SELECT count(*) FROM reports WHERE owner <> '' OR hash = ''").Scan(&owners); err != nil || owners != 0 {
		t.Errorf("got %d open reports and %v, want none", owners, err)
	}
	rows, err := s.Rows(t.Context(), store.Query{Fields: []string{"throughput"}})
	assert.Must(t, err == nil && len(rows) == 1, "%v %v", rows, err)
	v, ok := rows[0].Num("throughput")
	assert.True(t, ok && v == 10_000, "got a throughput of %v, want 10,000", v)
	assert.OK(t, s.Delete(t.Context(), rows[0].ID), "delete the report of a killed run")
}

// If nothing can be finished, a killed run is still listed with its numbers, and found by them.
func TestKilledInAReadOnlyStore(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "reports.db"))
	orphan(t, s, 1, 5, gone, time.Now())
	s.readOnly = true
	filters := assert.Value(store.ParseFilters([]string{"throughput=10k/s", "stopped=" + string(load.Killed)}, time.Now()))(t)
	for _, q := range []store.Query{{Fields: []string{"throughput"}}, {Filters: filters}} {
		rows, err := s.Rows(t.Context(), q)
		assert.Must(t, err == nil && len(rows) == 1 && !rows[0].Running, "got %+v and %v, want a row of a run that ended", rows, err)
		v, ok := rows[0].Num("throughput")
		assert.True(t, ok && v == 10_000, "got a throughput of %v, want 10,000", v)
	}
}

// Digests of another version are made again.
func TestDigestsAreUpdated(t *testing.T) {
	testkit.Need(t, "a second")
	s := open(t, filepath.Join(t.TempDir(), "reports.db"))
	for i := range 300 { // more than in one transaction
		assert.OK(t, s.Put(t.Context(), reporttest.Document(i, 0)))
	}
	assert.Value(s.db.ExecContext(t.Context(), "UPDATE digests SET version = 0, row = x'00' WHERE n <> 7"))(t)
	rows, err := s.Rows(t.Context(), store.Query{})
	assert.Must(t, err == nil && len(rows) == 300, "got %d rows and %v, want 300", len(rows), err)
	for i := range rows {
		want := store.RowOf(reporttest.Document(299-i, 0))
		assert.Must(t, fmt.Sprint(rows[i].Fields) == fmt.Sprint(want.Fields), "row %d: got %v, want %v", i, rows[i].Fields, want.Fields)
	}
}

// A damaged part of a report is noticed, and the other reports can be read.
func TestDamagedReports(t *testing.T) {
	for _, tt := range []struct {
		name, statement string
		row             bool // the list notices it
	}{
		{"a head", "UPDATE reports SET head = substr(head, 1, length(head)/2) WHERE n = 2", false},
		{"a head of another report", "UPDATE reports SET head = (SELECT head FROM reports WHERE n = 1) WHERE n = 2", false},
		{"an interval", "UPDATE intervals SET data = x'00' WHERE k = 2<<24", false},
		{"a missing interval", "DELETE FROM intervals WHERE k = 2<<24", false},
		{"a digest", "UPDATE digests SET row = substr(row, 1, length(row)-1) WHERE n = 2", true},
		{"an empty digest", "UPDATE digests SET row = x'' WHERE n = 2", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filled(t, 3)
			s := open(t, path)
			assert.Value(s.db.ExecContext(t.Context(), tt.statement))(t)
			rows, err := s.Rows(t.Context(), store.Query{})
			assert.True(t, tt.row == errors.Is(err, store.ErrDamaged) && (tt.row || len(rows) == 3), "got %d rows and %v", len(rows), err)
			_, err = s.Get(t.Context(), reporttest.Head(1).ID)
			assert.True(t, tt.row != errors.Is(err, store.ErrDamaged), "got %v for the damaged report", err)
			for _, n := range []int{0, 2} {
				_, err := s.Get(t.Context(), reporttest.Head(n).ID)
				assert.True(t, err == nil, "got %v for an intact report", err)
			}
		})
	}
}

// TestIntervalsStandTogether: the intervals of a finished report are one row, as small as their JSON together makes
// them. A store of an older program has a row for each, and is read as well.
func TestIntervalsStandTogether(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "reports.db"))
	w := assert.Value(s.Begin(t.Context(), reporttest.Head(0)))(t)
	d := reporttest.Document(0, 30)
	for i := range d.Intervals {
		w.Interval(assert.Value(d.Intervals[i].Encode())(t))
	}
	assert.OK(t, w.Finish(t.Context(), d))
	count := func() (n, size int) {
		assert.OK(t, s.db.QueryRow("SELECT count(*), sum(length(data)) FROM intervals").Scan(&n, &size))
		return n, size
	}
	n, together := count()
	assert.Equal(t, n, 1, "rows")
	assert.Equal(t, assert.Value(s.Get(t.Context(), d.ID))(t).Hash, d.Hash, "hash")
	assert.OK(t, s.change(t.Context(), func(tx *sql.Tx) error {
		if _, err := tx.Exec("DELETE FROM intervals"); err != nil {
			return err
		}
		for i := range d.Intervals {
			e := assert.Value(d.Intervals[i].Encode())(t)
			if _, err := tx.Exec(insertInterval, 1<<intervalBits|int64(i), float64(i), e.Sum[:], compress(e.JSON)); err != nil {
				return err
			}
		}
		return nil
	}))
	n, apart := count()
	assert.True(t, n == 30 && together < apart*4/5, "%d rows of %d bytes, together %d", n, apart, together)
	assert.Equal(t, assert.Value(s.Get(t.Context(), d.ID))(t).Hash, d.Hash, "hash of an older store's report")
}

func open(t *testing.T, path string) *Store {
	t.Helper()
	s := assert.Value(Open(t.Context(), path))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// A report of 30 s takes less than 100 KiB, so that 300 of them take less than 30 MB.
func TestSize(t *testing.T) {
	const reports = 6
	path := filepath.Join(t.TempDir(), "reports.db")
	s := assert.Value(Open(t.Context(), path))(t)
	for n := range reports {
		assert.OK(t, s.Put(t.Context(), reporttest.Document(n, 30)))
	}
	assert.OK(t, s.Close())
	info := assert.Value(os.Stat(path))(t)
	assert.True(t, info.Size() < reports*100<<10, "%d reports take %d bytes", reports, info.Size())
}

func TestStore(t *testing.T) {
	reporttest.RunStore(t, func(t *testing.T) store.Store {
		dir := filepath.Join(t.TempDir(), "a folder")
		assert.OK(t, os.Mkdir(dir, 0o700))
		return open(t, filepath.Join(dir, "reports ?#%.db"))
	})
}
