package fleet

import (
	"fmt"
	"slices"
	"time"
)

// finish judges the run.
func (c *coordinator) finish() {
	if c.gone && !c.started && c.now > c.t0 {
		c.measureStart()
	}
	o := runOutcome{T0: c.t0, Skew: c.skew}
	some := false
	for _, m := range c.members {
		c.clocks(m)
		a := m.outcome(c.gone || c.cfg.Recover)
		some = some || m.collected
		o.Agents = append(o.Agents, a)
	}
	idle := !slices.ContainsFunc(c.members, func(m *member) bool { return m.lost || m.fired || m.phase != phaseEnded })
	incomplete := slices.ContainsFunc(o.Agents, func(a agentOutcome) bool { return a.State != stateComplete })
	if c.cfg.Recover {
		c.because("the run was recovered from the agents: its operator did not see its end")
	} else if incomplete && len(c.reasons) == 0 {
		c.because("not every agent fired all of its share: " + c.names(func(m *member) bool { return m.outcome(true).State != stateComplete }))
	}
	o.Reasons = c.reasons
	switch {
	case c.cfg.Recover && !some:
		o.State = stateAborted
	case c.cfg.Recover:
		o.State = stateMarked
	case !c.gone || idle:
		o.State = stateCancelled
	case c.aborted:
		o.State = stateAborted
	case len(o.Reasons) > 0:
		o.State = stateMarked
	default:
		o.State = stateComplete
	}
	c.finished = true
	c.events = append(c.events, runFinished{o})
}

// clocks judges the clock of an agent over a run.
func (c *coordinator) clocks(m *member) {
	if !c.gone {
		return
	}
	end := m.heard
	if m.phase != phaseEnded {
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

func (m *member) outcome(gone bool) agentOutcome {
	shortest, _ := m.clock.RTT()
	a := agentOutcome{
		Name: m.name, Incarnation: m.incarnation, Err: m.err, Frames: m.got, Result: m.collected && m.hash != nil, Lapsed: m.lapsed,
		Offset: m.offset, BoundStart: m.boundStart, BoundEnd: m.boundEnd, Drift: m.drift, MinRTT: shortest,
		Suspected: m.suspected, LongestGone: m.longest, MayHaveFiredUntil: m.firedTill,
	}
	switch {
	case !gone || m.phase == phaseEnded && !m.fired && m.stopped:
		a.State = stateCancelled
	case !m.collected || m.err != "":
		a.State = stateAborted
	case m.stopped && !m.reads || m.early || !m.fired || m.hash == nil:
		a.State = stateMarked
	default:
		a.State = stateComplete
	}
	return a
}
