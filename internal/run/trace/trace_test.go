package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"carronade/internal/host"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/parquettest"
)

// A line is a row of the file.
type line struct {
	Lane      int64   `parquet:"connection"`
	Sequence  int64   `parquet:"sequence"`
	Attempt   int64   `parquet:"attempt"`
	Stream    int64   `parquet:"stream"`
	Event     int64   `parquet:"event"`
	Key       *string `parquet:"key"`
	Phase     string  `parquet:"phase"`
	Due       *int64  `parquet:"due_ns"`
	DueLast   *int64  `parquet:"due_last_ns"`
	Sent      *int64  `parquet:"sent_ns"`
	Done      int64   `parquet:"done_ns"`
	Requested *int64  `parquet:"requested_ns"`
	Consumed  *int64  `parquet:"consumed_ns"`
	Partition *int64  `parquet:"partition"`
	Offset    *int64  `parquet:"log_offset"`
	Events    int64   `parquet:"events"`
	Bytes     int64   `parquet:"bytes"`
	Wire      int64   `parquet:"wire_bytes"`
	Acked     int64   `parquet:"acked"`
	Failed    int64   `parquet:"failed"`
	Unknown   int64   `parquet:"unknown"`
	Outcome   string  `parquet:"outcome"`
	Class     *string `parquet:"class"`
	Status    *int64  `parquet:"status"`
	Retries   int64   `parquet:"retries"`
}

func read(t testing.TB, path string) []line {
	t.Helper()
	return parquettest.Rows[line](parquettest.Open(t, path))
}

// written writes a trace of outcomes and reads it back.
func written(t testing.TB, o Options, out []load.Outcome) ([]line, Result) {
	t.Helper()
	o.Path = filepath.Join(t.TempDir(), "t.parquet")
	if o.Phases == nil {
		o.Phases = []string{"measurement"}
	}
	tr := assert.Value(Create(o))(t)
	tr.Feed().Add(out)
	r := tr.Close()
	assert.Must(t, r.Err == nil && r.Dropped == 0, "%+v", r)
	return read(t, o.Path), r
}

