package ledger

import "carronade/load"

// A compacted log keeps the last event of each key, plus older ones that were not yet
// removed. So the ledger remembers, for each key, which event was acked last and which
// was read last, from any writer. If an event is missing, the event of its key that was
// read last must come after it.

// lastEvents describes the newest events of a key in a log.
type lastEvents struct {
	acked, read lastEvent
	ambiguous   bool // several streams have acked events, and it is not known which was the last
}

// A lastEvent is the last event of a key.
type lastEvent struct {
	place  int64 // its offset; noPlace: not known
	index  uint64
	stream int32 // unknownStream: not from this run
	exists bool  // an event exists
}

const (
	noPlace = -1
	// keyBytes is the memory for a key: the key, both events, and its share of the map.
	keyBytes = 128
)

// ackedKeys records the keys of an acked batch.
func (g *log) ackedKeys(o *load.Outcome) {
	g.hashes = g.ledger.cfg.Keys(g.hashes[:0], &o.Batch)
	for i, h := range g.hashes {
		e := lastEvent{place: noPlace, index: o.First + uint64(i), stream: o.Stream, exists: true}
		if o.Place >= 0 {
			e.place = o.Place + int64(i)
		}
		k, ok := g.key(h)
		switch {
		case !ok:
			continue
		case !k.acked.exists, k.acked.place >= 0 && e.place > k.acked.place, k.acked.stream == e.stream && e.index > k.acked.index && (e.place < 0 || k.acked.place < 0):
			k.acked = e
		case k.acked.stream != e.stream && (e.place < 0 || k.acked.place < 0):
			k.ambiguous = true
		}
		g.keys[h] = k
	}
}

// readKeys records the keys of what was read.
func (g *log) readKeys(a *load.Arrival) {
	for i := range a.Stamps {
		s := &a.Stamps[i]
		if s.Key == 0 {
			continue // no key
		}
		k, ok := g.key(s.Key)
		if !ok || k.read.exists && k.read.place > s.Offset {
			continue
		}
		k.read = lastEvent{place: s.Offset, stream: unknownStream, exists: true}
		if !s.Bad && s.Run == g.ledger.cfg.RunID {
			k.read.stream, k.read.index = s.Stream, s.Index
		}
		g.keys[s.Key] = k
	}
}

// key returns the newest events of a key; false if the table is full.
func (g *log) key(h uint64) (k lastEvents, ok bool) {
	if k, ok = g.keys[h]; ok {
		return k, true
	}
	if g.ledger.known.Add(1) > g.ledger.mostKeys {
		g.ledger.known.Add(-1)
		g.keysLeft = true
		return k, false
	}
	if g.keys == nil {
		g.keys = map[uint64]lastEvents{}
	}
	g.grow(keyBytes)
	return k, true
}

// KeysLeft returns the maximum number of keys if there were more, so that missing
// events of the others cannot be classified; otherwise 0.
func (l *Ledger) KeysLeft() int64 {
	for i := range l.logs {
		g := &l.logs[i]
		g.mu.Lock()
		left := g.keysLeft
		g.mu.Unlock()
		if left {
			return l.mostKeys
		}
	}
	return 0
}

// compacted classifies acked events that were not found, in a log that keeps the last
// of each key.
func (j *balance) compacted(missing uint64) {
	if missing == 0 {
		return
	}
	var lost, unread, removed uint64
	var which []Span
	for _, k := range j.g.keys {
		a := k.acked
		switch {
		case !a.exists:
		case k.ambiguous:
			unread++
		case j.seen[a.stream].count(a.index, a.index+1) > 0, k.follows():
		case a.place < 0 && k.read.exists && k.read.stream != a.stream:
			unread++ // the event that was read may precede it
		case j.end != everything:
			unread++ // the event that replaced it may lie beyond the end of reading
		case j.g.removed.beyond(uint64(max(a.place, 0))):
			// It, or the event that replaced it, was removed.
			unread++
			removed++
		default:
			lost++
			which = append(which, Span{a.stream, a.index, a.index + 1})
		}
	}
	if lost <= missing {
		for _, x := range which {
			j.places.Lost = note(j.places.Lost, x.Stream, x.Lo, x.Hi)
		}
	}
	lost = min(lost, missing)
	missing -= lost
	if j.g.keysLeft {
		unread = missing // they may belong to keys without room
	}
	unread = min(unread, missing)
	j.v.Lost += lost
	j.v.Unread += unread
	j.removed += min(removed, unread)
	j.v.Compacted += missing - unread
}

// follows reports whether the event of a key that was read last is, or comes after, the
// one that was acked last.
func (k *lastEvents) follows() bool {
	switch {
	case !k.read.exists:
		return false
	case k.acked.place >= 0:
		return k.read.place >= k.acked.place
	}
	return k.read.stream == k.acked.stream && k.read.index >= k.acked.index
}
