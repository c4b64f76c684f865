package fleet

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// due reports whether something is due, and remembers when if it is not.
func (c *coordinator) due(at time.Duration) bool {
	if c.now >= at {
		return true
	}
	c.next = min(c.next, at)
	return false
}

// advance ends every call: it does what is due, and finds when something is due again.
func (c *coordinator) advance() {
	if c.done {
		return
	}
	c.next = c.now + Heartbeat
	for _, m := range c.members {
		c.live(m)
	}
	if !c.finished {
		c.begin()
		c.look()
		c.close()
		c.conclude()
	}
	for _, m := range c.members {
		c.ping(m)
		c.load(m)
		c.beat(m)
	}
	c.retire()
}

// live finds out whether an agent is still there.
func (c *coordinator) live(m *member) {
	switch {
	case c.finished || m.lost:
		return
	case m.incarnation == "":
		if c.due(max(c.begun, c.grace) + answerWithin) {
			c.fail(m, true, fmt.Errorf("it does not answer: nothing in %v", answerWithin))
		}
		return
	case !m.loaded:
		return
	}
	silent, from := c.now-m.heard, max(m.heard, c.grace)
	m.longest = max(m.longest, silent)
	if c.due(from+suspectAfter) && !m.suspect {
		m.suspect = true
		m.suspected++
		c.events = append(c.events, agentSuspect{m.name, silent})
	}
	if c.due(from + Lease + leaseSlack) {
		m.dead = true
		if m.phase != phaseEnded && c.gone {
			m.firedTill = m.heard + Lease + leaseSlack
		}
		c.events = append(c.events, agentDead{m.name, m.firedTill})
		c.fail(m, true, fmt.Errorf("no message came from it for %v", silent.Round(100*time.Millisecond)))
	}
	if m.phase == phaseEnded && !m.collected && c.due(max(m.since, c.grace)+stalledAfter) {
		c.fail(m, true, fmt.Errorf("its report does not arrive: nothing new in %v", stalledAfter))
	}
}

// leaseSlack is by how much a lease of the agent's clock may be longer on this one.
const leaseSlack = 5 * time.Millisecond

// begin leads from the first message to the order to start.
func (c *coordinator) begin() {
	if c.gone || c.cfg.Recover || wantOrder[c.want] >= wantOrder[wantStop] {
		return
	}
	if !c.armed {
		late := func(m *member) bool { return m.phase != phaseReady }
		if slices.ContainsFunc(c.members, late) {
			if c.due(max(c.begun, c.grace) + readyWithin) {
				c.cancel(fmt.Sprintf("not ready within %v: %s", readyWithin, c.names(late)))
			}
			return
		}
		if c.ready == 0 {
			c.ready = max(c.now, 1)
		}
		c.arm()
		return
	}
	late := func(m *member) bool { return m.phase != phaseArmed || m.start != m.t0 }
	if !slices.ContainsFunc(c.members, late) && c.now < c.t0-confirmAhead {
		c.gone = true
		c.events = append(c.events, runStarted{c.t0, c.skew})
		c.order(wantGo, "")
		return
	}
	if c.due(c.t0 - confirmAhead) {
		c.cancel("the start was not confirmed in time: " + c.names(late))
	}
}

