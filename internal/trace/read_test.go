package trace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/load"
)

// What is written is read: every row, and when the run began.
func TestRead(t *testing.T) {
	began := time.Date(2026, 11, 21, 9, 0, 0, 123_456_000, time.UTC)
	path := filepath.Join(t.TempDir(), "t.parquet")
	tr, err := Create(Options{Path: path, Every: 1, Phases: []string{"hold"}, Started: began, Due: func(_ int32, k uint64) time.Duration { return time.Duration(k) }})
	if err != nil {
		t.Fatal(err)
	}
	f := tr.Feed()
	for i := range 700 { // more events than the reader takes at once
		o := load.Outcome{Shot: load.Shot{Seq: uint64(i), First: uint64(4 * i), Events: 4, DueFirst: 1, DueLast: 4, Bytes: 402}, Sent: 14, Done: 20, Acked: 4, Place: -1}
		if i%7 == 0 {
			o.Acked, o.Failed, o.Class = 0, 4, load.Timeout
		}
		f.Fired([]load.Outcome{o})
	}
	if r := tr.Close(); r.Err != nil || r.Rows != 2800 {
		t.Fatalf("%+v", r)
	}
	want, got := read(t, path), []line(nil)
	err = Read(path, func(at time.Time, r *Row) error {
		if !at.Equal(began) {
			t.Fatalf("the run began at %s, want %s", at, began)
		}
		got = append(got, line(*r))
		return nil
	})
	if err != nil || len(got) != 2800 {
		t.Fatalf("%d rows and %v, want 2800", len(got), err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	stop := errors.New("enough")
	if err := Read(path, func(time.Time, *Row) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want what ended it", err)
	}
	if err := os.WriteFile(path, []byte("no trace"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Read(path, nil); err == nil {
		t.Error("a file that is no trace was read")
	}
}
