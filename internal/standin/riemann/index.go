package riemann

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	wire "carronade/internal/wire/riemann"
	"carronade/units"
)

// defaultTTL is how long an event without a time to live is kept: default-ttl
// of index.clj.
const defaultTTL = 60 * time.Second

// shards is how many parts the index has, each with a lock, so that many
// connections do not wait for one.
const shards = 64

// entryBytes is what an entry costs beside its text: its slot in the map, which
// is about two thirds full, the rounding of its allocation, and its place in
// the shard's order.
const entryBytes = 160

// ownPrefix begins the services of a server's events about itself. They have a
// part of the index to themselves: they are asked for all the time, and that
// must not cost a walk through everybody's.
const ownPrefix = "riemann "

// An index keeps the newest event of each host and service, encoded, until its
// time plus its time to live is over. It is safe for concurrent use.
//
// Events are kept as bytes in one string each: a million of a hundred bytes
// take about 250 MB and hardly anything of the collector, where a million
// structs would take twice that; and they are answered by being copied.
type index struct {
	most  int64 // bytes
	used  atomic.Int64
	seed  maphash.Seed
	parts [shards + 1]shard // the last one is for services with the ownPrefix
}

// A shard is searched from end to end, unless a query tells how services begin
// and asks for the second time since places came or went: then they are put
// in order, once, and what is asked for is found in it. So a check of a million
// events, prefix after prefix, costs one sorting, and a query while events
// arrive costs none.
type shard struct {
	mu      sync.RWMutex
	m       map[place]entry
	changes uint64 // of the set of places
	ordered []place
	as      uint64        // the changes that ordered knows
	asked   atomic.Uint64 // the changes there were when somebody last wanted order

	_ [32]byte // the next lock is on another cache line
}

type place struct{ host, service string }

type entry struct {
	text string // host, service and the encoded event; the place's strings are parts of it
	end  int64  // when it expires, nanoseconds since 1970
}

func (e entry) size() int64 { return int64(len(e.text)) + entryBytes }

func newIndex(most int64) *index {
	x := &index{most: most, seed: maphash.MakeSeed()}
	for i := range x.parts {
		x.parts[i].m = make(map[place]entry)
		x.parts[i].changes = 1 // and none is known or asked for
	}
	return x
}

func (x *index) part(p place) *shard {
	if strings.HasPrefix(p.service, ownPrefix) {
		return &x.parts[shards]
	}
	return &x.parts[(maphash.String(x.seed, p.service)^maphash.String(x.seed, p.host)*31)%shards]
}

// A fullError says that an event is of a new host and service, and that the
// index takes no more of those.
type fullError struct{ most int64 }

func (e fullError) Error() string {
	return fmt.Sprintf("the index is full: it keeps %s (--max-index)", units.FlagSize(e.most))
}

// expiry is when the event leaves the index. Times are the sender's, as in
// index.clj.
func expiry(e *wire.Event) int64 {
	ttl := defaultTTL
	if e.HasTTL {
		ttl = 0
		if e.TTL > 0 { // and a number
			ttl = time.Duration(min(float64(e.TTL), 1e9) * float64(time.Second))
		}
	}
	at, _ := e.When()
	// What nanoseconds cannot count, in the year 2262, is far enough.
	seconds := min(max(at.Unix(), 0), 8e9)
	return seconds*1e9 + int64(at.Nanosecond()) + int64(ttl)
}

// put keeps an event, which has a time, in the place of the one before. An
// event whose state is expired deletes that one, and is not kept. Scratch is
// written over and returned.
func (x *index) put(e *wire.Event, scratch []byte) ([]byte, error) {
	p := place{e.Host, e.Service}
	s := x.part(p)
	if e.State == "expired" {
		s.mu.Lock()
		old, ok := s.m[p]
		if ok {
			delete(s.m, p)
			s.changed()
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
	if used := x.used.Add(grows); used > x.most && grows > 0 {
		x.used.Add(-grows)
		return scratch, fullError{x.most}
	}
	if !ok {
		s.changed()
	}
	s.m[p] = added // the key too: Go's maps take the new strings over, and let go the old
	return scratch, nil
}

// search calls found with each event that the query is true of, in no order,
// until it returns false. Others may change the index meanwhile; each event is
// seen whole, once.
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
	try := func(p place, e entry) bool {
		if e.end < at {
			return true
		}
		*s = subject{host: p.host, service: p.service, raw: e.text[len(p.host)+len(p.service):]}
		return !q.matches(s) || found(s)
	}
	sh.mu.RLock()
	defer func() { sh.mu.RUnlock() }()
	if q.prefix != "" && sh.as != sh.changes && sh.asked.Swap(sh.changes) == sh.changes {
		sh.mu.RUnlock()
		sh.order()
		sh.mu.RLock()
	}
	if q.prefix == "" || sh.as != sh.changes {
		for p, e := range sh.m {
			if !try(p, e) {
				return false
			}
		}
		return true
	}
	from, _ := slices.BinarySearchFunc(sh.ordered, q.prefix, func(p place, prefix string) int { return strings.Compare(p.service, prefix) })
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

// order puts the places into the order of their services.
func (sh *shard) order() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.as == sh.changes {
		return
	}
	sh.ordered = slices.Grow(sh.ordered[:0], len(sh.m))
	for p := range sh.m {
		sh.ordered = append(sh.ordered, p)
	}
	slices.SortFunc(sh.ordered, func(a, b place) int { return strings.Compare(a.service, b.service) })
	sh.as = sh.changes
}

// changed notes that a place came or went; the order, which holds on to texts
// that may be gone, is given up. It is called with the lock held.
func (sh *shard) changed() {
	sh.changes++
	sh.ordered = nil
}

// size is how many events are kept, expired ones that were not removed yet
// included.
func (x *index) size() int {
	n := 0
	for i := range x.parts {
		s := &x.parts[i]
		s.mu.RLock()
		n += len(s.m)
		s.mu.RUnlock()
	}
	return n
}

// expire removes what has expired from one part of the index and calls gone
// for each, outside of the lock.
func (x *index) expire(part int, now time.Time, gone func(host, service string)) {
	s, at := &x.parts[part%len(x.parts)], now.UnixNano()
	var removed []place
	s.mu.Lock()
	for p, e := range s.m {
		if e.end < at {
			x.used.Add(-e.size())
			delete(s.m, p)
			removed = append(removed, p)
		}
	}
	if len(removed) > 0 {
		s.changed()
	}
	s.mu.Unlock()
	for _, p := range removed {
		gone(p.host, p.service)
	}
}
