package run

import (
	"fmt"
	"slices"
	"time"

	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/units"
)

// A backlog is the state machine of a run that builds and drains a backlog. It knows neither readers nor clocks:
// each step gets how much waits, and returns what is to be done.
//
//	waiting -> building -> draining -> drained
//	               |           `-----> undrained
//	               `-----------------> unbuilt
//
// Readers are paused only while it is built.
type backlog struct {
	plan  workload.Backlog
	limit time.Duration // of draining

	state   string // of report.ReadBacklog
	buildAt time.Duration
	drainAt time.Duration
	doneAt  time.Duration // when it was drained, or given up
	stopped time.Duration // when sending ended; below 0: it goes on
	over    bool          // it stays as it is: the run was ended early

	begin  amount        // acked when draining began
	acked  amount        // as of the newest step
	ended  amount        // the same, until draining ended
	seen   time.Duration // the newest step
	groups []backlogRead // in the order of the run's
	recent []ackedAt     // of the newest caughtUp
	points []int64       // events that wait for the slowest group, at the ends of intervals
}

// An amount is a number of events, and of bytes of their payloads.
type amount struct{ events, bytes uint64 }

func (a amount) less(b amount) amount {
	return amount{a.events - min(a.events, b.events), a.bytes - min(a.bytes, b.bytes)}
}

type ackedAt struct {
	at     time.Duration
	events uint64
}

// A backlogRead is the backlog of one group.
type backlogRead struct {
	name    string
	waits   amount // as of the newest step
	left    amount // the same, until draining ended
	level   uint64 // of a backlog that is drained
	most    amount // highest
	mostAt  time.Duration
	begin   amount        // read when draining began
	read    amount        // as of the newest step, up to the end of draining
	drained time.Duration // when it was; below 0: it is not
}

// A backlogSample is how far a run is.
type backlogSample struct {
	measuring bool // the warm-up is over
	acked     amount
	read      []amount // of what was acked, by group
}

// A backlogAction is what a step asks for.
type backlogAction uint8

// The actions.
const (
	goOn backlogAction = iota
	pauseReaders
	resumeReaders
	endDrained
	endUndrained
)

// caughtUp is how far a group that keeps up may be behind: its backlog is what was acked in that time.
const caughtUp = 100 * time.Millisecond

func newBacklog(plan *workload.Backlog, groups []string) *backlog {
	b := &backlog{plan: *plan, state: report.BacklogWaiting, buildAt: -1, drainAt: -1, doneAt: -1, stopped: -1}
	for _, name := range groups {
		b.groups = append(b.groups, backlogRead{name: name, drained: -1})
	}
	return b
}

// step takes how far the run is at a moment. Moments only grow.
func (b *backlog) step(at time.Duration, s *backlogSample) backlogAction {
	b.note(at, s)
	if b.over {
		return goOn
	}
	switch b.state {
	case report.BacklogWaiting:
		if s.measuring {
			b.state, b.buildAt = report.BacklogBuilding, at
			return pauseReaders
		}
	case report.BacklogBuilding:
		switch {
		case b.built(at):
			b.state, b.drainAt, b.begin = report.BacklogDraining, at, s.acked
			if b.limit = b.plan.Timeout; b.limit == 0 {
				b.limit = workload.BuildTimes * (at - b.buildAt)
			}
			for i := range b.groups {
				b.groups[i].begin = s.read[i]
			}
			return resumeReaders
		case b.stopped >= 0:
			b.state, b.doneAt = report.BacklogUnbuilt, at
			return resumeReaders
		}
	case report.BacklogDraining:
		for i := range b.groups {
			g := &b.groups[i]
			if g.level = b.level(g); g.drained < 0 && g.waits.events <= g.level {
				g.drained = at
			}
		}
		switch {
		case !slices.ContainsFunc(b.groups, func(g backlogRead) bool { return g.drained < 0 }):
			b.state, b.doneAt = report.BacklogDrained, at
		case at-b.drainAt >= b.limit:
			b.state, b.doneAt = report.BacklogUndrained, at
			return endUndrained
		}
	}
	if b.state == report.BacklogDrained && at-b.doneAt >= b.plan.After {
		return endDrained
	}
	return goOn
}

// note notes what waits.
func (b *backlog) note(at time.Duration, s *backlogSample) {
	b.acked, b.seen = s.acked, at
	if b.doneAt < 0 {
		b.ended = s.acked
	}
	for i := range b.groups {
		g := &b.groups[i]
		if g.waits = s.acked.less(s.read[i]); b.state != report.BacklogWaiting && g.waits.events > g.most.events {
			g.most, g.mostAt = g.waits, at
		}
		if b.doneAt < 0 {
			g.left = g.waits
		}
		if b.doneAt < 0 && g.drained < 0 {
			g.read = s.read[i]
		}
	}
	b.recent = append(b.recent, ackedAt{at, s.acked.events})
	old := 0
	for old+1 < len(b.recent) && b.recent[old+1].at <= at-caughtUp {
		old++
	}
	b.recent = slices.Delete(b.recent, 0, old)
}

