package fleet

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/run"
	"carronade/test/testkit/assert"
)

// A hand is an operator by hand.
type hand struct {
	t     *testing.T
	a     *agentProtocol
	spool *MemorySpool
	now   time.Duration
	beats uint64
}

func newHand(t *testing.T) *hand {
	s := NewMemorySpool()
	return &hand{t: t, a: newAgentProtocol(Info{Name: "a", Incarnation: "i", Version: "1", Layout: "hdr"}, s), spool: s, now: time.Hour}
}

// tell sends a message and returns the answers and orders.
func (h *hand) tell(m message) ([]*message, []command) {
	m.Run, m.Session = "r", "s"
	if m.Incarnation == "" {
		m.Incarnation = "i"
	}
	h.now++
	h.a.Receive(h.now, &m)
	return h.a.Take()
}

func (h *hand) load() ([]*message, []command) {
	return h.tell(message{Kind: kindLoad, Version: "1", Layout: "hdr", Plan: []byte("p"), Hash: sum([]byte("p"), nil)})
}

func (h *hand) beat(w want, acked uint64) ([]*message, []command) {
	h.beats++
	return h.tell(message{Kind: kindBeat, Number: h.beats, Want: w, Heard: h.now, Start: time.Hour + time.Second, Acked: acked})
}

// start leads the agent into a run that has begun.
func (h *hand) start() {
	h.t.Helper()
	h.load()
	h.a.Opened(h.now, nil)
	h.beat(wantArm, 0)
	_, do := h.beat(wantGo, 0)
	assert.Must(h.t, len(do) == 1 && do[0].Do == orderStart && do[0].At == time.Hour+time.Second, "the orders are %+v", do)
	h.now = time.Hour + 2*time.Second
	h.beat(wantGo, 0)
}

func refusal(ms []*message) string {
	for _, m := range ms {
		if m.Kind == kindRefuse {
			return m.Err
		}
	}
	return ""
}

func TestAgentRefuses(t *testing.T) {
	h := newHand(t)
	for want, m := range map[string]message{
		"version 1 of the program, the operator 2": {Kind: kindLoad, Version: "2", Layout: "hdr", Hash: sum(nil, nil)},
		"the operator's log":                       {Kind: kindLoad, Version: "1", Layout: "log", Hash: sum(nil, nil)},
		"another hash":                             {Kind: kindLoad, Version: "1", Layout: "hdr", Plan: []byte("x"), Hash: sum(nil, []byte("x"))},
		"another process":                          {Kind: kindLoad, Version: "1", Layout: "hdr", Hash: sum(nil, nil), Incarnation: "j"},
		"no data of run r":                         {Kind: kindRecover},
		"is not part of run r":                     {Kind: kindBeat, Number: 1, Want: wantGo},
	} {
		ms, do := h.tell(m)
		got := refusal(ms)
		assert.True(t, strings.Contains(got, want) && len(do) == 0, "the answer is %q, %v; want %q", got, do, want)
	}
	h.load()
	ms, do := h.tell(message{Kind: kindRecover})
	assert.True(t, len(do) == 0 && refusal(ms) == "", "recovered by its own operator: %v, %v", ms, do)
	h.now++
	h.a.Receive(h.now, &message{Kind: kindLoad, Run: "other", Session: "t", Incarnation: "i", Version: "1", Layout: "hdr", Hash: sum(nil, nil)})
	ms, do = h.a.Take()
	assert.True(t, strings.Contains(refusal(ms), "busy with run r") && len(do) == 0, "a second run: %v, %v", ms, do)
}

// TestAgentOnce: a plan that arrives again after the run does not begin another one.
func TestAgentOnce(t *testing.T) {
	h := newHand(t)
	_, do := h.load()
	assert.Must(t, len(do) == 1 && do[0].Do == orderOpen && string(do[0].Plan) == "p", "the orders are %+v", do)
	h.a.Opened(h.now, errors.New("refused"))
	ms, _ := h.beat(wantRelease, 0)
	assert.True(t, len(ms) > 0 && ms[len(ms)-1].Phase == phaseReleased, "the answers are %v", ms)
	if ms, do := h.load(); len(do) > 0 || !strings.Contains(refusal(ms), "has taken part in run r already") {
		t.Errorf("again: %v, %v", ms, do)
	}
	ms, _ = h.beat(wantRelease, 0)
	assert.True(t, len(ms) == 1 && ms[0].Phase == phaseReleased, "a second release: %v", ms)
}

