package fleet

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// never is later than any time: nothing is due.
const never = time.Duration(1<<63 - 1)

// An agentProtocol is the agent's side of runs, one at a time. Its methods are called by one
// goroutine, with times of this machine's monotonic clock, except LeaseEnd, which any
// goroutine may call. After each call the caller takes what Take returns, and calls Tick
// at the latest at Next.
type agentProtocol struct {
	info  Info
	spool Spool
	now   time.Duration
	run   *agentRun // nil: none
	past  []string  // the newest runs that ended here

	send []*message
	do   []command

	leaseEnd atomic.Int64
}

// An agentRun is the run of an agent.
type agentRun struct {
	name, session string
	origin        string // the process that fired it
	phase         agentPhase
	beat          uint64        // number of the newest
	heard         time.Duration // the newest own status that the operator has confirmed
	start         time.Duration // T0, from phaseArmed on

	fired   bool // the engine had the order to start, and was not stopped before that time
	stopped bool // or to end
	aborted bool // at once
	lapsed  bool
	err     string // the first
	broken  bool   // the spool fails: nothing more can be delivered

	frames, parts uint64
	hash          []byte // of the result
	disturbed     string // what else uses this machine

	nextStatus time.Duration
	out        outbox
}

// newAgentProtocol returns an agent without a run. Runs of earlier processes stay in the spool
// until an operator recovers them.
func newAgentProtocol(info Info, spool Spool) *agentProtocol {
	info.Protocol = protocolVersion
	return &agentProtocol{info: info, spool: spool}
}

// LeaseEnd returns the time after which the engine must not send anything, on this
// machine's monotonic clock; 0 if it must not send at all. Any goroutine may call it.
// Once it has passed in a run, it is never moved again: the run is over here.
func (a *agentProtocol) LeaseEnd() time.Duration { return time.Duration(a.leaseEnd.Load()) }

// Run returns the name of the run that the agent is busy with; "" if there is none.
func (a *agentProtocol) Run() string {
	if r := a.run; r != nil && (r.phase != phaseEnded || a.now <= r.heard+Lease) {
		return r.name
	}
	return ""
}

// Take returns what has to be sent and done since the last call.
func (a *agentProtocol) Take() ([]*message, []command) {
	send, do := a.send, a.do
	a.send, a.do = nil, nil
	return send, do
}

// Next returns when Tick is due; never if only a message can change anything.
func (a *agentProtocol) Next() time.Duration {
	r := a.run
	if r == nil {
		return never
	}
	next := r.nextStatus
	if r.phase != phaseEnded && !r.lapsed {
		next = min(next, r.heard+Lease+1)
	}
	if r.phase == phaseArmed {
		next = min(next, r.start)
	}
	if a.now <= r.heard+Lease && !r.broken {
		next = min(next, r.out.next())
	}
	return next
}

// Tick does what is due.
func (a *agentProtocol) Tick(now time.Duration) {
	a.at(now)
	a.finish()
}

// at begins every call: what time alone decides comes first. So a lease that has ended
// is noticed before a message could renew it, also when this process was stopped.
func (a *agentProtocol) at(now time.Duration) {
	a.now = max(a.now, now)
	r := a.run
	if r == nil {
		return
	}
	if a.now > r.heard+Lease && !r.lapsed && r.phase != phaseEnded {
		r.lapsed = true
		a.fail(r, fmt.Sprintf("it heard nothing of the operator for %v and stopped", Lease), false)
	}
	if r.phase == phaseArmed && a.now >= r.start {
		a.fail(r, "the order to start did not arrive before the start", true)
	}
}

// finish ends every call: it sends what is due.
func (a *agentProtocol) finish() {
	r := a.run
	if r == nil {
		a.leaseEnd.Store(0)
		return
	}
	if a.now >= r.nextStatus {
		a.status(r)
	}
	a.deliver(r)
	if r.stopped || r.phase == phaseEnded {
		a.leaseEnd.Store(0)
	} else {
		a.leaseEnd.Store(int64(r.heard + Lease))
	}
}

// fail ends the run here.
func (a *agentProtocol) fail(r *agentRun, why string, abort bool) {
	if r.err == "" {
		r.err = why
	}
	a.end(r, abort || !r.fired, why)
}

// end asks the engine to end.
func (a *agentProtocol) end(r *agentRun, abort bool, reason string) {
	if r.phase == phaseRunning && a.now < r.start {
		r.fired, abort = false, true // it has not begun
	}
	switch {
	case r.phase == phaseEnded || r.aborted || r.stopped && !abort:
		return
	case abort:
		r.aborted = true
		a.do = append(a.do, command{Do: orderAbort, Run: r.name, Reason: reason})
	default:
		a.do = append(a.do, command{Do: orderStop, Run: r.name, Reason: reason})
	}
	r.stopped = true
	a.leaseEnd.Store(0)
	a.to(r, phaseStopping)
}

// to changes the phase, which the operator learns at once.
func (a *agentProtocol) to(r *agentRun, p agentPhase) {
	r.phase = p
	r.nextStatus = a.now
}

// status sends what the agent does.
func (a *agentProtocol) status(r *agentRun) {
	a.send = append(a.send, &message{
		Kind: kindStatus, Run: r.name, Session: r.session, Incarnation: a.info.Incarnation, Origin: r.origin,
		Phase: r.phase, Now: a.now, Start: r.start, Frames: r.frames, Parts: r.parts, Hash: r.hash,
		Fired: r.fired, Stopped: r.stopped, Lapsed: r.lapsed, Broken: r.broken, Err: r.err, Disturbed: r.disturbed,
	})
	r.nextStatus = a.now + Heartbeat
	if a.now > r.heard+Lease {
		r.nextStatus = a.now + 4*Heartbeat // the operator does not listen
	}
}

