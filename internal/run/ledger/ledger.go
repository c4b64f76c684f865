// Package ledger compares what was sent with what was read back: which events are lost,
// duplicated, reordered, corrupted or recovered. It does not depend on protocols: a log
// is a sequence of offsets, and a piece is what was sent as one batch and lies at
// consecutive offsets. Both sides are reported in any order and from any goroutine.
//
// Its invariant: whatever is claimed was checked. Memory is limited; what does not fit
// is first reduced to sums (which still prove that nothing is wrong, and still show
// what is missing) and then counted as inexact.
//
// # The numbers of a verdict
//
// All count events, at offsets from the start of the run on.
//
//   - Acked: acknowledged by the system.
//   - Read: found in the logs, from any writer. If nothing is inexact,
//     Read = Acked - Lost - Unread - Compacted + Recovered + Duplicated + Foreign
//     (with transactions: for a reader of all events).
//   - Lost: acked, but not found although the log was read to their offsets, or
//     found but removed at the end (Gone). A piece that is found at another place
//     than its answer named is not lost.
//   - Duplicated: found again, with any answer; every copy after the first counts.
//   - Corrupted: found at the place that the answer named, with another checksum or
//     another number of events, or marked corrupt by the reader. All events of the
//     piece count, unless stamps show which of them are damaged.
//   - Reordered: found after an event of the same stream that has a larger
//     index: an event that arrives late, as in RFC 4737 (type-P-reordered).
//     Copies do not count: the event itself is the one at the place that its
//     answer named, without such an answer the first one in the log. (With stamps
//     only, it is the first that was read, so a log must be read in order, and an
//     event with a damaged stamp has no place in the order.)
//   - Recovered: without a certain answer, but found. Events that the system had
//     certainly refused, but that are found, count here and as Contradicted.
//   - Foreign: found, but not from this run: stamped by another run, or, without
//     stamps, unlike everything that was sent.
//   - Unread: acked, not found, and impossible to look for: removed before they
//     were read (Removed), or beyond the end of reading.
//   - Compacted: acked and not found, but a later event of the same key is there, in
//     a log that keeps the last of each key (Config.Keys). If the last acked event
//     of a key is missing and no later one is there, only that one is lost; older
//     ones that may be lost as well count as compacted.
//   - Phantom: from an aborted transaction, but found by a reader of committed
//     events (Visible). Acked events of a committed transaction that this reader
//     did not find are lost or unread; those of an aborted one never are.
//   - Inexact: not checked one by one, because memory is full or because the
//     events that were found cannot be identified.
//
// Method says what was compared: "batches" by place, checksum and number of
// events; "batches and stamps", if events also identify themselves; "stamps",
// if answers have no checksum, so that a damaged event counts as corrupted only
// between intact neighbours; "offsets", if neither exists: the verdict then
// covers lost events and the relative order of acked events; all other events
// that are found are inexact, and their content is not checked.
//
// Without stamps, a piece that is not where an answer said is identified by its
// checksum and number of events, so that a foreign piece is taken for a copy
// once in 2^32 pairs of pieces.
package ledger

import (
	"math"
	"strconv"
	"sync"
	"sync/atomic"

	"carronade/load"
	"carronade/measure"
)

// A Config describes what is compared.
type Config struct {
	Logs  int
	Names []string // of the logs, for the verdict; nil: use numbers
	Start []int64  // end of each log when the run started; nil: all 0

	// LogOf returns the log that a stream's events go to. It must be cheap,
	// pure, and safe for concurrent use.
	LogOf func(stream int32) int32

	RunID   uint32 // of the stamps of this run
	Stamped bool   // events are stamped, and arrivals carry their stamps
	Memory  int64  // bytes; 0 means 64 MiB

	// Keys appends the hash of the key of each event of a batch, if logs are compacted:
	// they keep the last event of each key, and stamps of arrivals contain the hash,
	// too. nil: logs keep everything. It must be pure and safe for concurrent use, and
	// events must be stamped.
	Keys func(dst []uint64, batch *load.Batch) []uint64
}