// arm chooses T0 once all clocks are known well enough.
func (c *coordinator) arm() {
	var rtt time.Duration
	for _, m := range c.members {
		_, most := m.clock.RTT()
		rtt = max(rtt, most)
	}
	t0 := c.now + 4*rtt + c.cfg.StartMargin
	limit := min(c.cfg.MaxClockError, c.cfg.Interval/10)
	bounds := make([]time.Duration, 0, len(c.members))
	for _, m := range c.members {
		offset, bound := m.clock.At(t0)
		if m.clock.Len() >= firstExchanges && bound <= limit {
			m.offset, m.boundStart = offset, bound
			m.t0 = t0 + offset
			bounds = append(bounds, bound)
			continue
		}
		if !c.due(c.ready + clocksWithin) {
			m.burst = max(m.burst, 1)
			return
		}
		shortest, _ := m.clock.RTT()
		if bound == unknownBound {
			c.cancel(fmt.Sprintf("the clock of agent %s is not known: no messages come back", m.name))
		} else {
			c.cancel(fmt.Sprintf("the clock of agent %s is known to %v only: at most %v (shortest round trip %v)",
				m.name, bound.Round(10*time.Microsecond), limit, shortest.Round(10*time.Microsecond)))
		}
		return
	}
	c.armed, c.t0 = true, t0
	slices.Sort(bounds)
	if n := len(bounds); n > 1 {
		c.skew = bounds[n-1] + bounds[n-2]
	}
	c.order(wantArm, "")
}

// startKnown is how long after T0 the exchanges around it have been made.
const startKnown = 2 * time.Second

// look asks for the clocks at T0, and soon afterwards finds out how far apart the agents
// have started. That is known better than it was when T0 was chosen, seconds ahead.
func (c *coordinator) look() {
	if !c.gone || c.started || !c.due(c.t0) {
		return
	}
	if !c.asked {
		c.asked = true
		for _, m := range c.members {
			m.burst, m.nextPing = max(m.burst, laterExchanges), min(m.nextPing, c.now)
		}
	}
	if c.due(c.t0 + startKnown) {
		c.measureStart()
	}
}

// measureStart replaces the bounds of the start by closer ones, if what was learnt since
// has any.
func (c *coordinator) measureStart() {
	c.started = true
	skew, known := time.Duration(0), true
	type span struct{ early, late time.Duration } // of the start, against T0
	spans := make([]span, len(c.members))
	for i, m := range c.members {
		offset, bound := m.clock.At(c.t0)
		if bound == unknownBound {
			known = false
			continue
		}
		// The agent started when its clock showed T0 with the offset of that time.
		spans[i] = span{m.offset - offset - bound, m.offset - offset + bound}
		m.boundStart = min(m.boundStart, max(-spans[i].early, spans[i].late))
		for _, other := range spans[:i] {
			skew = max(skew, spans[i].late-other.early, other.late-spans[i].early)
		}
	}
	if known {
		c.skew = min(c.skew, skew)
	}
}

// close reports intervals that have come from all who still take part.
func (c *coordinator) close() {
	for {
		n, some := c.closed+1, false
		for _, m := range c.members {
			some = some || m.got >= n
			if m.got < n && !m.lost && !(m.phase == phaseEnded && m.got == m.frames) {
				return
			}
		}
		if !some {
			return
		}
		c.closed = n
		c.events = append(c.events, intervalClosed{n})
	}
}

// conclude ends the run once nothing more is expected.
func (c *coordinator) conclude() {
	aborting := wantOrder[c.want] >= wantOrder[wantAbort]
	if c.cfg.Recover {
		for _, m := range c.members {
			if !m.lost && m.phase != phaseEnded && c.due(max(c.begun, c.grace)+readyWithin) {
				what := "it does not give the run back"
				if m.info.Busy != "" {
					what = "it is still busy with run " + m.info.Busy
				}
				c.fail(m, true, errors.New(what))
			}
		}
	}
	for _, m := range c.members {
		if m.lost || m.collected {
			continue
		}
		switch {
		case aborting && !m.loaded: // and if it hears of the run later, its lease ends
			continue
		case aborting && m.phase != phaseEnded && c.due(max(c.since, c.grace)+abortWithin):
			c.fail(m, true, fmt.Errorf("its engine did not end within %v of the abort", abortWithin))
			continue
		}
		return
	}
	c.finish()
}

