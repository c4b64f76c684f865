// Package ledger compares what was fired with what was read back: which events
// are lost, duplicated, reordered, corrupted or recovered. It refuses to know
// protocols: a log is a sequence of offsets, a piece is what travelled as one
// batch and lies at consecutive offsets, and both sides are told in any order
// and from any goroutine.
//
// Its invariant: whatever is claimed was checked. Memory has a bound; what does
// not fit is first summed up (which still proves that nothing is wrong, and
// still finds what is missing) and then counted as inexact.
//
// # What the verdict's numbers mean
//
// All count events, at offsets from the run's start on.
//
//   - Acked: the system said that it took them.
//   - Read: found in the logs, whoever wrote them. Where nothing is inexact,
//     Read = Acked - Lost - Unread - Compacted + Recovered + Duplicated + Foreign
//     (with transactions: for a reader of everything).
//   - Lost: acked, and not found although the log was read to where they should
//     be, or found and not there any more at the end (Gone). A piece that is
//     found elsewhere than the system said is not lost.
//   - Duplicated: found once more, whatever the answer was; every copy beyond
//     the first counts.
//   - Corrupted: found where the system said, with another checksum or another
//     number of events, or marked corrupt by who read it. The whole piece
//     counts, unless stamps tell which of its events are damaged.
//   - Reordered: found behind an event of the same stream that has a larger
//     index: an event that arrives late, as in RFC 4737 (type-P-reordered).
//     Copies do not count: the event is where its answer said, without such an
//     answer the first one in the log (by stamps alone: the first that was
//     read, so that a log has to be read in order; and an event whose stamp is
//     damaged has no place in the order).
//   - Recovered: without a certain answer, and found. Events which the system
//     had refused for certain and which are found all the same count here,
//     too, and as Contradicted beside.
//   - Foreign: found, and not of this run: stamped by another run, or, without
//     stamps, like nothing that was fired.
//   - Unread: acked, not found, and nobody could look: removed before they were
//     read (Removed), or beyond where reading ended.
//   - Compacted: acked, not found, and a later event of the same key is there, in
//     a log that keeps the last of each key (Config.Keys). Only where the last one
//     acked of a key is missing, with no later one, that one is lost; older ones
//     that may have gone with it count as compacted.
//   - Phantom: of a transaction that was aborted, and found by a reader of committed
//     events (Visible). What was acked in a committed one, and not found by that
//     reader, is lost, or unread; what was acked in an aborted one never is.
//   - Inexact: not checked one by one, since memory holds no more, or since nothing
//     tells what was found.
//
// Method says what was compared: "batches" by place, checksum and number of
// events; "batches and stamps", where events also say who they are; "stamps"
// alone, where answers have no checksum, so that a damaged event counts as
// corrupted only between sound neighbours; "offsets", where there is neither:
// then what is lost is told, and the order of acked events among each other;
// whatever else is found is inexact, and nothing is said about its content.
//
// Without stamps a piece that is not where an answer said is known again by
// its checksum and its number of events, so that a foreign piece is taken for
// a copy once in 2^32 pairs of pieces.
package ledger

import (
	"math"
	"strconv"
	"sync"
	"sync/atomic"

	"carronade/load"
	"carronade/measure"
)

// A Config says what is compared.
type Config struct {
	Logs  int
	Names []string // of the logs, for the verdict; numbers when nil
	Start []int64  // each log's end when the run started; nil: all 0

	// LogOf returns the log that a stream's events go to. It must be cheap,
	// pure, and safe for concurrent use.
	LogOf func(stream int32) int32

	RunID   uint32 // of the stamps of this run
	Stamped bool   // events are stamped, and arrivals carry their stamps
	Memory  int64  // bytes; 0 means 64 MiB

	// Keys appends the hash of the key of each event of a batch, where logs are
	// compacted: they keep the last event of each key, and stamps of arrivals carry
	// the hash, too. nil: they keep everything. It must be pure and safe for
	// concurrent use, and events must be stamped.
	Keys func(dst []uint64, batch *load.Batch) []uint64
}

// A Ledger keeps both sides of a run. All methods are safe for concurrent use.
type Ledger struct {
	cfg  Config
	logs []log

	used  atomic.Int64 // bytes of all logs
	limit int64        // of used

	relieving atomic.Bool  // memory is short, and somebody sees to it
	again     atomic.Int64 // the use of memory from which on it is tried again

	strangers atomic.Uint64 // events acked for logs or without numbers that make sense

	known    atomic.Int64 // keys of all logs
	mostKeys int64        // of known

	looked bool // a reader of committed events has read
}

