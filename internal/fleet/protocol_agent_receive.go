package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Receive takes a message of an operator.
func (a *agentProtocol) Receive(now time.Duration, m *message) {
	a.at(now)
	switch {
	case m.Kind == kindPing:
		info := a.info
		info.Busy = a.Run()
		a.send = append(a.send, &message{
			Kind: kindPong, Run: m.Run, Session: m.Session, Incarnation: a.info.Incarnation, Number: m.Number,
			Sent: m.Sent, Received: now, Answered: now, Info: &info,
		})
	case m.Kind != kindLoad && m.Kind != kindRecover && m.Kind != kindBeat && m.Kind != kindHalt:
	case m.Incarnation != a.info.Incarnation:
		a.refuse(m, errors.New("it is another process than before"))
	case m.Kind == kindLoad:
		if err := a.load(m); err != nil {
			a.refuse(m, err)
		}
	case m.Kind == kindRecover:
		if err := a.recover(m); err != nil {
			a.refuse(m, err)
		}
	case m.Kind == kindHalt:
		if r := a.run; r != nil && r.name == m.Run {
			a.end(r, !r.fired, m.Reason)
		}
	default:
		a.beaten(m)
	}
	a.finish()
}

func (a *agentProtocol) refuse(m *message, err error) {
	a.send = append(a.send, &message{Kind: kindRefuse, Run: m.Run, Session: m.Session, Incarnation: a.info.Incarnation, Err: err.Error()})
}

// recover begins to deliver a run that was left in the spool. A run whose operator may
// still be there is not answered for: its lease ends soon if it is not.
func (a *agentProtocol) recover(m *message) error {
	if r := a.run; r != nil && r.name == m.Run {
		switch {
		case r.session == m.Session:
			r.nextStatus = a.now
		case a.now > r.heard+Lease:
			r.session, r.beat, r.heard, r.nextStatus = m.Session, 0, a.now, a.now
			r.out = outbox{} // the new operator has nothing
		}
		return nil
	}
	if a.Run() != "" {
		return fmt.Errorf("it is busy with run %s", a.Run())
	}
	kept, err := a.spool.Look(m.Run)
	if errors.Is(err, ErrNotSpooled) {
		return fmt.Errorf("its spool has no data of run %s", m.Run)
	} else if err != nil {
		return fmt.Errorf("its spool failed: %w", err)
	}
	var h header
	if err := json.Unmarshal(kept.Header, &h); err != nil {
		return fmt.Errorf("its spool has no valid head of run %s: %w", m.Run, err)
	}
	r := &agentRun{name: m.Run, session: m.Session, origin: h.Origin, phase: phaseEnded, fired: true, stopped: true, heard: a.now, nextStatus: a.now}
	if kept.End == nil {
		r.frames, r.err = kept.Records, "its process ended before its run did"
		for r.frames > 0 { // parts of a result that is not all here are of no use
			data, err := a.spool.Read(m.Run, r.frames)
			if err != nil {
				return fmt.Errorf("its spool failed: %w", err)
			}
			if len(data) > 0 && data[0] == recordFrame {
				break
			}
			r.frames--
		}
	} else {
		var e ending
		if err := json.Unmarshal(kept.End, &e); err != nil || e.Frames+e.Parts != kept.Records {
			return fmt.Errorf("its spool has no valid end of run %s", m.Run)
		}
		r.frames, r.parts, r.hash, r.fired, r.stopped, r.lapsed, r.err = e.Frames, e.Parts, e.Hash, e.Fired, e.Stopped, e.Lapsed, e.Err
	}
	a.run = r
	return nil
}