func TestRows(t *testing.T) {
	const ms = time.Millisecond
	batch := load.Batch{Seq: 7, First: 100, Stream: 2, Events: 4, Phase: 1, DueFirst: 10 * ms, DueLast: 13 * ms, Bytes: 402}
	acked := load.Outcome{Batch: batch, Lane: 3, Sent: 14 * ms, Done: 20 * ms, Acked: 4, Place: 55, Wire: 80}
	for _, tt := range []struct {
		name string
		o    Options
		out  func(o *load.Outcome)
		want []line
	}{
		{
			name: "acked",
			want: []line{{
				Lane: 3, Sequence: 7, Stream: 2, Event: 100, Phase: "measurement", Due: new(int64(10 * ms)), DueLast: new(int64(13 * ms)),
				Sent: new(int64(14 * ms)), Done: int64(20 * ms), Offset: new(int64(55)), Events: 4, Bytes: 402, Wire: 80, Acked: 4, Outcome: "acked",
			}},
		},
		{
			name: "due at time 0",
			out:  func(o *load.Outcome) { o.DueFirst, o.DueLast, o.Sent, o.Place, o.Phase = 0, 0, 0, 0, 0 },
			want: []line{{
				Lane: 3, Sequence: 7, Stream: 2, Event: 100, Phase: "warm-up", Due: new(int64(0)), DueLast: new(int64(0)), Sent: new(int64(0)),
				Done: int64(20 * ms), Offset: new(int64(0)), Events: 4, Bytes: 402, Wire: 80, Acked: 4, Outcome: "acked",
			}},
		},
		{
			name: "failed, never written, without a schedule",
			out: func(o *load.Outcome) {
				o.DueFirst, o.DueLast, o.Sent, o.Place, o.Acked, o.Failed, o.Class, o.Status = -1, -1, -1, -1, 0, 4, load.Throttled, 429
			},
			want: []line{{
				Lane: 3, Sequence: 7, Stream: 2, Event: 100, Phase: "measurement", Done: int64(20 * ms), Events: 4, Bytes: 402, Wire: 80, Failed: 4,
				Outcome: "failed", Class: new("throttled"), Status: new(int64(429)),
			}},
		},
		{
			name: "accepted in part, at a second attempt",
			o:    Options{Partition: func(s int32) int32 { return s * 10 }},
			out: func(o *load.Outcome) {
				o.Attempt, o.FirstSent, o.Retries, o.Acked, o.Unknown, o.Class = 1, 12*ms, 2, 1, 3, load.Timeout
			},
			want: []line{{
				Lane: 3, Sequence: 7, Attempt: 1, Retries: 2, Stream: 2, Event: 100, Phase: "measurement", Due: new(int64(10 * ms)), DueLast: new(int64(13 * ms)),
				Sent: new(int64(12 * ms)), Done: int64(20 * ms), Offset: new(int64(55)), Events: 4, Bytes: 402, Wire: 80, Acked: 1, Unknown: 3,
				Outcome: "mixed", Class: new("timeout"), Partition: new(int64(20)),
			}},
		},
		{
			name: "a batch group is a row per batch",
			out: func(o *load.Outcome) {
				o.DueFirst, o.DueLast, o.Batches, o.Place, o.Bytes, o.Wire = -1, -1, 2, -1, 11, 0
			},
			want: []line{
				{Lane: 3, Sequence: 7, Stream: 2, Event: 100, Phase: "measurement", Sent: new(int64(14 * ms)), Done: int64(20 * ms), Events: 2, Bytes: 5, Acked: 2, Outcome: "acked"},
				{Lane: 3, Sequence: 8, Stream: 2, Event: 102, Phase: "measurement", Sent: new(int64(14 * ms)), Done: int64(20 * ms), Events: 2, Bytes: 6, Acked: 2, Outcome: "acked"},
			},
		},
		{
			name: "single events, each by its own due time and key",
			o: Options{
				Every: 1, Due: func(_ int32, k uint64) time.Duration { return time.Duration(k) * ms / 10 },
				Key: func(dst []byte, s int32, k uint64) ([]byte, bool) { return fmt.Appendf(dst, "k%d-%d", s, k), k != 102 },
			},
			out: func(o *load.Outcome) { o.Acked, o.Failed, o.Class = 3, 1, load.Rejected },
			want: []line{
				{Lane: 3, Sequence: 7, Stream: 2, Event: 100, Key: new("k2-100"), Phase: "measurement", Due: new(int64(10 * ms)), DueLast: new(int64(10 * ms)), Sent: new(int64(14 * ms)), Done: int64(20 * ms), Offset: new(int64(55)), Events: 1, Bytes: 100, Wire: 20, Acked: 1, Outcome: "acked"},
				{Lane: 3, Sequence: 7, Stream: 2, Event: 101, Key: new("k2-101"), Phase: "measurement", Due: new(int64(10100 * time.Microsecond)), DueLast: new(int64(10100 * time.Microsecond)), Sent: new(int64(14 * ms)), Done: int64(20 * ms), Offset: new(int64(56)), Events: 1, Bytes: 101, Wire: 20, Acked: 1, Outcome: "acked"},
				{Lane: 3, Sequence: 7, Stream: 2, Event: 102, Phase: "measurement", Due: new(int64(10200 * time.Microsecond)), DueLast: new(int64(10200 * time.Microsecond)), Sent: new(int64(14 * ms)), Done: int64(20 * ms), Offset: new(int64(57)), Events: 1, Bytes: 100, Wire: 20, Acked: 1, Outcome: "acked"},
				{Lane: 3, Sequence: 7, Stream: 2, Event: 103, Key: new("k2-103"), Phase: "measurement", Due: new(int64(10300 * time.Microsecond)), DueLast: new(int64(10300 * time.Microsecond)), Sent: new(int64(14 * ms)), Done: int64(20 * ms), Offset: new(int64(58)), Events: 1, Bytes: 101, Wire: 20, Failed: 1, Outcome: "failed", Class: new("rejected")},
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := acked
			if tt.out != nil {
				tt.out(&o)
			}
			tt.o.Phases = []string{"warm-up", "measurement"}
			got, r := written(t, tt.o, []load.Outcome{o})
			assert.Same(t, got, tt.want, "rows")
			assert.Equal(t, r.Rows, uint64(len(tt.want)), "%d rows, but the result", len(tt.want))
		})
	}
}

