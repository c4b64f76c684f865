package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/load"
	"carronade/measure"
)

// A firing is a run in progress.
type firing struct {
	fleet        *Fleet
	order        *run.Order
	c            *coordinator
	base         time.Time // 0 of the coordinator's clock
	infos        map[string]Info
	participants []*participant
	ready        int
	began        time.Time // of the run; zero before
	reason       load.Reason
	interrupted  bool                        // by the user: the run was to end at once
	frames       map[uint64][]*load.Snapshot // by number, until it is closed
	refused      error                       // by Order.Opened
	outcome      *runOutcome
}

// A participant is an agent of a run, with what came from it.
type participant struct {
	row      report.Agent
	measured *run.Measured
	series   *measure.Series // of its frames
	newest   *load.Snapshot
	err      error

	unread    int // frames that could not be decoded
	unreadWhy error
}

func (r *firing) participant(name string) *participant {
	return r.participants[slices.IndexFunc(r.participants, func(m *participant) bool { return m.row.Name == name })]
}

// run drives the coordinator to its end.
func (r *firing) run(ctx context.Context) (*run.Combined, error) {
	r.base = time.Now()
	now := func() time.Duration { return time.Since(r.base) }
	r.fleet.drain()
	r.c.Tick(now())
	r.act()
	timer := time.NewTimer(0)
	defer timer.Stop()
	abort, leaving := r.order.Abort, ctx.Done()
	for r.outcome == nil {
		timer.Reset(min(time.Hour, max(0, r.c.Next()-now())))
		select {
		case d := <-r.fleet.inbox:
			r.c.Receive(d.at.Sub(r.base), d.agent, d.message)
		case <-timer.C:
			r.c.Tick(now())
		case why := <-r.order.Stop:
			if r.reason == "" {
				r.reason = why
			}
			r.c.Stop(now(), string(why))
		case <-abort:
			abort, r.interrupted = nil, true
			r.c.Abort(now(), "interrupted")
		case <-leaving:
			leaving, r.interrupted = nil, true
			r.c.Abort(now(), "interrupted")
		}
		r.act()
	}
	defer r.release(now)
	return r.combine()
}

// release has the agents forget the run, since all of it is here.
func (r *firing) release(now func() time.Duration) {
	r.c.Release(now())
	r.act()
	for timer := time.NewTimer(0); !r.c.Done(); r.act() {
		timer.Reset(min(time.Second, max(0, r.c.Next()-now())))
		select {
		case d := <-r.fleet.inbox:
			r.c.Receive(d.at.Sub(r.base), d.agent, d.message)
		case <-timer.C:
			r.c.Tick(now())
		}
	}
}

// act sends what the coordinator wants to send, and takes what happened.
func (r *firing) act() {
	for again := true; again; {
		send, events := r.c.Take()
		for _, m := range send {
			_ = r.fleet.Bus.Send(m.Agent, m.Message.Encode()) // a lost message is sent again
		}
		for _, e := range events {
			r.take(e)
		}
		again = len(events) > 0 // taking one may have changed the coordinator
	}
}