// log is what is known of one log.
type log struct {
	ledger       *Ledger
	mu           sync.Mutex
	start        int64
	removed      ranges // offsets whose events were removed before they were read
	gone         uint64 // events that were read and are not there any more
	next         int64  // all offsets from start to here are decided
	hole         int64  // the first of them that nothing was heard of, as skip found it
	doubtfulFrom int64  // where it is less than next: the order from here to next is in doubt, since a hole before it was filled later

	windows []*window // by number
	ackAt   *window   // the window used last, for either side
	readAt  *window
	ceiling int64 // windows from this one on are not checked any more

	entries    int  // in all windows
	matched    int  // of these, in the state matched
	orphans    int  // or arrived
	compressAt int  // how many matched ones make compressing worth its while
	patience   int  // the least of that
	folded     bool // some window keeps only sums
	bare       bool // answers have no checksums
	closed     bool // nothing more is taken in
	inOrder    bool // what was read came in the order of the log, so far
	forgot     bool // some unknown piece was not kept

	unknown []piece // without a certain answer, or refused
	// Without stamps: of each stream, the largest index plus one of those that
	// memory had no room for.
	dropped map[int32]uint64
	history history // of matched pieces

	// With stamps: of each stream, the indices found where they should be.
	seen     map[int32]*ranges
	answered map[int32]*ranges // bare only: acked
	// Bare only: pieces with damaged stamps, which were taken for what is missing
	// between their neighbours. What is found of them again may be no copy.
	inferred map[int32]*ranges
	partly   map[int32]*ranges // some of these were acked
	denied   map[int32]*ranges // bare only: refused for certain

	// Compacted only: by the hash of the key, but for those left out.
	keys     map[uint64]lastOf
	keysLeft bool
	hashes   []uint64 // of the batch that is taken in

	transactions transactions
	// Of each stream, the largest index before next, plus one.
	top map[int32]uint64
	bad map[int64]int32 // damaged events of a corrupt piece, by base

	bytes     int64 // of windows, of the unknown and of history
	acked     uint64
	read      uint64
	readBase  int64 // where the piece begins that was read last
	readEnd   int64 // the end of what was read
	corrupted uint64
	reordered uint64
	foreign   uint64
	recovered uint64 // decided before the verdict, when memory was short
	refused   uint64 // of those, refused for certain
	twice     uint64 // copies, decided before the verdict

	// Not kept: acked events, and those that were read.
	uncheckedAcked, uncheckedRead uint64
	unordered                     uint64 // found, and their order was not judged
}

// A piece is an identity without a place.
type piece struct {
	first    uint64
	sum      uint32
	n        int32
	stream   int32
	refused  bool
	unplaced bool // acked, and the system did not say where it is
}

const pieceBytes = 24

// key is how a piece is known again without stamps.
type key struct {
	sum uint32
	n   int32
}

// New returns an empty ledger.
func New(cfg Config) *Ledger {
	if cfg.Memory <= 0 {
		cfg.Memory = 64 << 20
	}
	// The rest is for what grows by doubling, and for the verdict's own
	// tables.
	l := &Ledger{cfg: cfg, logs: make([]log, cfg.Logs), limit: cfg.Memory * 5 / 8}
	l.mostKeys = cfg.Memory / 4 / keyBytes
	perLog := cfg.Memory / 8 / 8 / int64(max(cfg.Logs, 1))
	for i := range l.logs {
		g := &l.logs[i]
		g.ledger = l
		if cfg.Start != nil {
			g.start = cfg.Start[i]
		}
		g.next, g.readEnd, g.ceiling, g.hole, g.doubtfulFrom = g.start, g.start, 1<<62, 1<<62, 1<<62
		g.patience, g.compressAt = 4096, 4096
		g.inOrder = true
		g.history.max = int(max(perLog, 256))
		g.top = map[int32]uint64{}
		if cfg.Stamped {
			g.seen, g.partly, g.denied = map[int32]*ranges{}, map[int32]*ranges{}, map[int32]*ranges{}
			if cfg.Keys != nil {
				g.setBare() // what is compacted does not lie there as it was sent
			}
		}
	}
	return l
}

// Fired tells what became of batches. The slice is not kept.
func (l *Ledger) Fired(out []load.Outcome) {
	var g *log
	for i := range out {
		o := &out[i]
		n := l.cfg.LogOf(o.Stream)
		if n < 0 || int(n) >= len(l.logs) || o.Events <= 0 {
			l.strangers.Add(uint64(max(o.Acked, 0)))
			continue
		}
		// A lane's outcomes come in runs for one log: the lock is kept.
		if h := &l.logs[n]; h != g {
			if g != nil {
				g.mu.Unlock()
			}
			g = h
			g.mu.Lock()
		}
		g.fired(o)
	}
	if g != nil {
		g.mu.Unlock()
	}
	l.relieve()
}

