package standin

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/riemann/wire"
	"carronade/units"
)

// defaultTTL is how long an event without a time to live is kept: default-ttl in
// index.clj.
const defaultTTL = 60 * time.Second

// shards is the number of parts of the index. Each has a lock, so that many
// connections do not wait for the same one.
const shards = 64

// entryBytes is the memory of an entry besides its text: its slot in the map, which
// is about two thirds full, the rounding of its allocation, and its key in the
// shard's sorted list.
const entryBytes = 160

// ownPrefix begins the services of a server's events about itself. They have their
// own part of the index, because they are queried all the time, and that must not
// cost a search through all events.
const ownPrefix = "riemann "

// An index keeps the newest event of each host and service, encoded, until its
// time plus its time to live is over. It is safe for concurrent use.
//
// Each event is kept as bytes in one string: a million events of a hundred bytes
// take about 250 MB and hardly any time of the garbage collector, a million
// structs would take twice the memory. Queries are answered by copying the bytes.
type index struct {
	maxBytes int64
	used     atomic.Int64
	seed     maphash.Seed
	parts    [shards + 1]shard // the last one is for services with ownPrefix
}

// A shard is searched completely, unless a query has a prefix of services and is
// the second one since the set of keys changed: then the keys are sorted once, and
// searches use the sorted list. So checking a million events, prefix by prefix,
// costs one sort, and a query while events arrive costs none.
type shard struct {
	mu             sync.RWMutex
	m              map[eventKey]entry
	changes        uint64 // number of changes of the set of keys
	ordered        []eventKey
	orderedChanges uint64        // value of changes when ordered was made
	askedChanges   atomic.Uint64 // value of changes at the last query with a prefix

	_ [32]byte // the next lock is on another cache line
}

type eventKey struct{ host, service string }

type entry struct {
	text string // host, service and the encoded event; the key's strings are parts of it
	end  int64  // when it expires, in nanoseconds since 1970
}

func (e entry) size() int64 { return int64(len(e.text)) + entryBytes }

func newIndex(most int64) *index {
	x := &index{maxBytes: most, seed: maphash.MakeSeed()}
	for i := range x.parts {
		x.parts[i].m = make(map[eventKey]entry)
		x.parts[i].changes = 1 // differs from orderedChanges and askedChanges
	}
	return x
}

func (x *index) part(p eventKey) *shard {
	if strings.HasPrefix(p.service, ownPrefix) {
		return &x.parts[shards]
	}
	return &x.parts[(maphash.String(x.seed, p.service)^maphash.String(x.seed, p.host)*31)%shards]
}

// A fullError says that the index has no room for an event.
type fullError struct{ maxBytes int64 }

func (e fullError) Error() string {
	return fmt.Sprintf("the index is full: it keeps %s (--max-index)", units.FlagSize(e.maxBytes))
}

// expiry is when an event leaves the index, in nanoseconds since 1970. The event's
// time is the sender's, as in index.clj.
func expiry(e *wire.Event) int64 {
	ttl := defaultTTL
	if e.HasTTL {
		ttl = 0
		if e.TTL > 0 { // false for NaN
			ttl = time.Duration(min(float64(e.TTL), 1e9) * float64(time.Second))
		}
	}
	at, _ := e.When()
	// Nanoseconds in 64 bits reach to the year 2262; later times are cut off.
	seconds := min(max(at.Unix(), 0), 8e9)
	return seconds*1e9 + int64(at.Nanosecond()) + int64(ttl)
}