// ping exchanges clock times.
func (c *coordinator) ping(m *member) {
	if c.finished || m.lost || m.collected {
		return
	}
	if m.burst == 0 { // the next group
		m.burst = laterExchanges
		m.nextPing = c.now + exchangesEvery
	}
	if !c.due(m.nextPing) {
		return
	}
	if m.asked == nil {
		m.asked = map[uint64]time.Duration{}
	}
	for n, sent := range m.asked {
		if c.now-sent > 2*exchangesEvery { // lost, or worth nothing
			delete(m.asked, n)
		}
	}
	m.pings++
	m.asked[m.pings] = c.now
	c.tell(m, &message{Kind: kindPing, Number: m.pings, Sent: c.now})
	m.nextPing = c.now + pingApart
	if len(m.asked) > firstExchanges { // no answers: more slowly
		m.nextPing = c.now + Heartbeat
	}
	c.due(m.nextPing)
}

// load sends an agent the plan until it is heard to have it.
func (c *coordinator) load(m *member) {
	if m.loaded || m.lost || m.incarnation == "" || c.finished || wantOrder[c.want] >= wantOrder[wantStop] || !c.due(m.nextLoad) {
		return
	}
	if c.cfg.Recover {
		c.tell(m, &message{Kind: kindRecover})
	} else {
		share := c.cfg.Shares[m.name]
		c.tell(m, &message{Kind: kindLoad, Version: c.cfg.Version, Layout: c.cfg.Layout, Plan: c.cfg.Plan, Share: share, Hash: sum(c.cfg.Plan, share)})
	}
	m.nextLoad = c.now + time.Second<<min(m.loads, 2)
	m.loads++
	c.due(m.nextLoad)
}

// wantOf returns what is wanted of an agent.
func (c *coordinator) wantOf(m *member) want {
	switch {
	case c.released > 0 && m.collected:
		return wantRelease
	case wantOrder[c.want] < wantOrder[wantStop] && (m.err != "" || m.lost):
		return wantStop
	case m.reads && m.err == "" && c.gone && (c.want == wantGo || c.want == wantStop):
		if c.sendersEnded() {
			return wantStop
		}
		return wantGo
	}
	return c.want
}

// follows reports whether an agent has done what is wanted.
func (m *member) follows(w want) bool {
	switch w {
	case wantArm:
		return m.phase != phaseReady
	case wantGo:
		return m.phase != phaseArmed && m.phase != phaseReady
	case wantStop:
		return m.phase == phaseStopping || m.phase == phaseEnded
	case wantAbort:
		return m.phase == phaseStopping && m.stopped || m.phase == phaseEnded
	case wantRelease:
		return m.released
	}
	return true
}

// beat tells an agent what is wanted and what has arrived.
func (c *coordinator) beat(m *member) {
	if !m.loaded || m.released || c.finished && !m.collected {
		return
	}
	w := c.wantOf(m)
	if !m.beatDue && w == m.wanted && !c.due(m.nextBeat) {
		return
	}
	m.wanted = w
	m.beats++
	msg := &message{Kind: kindBeat, Number: m.beats, Want: w, Heard: m.now, Acked: m.delivered, Beyond: m.beyond()}
	switch {
	case w == wantArm || w == wantGo:
		msg.Start = m.t0
	case w == wantStop && c.want != wantStop:
		msg.Reason = m.err
	default:
		msg.Reason = c.reason
	}
	c.tell(m, msg)
	m.beatDue = false
	m.nextBeat = c.now + Heartbeat
	if !m.follows(w) && !m.suspect {
		m.nextBeat = c.now + urgent
	}
	c.due(m.nextBeat)
}

// tell sends a message to an agent.
func (c *coordinator) tell(m *member, msg *message) {
	msg.Protocol, msg.Run, msg.Session, msg.Incarnation = protocolVersion, c.cfg.Run, c.cfg.Session, m.incarnation
	c.send = append(c.send, addressed{m.name, msg})
}

// retire ends everything after Release.
func (c *coordinator) retire() {
	if c.released == 0 {
		return
	}
	waits := slices.ContainsFunc(c.members, func(m *member) bool { return m.loaded && m.collected && !m.released })
	c.done = !waits || c.due(c.released+releaseTries)
}
