package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"carronade/internal/testkit/assert"
	"carronade/load"
)

// Read returns every written row and the start time of the run.
func TestRead(t *testing.T) {
	began := time.Date(2026, 11, 21, 9, 0, 0, 123_456_000, time.UTC)
	path := filepath.Join(t.TempDir(), "t.parquet")
	out, err := openFile(path)
	assert.OK(t, err)
	tr, err := create(Options{ // with several pages per group, and several groups
		Path: path, Every: 1, Phases: []string{"warm-up", "measurement"}, Started: began,
		Due:       func(_ int32, k uint64) time.Duration { return time.Duration(k) },
		Partition: func(stream int32) int32 { return stream - 1 },
		Key: func(dst []byte, _ int32, k uint64) ([]byte, bool) {
			return strconv.AppendUint(dst, k, 36), k%3 > 0
		},
	}, sizes{blocks: 4, page: 300, group: 1000}, out)
	assert.OK(t, err)
	go tr.write()
	f := tr.Feed()
	for i := range 700 {
		o := load.Outcome{Batch: load.Batch{Seq: uint64(i), First: uint64(4 * i), Events: 4, DueFirst: 1, DueLast: 4, Bytes: 402, Stream: int32(i % 3), Phase: int32(i % 2)}, Sent: 14, Done: 20, Acked: 4, Place: int64(i%5) - 1, Status: int16(i % 2)}
		if i%7 == 0 {
			o.Acked, o.Failed, o.Class = 0, 4, load.Timeout
		}
		f.Add([]load.Outcome{o})
	}
	if r := tr.Close(); r.Err != nil || r.Rows != 2800 {
		t.Fatalf("%+v", r)
	}
	want, got := read(t, path), []line(nil)
	err = Read(path, func(at time.Time, r *Row) error {
		assert.Must(t, at.Equal(began), "the run began at %s, want %s", at, began)
		got = append(got, copyOf(r))
		return nil
	})
	assert.Must(t, err == nil && len(got) == 2800, "%d rows and %v, want 2800", len(got), err)
	assert.Same(t, got, want)
	stop := errors.New("enough")
	if err := Read(path, func(time.Time, *Row) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want the callback's error", err)
	}
	assert.OK(t, os.WriteFile(path, []byte("no trace"), 0o644))
	if err := Read(path, nil); err == nil {
		t.Error("a file that is not a trace was read")
	}
}

// copyOf is a copy of a row that is valid after the call.
func copyOf(r *Row) line {
	for _, p := range []**int64{&r.Due, &r.DueLast, &r.Sent, &r.Requested, &r.Consumed, &r.Partition, &r.Offset, &r.Status} {
		if *p != nil {
			*p = new(**p)
		}
	}
	for _, p := range []**string{&r.Key, &r.Class} {
		if *p != nil {
			*p = new(**p)
		}
	}
	return line(*r)
}

// Damaged pages cause an error, nothing worse. The footer stays intact, because the
// library that decodes it does not check the lengths of its lists.
func FuzzRead(f *testing.F) {
	path := filepath.Join(f.TempDir(), "t.parquet")
	tr, err := Create(Options{Path: path, Every: 1, Phases: []string{"measurement"}, Started: time.Now(), Key: func(dst []byte, _ int32, k uint64) ([]byte, bool) {
		return strconv.AppendUint(dst, k, 36), k%3 > 0
	}})
	assert.OK(f, err)
	tr.Feed().Add([]load.Outcome{{Batch: load.Batch{Events: 9, DueFirst: -1, DueLast: -1, Bytes: 900}, Sent: 14, Done: 20, Acked: 7, Failed: 2, Class: load.Timeout}})
	if r := tr.Close(); r.Err != nil {
		f.Fatal(r.Err)
	}
	complete, err := os.ReadFile(path)
	assert.OK(f, err)
	n := len(complete) - 8 - int(binary.LittleEndian.Uint32(complete[len(complete)-8:]))
	pages := complete[len(magic):n]
	rows := func(b []byte) (rows int, err error) {
		file := slices.Concat([]byte(magic), b, complete[n:])
		err = readAll(bytes.NewReader(file), int64(len(file)), func(time.Time, *Row) error { rows++; return nil })
		return rows, err
	}
	if got, err := rows(pages); got != 9 || err != nil {
		f.Fatalf("%d rows and %v of the complete file, want 9", got, err)
	}
	for i := range pages { // each byte once
		bad := bytes.Clone(pages)
		bad[i] ^= 0x55
		_, _ = rows(bad)
	}
	f.Add(pages)
	f.Add(pages[:len(pages)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := rows(b); got > 9 || got < 9 && err == nil {
			t.Errorf("%d rows and %v", got, err)
		}
	})
}