// take handles one event.
func (r *firing) take(happened event) {
	logf := r.order.Logf
	switch e := happened.(type) {
	case agentReady:
		if r.ready++; r.ready == len(r.participants) {
			if r.refused = r.order.Opened(nil); r.refused != nil {
				r.c.Abort(time.Since(r.base), r.refused.Error())
			}
		}
	case agentDisturbed:
		if r.order.Disturbed != nil {
			r.order.Disturbed(e.Agent, e.Text)
		}
	case agentFailed:
		r.participant(e.Agent).err = e.Err
		logf("agent %s: %v", e.Agent, e.Err)
	case runStarted:
		r.began = r.base.Add(e.T0)
		if r.order.Started != nil {
			r.order.Started(r.began)
		}
		logf("%d agents start together, at most %v apart", len(r.participants), e.Skew.Round(time.Microsecond))
	case frameOf:
		m := r.participant(e.Agent)
		s, records, err := unpackSnapshot(e.Data)
		if err != nil {
			logf("agent %s: interval %d cannot be read: %v", e.Agent, e.Number, err)
			if m.unread++; m.unread == 1 {
				m.unreadWhy = fmt.Errorf("the first of them is number %d: %w", e.Number, err)
			}
			return
		}
		if r.order.Records != nil {
			for _, chunk := range records {
				r.order.Records(chunk)
			}
		}
		if m.series == nil {
			m.series = measure.NewSeries(measure.DefaultSeries)
		}
		for _, row := range s.Rows {
			m.series.Add(row)
		}
		m.newest = s
		if !m.row.Reads {
			r.frames[e.Number] = append(r.frames[e.Number], s)
		}
	case intervalClosed:
		if of := r.frames[e.Number]; len(of) > 0 {
			r.order.Watch(load.MergeSnapshots(of))
		}
		delete(r.frames, e.Number)
	case agentSuspect:
		logf("agent %s: nothing was heard for %v", e.Agent, e.Silent.Round(100*time.Millisecond))
	case agentBack:
		logf("agent %s is back", e.Agent)
	case agentDead:
		logf("agent %s is lost: it has stopped by itself at %v after the start at the latest", e.Agent, (e.MayHaveFiredUntil - r.sinceStart()).Round(100*time.Millisecond))
	case resultOf:
		m := r.participant(e.Agent)
		if e.Err != nil {
			m.err = e.Err
		}
		if e.Data == nil {
			return
		}
		m.measured = new(run.Measured)
		err := unpack(e.Data, m.measured)
		if err == nil {
			m.measured.Records, err = expand(m.measured.Records)
		}
		if err != nil {
			m.measured, m.err = nil, fmt.Errorf("its result cannot be read: %w", err)
		}
	case runFinished:
		r.outcome = &e.Outcome
	}
}

// sinceStart is T0 on the coordinator's clock.
func (r *firing) sinceStart() time.Duration {
	if r.began.IsZero() {
		return 0
	}
	return r.began.Sub(r.base)
}

// combine makes the result of what came.
func (r *firing) combine() (*run.Combined, error) {
	if r.refused != nil {
		return nil, r.refused
	}
	g := &run.Combined{Skew: r.outcome.Skew, Apart: r.apart(), Faults: r.outcome.Reasons}
	some := false
	for i, m := range r.participants {
		o := &r.outcome.Agents[i]
		row := m.row
		if m.unread > 0 {
			g.Faults = append(g.Faults, fmt.Sprintf("agent %s: %d of its intervals cannot be read; %v", m.row.Name, m.unread, m.unreadWhy))
		}
		row.State, row.Fault = string(o.State), o.Err
		row.ClockOffsetUS, row.ClockBoundUS, row.ClockBoundEndUS = measure.Micros(o.Offset), measure.Micros(o.BoundStart), measure.Micros(o.BoundEnd)
		row.ShortestRTTUS = measure.Micros(o.MinRTT)
		if m.measured == nil || m.measured.Result == nil {
			if o.Result { // it came, but cannot be used
				g.Faults = append(g.Faults, fmt.Sprintf("agent %s: its result cannot be read", m.row.Name))
			}
			m.measured = &run.Measured{Result: r.lost(m), Processors: r.infos[m.row.Name].Processors}
			if m.newest != nil && !m.row.Reads && o.MayHaveFiredUntil > r.sinceStart() {
				g.Warnings = append(g.Warnings, fmt.Sprintf("agent %s was lost, and its last interval ended at %v: what it sent afterwards, until %v at the latest, counts as unsent",
					m.row.Name, m.newest.At.Round(100*time.Millisecond), (o.MayHaveFiredUntil-r.sinceStart()).Round(100*time.Millisecond)))
			}
		}
		if res := m.measured.Result; res != nil && !m.row.Reads {
			some = true
			switch {
			case res.Stopped != load.Interrupted:
			case r.reason != "":
				res.Stopped = r.reason
			case o.Lapsed: // it stopped by itself
				res.Stopped = load.ByLease
			case !r.interrupted && r.outcome.State == stateAborted:
				res.Stopped = load.ByGenerator
			}
		}
		g.Agents, g.Rows = append(g.Agents, *m.measured), append(g.Rows, row)
	}
	if !some {
		return nil, r.failure()
	}
	return g, nil
}

