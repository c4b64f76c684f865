package sqlite

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/reporttest"
)

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
	filters, err := store.ParseFilters([]string{"throughput=10k/s", "stopped=" + string(load.Killed)}, time.Now())
	assert.OK(t, err)
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
		if want := store.RowOf(reporttest.Document(299-i, 0)); fmt.Sprint(rows[i].Fields) != fmt.Sprint(want.Fields) {
			t.Fatalf("row %d: got %v, want %v", i, rows[i].Fields, want.Fields)
		}
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

// The report of an hour is finished within a second after its intervals, and
// takes less than 60 MiB.
func BenchmarkFinishAnHour(b *testing.B) {
	const intervals = 3600
	rows := make([]report.Interval, intervals)
	encoded := make([]report.Encoded, intervals)
	for i := range rows {
		rows[i] = reporttest.Interval(1, i)
		var err error
		encoded[i], err = rows[i].Encode()
		assert.OK(b, err)
	}
	d := reporttest.Complete(reporttest.Head(1), rows)
	var size int64
	for b.Loop() {
		b.StopTimer()
		path := filepath.Join(b.TempDir(), "reports.db")
		s := assert.Value(Open(b.Context(), path))(b)
		w := assert.Value(s.Begin(b.Context(), reporttest.Head(1)))(b)
		for i := range encoded {
			w.Interval(encoded[i])
		}
		for n := 0; n < intervals; {
			assert.OK(b, s.db.QueryRow("SELECT count(*) FROM intervals").Scan(&n))
		}
		b.StartTimer()
		assert.OK(b, w.Finish(b.Context(), d))
		b.StopTimer()
		assert.OK(b, s.db.QueryRow("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").Scan(&size))
		s.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(size)/(1<<20), "MiB")
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