// Rows of a round trip and of a pipeline, from any goroutine; those after the end are left out.
func TestConsumed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.parquet")
	tr := assert.Value(Create(Options{Path: path, Phases: []string{"measurement"}}))(t)
	m := tr.SharedFeed()
	out := outcomes(100)
	var all sync.WaitGroup
	for i := range out {
		all.Go(func() {
			if i == 0 {
				m.Missed(&out[i])
				return
			}
			if i%2 == 1 {
				m.Read(&out[i], out[i].Done+1, out[i].Done+time.Duration(i))
				return
			}
			m.Consumed(&out[i], out[i].Done+time.Duration(i))
		})
	}
	all.Wait()
	r := tr.Close()
	m.Consumed(&out[0], time.Second)
	again := tr.Close()
	assert.True(t, again == r && r.Rows == 100, "%+v, and when closed again %+v", r, again)
	for _, l := range read(t, path) {
		type times struct{ Requested, Consumed *int64 }
		want := times{nil, new(l.Done + l.Sequence)}
		switch {
		case l.Sequence == 0:
			want.Consumed = nil
		case l.Sequence%2 == 1:
			want.Requested = new(l.Done + 1)
		}
		assert.NoDiff(t, cmp.Diff(want, times{l.Requested, l.Consumed}), "batch %d", l.Sequence)
	}
}