// Arrived tells what was read. Every piece of a log is told once. The slice is
// not kept.
func (l *Ledger) Arrived(pieces []load.Arrival) {
	var g *log
	for i := range pieces {
		a := &pieces[i]
		if a.Log < 0 || int(a.Log) >= len(l.logs) || a.Events <= 0 {
			continue
		}
		if h := &l.logs[a.Log]; h != g {
			if g != nil {
				g.mu.Unlock()
			}
			g = h
			g.mu.Lock()
		}
		g.arrived(a)
	}
	if g != nil {
		g.mu.Unlock()
	}
	l.relieve()
}

// Removed tells that the events of a log from one offset up to another were
// removed before they were read, by retention or by somebody: acked ones that were
// not found there are unread, not lost.
func (l *Ledger) Removed(log int32, from, to int64) {
	g := &l.logs[log]
	g.mu.Lock()
	g.removed.add(uint64(max(from, 0)), uint64(max(to, 0)))
	g.mu.Unlock()
}

// Gone tells that so many events that were read from a log are not in it any
// more, by another way than deletion. They count as lost, and not as read; where
// not all that was read was acked, so that they may be something else, those
// that may be count as inexact.
func (l *Ledger) Gone(log int32, events uint64) {
	g := &l.logs[log]
	g.mu.Lock()
	g.gone = events
	g.mu.Unlock()
}

// withdraw takes back what was found and is not there any more.
func withdraw(r *measure.LedgerLog, gone, foreign uint64) {
	gone = min(gone, r.Read)
	r.Read -= gone
	lost := min(gone-min(gone, r.Duplicated+r.Recovered+r.Inexact+foreign), r.Acked-min(r.Acked, r.Lost+r.Unread+r.Compacted))
	r.Lost += lost
	r.Inexact += gone - lost
}

// Bytes returns about how much memory is in use.
func (l *Ledger) Bytes() int64 { return l.used.Load() }

func (l *Ledger) name(i int) string {
	if i < len(l.cfg.Names) {
		return l.cfg.Names[i]
	}
	return strconv.Itoa(i)
}

func (l *Ledger) method(bare bool) string {
	switch {
	case l.cfg.Stamped && bare:
		return "stamps"
	case l.cfg.Stamped:
		return "batches and stamps"
	case bare:
		return "offsets"
	}
	return "batches"
}

// everything is the end of reading when nothing lies beyond.
const everything = math.MaxInt64

// Verdict draws the balance of what was told so far. whole says which logs were
// read to their ends, after the last answer (nil: none): what was acked and is not
// there, also beyond the end of a log that has become shorter, is lost. The reading
// of another log ended with its last arrival, or at ends (nil: nothing is known)
// where that is earlier, and what was acked for beyond is unread. It may be called
// more than once.
func (l *Ledger) Verdict(whole []bool, ends []int64) measure.Ledger {
	v := measure.Ledger{Complete: whole != nil, Inexact: l.strangers.Load(), Acked: l.strangers.Load()}
	bare := false
	for i := range l.logs {
		g := &l.logs[i]
		g.mu.Lock()
		end := g.readEnd
		switch {
		case whole != nil && whole[i]:
			end = everything
		case ends != nil:
			end = min(end, ends[i])
		}
		v.Complete = v.Complete && end == everything && (g.transactions.whole || !l.looked)
		j := g.verdict(end)
		bare = bare || g.bare
		r := j.v
		withdraw(&r, g.gone, j.foreign)
		g.mu.Unlock()
		r.Log = l.name(i)
		v.Acked += r.Acked
		v.Read += r.Read
		v.Lost += r.Lost
		v.Duplicated += r.Duplicated
		v.Reordered += r.Reordered
		v.Corrupted += r.Corrupted
		v.Recovered += r.Recovered
		v.Contradicted += j.refused
		v.Unread += r.Unread
		v.Removed += j.removed
		v.Compacted += r.Compacted
		v.Committed += j.committed
		v.CommittedRead += j.committedRead
		v.Aborted += j.aborted
		v.Phantom += r.Phantom
		v.Inexact += r.Inexact
		v.Foreign += j.foreign
		v.Logs = append(v.Logs, r)
	}
	v.Method = l.method(bare)
	return v
}
