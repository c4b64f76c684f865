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

	"carronade/internal/host"
	"carronade/load"
)

// Options select the contents of a trace and describe the run.
type Options struct {
	Path string
	// Rows is called with each row and with Started, one call at a time, by a goroutine of its
	// own, instead of writing a file; nil: there is a file.
	Rows func(started time.Time, r *Row)
	// Every makes a row for one of this many events instead of one per batch; 0: a
	// row per batch.
	Every uint64
	Seed  uint64 // selects the events

	// Phases are the names of the phases, by the index that batches carry.
	Phases []string
	// Due is when an event of a stream was due; nil without a schedule.
	Due func(stream int32, index uint64) time.Duration
	// Partition is the log of a stream's events; nil: unknown.
	Partition func(stream int32) int32
	// Key appends the key of an event and reports whether there is one; nil:
	// unknown. The writer's goroutine calls it.
	Key func(dst []byte, stream int32, index uint64) ([]byte, bool)

	Started time.Time         // of the run
	About   map[string]string // stored in the file's metadata, with the prefix "carronade."
}

// A Trace is a file being written. Feeds are made before the run and used by one
// goroutine each; Close must be called after their last use.
type Trace struct {
	o       Options
	sizes   sizes
	sampler sampler
	file    *file

	started atomic.Int64 // of the run, in the machine's monotonic clock; 0: unknown

	full       chan *block // to the writer
	free       chan *block // and back
	made       atomic.Int32
	blockLimit atomic.Int32 // maximum number of blocks

	mu          sync.Mutex
	feeds       []*Feed
	sharedFeeds []*SharedFeed

	done chan struct{} // the writer has ended

	// Owned by the writer.
	cols  [colCount]*column
	pages scratch
	rows  int64 // in the row group so far
	since time.Time
	began time.Time
	key   []byte
	out   Row

	written uint64 // rows in the file
	lost    uint64 // rows after the writer stopped
	err     error
	closed  Result
	once    sync.Once
}

// A Result is the result of a trace.
type Result struct {
	File    string
	Rows    uint64 // in the file
	Dropped uint64 // not in the file: the writer could not keep up or had stopped
	Every   uint64
	Bytes   int64
	Err     error // why it stopped before the run ended; nil if it did not
}

// sizes limit the memory.
type sizes struct {
	blocks int32 // between feeds and the writer; more if there are many feeds
	page   int   // rows
	group  int64 // rows
}

// defaultSizes: 128 blocks are 64 MB, half a second at a million rows/s. A page is
// large enough that its header is negligible, and small enough for a cache. A
// written row group has about 10 MB. Blocks are made on demand, so a slow run has
// only a few.
var defaultSizes = sizes{blocks: 128, page: 32 << 10, group: 1 << 20}

// Each feed may fill one block while another of its blocks is written, with any
// number of feeds, up to maxBlocks.
const (
	feedBlocks = 2
	maxBlocks  = 2048
)

// Rows are written after flushAfter at the latest. The delay grows with the length
// of the run, so that the file of a week does not have a hundred thousand groups.
const (
	flushAfter = 2 * time.Second
	flushShare = 32 // of the time since the start
)

// Create makes the file, which replaces an older one, and starts the writer. It
// returns an error if the file cannot be opened. If the file cannot be written, for
// example on a full disk, the trace has stopped.
func Create(o Options) (*Trace, error) {
	if o.Rows != nil {
		t := newTrace(o, defaultSizes, nil)
		go t.write()
		return t, nil
	}
	f, err := openFile(o.Path)
	if err != nil {
		return nil, fmt.Errorf("create the trace: %w", err)
	}
	t, err := create(o, defaultSizes, f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create the trace: %w", err), f.close())
	}
	go t.write()
	return t, nil
}

func newTrace(o Options, z sizes, f *file) *Trace {
	t := &Trace{
		o: o, sizes: z, sampler: sampler{every: o.Every, seed: mix(o.Seed + 1)}, file: f,
		full: make(chan *block, max(z.blocks, maxBlocks)), free: make(chan *block, max(z.blocks, maxBlocks)), done: make(chan struct{}),
		began: time.Now(),
	}
	t.blockLimit.Store(z.blocks)
	t.since = t.began
	return t
}

func create(o Options, z sizes, f *file) (t *Trace, err error) {
	t = newTrace(o, z, f)
	t.pages.z, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
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

// startedMonotonic is the metadata key of the start of the run, in nanoseconds of
// the machine's monotonic clock.
const startedMonotonic = "carronade.started_monotonic_ns"

// about is the file's metadata.
func (o *Options) about() []keyValue {
	rows := "a row a batch"
	if o.Every > 0 {
		rows = "a row for one of " + strconv.FormatUint(o.Every, 10) + " events"
	}
	about := []keyValue{
		{"carronade.started_at", o.Started.UTC().Format(time.RFC3339Nano)},
		{"carronade.rows", rows},
	}
	for _, k := range slices.Sorted(maps.Keys(o.About)) {
		about = append(about, keyValue{"carronade." + k, o.About[k]})
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

// Began sets the exact start of the run, the zero point of all times. The file
// contains it from its next row group on.
func (t *Trace) Began(at time.Time) {
	if ns, ok := host.MonotonicOf(at); ok {
		t.started.Store(ns)
	}
}

// Feed returns a new feed for one goroutine.
func (t *Trace) Feed() *Feed {
	f := &Feed{t: t}
	t.mu.Lock()
	t.feeds = append(t.feeds, f)
	t.blockLimit.Store(max(t.sizes.blocks, min(maxBlocks, int32(len(t.feeds)*feedBlocks)))) //nolint:gosec // feeds are few
	t.mu.Unlock()
	return f
}

// SharedFeed returns a new feed for any goroutine.
func (t *Trace) SharedFeed() *SharedFeed {
	m := &SharedFeed{f: t.Feed()}
	t.mu.Lock()
	t.sharedFeeds = append(t.sharedFeeds, m)
	t.mu.Unlock()
	return m
}

// block returns an empty block, or nil if all are in use.
func (t *Trace) block() *block {
	select {
	case b := <-t.free:
		return b
	default:
	}
	for n := t.made.Load(); n < t.blockLimit.Load(); n = t.made.Load() {
		if t.made.CompareAndSwap(n, n+1) {
			return &block{}
		}
	}
	return nil
}

// rowsOf is the number of rows in the file for r.
func (t *Trace) rowsOf(r *row) uint64 {
	if t.o.Every == 0 {
		return uint64(r.batches)
	}
	n := uint64(0)
	t.sampler.each(r.stream, r.index, r.events, func(int32) { n++ })
	return n
}

// Close writes the remaining rows and closes the file. Feeds must no longer be
// used; shared feeds may be. Later calls return the same result.
func (t *Trace) Close() Result {
	t.once.Do(func() {
		for _, m := range t.sharedFeeds {
			m.close()
		}
		for _, f := range t.feeds {
			f.handOver()
		}
		close(t.full)
		<-t.done
		r := Result{File: t.o.Path, Rows: t.written, Dropped: t.lost, Every: t.o.Every, Err: t.err}
		for _, f := range t.feeds {
			r.Dropped += f.dropped.Load()
		}
		if t.file != nil {
			r.Bytes = t.file.size()
			if err := t.file.close(); err != nil && r.Err == nil {
				r.Err = t.writeError(err)
			}
		}
		t.closed = r
	})
	return t.closed
}

// writeError wraps a write error, with the file's name only once.
func (t *Trace) writeError(err error) error {
	return fmt.Errorf("write %s: %w", t.o.Path, host.Reason(err))
}
