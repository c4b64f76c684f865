package fleet

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

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
	if want := "abcd"; f.frames != want || f.beat.Acked != 5 {
		t.Errorf("acked %d, frames %q", f.beat.Acked, f.frames)
	}
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
			if slices.Contains(f.events, "resultOf") || !slices.Contains(f.events, "agentFailed") || !slices.Contains(f.events, "runFinished") {
				t.Errorf("the events are %q", f.events)
			}
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

// TestCoordinatorDead: who was called dead stays so. Its report is taken while others
// are still waited for.
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