// put keeps an event, which has a time, and replaces the previous one of its key.
// An event whose state is expired deletes the previous one and is not kept.
// Scratch is overwritten and returned.
func (x *index) put(e *wire.Event, scratch []byte) ([]byte, error) {
	p := eventKey{e.Host, e.Service}
	s := x.part(p)
	if e.State == "expired" {
		s.mu.Lock()
		old, ok := s.m[p]
		if ok {
			delete(s.m, p)
			s.noteChange()
		}
		s.mu.Unlock()
		if ok {
			x.used.Add(-old.size())
		}
		return scratch, nil
	}
	scratch = append(append(scratch[:0], e.Host...), e.Service...)
	scratch = wire.AppendEvent(scratch, e)
	added := entry{string(scratch), expiry(e)}
	p.host, p.service = added.text[:len(p.host)], added.text[len(p.host):len(p.host)+len(p.service)]

	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.m[p]
	grows := added.size()
	if ok {
		grows -= old.size()
	}
	if used := x.used.Add(grows); used > x.maxBytes && grows > 0 {
		x.used.Add(-grows)
		return scratch, fullError{x.maxBytes}
	}
	if !ok {
		s.noteChange()
	}
	s.m[p] = added // Go's maps replace the key too, and so release the old strings
	return scratch, nil
}

// search calls found with each event that matches the query, in no particular
// order, until found returns false. The index may change concurrently; each event
// is seen once and consistently.
func (x *index) search(q query, now time.Time, found func(s *subject) bool) {
	at := now.UnixNano()
	var s subject
	others := !strings.HasPrefix(q.prefix, ownPrefix)
	own := !others || strings.HasPrefix(ownPrefix, q.prefix)
	for i := range x.parts {
		if i < shards && !others || i == shards && !own {
			continue
		}
		if !x.parts[i].search(q, at, &s, found) {
			return
		}
	}
}

func (sh *shard) search(q query, at int64, s *subject, found func(s *subject) bool) bool {
	try := func(p eventKey, e entry) bool {
		if e.end < at {
			return true
		}
		*s = subject{host: p.host, service: p.service, raw: e.text[len(p.host)+len(p.service):]}
		return !q.matches(s) || found(s)
	}
	sh.mu.RLock()
	defer func() { sh.mu.RUnlock() }()
	if q.prefix != "" && sh.orderedChanges != sh.changes && sh.askedChanges.Swap(sh.changes) == sh.changes {
		sh.mu.RUnlock()
		sh.order()
		sh.mu.RLock()
	}
	if q.prefix == "" || sh.orderedChanges != sh.changes {
		for p, e := range sh.m {
			if !try(p, e) {
				return false
			}
		}
		return true
	}
	from, _ := slices.BinarySearchFunc(sh.ordered, q.prefix, func(p eventKey, prefix string) int { return strings.Compare(p.service, prefix) })
	for _, p := range sh.ordered[from:] {
		if !strings.HasPrefix(p.service, q.prefix) {
			break
		}
		if !try(p, sh.m[p]) {
			return false
		}
	}
	return true
}

// order sorts the keys by service.
func (sh *shard) order() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.orderedChanges == sh.changes {
		return
	}
	sh.ordered = slices.Grow(sh.ordered[:0], len(sh.m))
	for p := range sh.m {
		sh.ordered = append(sh.ordered, p)
	}
	slices.SortFunc(sh.ordered, func(a, b eventKey) int { return strings.Compare(a.service, b.service) })
	sh.orderedChanges = sh.changes
}

// noteChange notes that a key was added or removed, and drops the sorted list, which
// would keep removed texts in memory. It is called with the lock held.
func (sh *shard) noteChange() {
	sh.changes++
	sh.ordered = nil
}

// expire removes the expired events from one part of the index and calls onExpired
// for each, without the lock.
func (x *index) expire(part int, now time.Time, onExpired func(host, service string)) {
	s, at := &x.parts[part%len(x.parts)], now.UnixNano()
	var removed []eventKey
	s.mu.Lock()
	for p, e := range s.m {
		if e.end < at {
			x.used.Add(-e.size())
			delete(s.m, p)
			removed = append(removed, p)
		}
	}
	if len(removed) > 0 {
		s.noteChange()
	}
	s.mu.Unlock()
	for _, p := range removed {
		onExpired(p.host, p.service)
	}
}