// TestAgentWindow: at most 32 records and 4 MiB are under way; what is not acked is sent again, ever more rarely.
func TestAgentWindow(t *testing.T) {
	h := newHand(t)
	h.start()
	for range 40 {
		h.a.Frame(h.now, []byte("frame"))
	}
	numbers := func(ms []*message) (of []uint64) {
		for _, m := range ms {
			if m.Kind == kindFrame || m.Kind == kindPart {
				of = append(of, m.Number)
			}
		}
		return of
	}
	ms, _ := h.a.Take()
	n := numbers(ms)
	assert.True(t, len(n) == 32 && n[31] == 32, "sent %d", n)
	ms, _ = h.beat(wantGo, 3)
	n = numbers(ms)
	assert.True(t, len(n) == 3 && n[0] == 33, "after 3 of them, sent %d", n)
	h.beats++
	h.tell(message{Kind: kindBeat, Number: h.beats, Want: wantGo, Heard: h.now, Acked: 3, Beyond: 1<<31 - 2}) // all but 4 and 5
	h.now += 1100 * time.Millisecond
	ms, _ = h.beat(wantGo, 3)
	n = numbers(ms)
	assert.True(t, len(n) == 2 && n[0] == 4 && n[1] == 5, "sent again: %d; want 4 and 5", n)
	h.now += 1100 * time.Millisecond
	ms, _ = h.beat(wantGo, 3)
	n = numbers(ms)
	assert.True(t, len(n) == 0, "sent again too soon: %d", n)
	ms, _ = h.beat(wantGo, 40)
	n = numbers(ms)
	assert.True(t, len(n) == 0, "sent what is there: %d", n)
	result := bytes.Repeat([]byte("x"), 20*partSize+1)
	h.a.Ended(h.now, result, nil)
	var got []byte
	for acked := uint64(40); acked < 61; {
		ms, _ := h.beat(wantGo, acked)
		size := 0
		for _, m := range ms {
			if m.Kind == kindPart && m.Number == acked+1 {
				got = append(got, m.Data...)
				size += len(m.Data)
				acked++
			}
		}
		assert.True(t, size <= windowBytes, "%d bytes are under way", size)
		if size == 0 {
			h.now += 1100 * time.Millisecond
		}
	}
	assert.True(t, bytes.Equal(got, result), "%d bytes arrived, want %d", len(got), len(result))
}

// TestAgentLease: the engine may send until 5 s after the newest status that was confirmed, and never again once that has passed.
func TestAgentLease(t *testing.T) {
	h := newHand(t)
	assert.True(t, h.a.LeaseEnd() == 0 && h.a.Next() == never, "without a run: %v, %v", h.a.LeaseEnd(), h.a.Next())
	h.start()
	confirmed := h.now - 1 // see beat
	assert.Equal(t, h.a.LeaseEnd(), confirmed+Lease, "end of the lease")
	// A message from before confirms nothing new; one from the future is not believed.
	h.now += time.Second
	for _, heard := range []time.Duration{confirmed - time.Second, confirmed, h.now + time.Minute} {
		h.beats++
		h.tell(message{Kind: kindBeat, Number: h.beats, Want: wantGo, Heard: heard})
		assert.Equal(t, h.a.LeaseEnd(), confirmed+Lease, "end of the lease after the confirmation of %v", heard)
	}
	next := h.a.Next()
	assert.True(t, next <= confirmed+Lease+1, "the next tick is at %v", next)
	// The process stood still; a confirmation waits for it.
	h.now = confirmed + Lease + 10*time.Millisecond
	h.beats++
	_, do := h.tell(message{Kind: kindBeat, Number: h.beats, Want: wantGo, Heard: h.now})
	assert.True(t, h.a.LeaseEnd() == 0 && len(do) == 1 && do[0].Do == orderStop && strings.Contains(do[0].Reason, "heard nothing of the operator"),
		"the lease ends at %v, the orders are %+v", h.a.LeaseEnd(), do)
	ms, do := h.beat(wantGo, 0)
	assert.True(t, h.a.LeaseEnd() == 0 && len(do) == 0, "it goes on: %v, %v", ms, do)
	h.a.Frame(h.now, []byte("what was fired"))
	h.a.Ended(h.now, nil, nil)
	got, _ := h.spool.Look("r")
	assert.True(t, got.Records == 1 && strings.Contains(string(got.End), `"lapsed":true`), "the spool has %+v", got)
	assert.Equal(t, h.a.Run(), "r", "its run while its operator is there")
	h.now += 2 * Lease
	h.a.Tick(h.now)
	assert.Equal(t, h.a.Run(), "", "its run without an operator")
}