// One of each `every` events is chosen, regardless of the batches, and repeatably.
func TestSampler(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sampler{every: rapid.Uint64Range(1, 50).Draw(t, "every"), seed: rapid.Uint64().Draw(t, "seed")}
		const n = 1000
		var got []uint64
		for at := uint64(0); at < n; {
			events := rapid.Int32Range(1, 90).Draw(t, "events")
			events = min(events, int32(n-at))
			s.each(3, at, events, func(k int32) { got = append(got, at+uint64(k)) })
			at += uint64(events)
		}
		for i, k := range got {
			assert.Must(t, k/s.every == uint64(i), "event %d is chosen event number %d, with one of each %d chosen", k, i, s.every)
		}
		if atLeast := n / s.every; uint64(len(got)) < atLeast {
			t.Fatalf("%d events of %d, want one of each %d", len(got), n, s.every)
		}
		var again []uint64
		s.each(3, 0, n, func(k int32) { again = append(again, uint64(k)) })
		if diff := cmp.Diff(got, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestManyRows: several pages and row groups, from several feeds.
func TestManyRows(t *testing.T) {
	testkit.Need(t, "a second")
	const rows, feeds = 50_017, 3
	path := filepath.Join(t.TempDir(), "t.parquet")
	disk := assert.Value(openFile(path))(t)
	tr := assert.Value(create(Options{Phases: []string{"measurement"}}, sizes{blocks: 16, page: 1000, group: 20_000}, disk))(t)
	go tr.write()
	out := outcomes(rows)
	var all sync.WaitGroup
	for i := range feeds {
		f := tr.Feed()
		part := out[i*rows/feeds : (i+1)*rows/feeds]
		all.Go(func() {
			for len(part) > 0 {
				n := min(len(part), 1000)
				f.Add(part[:n])
				part = part[n:]
				for len(tr.full) > 8 { // not faster than the writer
					runtime.Gosched()
				}
			}
		})
	}
	all.Wait()
	r := tr.Close()
	assert.Must(t, r.Rows == rows && r.Dropped == 0 && r.Err == nil, "%+v, want %d rows", r, rows)
	seen := make([]bool, rows)
	for _, l := range read(t, path) {
		want := &out[l.Sequence]
		assert.Must(t, !seen[l.Sequence] && l.Done == int64(want.Done) && *l.Sent == int64(want.Sent) &&
			*l.Offset == want.Place, "row %+v, of %+v", l, want)
		seen[l.Sequence] = true
	}
	for i, s := range seen {
		assert.Must(t, s, "batch %d is missing", i)
	}
	info := assert.Value(os.Stat(path))(t)
	assert.True(t, info.Size() == r.Bytes, "the file has %v bytes, but the result has %d", info.Size(), r.Bytes)
}

// If the writer cannot keep up, rows are dropped and counted, feeds do not wait, and memory is limited.
func TestWriterTooSlow(t *testing.T) {
	for _, every := range []uint64{0, 7} {
		t.Run(fmt.Sprint("every ", every), func(t *testing.T) {
			d := &memory{}
			few := sizes{blocks: 4, page: 1000, group: 7000}
			tr := assert.Value(create(Options{Phases: []string{"measurement"}, Every: every}, few, &file{f: d}))(t)
			f := tr.Feed()
			out := outcomes(2 * 4 * blockRows) // the writer does not run yet
			f.Add(out)
			n := tr.made.Load()
			assert.True(t, n == few.blocks, "%d blocks were made, want %d", n, few.blocks)
			go tr.write()
			r := tr.Close()
			all := uint64(0)
			for i := range out {
				var w row
				w.set(&out[i], absent, absent)
				all += tr.rowsOf(&w)
			}
			assert.True(t, r.Rows+r.Dropped == all && r.Dropped > 0 && r.Rows > 0, "%+v: want %d rows and dropped ones together", r, all)
			got := d.rows(t, len(d.b))
			assert.True(t, uint64(got) == r.Rows, "the file has %d rows, but the result has %d", got, r.Rows)
		})
	}
}

// Each of many feeds has a separate block.
func TestManyFeeds(t *testing.T) {
	const feeds = 200
	d := &memory{}
	tr := assert.Value(create(Options{Phases: []string{"measurement"}}, sizes{blocks: 4, page: 1000, group: 7000}, &file{f: d}))(t)
	out := outcomes(1)
	for range feeds {
		tr.Feed().Add(out) // the writer does not run yet
	}
	go tr.write()
	r := tr.Close()
	assert.True(t, r.Dropped == 0 && r.Rows == feeds, "%+v: want %d rows, none dropped", r, feeds)
}

// A memory is a disk in memory with a limited size.
type memory struct {
	mu    sync.Mutex
	b     []byte
	room  int // bytes; 0: no limit
	calls []func(m *memory)
}

var errFull = &fs.PathError{Op: "write", Path: "x", Err: errors.New("no space left on device")}

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p = bytes.Clone(p)
	m.calls = append(m.calls, func(m *memory) { m.put(p, int(off)) })
	return m.put(p, int(off))
}

func (m *memory) put(p []byte, off int) (int, error) {
	var err error
	if m.room > 0 && off+len(p) > m.room {
		p, err = p[:max(m.room-off, 0)], errFull
	}
	if end := off + len(p); len(p) > 0 && end > len(m.b) {
		m.b = append(m.b, make([]byte, end-len(m.b))...)
	}
	return copy(m.b[min(off, len(m.b)):], p), err
}

func (m *memory) Truncate(size int64) error {
	m.b = m.b[:min(int(size), len(m.b))]
	return nil
}

func (m *memory) Close() error { return nil }

// rows reads the first n bytes as a file.
func (m *memory) rows(t testing.TB, n int) int64 {
	t.Helper()
	f := assert.Value(parquettest.Read(m.b[:n]))(t, "the file cannot be read")
	return int64(f.Rows)
}

// grown is a trace in memory that was flushed after every each rows.
func grown(t testing.TB, d *memory, groups, each int) *Trace {
	t.Helper()
	tr := assert.Value(create(Options{Phases: []string{"measurement"}, About: map[string]string{"version": "1"}}, defaultSizes, &file{f: d}))(t)
	out := outcomes(groups * each)
	for i := range out {
		var r row
		r.set(&out[i], absent, absent)
		tr.row(&r)
		if i%each == each-1 {
			tr.flush()
		}
	}
	return tr
}

// If the program is killed between or during writes, the file is readable and has complete row groups, with
// or without the last one. Only the write of a footer, a few KB, must not be interrupted.
func TestKilled(t *testing.T) {
	d := &memory{}
	grown(t, d, 5, 300)
	var now memory
	before := int64(-1)
	for i, call := range d.calls {
		if i > 0 {
			// Half of a write.
			half := memory{b: bytes.Clone(now.b)}
			call(&half)
			for k := len(now.b); k < len(half.b); k++ { // if it became longer: without the new part
				half.b[k] = 0
			}
			if len(half.b) == len(now.b) { // if it was overwritten: only the first half
				copy(half.b[len(half.b)/2:], now.b[len(now.b)/2:])
				got := half.rows(t, len(half.b))
				assert.True(t, got == before, "half of write %d: %d rows, want %d", i, got, before)
			}
		}
		call(&now)
		got := now.rows(t, len(now.b))
		assert.True(t, got == before || got == before+300 || before < 0, "after write %d: %d rows, before it %d", i, got, before)
		before = got
	}
	assert.True(t, before == 1500 && len(d.calls) >= 5*(2+colCount), "%d rows after %d writes", before, len(d.calls))
}

// TestFullDisk: with any size of the disk, the trace stops, reports the error once, counts the missing rows, and stays readable.
func TestFullDisk(t *testing.T) {
	complete := &memory{}
	grown(t, complete, 4, 300)
	seen := map[uint64]bool{}
	for room := 1; room < len(complete.b); room += 211 {
		d := &memory{room: room}
		tr := grown(t, d, 4, 300)
		go tr.write()
		r := tr.Close()
		assert.Must(t, r.Rows+r.Dropped == 1200 && r.Err != nil && strings.Contains(r.Err.Error(), "no space left on device"),
			"room for %d bytes: %+v", room, r)
		seen[r.Rows] = true
		if tr.file.footer == nil {
			continue // not even room for an empty file
		}
		got := d.rows(t, len(d.b))
		assert.True(t, uint64(got) == r.Rows, "room for %d bytes: the file has %d rows, but the result has %d", room, got, r.Rows)
	}
	assert.NoDiff(t, cmp.Diff(map[uint64]bool{0: true, 300: true, 600: true, 900: true}, seen), "not every number of row groups occurred")
}

// TestDevices: paths that are not regular files.
func TestDevices(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err == nil {
		tr := assert.Value(Create(Options{Path: "/dev/full", Phases: []string{"measurement"}}))(t)
		tr.Feed().Add(outcomes(10))
		r := tr.Close()
		got, want := fmt.Sprint(r.Err), "write /dev/full: no space left on device"
		assert.True(t, got == want && r.Dropped == 10, "got %q and %+v, want %q", got, r, want)
	}
	for _, tt := range []struct{ name, path, want string }{
		{"no folder", filepath.Join(t.TempDir(), "no", "file"), "no such file or directory"},
		{"a folder", t.TempDir(), "is a directory"},
	} {
		_, err := Create(Options{Path: tt.path})
		assert.ErrorHas(t, err, tt.want, "%s", tt.name)
	}
}

// TestReadWhileItGrows: rows are in the file a few seconds after they were added.
func TestReadWhileItGrows(t *testing.T) {
	d := &memory{}
	tr := grown(t, d, 1, 10)
	assert.Equal(t, d.rows(t, len(d.b)), 10, "rows")
	go tr.write()
	f := tr.Feed()
	out := outcomes(2)
	out[1].Done = out[0].Done + time.Second
	f.Add(out) // adding the second hands over both
	assert.True(t, f.b == nil, "the rows were not handed over")
	r := tr.Close()
	assert.True(t, r.Rows == 12, "%+v", r)
}

// TestBegan: the file contains the start of the run in the machine's monotonic clock exactly once, with any number of row groups.
func TestBegan(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.parquet")
	out := assert.Value(openFile(path))(t)
	tr := assert.Value(create(Options{Path: path}, sizes{blocks: 4, page: 3, group: 6}, out))(t)
	at := time.Now().Add(-time.Minute)
	tr.Began(at)
	go tr.write()
	f := tr.Feed()
	f.Add(outcomes(90)) // 15 row groups: the first list with a long head
	r := tr.Close()
	assert.Must(t, r.Err == nil && r.Rows == 90, "%+v", r)
	got, found := parquettest.Open(t, path).Meta[startedMonotonic]
	want, ok := host.MonotonicOf(at)
	assert.Must(t, found == ok, "got %q, and the clock is available: %t", got, ok)
	if !ok {
		return
	}
	n, err := strconv.ParseInt(got, 10, 64)
	d := time.Duration(n - want)
	assert.True(t, err == nil && d >= -time.Millisecond && d <= time.Millisecond, "got %s and %v, want %d", got, err, want)
}

// The memory between the threads and the writer is bounded as docs/trace.md says.
func TestBufferBound(t *testing.T) {
	for feeds, want := range map[int]float64{1: 64, 64: 64, 100: 100} {
		tr := assert.Value(Create(Options{Path: filepath.Join(t.TempDir(), "t.parquet")}))(t)
		for range feeds {
			tr.Feed()
		}
		got := float64(tr.blockLimit.Load()) * float64(unsafe.Sizeof(block{})) / (1 << 20)
		assert.True(t, got >= want*0.9 && got <= want*1.05, "%d feeds: %.1f MiB, want %v", feeds, got, want)
		tr.Close()
	}
}
