package ledger

// A Span is events of a stream with consecutive indices, from Lo up to Hi, excluding Hi.
type Span struct {
	Stream int32
	Lo, Hi uint64
}

// Places say which events a verdict found lost, duplicated and reordered, as far as that is known:
// not without stamps for copies, not for events that are only counted by sums, and not for more
// than MostPlaces of a log. Of an event that was found several times more, each copy has a span.
type Places struct {
	Lost, Duplicated, Reordered []Span
}

// MostPlaces is how many spans of each kind a log keeps.
const MostPlaces = 1 << 12

const spanBytes = 24

// add adds spans of another log.
func (p *Places) add(o *Places) {
	p.Lost = append(p.Lost, o.Lost...)
	p.Duplicated = append(p.Duplicated, o.Duplicated...)
	p.Reordered = append(p.Reordered, o.Reordered...)
}

// note adds events to a list, if there is room.
func note(list []Span, stream int32, lo, hi uint64) []Span {
	if lo >= hi {
		return list
	}
	if n := len(list); n > 0 && list[n-1].Stream == stream && list[n-1].Hi == lo {
		list[n-1].Hi = hi
		return list
	}
	if len(list) >= MostPlaces {
		return list
	}
	return append(list, Span{stream, lo, hi})
}

// noteNow adds events that are decided before the verdict.
func (g *log) noteNow(list *[]Span, stream int32, lo, hi uint64) {
	if lo >= hi || g.ledger.full() {
		return
	}
	before := cap(*list)
	*list = note(*list, stream, lo, hi)
	g.grow(int64(cap(*list)-before) * spanBytes)
}

// late counts the events of an entry that are late, and notes which: its first ones.
func (g *log) late(e *entry) {
	n := g.countLate(e, g.top)
	g.reordered += n
	g.noteNow(&g.places.Reordered, e.stream, e.first, e.first+n)
}

// miss counts acked events that were not found and whose place in the log is not known, and notes
// which are lost. Where some may have been removed, that is not known.
func (j *balance) miss(of []Span) {
	n := uint64(0)
	for _, x := range of {
		n += x.Hi - x.Lo
	}
	before := j.v.Lost
	j.countMissing(n)
	if j.v.Lost-before != n {
		return
	}
	for _, x := range of {
		j.places.Lost = note(j.places.Lost, x.Stream, x.Lo, x.Hi)
	}
}