// A Ledger records both sides of a run. All methods are safe for concurrent use.
type Ledger struct {
	cfg  Config
	logs []log

	used  atomic.Int64 // bytes of all logs
	limit int64        // of used

	freeing   atomic.Bool  // memory is short, and a goroutine is freeing some
	freeAbove atomic.Int64 // above this use of memory, freeing is tried again

	invalidAcked atomic.Uint64 // events acked for invalid logs or with invalid numbers

	known    atomic.Int64 // keys of all logs
	mostKeys int64        // of known

	visibleDone bool // a reader of committed events has finished
}

// log is the state of one log.
type log struct {
	ledger       *Ledger
	mu           sync.Mutex
	start        int64
	removed      ranges // offsets whose events were removed before they were read
	gone         uint64 // events that were read and no longer exist
	next         int64  // the order of all offsets from start to here is decided
	hole         int64  // the first offset that skip passed over without an event
	doubtfulFrom int64  // if less than next: the order from here to next is in doubt, because a hole before it was filled later

	windows []*window // sorted by number
	ackAt   *window   // the window used last, one for each side
	readAt  *window
	ceiling int64 // windows from this number on are not checked

	entries        int  // in all windows
	matched        int  // entries in the state matched
	orphans        int  // entries in the state arrived
	compressAt     int  // number of matched entries that triggers compress
	compressMin    int  // minimum of compressAt
	folded         bool // some windows keep only sums
	bare           bool // answers have no checksums
	closed         bool // nothing more is recorded
	inOrder        bool // so far, reading was in the order of the log
	droppedUnknown bool // an unknown piece was not recorded

	unknown []piece // pieces without a certain answer, or refused
	// Without stamps: for each stream, the largest index plus one of the pieces for
	// which memory had no room.
	dropped map[int32]uint64
	history history // of matched pieces

	// With stamps: for each stream, the indices found where they should be.
	seen     map[int32]*ranges
	answered map[int32]*ranges // only if bare: acked
	// Only if bare: pieces with damaged stamps that were taken for what is missing
	// between their neighbours. If they are found again, that may not be a copy.
	inferred map[int32]*ranges
	partly   map[int32]*ranges // indices of batches of which only a part was acked
	denied   map[int32]*ranges // only if bare: certainly refused

	// Only if compacted: by the hash of the key, except those for which there was no
	// room.
	keys     map[uint64]lastEvents
	keysLeft bool
	hashes   []uint64 // of the current batch

	transactions transactions
	// For each stream, the largest index before next, plus one.
	top map[int32]uint64
	bad map[int64]int32 // damaged events of a corrupt piece, by base

	bytes      int64 // memory of windows, unknown pieces and history
	acked      uint64
	read       uint64
	readBase   int64 // offset at which the piece that was read last begins
	readEnd    int64 // the end of what was read
	corrupted  uint64
	reordered  uint64
	foreign    uint64
	recovered  uint64 // decided before the verdict because memory was short
	refused    uint64 // of these, certainly refused
	duplicated uint64 // copies, decided before the verdict

	// Not recorded: acked events, and events that were read.
	uncheckedAcked, uncheckedRead uint64
	unordered                     uint64 // found, but their order was not checked

	places Places // of what was decided before the verdict
}

// A piece is an identity without an offset.
type piece struct {
	first    uint64
	sum      uint32
	n        int32
	stream   int32
	refused  bool
	unplaced bool // acked, but the answer does not name its place
}

const pieceBytes = 24

// key identifies a piece without stamps.
type key struct {
	sum uint32
	n   int32
}

// New returns an empty ledger.
func New(cfg Config) *Ledger {
	if cfg.Memory <= 0 {
		cfg.Memory = 64 << 20
	}
	// The rest is for slices and maps that grow by doubling, and for the tables of the
	// verdict.
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
		g.compressMin, g.compressAt = 4096, 4096
		g.inOrder = true
		g.history.max = int(max(perLog, 256))
		g.top = map[int32]uint64{}
		if cfg.Stamped {
			g.seen, g.partly, g.denied = map[int32]*ranges{}, map[int32]*ranges{}, map[int32]*ranges{}
			if cfg.Keys != nil {
				g.setBare() // compaction changes batches
			}
		}
	}
	return l
}

