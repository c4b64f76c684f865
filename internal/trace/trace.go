package trace

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"carronade/internal/system"
	"carronade/load"
)

// Options say what a trace holds and what is known of the run.
type Options struct {
	Path string
	// Every makes a row of one of so many events instead of one a batch; 0: a
	// row a batch.
	Every uint64
	Seed  uint64 // decides which events

	// Phases are the names of the phases, by the index that batches carry.
	Phases []string
	// Due says when an event of a stream was due; nil where nothing schedules
	// the run.
	Due func(stream int32, index uint64) time.Duration
	// Partition is the log that a stream's events go to; nil: nobody says.
	Partition func(stream int32) int32
	// Key appends the key of an event and reports whether there is one; nil:
	// nobody knows. It is called by the writer's goroutine.
	Key func(dst []byte, stream int32, index uint64) ([]byte, bool)

	Started time.Time         // of the run
	About   map[string]string // kept in the file's metadata, under "carronade." names
}

// A Trace is a file in the making. Feeds are made before the run and used by
// one goroutine each; Close comes after they are all done.
type Trace struct {
	o       Options
	sizes   sizes
	sampler sampler
	file    *file

	started atomic.Int64 // of the run, by the machine's monotonic clock; 0: not known

	full chan *block // to the writer
	free chan *block // and back
	made atomic.Int32
	most atomic.Int32 // blocks that may be made

	mu       sync.Mutex
	feeds    []*Feed
	meetings []*Meeting

	done chan struct{} // the writer has ended

	// The writer's own.
	cols  [colCount]*column
	z     *zstd.Encoder
	rows  int64 // in the row group so far
	since time.Time
	began time.Time
	key   []byte

	written uint64 // rows in the file
	lost    uint64 // rows that came after it stopped
	err     error
	closed  Result
	once    sync.Once
}

// A Result is what became of a trace.
type Result struct {
	File    string
	Rows    uint64 // in the file
	Dropped uint64 // not in it: the writer could not keep up, or had stopped
	Every   uint64
	Bytes   int64
	Err     error // why it stopped before the run; nil when it did not
}

// sizes bound what is kept in memory.
type sizes struct {
	blocks int32 // between those who fire and the writer; more where there are many feeds
	page   int   // rows
	group  int64 // rows
}

// usual: 128 blocks are 64 MB and half a second at a million rows a second; a
// page is large enough that what is written once a page does not count, and
// small enough to lie in a cache; a row group is some 10 MB when written. Blocks
// are made when there is none to be had, so that a slow run has a few.
var usual = sizes{blocks: 128, page: 32 << 10, group: 1 << 20}

// Each feed may hold one block while another of its is written, however many
// feeds there are, up to mostBlocks.
const (
	feedBlocks = 2
	mostBlocks = 2048
)

// Rows are written at the latest after flushAfter; later the longer a run has
// lasted, so that the file of a week does not have a hundred thousand groups.
const (
	flushAfter = 2 * time.Second
	flushShare = 32 // of the time since the start
)

// Create makes the file, which replaces an older one, and begins to write what
// feeds hand over. A file that cannot be opened is an error; one that cannot be
// written, on a full disk, is a trace that has stopped.
func Create(o Options) (*Trace, error) {
	f, err := openFile(o.Path)
	if err != nil {
		return nil, fmt.Errorf("create the trace: %w", err)
	}
	t, err := create(o, usual, f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create the trace: %w", err), f.close())
	}
	go t.write()
	return t, nil
}

