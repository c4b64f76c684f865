package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"carronade/load"
)

// Options say what a trace holds and what is known of the run.
type Options struct {
	Path string
	// Every makes a row of one of so many events instead of one a shot; 0: a
	// row a shot.
	Every uint64
	Seed  uint64 // decides which events

	// Phases are the names of the phases, by the index that shots carry.
	Phases []string
	// Due says when an event of a stripe was due; nil where nothing schedules
	// the run.
	Due func(stripe int32, index uint64) time.Duration
	// Partition is the log that a stripe's events go to; nil: nobody says.
	Partition func(stripe int32) int32
	// Key appends the key of an event and reports whether there is one; nil:
	// nobody knows. It is called by the writer's goroutine.
	Key func(dst []byte, stripe int32, index uint64) ([]byte, bool)

	Started time.Time         // of the run
	About   map[string]string // kept in the file's metadata, under "carronade." names
}

// A Trace is a file in the making. Feeds are made before the run and used by
// one goroutine each; Close comes after they are all done.
type Trace struct {
	o       Options
	sampler sampler
	file    *file

	full chan *block // to the writer
	free chan *block // and back
	made atomic.Int32

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

// groupRows is how many rows make a row group.
const groupRows = 1 << 20

// Rows are written at the latest after flushAfter; later the longer a run has
// lasted, so that the file of a week does not have a hundred thousand groups.
const (
	flushAfter = 2 * time.Second
	flushShare = 32 // of the time since the start
)

// Create makes the file, which replaces an older one, and begins to write what
// feeds hand over.
func Create(o Options) (*Trace, error) {
	t := &Trace{
		o: o, sampler: sampler{every: o.Every, seed: mix(o.Seed + 1)},
		full: make(chan *block, mostBlocks), free: make(chan *block, mostBlocks), done: make(chan struct{}),
	}
	about := []format.KeyValue{
		{Key: "carronade.started_at", Value: o.Started.UTC().Format(time.RFC3339Nano)},
		{Key: "carronade.rows", Value: "a row a shot"},
	}
	if o.Every > 0 {
		about[1].Value = "a row for one of " + strconv.FormatUint(o.Every, 10) + " events"
	}
	for k, v := range o.About {
		about = append(about, format.KeyValue{Key: "carronade." + k, Value: v})
	}
	f, err := createFile(o.Path, about)
	if err != nil {
		return nil, fmt.Errorf("create the trace: %w", err)
	}
	t.file = f
	t.z, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create the trace: %w", err), f.close())
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
	t.began = time.Now()
	t.since = t.began
	go t.write()
	return t, nil
}

// classWords are the names of all classes.
func classWords() []string {
	var out []string
	for c := load.OK; c.String() != "invalid"; c++ {
		out = append(out, c.String())
	}
	return out
}

// Feed returns a place to put rows, for one goroutine.
func (t *Trace) Feed() *Feed {
	f := &Feed{t: t}
	t.mu.Lock()
	t.feeds = append(t.feeds, f)
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
	if t.made.Load() < mostBlocks && t.made.Add(1) <= mostBlocks {
		return &block{}
	}
	return nil
}

// rowsOf is how many rows the file would have of r.
func (t *Trace) rowsOf(r *row) uint64 {
	if t.o.Every == 0 {
		return uint64(r.shots)
	}
	n := uint64(0)
	t.sampler.each(r.stripe, r.index, r.events, func(int32) { n++ })
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
			r.Err = t.told(err)
		}
		t.closed = r
	})
	return t.closed
}

// told says what failed, with the file's name once.
func (t *Trace) told(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return fmt.Errorf("write %s: %w", t.o.Path, err)
}