// beaten takes a beat.
func (a *agentProtocol) beaten(m *message) {
	r := a.run
	if r == nil || r.name != m.Run || r.session != m.Session {
		if m.Want == wantRelease { // the answer to the first was lost
			a.send = append(a.send, &message{
				Kind: kindStatus, Run: m.Run, Session: m.Session, Incarnation: a.info.Incarnation, Origin: a.info.Incarnation, Phase: phaseReleased, Now: a.now,
			})
			return
		}
		a.refuse(m, fmt.Errorf("it is not part of run %s", m.Run))
		return
	}
	if m.Heard <= a.now {
		r.heard = max(r.heard, m.Heard)
	}
	r.out.acked(m.Acked, m.Beyond, r.frames+r.parts)
	if m.Number <= r.beat { // late
		return
	}
	r.beat = m.Number
	switch m.Want {
	case wantArm:
		if r.phase == phaseReady {
			r.start = m.Start
			a.to(r, phaseArmed)
		}
	case wantGo:
		if r.phase == phaseArmed && m.Start == r.start { // and not too late: see at
			r.fired = true
			a.do = append(a.do, command{Do: orderStart, Run: r.name, At: r.start})
			a.to(r, phaseRunning)
		}
	case wantStop:
		a.end(r, !r.fired, m.Reason)
	case wantAbort:
		a.end(r, true, m.Reason)
	case wantRelease:
		a.release(r, m)
	}
}

// release forgets a run that the operator has.
func (a *agentProtocol) release(r *agentRun, m *message) {
	if r.phase != phaseEnded {
		a.end(r, true, m.Reason)
		return
	}
	if err := a.spool.Remove(r.name); err != nil && r.err == "" {
		r.err = "its spool failed: " + err.Error()
	}
	r.phase = phaseReleased
	a.status(r)
	a.run = nil
	if a.past = append(a.past, r.name); len(a.past) > 64 {
		a.past = a.past[1:]
	}
}

// An outbox is the records of a run under way to the operator.
type outbox struct {
	done   uint64 // all up to this one have arrived
	beyond uint32 // bit i: record done+2+i has too
	flying map[uint64]*flight
	bytes  int // of them
}

type flight struct {
	again time.Duration // to be sent again
	tries int
	size  int
}

// acked takes what the operator has. Of total records, of which it cannot have more.
func (o *outbox) acked(done uint64, beyond uint32, total uint64) {
	if done > total || done < o.done {
		return
	}
	if done == o.done {
		beyond |= o.beyond
	}
	o.done, o.beyond = done, beyond
	for n, f := range o.flying {
		if o.has(n) {
			o.bytes -= f.size
			delete(o.flying, n)
		}
	}
}

// has reports whether the operator has a record.
func (o *outbox) has(n uint64) bool {
	return n <= o.done || n >= o.done+2 && n < o.done+34 && o.beyond>>(n-o.done-2)&1 == 1
}

// next returns when something is sent again.
func (o *outbox) next() time.Duration {
	next := never
	for _, f := range o.flying {
		next = min(next, f.again)
	}
	return next
}

// deliver sends the records that the operator lacks, while it is there.
func (a *agentProtocol) deliver(r *agentRun) {
	if a.now > r.heard+Lease || r.broken {
		return
	}
	o := &r.out
	for n := o.done + 1; n <= min(r.frames+r.parts, o.done+window); n++ {
		if o.has(n) {
			continue
		}
		f := o.flying[n]
		if f != nil && a.now < f.again || f == nil && o.bytes > 0 && o.bytes+partSize > windowBytes {
			continue
		}
		data, err := a.spool.Read(r.name, n)
		if err != nil {
			a.unspool(r, err)
			return
		}
		if f == nil {
			f = &flight{size: len(data)}
			if o.flying == nil {
				o.flying = map[uint64]*flight{}
			}
			o.flying[n] = f
			o.bytes += f.size
		}
		f.again = a.now + time.Second<<min(f.tries, 3)
		f.tries++
		kind := kindFrame
		if n > r.frames {
			kind = kindPart
		}
		if len(data) == 0 || (data[0] == recordFrame) != (kind == kindFrame) {
			a.unspool(r, fmt.Errorf("record %d is not what it was", n))
			return
		}
		a.send = append(a.send, &message{
			Kind: kind, Run: r.name, Session: r.session, Incarnation: a.info.Incarnation, Origin: r.origin, Number: n, Data: data[1:],
		})
	}
}