func create(o Options, z sizes, f *file) (t *Trace, err error) {
	t = &Trace{
		o: o, sizes: z, sampler: sampler{every: o.Every, seed: mix(o.Seed + 1)}, file: f,
		full: make(chan *block, max(z.blocks, mostBlocks)), free: make(chan *block, max(z.blocks, mostBlocks)), done: make(chan struct{}),
		began: time.Now(),
	}
	t.most.Store(z.blocks)
	t.since = t.began
	t.z, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	for i := range columns {
		var words []string
		switch i {
		case colPhase:
			words = o.Phases
		case colOutcome:
			words = outcomeWords
		case colClass:
			words = classWords()
		}
		if columns[i].words && len(words) == 0 {
			words = []string{""}
		}
		t.cols[i] = newColumn(&columns[i], words)
	}
	if err := f.begin(o.about()); err != nil {
		t.stop(err)
	}
	return t, nil
}

// startedMonotonic is where the file says when the run began, in nanoseconds of
// the machine's monotonic clock.
const startedMonotonic = "carronade.started_monotonic_ns"

// about is what the file says of itself.
func (o *Options) about() []format.KeyValue {
	rows := "a row a batch"
	if o.Every > 0 {
		rows = "a row for one of " + strconv.FormatUint(o.Every, 10) + " events"
	}
	about := []format.KeyValue{
		{Key: "carronade.started_at", Value: o.Started.UTC().Format(time.RFC3339Nano)},
		{Key: "carronade.rows", Value: rows},
	}
	for _, k := range slices.Sorted(maps.Keys(o.About)) {
		about = append(about, format.KeyValue{Key: "carronade." + k, Value: o.About[k]})
	}
	return about
}

// classWords are the names of all classes.
func classWords() []string {
	var out []string
	for c := load.OK; c.String() != "invalid"; c++ {
		out = append(out, c.String())
	}
	return out
}

// Began says when the run began exactly: offset 0 of all times. The file has it
// from its next rows on.
func (t *Trace) Began(at time.Time) {
	if ns, ok := system.MonotonicOf(at); ok {
		t.started.Store(ns)
	}
}

// Feed returns a place to put rows, for one goroutine.
func (t *Trace) Feed() *Feed {
	f := &Feed{t: t}
	t.mu.Lock()
	t.feeds = append(t.feeds, f)
	t.most.Store(max(t.sizes.blocks, min(mostBlocks, int32(len(t.feeds)*feedBlocks)))) //nolint:gosec // feeds are few
	t.mu.Unlock()
	return f
}

// Meeting returns a place to put rows for any goroutine.
func (t *Trace) Meeting() *Meeting {
	m := &Meeting{f: t.Feed()}
	t.mu.Lock()
	t.meetings = append(t.meetings, m)
	t.mu.Unlock()
	return m
}

// block returns an empty block, nil when all are in use.
func (t *Trace) block() *block {
	select {
	case b := <-t.free:
		return b
	default:
	}
	for n := t.made.Load(); n < t.most.Load(); n = t.made.Load() {
		if t.made.CompareAndSwap(n, n+1) {
			return &block{}
		}
	}
	return nil
}

// rowsOf is how many rows the file would have of r.
func (t *Trace) rowsOf(r *row) uint64 {
	if t.o.Every == 0 {
		return uint64(r.batches)
	}
	n := uint64(0)
	t.sampler.each(r.stream, r.index, r.events, func(int32) { n++ })
	return n
}

// Close writes what is left and closes the file. Nobody may use a feed any more,
// but meetings may be. Later calls return the same.
func (t *Trace) Close() Result {
	t.once.Do(func() {
		for _, m := range t.meetings {
			m.close()
		}
		for _, f := range t.feeds {
			f.hand()
		}
		close(t.full)
		<-t.done
		r := Result{File: t.o.Path, Rows: t.written, Dropped: t.lost, Every: t.o.Every, Bytes: t.file.size(), Err: t.err}
		for _, f := range t.feeds {
			r.Dropped += f.dropped.Load()
		}
		if err := t.file.close(); err != nil && r.Err == nil {
			r.Err = t.writeError(err)
		}
		t.closed = r
	})
	return t.closed
}

// writeError says what failed, with the file's name once.
func (t *Trace) writeError(err error) error {
	return fmt.Errorf("write %s: %w", t.o.Path, system.Reason(err))
}