// TestAgentRecoversTorn: a process ended while it wrote its result. Only the frames are delivered.
func TestAgentRecoversTorn(t *testing.T) {
	h := newHand(t)
	h.spool.Begin("r", mustJSON(header{Origin: "before"}))
	for _, record := range []string{"fone", "ftwo", "ppart", "ppart"} {
		h.spool.Append("r", []byte(record))
	}
	ms, do := h.tell(message{Kind: kindRecover})
	if len(ms) != 3 || len(do) > 0 || ms[0].Phase != phaseEnded || ms[0].Frames != 2 || ms[0].Parts != 0 || ms[0].Origin != "before" ||
		string(ms[1].Data) != "one" || string(ms[2].Data) != "two" || ms[2].Origin != "before" || ms[2].Incarnation != "i" {
		t.Errorf("%+v", ms)
	}
}

// TestAgentLimits: an interval or a result that is too large ends the run.
func TestAgentLimits(t *testing.T) {
	h := newHand(t)
	h.start()
	h.a.Frame(h.now, make([]byte, maxFrame))
	_, do := h.a.Take()
	assert.True(t, len(do) == 0, "the largest interval: %v", do)
	h.a.Frame(h.now, make([]byte, maxFrame+1))
	_, do = h.a.Take()
	assert.True(t, len(do) == 1 && do[0].Do == orderStop && strings.Contains(do[0].Reason, "an interval takes"), "a larger one: %v", do)
	h.a.Ended(h.now, make([]byte, maxResult+1), nil)
	got, _ := h.spool.Look("r")
	assert.True(t, got.Records == 1 && strings.Contains(string(got.End), "an interval takes"), "%d records, %s", got.Records, got.End)
}

// TestAgentLate: an order to start that arrives after that time is not obeyed.
func TestAgentLate(t *testing.T) {
	h := newHand(t)
	h.load()
	h.a.Opened(h.now, nil)
	h.beat(wantArm, 0)
	next := h.a.Next()
	assert.True(t, next <= time.Hour+time.Second, "the next tick is at %v", next)
	h.now = time.Hour + time.Second
	ms, do := h.beat(wantGo, 0)
	assert.True(t, len(do) == 1 && do[0].Do == orderAbort && len(ms) != 0 && strings.Contains(ms[0].Err, "did not arrive before the start") && !ms[0].Fired,
		"the orders are %+v, the status %+v", do, ms)
}

// The operator learns once, and before the start, what else uses an agent's machine.
func TestAgentDisturbed(t *testing.T) {
	const text = "other programs use 97% of the processors"
	h := newHand(t)
	h.load()
	h.a.Disturbed(h.now, text)
	sent, _ := h.a.Take()
	assert.Must(t, len(sent) == 1 && sent[0].Kind == kindStatus && sent[0].Phase == phaseOpening && sent[0].Disturbed == text, "it sends %+v", sent)
	c := &coordinator{}
	m := &member{name: "a"}
	var said []string
	r := &firing{order: &run.Order{Disturbed: func(agent, text string) { said = append(said, agent+": "+text) }}}
	for i := range 2 {
		sent[0].Now = time.Duration(i + 1)
		c.status(m, sent[0])
		for _, e := range c.events {
			r.take(e)
		}
		c.events = nil
	}
	assert.Same(t, said, []string{"a: " + text})
}

// A far is an agent by hand, whose clock is ahead by an hour.
type far struct {
	t      *testing.T
	c      *coordinator
	now    time.Duration
	beat   *message // the newest
	events []string
	frames string
}