// built reports whether as much waits as was asked for, for each group.
func (b *backlog) built(at time.Duration) bool {
	if b.plan.Time > 0 {
		return at-b.buildAt >= b.plan.Time
	}
	return !slices.ContainsFunc(b.groups, func(g backlogRead) bool {
		return g.waits.events < b.plan.Events || g.waits.bytes < b.plan.Bytes
	})
}

// level is how many events may wait for a group whose backlog is drained.
func (b *backlog) level(g *backlogRead) uint64 {
	left := uint64((1 - b.plan.Drained) * float64(g.most.events))
	return max(left, b.acked.events-b.recent[0].events)
}

// slowest is the group for which the most waits.
func (b *backlog) slowest() *backlogRead {
	most := &b.groups[0]
	for i := range b.groups {
		if g := &b.groups[i]; g.waits.events > most.waits.events {
			most = g
		}
	}
	return most
}

// text is what the run does with its backlog, for its progress; "": nothing.
func (b *backlog) text(at time.Duration) string {
	switch b.state {
	case report.BacklogBuilding:
		done := units.FormatDuration((at - b.buildAt).Round(time.Second))
		if waits := b.slowest().waits; b.plan.Events > 0 {
			done = units.FormatCountShort(waits.events)
		} else if b.plan.Bytes > 0 {
			done = units.FormatSize(int64(waits.bytes)) //nolint:gosec // of events that were sent
		}
		return fmt.Sprintf("building a backlog: %s of %s", done, &b.plan)
	case report.BacklogDraining:
		return fmt.Sprintf("draining, %s events left", units.FormatCountShort(b.slowest().waits.events))
	case report.BacklogDrained:
		return "drained"
	}
	return ""
}

// report is what was measured, without the stages, which follow from the series.
func (b *backlog) report() *report.ReadBacklog {
	since := func(from, to time.Duration) *float64 {
		if from < 0 || to < from {
			return nil
		}
		s := (to - from).Seconds()
		return &s
	}
	last, slowest := b.slowest(), time.Duration(-1)
	for i := range b.groups { // of those that are drained, the last to be
		if g := &b.groups[i]; b.state == report.BacklogDrained && g.drained > slowest {
			last, slowest = g, g.drained
		}
	}
	end := b.doneAt
	if end < 0 {
		end = b.seen
	}
	r := &report.ReadBacklog{
		State: b.state, Wanted: b.plan.String(), Share: b.plan.Drained,
		BuildAtS: since(0, b.buildAt), DrainAtS: since(0, b.drainAt), SendingS: since(0, b.stopped),
		BuildS: since(b.buildAt, end), LimitS: b.limit.Seconds(), Last: last.name, Groups: []report.BacklogGroup{},
	}
	if b.drainAt >= 0 {
		r.BuildS, r.DrainS = since(b.buildAt, b.drainAt), since(b.drainAt, end)
	}
	for i := range b.groups {
		g := &b.groups[i]
		row := report.BacklogGroup{Name: g.name, MostEvents: g.most.events, MostBytes: g.most.bytes, LeftEvents: g.left.events}
		if g.most.events > r.MostEvents {
			r.MostEvents, r.MostBytes, r.MostAtS = g.most.events, g.most.bytes, g.mostAt.Seconds()
		}
		if b.drainAt >= 0 {
			read, until := g.read.less(g.begin), end
			if g.drained >= 0 {
				until = g.drained
				row.DrainS = since(b.drainAt, until)
			}
			if length := (until - b.drainAt).Seconds(); length > 0 {
				row.EventsPerS, row.BytesPerS = float64(read.events)/length, float64(read.bytes)/length
			}
			if length := (end - b.drainAt).Seconds(); length > 0 {
				r.EventsPerS += float64(read.events) / length
				r.BytesPerS += float64(read.bytes) / length
			}
		}
		r.Groups = append(r.Groups, row)
	}
	r.LeftEvents = last.left.events
	if length := (end - b.drainAt).Seconds(); b.state == report.BacklogUndrained && length > 0 {
		r.AckedPerS = float64(b.ended.less(b.begin).events) / length
		r.MissingPerS = float64(last.left.events-min(last.left.events, last.level)) / length
	}
	return r
}