// apart returns by how much a time from one agent's clock to that of the one that reads may be
// wrong: each clock was known to within a bound at the start, and came apart since.
func (r *firing) apart() time.Duration {
	var reader, sender time.Duration
	for i, m := range r.participants {
		o := &r.outcome.Agents[i]
		bound := max(o.BoundStart, o.BoundEnd+max(o.Drift, -o.Drift))
		if m.row.Reads {
			reader = bound
		} else {
			sender = max(sender, bound)
		}
	}
	return reader + sender
}

// failure says why nothing was sent.
func (r *firing) failure() error {
	for _, m := range r.participants {
		if m.err != nil {
			return fmt.Errorf("agent %s: %w", m.row.Name, m.err)
		}
	}
	if len(r.outcome.Reasons) > 0 {
		return errors.New(r.outcome.Reasons[0])
	}
	return errors.New("no agent sent anything")
}

// lost is the result of an agent that was lost, of its frames: events in flight at the end
// of the newest one are unknown, and what it should have sent afterwards is unsent; how much
// that is becomes clear when all results are merged. nil if no frame came.
func (r *firing) lost(m *participant) *load.Result {
	if m.newest == nil {
		return nil
	}
	res := &load.Result{
		Started: r.began, Ended: r.began.Add(m.newest.At), Mode: r.mode(),
		Classes: map[string]uint64{}, Clients: m.row.To - m.row.From, Unanswered: m.newest.Unanswered,
	}
	rows := m.series.Intervals()
	for i := range rows {
		row := &rows[i]
		tally := &res.Measurement
		if row.Phase == measure.WarmUp {
			tally = &res.Warmup
		}
		if tally.Name == "" {
			tally.Name, tally.Start = row.Phase, row.Start
			if row.Phase == measure.Measurement {
				tally.Start = row.End - row.Within
			}
			tally.End = tally.Start
		}
		if row.Within > 0 {
			tally.End = max(row.Start, tally.Start) + row.Within
		}
		tally.Counts.Add(row.Counts)
		tally.Set.Merge(&row.Set)
		tally.Statuses.Merge(row.Statuses)
		tally.Arrived += row.Arrived
		tally.ArrivedBytes += row.AckedBytes
		tally.Answers += row.Part(row.Answered)
		tally.Sends += row.Part(row.Sent)
		tally.SendBytes += row.Part(row.Bytes)
		tally.SendWire += row.Part(row.WireBytes)
		for _, c := range row.Classes {
			res.Classes[c.Class] += c.Events
		}
		res.Usage = res.Usage.Join(row.Generator)
		// What it added by its own delays is not known.
		tally.Lower.Merge(&measure.Lower{Response: row.Response, Service: row.Service, EndToEnd: row.EndToEnd})
	}
	for _, name := range []string{measure.WarmUp, measure.Measurement} {
		last := -1
		for i := range rows {
			if rows[i].Phase == name {
				last = i
			}
		}
		if last < 0 {
			continue
		}
		tally := &res.Measurement
		if name == measure.WarmUp {
			tally = &res.Warmup
		}
		c := &tally.Counts
		unknown := c.Sent - min(c.Sent, c.Acked+c.Failed+c.Unknown)
		unsent := c.Offered - min(c.Offered, c.Sent+c.Dropped+c.Unsent)
		for _, to := range []*measure.Counts{c, &rows[last].Counts} {
			to.Unknown += unknown
			to.Unsent += unsent
		}
	}
	res.Intervals = rows
	return res
}

// mode is the mode of the run, as a result has it.
func (r *firing) mode() load.Mode {
	for _, m := range r.participants {
		if !m.row.Reads && m.measured != nil && m.measured.Result != nil {
			return m.measured.Result.Mode
		}
	}
	return load.OpenLoop
}