// Opened notes that the engine opened its target, or why it could not.
func (a *agentProtocol) Opened(now time.Duration, err error) {
	a.at(now)
	if r := a.run; r != nil {
		switch {
		case r.phase == phaseOpening && err == nil:
			a.to(r, phaseReady)
		case r.phase == phaseOpening || r.phase == phaseStopping && !r.fired && err != nil:
			a.ended(r, nil, err)
		}
	}
	a.finish()
}

// Disturbed notes what else uses this machine, which the operator learns at once.
func (a *agentProtocol) Disturbed(now time.Duration, text string) {
	a.at(now)
	if r := a.run; r != nil {
		r.disturbed, r.nextStatus = text, a.now
	}
	a.finish()
}

// Frame keeps an interval that was closed, and delivers it. Data is at most maxFrame.
func (a *agentProtocol) Frame(now time.Duration, data []byte) {
	a.at(now)
	if r := a.run; r != nil && r.fired && r.phase != phaseEnded {
		a.frame(r, data)
	}
	a.finish()
}

func (a *agentProtocol) frame(r *agentRun, data []byte) {
	if len(data) > maxFrame {
		a.fail(r, fmt.Sprintf("an interval takes %d bytes: at most %d", len(data), maxFrame), false)
		return
	}
	if r.broken {
		return
	}
	if _, err := a.spool.Append(r.name, append([]byte{recordFrame}, data...)); err != nil {
		a.unspool(r, err)
		return
	}
	r.frames++
}

// The first byte of a record in the spool.
const (
	recordFrame = 'f'
	recordPart  = 'p'
)

// unspool ends the run because the spool fails.
func (a *agentProtocol) unspool(r *agentRun, err error) {
	r.broken = true
	a.fail(r, "its spool failed: "+err.Error(), false)
	r.nextStatus = a.now
}

// Ended notes that the engine ended, with its result, of any size up to
// maxResult, and nil unless it failed. An engine that was stopped did not fail.
func (a *agentProtocol) Ended(now time.Duration, result []byte, err error) {
	a.at(now)
	if r := a.run; r != nil && r.phase != phaseEnded {
		if err == nil && !r.stopped && !r.fired {
			err = errors.New("the engine ended before the start")
		}
		a.ended(r, result, err)
	}
	a.finish()
}

// An ending is the end of a run in the spool.
type ending struct {
	Frames  uint64 `json:"frames"`
	Parts   uint64 `json:"parts"`
	Hash    []byte `json:"hash,omitempty"`
	Fired   bool   `json:"fired"`
	Stopped bool   `json:"stopped"`
	Lapsed  bool   `json:"lapsed"`
	Err     string `json:"err,omitempty"`
}

func (a *agentProtocol) ended(r *agentRun, result []byte, err error) {
	if len(result) > maxResult {
		err = cmp.Or(err, fmt.Errorf("its result takes %d bytes: at most %d", len(result), maxResult))
		result = nil
	}
	if err != nil && r.err == "" {
		r.err = err.Error()
	}
	var failed error
	for part := range slices.Chunk(result, partSize) {
		if r.broken || failed != nil {
			break
		}
		if _, failed = a.spool.Append(r.name, append([]byte{recordPart}, part...)); failed == nil {
			r.parts++
		}
	}
	if result != nil {
		sum := sha256.Sum256(result)
		r.hash = sum[:]
	}
	if failed == nil && !r.broken {
		end, _ := json.Marshal(ending{r.frames, r.parts, r.hash, r.fired, r.stopped, r.lapsed, r.err})
		failed = a.spool.End(r.name, end)
	}
	a.to(r, phaseEnded)
	if failed != nil {
		a.unspool(r, failed)
	}
}

// A header is the beginning of a run in the spool.
type header struct {
	Origin string `json:"origin"`
	Hash   []byte `json:"hash"` // of the plan
}

// sum returns the hash of a plan with one agent's share.
func sum(plan, share []byte) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n", len(plan))
	h.Write(plan)
	h.Write(share)
	return h.Sum(nil)
}

// load begins a run.
func (a *agentProtocol) load(m *message) error {
	if r := a.run; r != nil && r.name == m.Run && r.session == m.Session {
		r.nextStatus = a.now
		return nil
	}
	switch {
	case a.Run() != "":
		return fmt.Errorf("it is busy with run %s", a.Run())
	case m.Version != a.info.Version:
		return fmt.Errorf("it has version %s of the program, the operator %s: use the same everywhere", a.info.Version, m.Version)
	case m.Layout != a.info.Layout:
		return fmt.Errorf("its histograms have the layout %s, the operator's %s: use the same program everywhere", a.info.Layout, m.Layout)
	case !bytes.Equal(m.Hash, sum(m.Plan, m.Share)):
		return errors.New("the plan arrived with another hash than its own")
	case slices.Contains(a.past, m.Run):
		return fmt.Errorf("it has taken part in run %s already", m.Run)
	}
	head, _ := json.Marshal(header{a.info.Incarnation, m.Hash})
	if err := a.spool.Begin(m.Run, head); errors.Is(err, ErrSpooled) {
		return fmt.Errorf("its spool has run %s already", m.Run)
	} else if err != nil {
		return fmt.Errorf("its spool failed: %w", err)
	}
	a.run = &agentRun{name: m.Run, session: m.Session, origin: a.info.Incarnation, phase: phaseOpening, heard: a.now, nextStatus: a.now}
	a.do = append(a.do, command{Do: orderOpen, Run: m.Run, Plan: m.Plan, Share: m.Share})
	return nil
}