// Fired records the outcomes of batches. It does not keep the slice.
func (l *Ledger) Fired(out []load.Outcome) {
	var g *log
	for i := range out {
		o := &out[i]
		n := l.cfg.LogOf(o.Stream)
		if n < 0 || int(n) >= len(l.logs) || o.Events <= 0 {
			l.invalidAcked.Add(uint64(max(o.Acked, 0)))
			continue
		}
		// Outcomes of a lane come in runs for one log: keep the lock.
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
	l.freeMemory()
}

// Arrived records what was read. Every piece of a log is reported once. It does not
// keep the slice.
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
	l.freeMemory()
}

// Removed records that the events of a log from one offset up to another were removed
// before they were read, by retention or by a user: acked events that were not found
// there are unread, not lost.
func (l *Ledger) Removed(log int32, from, to int64) {
	g := &l.logs[log]
	g.mu.Lock()
	g.removed.add(uint64(max(from, 0)), uint64(max(to, 0)))
	g.mu.Unlock()
}

// Gone records that a number of events that were read from a log no longer exist for a
// reason other than deletion. They count as lost, and not as read. If not all events
// that were read had been acked, the missing ones may be others, and those that may be
// count as inexact.
func (l *Ledger) Gone(log int32, events uint64) {
	g := &l.logs[log]
	g.mu.Lock()
	g.gone = events
	g.mu.Unlock()
}

// subtractGone removes events that were found but no longer exist from a verdict.
func subtractGone(r *measure.LedgerCounts, gone, foreign uint64) {
	gone = min(gone, r.Read)
	r.Read -= gone
	lost := min(gone-min(gone, r.Duplicated+r.Recovered+r.Inexact+foreign), r.Acked-min(r.Acked, r.Lost+r.Unread+r.Compacted))
	r.Lost += lost
	r.Inexact += gone - lost
}

// Bytes returns roughly how much memory is in use.
func (l *Ledger) Bytes() int64 { return l.used.Load() }

func (l *Ledger) name(i int) string {
	if i < len(l.cfg.Names) {
		return l.cfg.Names[i]
	}
	return strconv.Itoa(i)
}

// offsets is the method that compares nothing else.
const offsets = "offsets"

func (l *Ledger) method(bare bool) string {
	switch {
	case l.cfg.Stamped && bare:
		return "stamps"
	case l.cfg.Stamped:
		return "batches and stamps"
	case bare:
		return offsets
	}
	return "batches"
}

// everything is the end of reading if the log was read to its end.
const everything = math.MaxInt64

// Verdict returns the result for everything recorded so far. whole says which logs were
// read to their ends, after the last answer (nil: none): an acked event that is not
// there, even beyond the end of a log that has become shorter, is lost. Reading of
// another log ended with its last arrival, or at ends (nil: not known) if that is
// earlier, and acked events beyond that are unread. It may be called more than once.
func (l *Ledger) Verdict(whole []bool, ends []int64) measure.Ledger {
	v, _ := l.Places(whole, ends)
	return v
}

// Places is Verdict, and says of which events it is true.
func (l *Ledger) Places(whole []bool, ends []int64) (measure.Ledger, Places) {
	var places Places
	v := measure.Ledger{Complete: whole != nil, Inexact: l.invalidAcked.Load(), Acked: l.invalidAcked.Load()}
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
		v.Complete = v.Complete && end == everything && (g.transactions.whole || !l.visibleDone)
		j := g.verdict(end)
		bare = bare || g.bare
		r := j.v
		subtractGone(&r, g.gone, j.foreign)
		g.mu.Unlock()
		places.add(&j.places)
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
		v.Logs = append(v.Logs, measure.LedgerLog{Log: l.name(i), LedgerCounts: r})
	}
	v.Method = l.method(bare)
	if v.Method == offsets {
		v.Unchecked = []string{"duplicated", "corrupted"}
	}
	return v, places
}
