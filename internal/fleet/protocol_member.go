package fleet

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"
)

// Times and numbers of exchanges of clock times.
const (
	firstExchanges = 16
	laterExchanges = 4
	exchangesEvery = 5 * time.Second
	pingApart      = 50 * time.Millisecond
	answerWithin   = 10 * time.Second // the first answer of an agent
	clocksWithin   = 10 * time.Second // from ready on: the bounds of the clocks are low enough
	stalledAfter   = time.Minute      // an agent that ended, and of which nothing more arrives
)

// A member is an agent, as its coordinator knows it.
type member struct {
	name        string
	reads       bool   // what others send, until they have ended
	early       bool   // it stopped reading before
	incarnation string // "" until its first answer
	origin      string // the process that made the records
	info        Info

	// Exchanges of clock times.
	clock    remoteClock
	burst    int // exchanges still to be made of this group
	pings    uint64
	asked    map[uint64]time.Duration // pings without an answer, by number
	nextPing time.Duration

	// The beginning.
	nextLoad time.Duration
	loads    int
	loaded   bool // a status has arrived

	// The newest status.
	phase     agentPhase
	now       time.Duration // on the agent's clock
	start     time.Duration // as the agent has it
	frames    uint64
	parts     uint64
	hash      []byte
	fired     bool
	disturbed bool // which was reported
	stopped   bool
	lapsed    bool
	since     time.Duration // of the last progress

	// Life.
	heard     time.Duration // when the newest status arrived
	suspect   bool
	suspected int
	longest   time.Duration // silence
	dead      bool
	lost      bool   // nothing more is expected
	err       string // why it takes no part any more; lost or not
	firedTill time.Duration

	// The start.
	t0                   time.Duration // on the agent's clock
	offset               time.Duration
	boundStart, boundEnd time.Duration
	drift                time.Duration

	// What arrived.
	delivered uint64            // all records up to this one
	ahead     map[uint64]record // later ones
	got       uint64            // frames
	result    []byte
	collected bool

	beats    uint64
	wanted   want // in the newest beat
	nextBeat time.Duration
	beatDue  bool // at once
	released bool
}

type record struct {
	kind messageKind
	data []byte
}

// Receive takes a message of an agent.
func (c *coordinator) Receive(now time.Duration, agent string, msg *message) {
	c.at(now)
	if m := c.byName[agent]; m != nil && !c.done && msg.Run == c.cfg.Run && msg.Session == c.cfg.Session {
		c.receive(m, now, msg)
	}
	c.advance()
}

func (c *coordinator) receive(m *member, now time.Duration, msg *message) {
	switch msg.Kind {
	case kindPong, kindStatus, kindRefuse, kindFrame, kindPart:
	default:
		return
	}
	if msg.Kind == kindPong {
		sent, ok := m.asked[msg.Number]
		if !ok || sent != msg.Sent {
			return
		}
		delete(m.asked, msg.Number)
		if m.incarnation == "" {
			c.meet(m, msg)
		}
		if msg.Incarnation == m.incarnation {
			m.clock.Add(sent, msg.Received, msg.Answered, now)
			m.burst = max(m.burst-1, 0)
		}
	}
	if m.incarnation == "" {
		return
	}
	if msg.Incarnation != m.incarnation {
		if !m.collected {
			c.fail(m, true, errors.New("it answers as another process: it was restarted, or two agents have this name"))
		}
		return
	}
	switch msg.Kind {
	case kindRefuse:
		if !m.collected {
			c.fail(m, true, errors.New(msg.Err))
		}
	case kindStatus:
		c.status(m, msg)
	case kindFrame, kindPart:
		c.record(m, msg)
	}
}

// meet takes the first answer of an agent.
func (c *coordinator) meet(m *member, msg *message) {
	m.incarnation, m.info = msg.Incarnation, *msg.Info
	m.nextLoad = c.now
	switch info := m.info; {
	case info.Version != c.cfg.Version:
		c.fail(m, true, fmt.Errorf("it has version %s of the program, the operator %s: use the same everywhere", info.Version, c.cfg.Version))
	case info.Layout != c.cfg.Layout:
		c.fail(m, true, fmt.Errorf("its histograms have the layout %s, the operator's %s: use the same program everywhere", info.Layout, c.cfg.Layout))
	case info.Busy != "" && !(c.cfg.Recover && info.Busy == c.cfg.Run):
		c.fail(m, true, fmt.Errorf("it is busy with run %s", info.Busy))
	}
}