func newFar(t *testing.T, change func(*runConfig)) *far {
	t.Helper()
	cfg := runConfig{Run: "r", Session: "s", Version: "1", Layout: "hdr", Agents: []string{"a"}}
	if change != nil {
		change(&cfg)
	}
	c := assert.Value(newCoordinator(cfg))(t)
	f := &far{t: t, c: c, now: time.Second}
	f.pass(2 * time.Second)
	return f
}

// take answers pings, and keeps beats and events.
func (f *far) take() {
	for range 100 {
		send, events := f.c.Take()
		if len(send)+len(events) == 0 {
			return
		}
		for _, e := range events {
			if frame, ok := e.(frameOf); ok {
				f.frames += string(frame.Data)
			}
			f.events = append(f.events, strings.TrimPrefix(fmt.Sprintf("%T", e), "fleet."))
		}
		for _, s := range send {
			switch m := s.Message; m.Kind {
			case kindBeat:
				f.beat = m
			case kindPing:
				f.now++
				at := f.now + time.Hour
				f.c.Receive(f.now, "a", &message{
					Kind: kindPong, Run: "r", Session: "s", Incarnation: "i", Number: m.Number, Sent: m.Sent, Received: at, Answered: at,
					Info: &Info{Name: "a", Incarnation: "i", Version: "1", Layout: "hdr"},
				})
			}
		}
	}
}

// pass lets time pass.
func (f *far) pass(d time.Duration) {
	for end := f.now + d; f.now < end; {
		f.c.Tick(f.now)
		f.take()
		f.now = max(f.now+1, min(end, f.c.Next()))
	}
}

// say sends a message of the agent.
func (f *far) say(m message) {
	f.now += time.Millisecond
	m.Run, m.Session, m.Now = "r", "s", f.now+time.Hour
	if m.Incarnation == "" {
		m.Incarnation = "i"
	}
	if m.Origin == "" {
		m.Origin = "i"
	}
	f.c.Receive(f.now, "a", &m)
	f.take()
}

// start leads to the running phase.
func (f *far) start() {
	f.t.Helper()
	f.say(message{Kind: kindStatus, Phase: phaseReady})
	if f.beat == nil || f.beat.Want != wantArm || (f.beat.Start-f.now-time.Hour-3*time.Second).Abs() > 100*time.Millisecond {
		f.t.Fatalf("the beat is %+v at %v", f.beat, f.now)
	}
	f.say(message{Kind: kindStatus, Phase: phaseArmed, Start: f.beat.Start})
	assert.Must(f.t, f.beat.Want == wantGo, "the beat is %+v", f.beat)
	f.say(message{Kind: kindStatus, Phase: phaseRunning, Start: f.beat.Start, Fired: true})
}

func (f *far) frame(n uint64, data string) {
	f.say(message{Kind: kindFrame, Number: n, Data: []byte(data)})
}

func (f *far) end(frames, parts uint64, result string) {
	h := sha256.Sum256([]byte(result))
	f.say(message{Kind: kindStatus, Phase: phaseEnded, Fired: true, Frames: frames, Parts: parts, Hash: h[:]})
}

