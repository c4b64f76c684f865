package ledger

import "carronade/load"

// transactions contains what became of the transactions that a log's events belong to,
// and what a reader of committed events found. Events in neither aborted nor unsure
// were committed, or not in a transaction.
type transactions struct {
	aborted map[int32]*ranges // indices by stream
	unsure  map[int32]*ranges // not known whether they were committed
	visible map[int32]*ranges // found by a reader of committed events
	hidden  ranges            // offsets that were removed before that reader read them
	notKept uint64            // events that it found, but for which memory had no room
	whole   bool              // it reached the end of the log
}

// Uncommitted records that events of a stream were in an aborted transaction or, if
// aborted is false, in one whose end is not known.
func (l *Ledger) Uncommitted(stream int32, first, events uint64, aborted bool) {
	n := l.cfg.LogOf(stream)
	if n < 0 || int(n) >= len(l.logs) {
		return
	}
	g := &l.logs[n]
	g.mu.Lock()
	defer g.mu.Unlock()
	t := &g.transactions
	to := &t.unsure
	if aborted {
		to = &t.aborted
	}
	if *to == nil {
		*to = map[int32]*ranges{}
	}
	g.put(*to, stream, first, first+events)
}

// Visible records what a reader of committed events received. Events must be stamped.
// It does not keep the slice.
func (l *Ledger) Visible(pieces []load.Arrival) {
	for i := range pieces {
		a := &pieces[i]
		if a.Log < 0 || int(a.Log) >= len(l.logs) {
			continue
		}
		g := &l.logs[a.Log]
		g.mu.Lock()
		for s := a.Stamps; len(s) > 0; {
			k := 1
			for k < len(s) && !s[k].Bad && s[k].Run == s[0].Run && s[k].Stream == s[0].Stream && s[k].Index == s[0].Index+uint64(k) {
				k++
			}
			switch {
			case s[0].Bad || s[0].Run != l.cfg.RunID:
			case g.closed:
				g.transactions.notKept += uint64(k)
			default:
				if g.transactions.visible == nil {
					g.transactions.visible = map[int32]*ranges{}
				}
				g.put(g.transactions.visible, s[0].Stream, s[0].Index, s[0].Index+uint64(k))
			}
			s = s[k:]
		}
		g.mu.Unlock()
	}
	l.freeMemory()
}

// Hidden is Removed for the reader of committed events.
func (l *Ledger) Hidden(log int32, from, to int64) {
	g := &l.logs[log]
	g.mu.Lock()
	g.transactions.hidden.add(uint64(max(from, 0)), uint64(max(to, 0)))
	g.mu.Unlock()
}

// FinishVisible records that a reader of committed events has finished, and which logs
// it read to their ends (nil: none). It is called before Verdict, and only if events
// are stamped.
func (l *Ledger) FinishVisible(whole []bool) {
	l.visibleDone = true
	for i := range l.logs {
		g := &l.logs[i]
		g.mu.Lock()
		g.transactions.whole = whole != nil && whole[i]
		g.setBare() // events are distinguished one by one
		g.mu.Unlock()
	}
}

// mustBeFound returns which of some events must be found, because they were in no
// aborted transaction, and for how many that is not known.
func (t *transactions) mustBeFound(stream int32, x span) (due []span, unsure uint64) {
	_, rest := t.aborted[stream].cut(x.lo, x.hi)
	for _, r := range rest {
		in, out := t.unsure[stream].cut(r.lo, r.hi)
		unsure += length(in)
		due = append(due, out...)
	}
	return due, unsure
}

// visible checks what a reader of committed events found. Events that no reader found
// have been counted already.
func (j *balance) visible() {
	g := j.g
	t := &g.transactions
	missing := uint64(0)
	for s, r := range g.answered {
		for _, x := range r.spans {
			j.aborted += t.aborted[s].count(x.lo, x.hi)
			due, _ := t.mustBeFound(s, x)
			for _, d := range due {
				j.committed += d.hi - d.lo
				j.committedRead += t.visible[s].count(d.lo, d.hi)
				for _, f := range j.seen[s].both(d.lo, d.hi) {
					missing += f.hi - f.lo - t.visible[s].count(f.lo, f.hi)
				}
			}
		}
	}
	for s, r := range t.aborted {
		for _, x := range r.spans {
			j.v.Phantom += t.visible[s].count(x.lo, x.hi)
		}
	}
	unkept := min(missing, t.notKept)
	j.v.Inexact += unkept
	missing -= unkept
	removed := min(missing, length(t.hidden.spans))
	j.removed += removed
	if !t.whole {
		j.v.Unread += missing
		return
	}
	j.v.Unread += removed
	j.v.Lost += missing - removed
}
