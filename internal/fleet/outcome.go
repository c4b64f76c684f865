package fleet

import (
	"fmt"
	"slices"
	"time"
)

// finish judges the run.
func (c *Coordinator) finish() {
	if c.gone && !c.started && c.now > c.t0 {
		c.measureStart()
	}
	o := Outcome{T0: c.t0, Skew: c.skew}
	some := false
	for _, m := range c.members {
		c.clocks(m)
		a := m.outcome(c.gone || c.cfg.Recover)
		some = some || m.collected
		o.Agents = append(o.Agents, a)
	}
	idle := !slices.ContainsFunc(c.members, func(m *member) bool { return m.lost || m.fired || m.phase != Ended })
	incomplete := slices.ContainsFunc(o.Agents, func(a AgentOutcome) bool { return a.State != Complete })
	if c.cfg.Recover {
		c.because("the run was recovered from the agents: its operator did not see its end")
	} else if incomplete && len(c.reasons) == 0 {
		c.because("not every agent fired all of its share: " + c.names(func(m *member) bool { return m.outcome(true).State != Complete }))
	}
	o.Reasons = c.reasons
	switch {
	case c.cfg.Recover && !some:
		o.State = Aborted
	case c.cfg.Recover:
		o.State = Marked
	case !c.gone || idle:
		o.State = Cancelled
	case c.aborted:
		o.State = Aborted
	case len(o.Reasons) > 0:
		o.State = Marked
	default:
		o.State = Complete
	}
	c.finished = true
	c.events = append(c.events, Finished{o})
}

// clocks judges the clock of an agent over a run.
func (c *Coordinator) clocks(m *member) {
	if !c.gone {
		return
	}
	end := m.heard
	if m.phase != Ended {
		end = c.now
	}
	var offset time.Duration
	offset, m.boundEnd = m.clock.At(end)
	m.drift = offset - m.offset
	if m.lost {
		return
	}
	apart := max(m.drift, -m.drift)
	switch {
	case m.boundEnd > c.cfg.MaxClockError:
		c.because(fmt.Sprintf("agent %s: at the end its clock was known to %v only: at most %v", m.name, m.boundEnd.Round(10*time.Microsecond), c.cfg.MaxClockError))
	case apart+m.boundStart+m.boundEnd > c.cfg.Interval/10:
		c.because(fmt.Sprintf("agent %s: its clock and the operator's came apart by %v during the run: its intervals are not those of the others", m.name, apart.Round(100*time.Microsecond)))
	}
}

func (m *member) outcome(gone bool) AgentOutcome {
	shortest, _ := m.clock.RTT()
	a := AgentOutcome{
		Name: m.name, Incarnation: m.incarnation, Err: m.err, Frames: m.got, Result: m.collected && m.hash != nil, Lapsed: m.lapsed,
		Offset: m.offset, BoundStart: m.boundStart, BoundEnd: m.boundEnd, Drift: m.drift, MinRTT: shortest,
		Suspected: m.suspected, LongestGone: m.longest, MayHaveFiredUntil: m.firedTill,
	}
	switch {
	case !gone || m.phase == Ended && !m.fired && m.stopped:
		a.State = Cancelled
	case !m.collected || m.err != "":
		a.State = Aborted
	case m.stopped && !m.reads || m.early || !m.fired || m.hash == nil:
		a.State = Marked
	default:
		a.State = Complete
	}
	return a
}