// TestCoordinatorRecords: frames come once and in order, whatever arrives.
func TestCoordinatorRecords(t *testing.T) {
	f := newFar(t, nil)
	f.start()
	f.frame(2, "b")
	f.frame(4, "d")
	assert.True(t, f.beat.Acked == 0 && f.beat.Beyond == 1|1<<2 && f.frames == "",
		"acked %d, %b, frames %q", f.beat.Acked, f.beat.Beyond, f.frames)
	f.say(message{Kind: kindFrame, Number: 1, Data: []byte("x"), Origin: "j"}) // of another process
	f.say(message{Kind: kindFrame, Number: 34, Data: []byte("y")})             // beyond the window
	f.frame(1, "a")
	f.frame(1, "z")
	f.frame(2, "z")
	f.frame(4, "z")
	assert.True(t, f.beat.Acked == 2 && f.beat.Beyond == 1 && f.frames == "ab",
		"acked %d, %b, frames %q", f.beat.Acked, f.beat.Beyond, f.frames)
	f.say(message{Kind: kindPart, Number: 5, Data: []byte("the result")})
	f.end(4, 1, "the result")
	assert.True(t, !slices.Contains(f.events, "resultOf"), "the result is complete without frame 3")
	f.frame(3, "c")
	assert.True(t, f.frames == "abcd" && f.beat.Acked == 5, "acked %d, frames %q", f.beat.Acked, f.frames)
	want := []string{"agentReady", "runStarted", "frameOf", "frameOf", "intervalClosed", "intervalClosed", "frameOf", "frameOf", "resultOf", "intervalClosed", "intervalClosed", "runFinished"}
	assert.True(t, slices.Equal(f.events, want), "the events are %q, want %q", f.events, want)
	f.pass(10 * time.Second)
	assert.True(t, f.beat.Want != wantRelease && !f.c.Done(), "released before the report was stored")
	f.c.Release(f.now)
	f.take()
	assert.True(t, f.beat.Want == wantRelease && !f.c.Done(), "the beat is %+v", f.beat)
	f.say(message{Kind: kindStatus, Phase: phaseReleased})
	assert.True(t, f.c.Done() && f.c.Next() == never, "not done after the release")
}

// TestCoordinatorDamage: a report that is not what the agent made is not a result.
func TestCoordinatorDamage(t *testing.T) {
	for name, say := range map[string]func(*far){
		"another hash": func(f *far) {
			f.say(message{Kind: kindPart, Number: 1, Data: []byte("other")})
			f.end(0, 1, "result")
		},
		"a frame too late":    func(f *far) { f.say(message{Kind: kindPart, Number: 1, Data: []byte("a")}); f.frame(2, "b") },
		"too few frames":      func(f *far) { f.say(message{Kind: kindPart, Number: 1, Data: []byte("a")}); f.end(1, 0, "") },
		"more than there was": func(f *far) { f.frame(1, "a"); f.frame(2, "b"); f.end(1, 0, "") },
		"a broken spool": func(f *far) {
			f.say(message{Kind: kindStatus, Phase: phaseEnded, Fired: true, Broken: true, Frames: 1, Err: "no space"})
		},
		"another process":    func(f *far) { f.say(message{Kind: kindStatus, Phase: phaseEnded, Incarnation: "j"}) },
		"no part in the run": func(f *far) { f.say(message{Kind: kindRefuse, Err: "none"}) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFar(t, nil)
			f.start()
			say(f)
			f.pass(time.Second)
			assert.True(t, !slices.Contains(f.events, "resultOf") && slices.Contains(f.events, "agentFailed") && slices.Contains(f.events, "runFinished"),
				"the events are %q", f.events)
		})
	}
}

// TestCoordinatorOther: messages of other runs, sessions and agents change nothing.
func TestCoordinatorOther(t *testing.T) {
	f := newFar(t, nil)
	f.start()
	before := len(f.events)
	for _, m := range []message{{Run: "other", Session: "s"}, {Run: "r", Session: "other"}} {
		m.Kind, m.Phase, m.Incarnation, m.Origin, m.Now, m.Err = kindStatus, phaseEnded, "i", "i", f.now+2*time.Hour, "failed"
		f.c.Receive(f.now, "a", &m)
	}
	f.c.Receive(f.now, "b", &message{Kind: kindStatus, Run: "r", Session: "s", Incarnation: "i", Phase: phaseEnded, Now: f.now + 2*time.Hour})
	f.take()
	assert.Equal(t, len(f.events), before, "the events are %q", f.events)
}

// TestCoordinatorDead: who was called dead stays so. Its report is taken while others are still waited for.
func TestCoordinatorDead(t *testing.T) {
	f := newFar(t, nil)
	f.start()
	f.pass(6 * time.Second)
	want := []string{"agentReady", "runStarted", "agentSuspect", "agentDead", "agentFailed", "runFinished"}
	assert.True(t, slices.Equal(f.events, want), "the events are %q, want %q", f.events, want)
	f.say(message{Kind: kindStatus, Phase: phaseRunning, Fired: true})
	f.frame(1, "a")
	assert.True(t, len(f.events) == 6 && f.frames == "", "the events are %q", f.events)
}