// status takes what an agent says of its part. A late one says nothing new.
func (c *coordinator) status(m *member, msg *message) {
	if m.loaded && msg.Now <= m.now {
		return
	}
	if msg.Phase == phaseReleased {
		m.released = m.released || c.released > 0
		return
	}
	first := !m.loaded
	m.loaded = true
	if first {
		m.origin, m.nextBeat = msg.Origin, c.now
	}
	if !first {
		m.longest = max(m.longest, c.now-m.heard)
	}
	m.now, m.heard = msg.Now, c.now
	if c.finished {
		return
	}
	if m.suspect {
		m.suspect = false
		if !m.dead { // what it still has is taken, but it takes no part any more
			c.events = append(c.events, agentBack{m.name})
		}
	}
	if msg.Disturbed != "" && !m.disturbed {
		m.disturbed = true
		c.events = append(c.events, agentDisturbed{m.name, msg.Disturbed})
	}
	if msg.Phase != m.phase {
		m.since = c.now
		if msg.Phase == phaseReady {
			c.events = append(c.events, agentReady{m.name})
		}
	}
	if msg.Phase == phaseEnded && m.phase != phaseEnded {
		_, m.boundEnd = m.clock.At(c.now)
	}
	if m.reads && (msg.Phase == phaseStopping || msg.Phase == phaseEnded) && !c.sendersEnded() {
		m.early = true
	}
	m.phase, m.start, m.fired, m.stopped, m.lapsed = msg.Phase, msg.Start, msg.Fired, msg.Stopped, msg.Lapsed
	if msg.Phase == phaseEnded {
		m.frames, m.parts, m.hash = msg.Frames, msg.Parts, msg.Hash
	}
	switch {
	case msg.Err != "":
		c.fail(m, msg.Broken, errors.New(msg.Err))
	case msg.Broken:
		c.fail(m, true, errors.New("its spool fails"))
	}
	c.collect(m)
}

// record takes a frame or a part of a result: once each, in order.
func (c *coordinator) record(m *member, msg *message) {
	if !m.loaded || c.finished || msg.Origin != m.origin {
		return
	}
	m.beatDue = true // the ack, again if it was lost
	if msg.Number <= m.delivered || msg.Number > m.delivered+window {
		return
	}
	if _, ok := m.ahead[msg.Number]; ok {
		return
	}
	if m.ahead == nil {
		m.ahead = map[uint64]record{}
	}
	m.ahead[msg.Number] = record{msg.Kind, msg.Data}
	m.since = c.now
	for {
		r, ok := m.ahead[m.delivered+1]
		if !ok {
			break
		}
		delete(m.ahead, m.delivered+1)
		m.delivered++
		switch {
		case r.kind == kindFrame && m.got+1 == m.delivered:
			m.got++
			c.events = append(c.events, frameOf{m.name, m.got, r.data})
		case r.kind == kindPart && len(m.result)+len(r.data) <= maxResult:
			m.result = append(m.result, r.data...)
		default:
			c.fail(m, true, errors.New("it sent what cannot be a report"))
		}
	}
	c.collect(m)
}

// collect reports the result of an agent once all of it has arrived.
func (c *coordinator) collect(m *member) {
	if m.collected || c.finished || m.phase != phaseEnded || m.delivered < m.frames+m.parts {
		return
	}
	if m.got != m.frames || m.delivered != m.frames+m.parts {
		c.fail(m, true, errors.New("it sent what cannot be a report"))
		return
	}
	if m.hash != nil {
		if h := sha256.Sum256(m.result); !bytes.Equal(h[:], m.hash) {
			c.fail(m, true, errors.New("its result arrived with another hash than its own"))
			return
		}
		if m.result == nil {
			m.result = []byte{}
		}
	}
	m.collected = true
	var err error
	if m.err != "" {
		err = errors.New(m.err)
	}
	c.events = append(c.events, resultOf{m.name, m.result, err})
	m.result = nil
}

// beyond returns which records arrived after one that did not.
func (m *member) beyond() uint32 {
	var bits uint32
	for n := range m.ahead {
		if i := n - m.delivered - 2; i < 32 {
			bits |= 1 << i
		}
	}
	return bits
}
