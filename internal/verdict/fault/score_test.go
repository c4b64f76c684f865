package fault_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"carronade/internal/verdict/fault"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

const second = time.Second

// TestClosedForms compares scores of one outage under a constant load with what follows from its
// length and the headroom, and with the predictions next to them.
func TestClosedForms(t *testing.T) {
	for _, tt := range []struct {
		name string
		each time.Duration // of 1,000 events/s
		rho  float64
		d    float64 // seconds
	}{
		{"rho 0.5", 500 * time.Microsecond, 0.5, 2},
		{"rho 0.8", 800 * time.Microsecond, 0.8, 2},
		{"rho 0.95", 950 * time.Microsecond, 0.95, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.rho > 0.9 {
				testkit.Need(t, "a second")
			}
			at := 30 * second
			end := at + time.Duration(tt.d*float64(second))
			x := trial{
				rate: 1000, each: tt.each, length: 30*second + time.Duration(tt.d/(1-tt.rho)+8)*second,
				stalls: map[int][]span{-1: {{at, end}}}, marks: []fault.Mark{faultAt(at), healAt(end)},
			}
			scores := x.scores(t)
			assert.Must(t, len(scores) == 2, "got %d scores, want 2", len(scores))
			n, limit := scores[0].Whole, 0.05
			wantTime(t, "noticed", n.Noticed, limit)
			wantTime(t, "blackout", n.Blackout, tt.d)
			wantTime(t, "first ack", n.FirstAck, tt.d)
			wantTime(t, "back", n.Back, (tt.d-limit)/(1-tt.rho))
			wantTime(t, "drained", n.Drained, tt.d/(1-tt.rho))
			wantNumber(t, "lost time", n.LostEventS, 1000*tt.d*tt.d/(1-tt.rho)/2)
			over := float64(n.Over)
			wantNumber(t, "over the limit", &over, 1000*(tt.d-limit)/(1-tt.rho))
			if n.Floor == nil || *n.Floor != 0 {
				t.Errorf("floor %v, want 0", show(n.Floor))
			}
			p := n.Predicted
			assert.Must(t, p != nil, "no prediction: %s", n.NotPredicted)
			wantNumber(t, "headroom", &p.Headroom, 1/tt.rho)
			assert.True(t, math.Abs(p.CatchUpS-tt.d*tt.rho/(1-tt.rho)) <= 0.02*tt.d/(1-tt.rho)/(1-tt.rho),
				"predicted catch-up %v", p.CatchUpS)
			h := scores[1].Whole
			wantTime(t, "heal: first ack", h.FirstAck, 0)
			wantTime(t, "heal: drained", h.Drained, tt.d/(1-tt.rho)-tt.d)
			assert.True(t, scores[0].Baseline.Why == "" && math.Abs(scores[0].Baseline.EventsPerS-1000) <= 1,
				"baseline %+v", scores[0].Baseline)
		})
	}
}

// TestDropped compares scores of one outage, in which the generator drops what is due beyond a few
// events in flight, with what follows from its length: the system acked nothing, so the time is a
// blackout and out of the limit, and nothing is left to catch up with.
func TestDropped(t *testing.T) {
	const (
		at   = 30 * second
		d    = 2.0 // seconds
		rate = 1000
	)
	for _, tt := range []struct {
		name     string
		each     time.Duration // of 1,000 events/s
		rho      float64
		inFlight int
		refuse   func(o *load.Outcome)
		waiting  float64 // events that waited from the beginning to the end
	}{
		{"rho 0.5", 500 * time.Microsecond, 0.5, 10, nil, 10},
		{"rho 0.8", 800 * time.Microsecond, 0.8, 10, nil, 10},
		{"rho 0.95", 950 * time.Microsecond, 0.95, 10, nil, 10},
		{"one in flight", 500 * time.Microsecond, 0.5, 1, nil, 1},
		// What is in flight has no answer in a tenth of a second, and then the next.
		{"timeouts", 500 * time.Microsecond, 0.5, 10, func(o *load.Outcome) {
			o.Done, o.Unknown, o.Class, o.Text = o.Sent+second/10, o.Events, load.Timeout, load.TextNoAnswer
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.rho > 0.5 {
				testkit.Need(t, "a second")
			}
			x := trial{
				rate: rate, each: tt.each, length: 50 * second, inFlight: tt.inFlight, drop: true, refuse: tt.refuse,
				stalls: map[int][]span{-1: {{at, at + 2*second}}}, marks: []fault.Mark{faultAt(at), healAt(at + 2*second)},
			}
			scores := x.scores(t)
			n := scores[0].Whole
			wantTime(t, "noticed", n.Noticed, 0)
			wantTime(t, "blackout", n.Blackout, d)
			wantTime(t, "first ack", n.FirstAck, d)
			wantTime(t, "back", n.Back, d)
			wantTime(t, "drained", n.Drained, d+tt.waiting*tt.each.Seconds()/(1-tt.rho))
			if tt.waiting > 0 {
				wantLost := tt.waiting * d
				if n.LostEventS == nil || math.Abs(*n.LostEventS-wantLost) > 0.1*wantLost {
					t.Errorf("lost time %v, want %v", show(n.LostEventS), wantLost)
				}
			}
			over := float64(n.Over)
			wantNumber(t, "over the limit", &over, rate*d)
			if n.Floor == nil || *n.Floor != 0 {
				t.Errorf("floor %v, want 0", show(n.Floor))
			}
			assert.True(t, n.Predicted == nil && strings.Contains(n.NotPredicted, "dropped or failed"),
				"predicted %+v, or not: %q", n.Predicted, n.NotPredicted)
			wantTime(t, "heal: first ack", scores[1].Whole.FirstAck, 0)
			wantTime(t, "heal: back", scores[1].Whole.Back, 0)
		})
	}
}

// TestOnlyDropped: a lane without a connection takes nothing, so nothing waits. What is dropped then
// is a blackout all the same, and only of that lane.
func TestOnlyDropped(t *testing.T) {
	rec := fault.NewRecorder(50*time.Millisecond, 1, 2, func(s int32) int { return int(s) })
	const from, to = 30 * second, 33 * second
	for at := time.Duration(0); at < 60*second; at += 10 * time.Millisecond {
		for lane := range int32(2) {
			if lane == 1 && at >= from && at < to {
				continue
			}
			rec.Add(0, []load.Outcome{{Batch: load.Batch{Stream: lane, Events: 1, DueFirst: at, DueLast: at}, Sent: at, Done: at + time.Millisecond, Acked: 1}})
		}
	}
	rec.Dropped(0, 1, from, to-10*time.Millisecond, 300)
	s := fault.Scores(fault.Input{Marks: []fault.Mark{faultAt(from)}, Lanes: []string{"alive", "dead"}, Window: rec.Window, End: 60 * second, Limit: 50 * time.Millisecond, Budget: 0.01, Scheduled: true})
	assert.Must(t, s[0].Worst == 1, "the worst lane is %d, want 1", s[0].Worst)
	dead := s[0].Lanes[1]
	wantTime(t, "noticed", dead.Noticed, 0)
	wantTime(t, "blackout", dead.Blackout, 3)
	wantTime(t, "back", dead.Back, 3)
	wantTime(t, "drained", dead.Drained, 0)
	if dead.Over != 300 || dead.NotAcked == nil {
		t.Errorf("%d events over the limit, want 300; not acked %v", dead.Over, show(dead.NotAcked))
	}
	b := s[0].Lanes[0].Blackout
	assert.True(t, b == nil || b.S <= 0.1, "the other lane has a blackout of %+v", b)
	wantTime(t, "back, whole", s[0].Whole.Back, 3)
}

// TestScriptedStalls: the scores of stalls that are not a single one of the whole system.
func TestScriptedStalls(t *testing.T) {
	testkit.Need(t, "some seconds")
	const at = 30 * second
	refused := func(class load.Class) func(o *load.Outcome) {
		return func(o *load.Outcome) { o.Failed, o.Class, o.Text = o.Events, class, "no" }
	}
	for _, tt := range []struct {
		name  string
		trial trial
		check func(t *testing.T, s []fault.Score)
	}{
		{
			"one partition",
			trial{rate: 1000, each: 2 * time.Millisecond, lanes: 4, length: 50 * second, stalls: map[int][]span{2: {{at, at + 3*second}}}, marks: []fault.Mark{faultAt(at)}},
			func(t *testing.T, s []fault.Score) {
				assert.True(t, s[0].Whole.Blackout.S <= 0.2, "the whole run has a blackout of %v s", s[0].Whole.Blackout.S)
				assert.Must(t, s[0].Worst == 2, "the worst lane is %d, want 2", s[0].Worst)
				w := s[0].Lanes[2]
				wantTime(t, "blackout", w.Blackout, 3)
				wantTime(t, "back", w.Back, 2.95/(1-0.5))
				wantTime(t, "drained", w.Drained, 6)
				wantTime(t, "back, whole", s[0].Whole.Back, 2.95/(1-0.5))
				assert.True(t, s[0].Lanes[0].Blackout.S <= 0.2 && s[0].Lanes[0].Back.S == 0, "another lane: %+v", s[0].Lanes[0])
				wantNumber(t, "floor", s[0].Whole.Floor, 0.75)
			},
		},
		{
			// The rate while the others catch up says nothing about the capacity: one is still silent.
			"one partition is silent for longer",
			trial{rate: 1000, each: 200 * time.Microsecond, lanes: 4, length: 60 * second, stalls: map[int][]span{0: {{at, at + 2*second}}, 1: {{at, at + 2*second}}, 2: {{at, at + 10*second}}, 3: {{at, at + 2*second}}}, marks: []fault.Mark{faultAt(at)}},
			func(t *testing.T, s []fault.Score) {
				n := s[0].Whole
				wantTime(t, "blackout", n.Blackout, 2)
				assert.True(t, n.Predicted == nil && strings.HasSuffix(n.NotPredicted, "was still without acks") && strings.Contains(n.NotPredicted, s[0].Lanes[2].Name),
					"predicted %+v: %q", n.Predicted, n.NotPredicted)
			},
		},
		{
			// After it the system stands still for 10 ms in each tenth of a second: a few events more than before wait for good,
			// and then the acked rate is that of the load. The capacity is that of the time in which the system caught up.
			"a few wait for good",
			trial{
				rate: 1000, each: 500 * time.Microsecond, length: 60 * second,
				stalls: map[int][]span{-1: append([]span{{at, at + 2*second}}, again(at+2*second, 60*second, 95*time.Millisecond, 105*time.Millisecond)...)}, marks: []fault.Mark{faultAt(at)},
			},
			func(t *testing.T, s []fault.Score) {
				n := s[0].Whole
				assert.Must(t, n.Predicted != nil, "no prediction: %s", n.NotPredicted)
				h := n.Predicted.Headroom
				assert.True(t, h >= 1.7 && h <= 1.9, "the headroom is %v, want 1.8", h)
				assert.True(t, n.Drained != nil && n.Drained.More, "drained in %+v, and more events than before wait at the end", n.Drained)
			},
		},
		{
			// Some time after it the queue is longer than ever before the fault for a moment, as any queue is
			// now and then: that does not undo that it has drained. A longer time does.
			"spikes after it",
			trial{
				rate: 1000, each: 500 * time.Microsecond, length: 70 * second,
				stalls: map[int][]span{-1: {
					{at, at + 2*second},
					{at + 6*second, at + 6*second + 60*time.Millisecond},
					{at + 20*second, at + 20*second + 400*time.Millisecond},
					{at + 25*second, at + 25*second + 60*time.Millisecond},
					{at + 26*second, at + 26*second + 60*time.Millisecond},
				}}, marks: []fault.Mark{faultAt(at), faultAt(at + 19*second)},
			},
			func(t *testing.T, s []fault.Score) {
				wantTime(t, "drained", s[0].Whole.Drained, 4)
				wantTime(t, "drained of the second", s[1].Whole.Drained, 1.8)
			},
		},
		{
			// A slow system, which also answers nothing for a moment: the queue is not what that moment left.
			"slow, and a short blackout",
			trial{
				rate: 1000, length: 60 * second, stalls: map[int][]span{-1: {{at + 4*second, at + 4500*time.Millisecond}}}, marks: []fault.Mark{faultAt(at)},
				service: func(now time.Duration) time.Duration {
					if now >= at && now < at+8*second {
						return 1500 * time.Microsecond
					}
					return 500 * time.Microsecond
				},
			},
			func(t *testing.T, s []fault.Score) {
				if n := s[0].Whole; n.Predicted != nil || !strings.Contains(n.NotPredicted, "more events waited than became due in the blackout") {
					t.Errorf("predicted %+v, or not: %q", n.Predicted, n.NotPredicted)
				}
			},
		},
		{
			// For 2 s after it the system works at half its speed.
			"slow heal",
			trial{
				rate: 1000, length: 60 * second, stalls: map[int][]span{-1: {{at, at + 2*second}}}, marks: []fault.Mark{faultAt(at)},
				service: func(now time.Duration) time.Duration {
					if now >= at+2*second && now < at+4*second {
						return 1250 * time.Microsecond
					}
					return 625 * time.Microsecond
				},
			},
			func(t *testing.T, s []fault.Score) {
				n := s[0].Whole
				wantTime(t, "blackout", n.Blackout, 2)
				drained := 4 + (2000+2*200)/600.0 // in 2 s another 400 wait; then 600/s are caught up with
				wantTime(t, "drained", n.Drained, drained)
				assert.True(t, n.Predicted != nil && n.Drained.S >= 1.4*n.Predicted.DrainedS,
					"drained in %+v, predicted %+v: a slow heal must stand out", n.Drained, n.Predicted)
			},
		},
		{
			"double dip",
			trial{rate: 1000, each: 500 * time.Microsecond, length: 60 * second, stalls: map[int][]span{-1: {{at, at + second}, {at + 4*second, at + 7*second}}}, marks: []fault.Mark{faultAt(at), healAt(at + 4*second)}},
			func(t *testing.T, s []fault.Score) {
				wantTime(t, "blackout", s[0].Whole.Blackout, 3)
				wantTime(t, "back", s[0].Whole.Back, 4+2.95/0.5)
				wantTime(t, "heal: blackout", s[1].Whole.Blackout, 3)
				wantTime(t, "heal: back", s[1].Whole.Back, 2.95/0.5)
			},
		},
		{
			"flapping",
			trial{
				rate: 1000, each: 250 * time.Microsecond, length: 60 * second, marks: []fault.Mark{faultAt(at)},
				stalls: map[int][]span{-1: {{at, at + second}, {at + 2*second, at + 3*second}, {at + 4*second, at + 5*second}, {at + 6*second, at + 7*second}}},
			},
			func(t *testing.T, s []fault.Score) {
				n := s[0].Whole
				wantTime(t, "blackout", n.Blackout, 1)
				// Each time 1 s is caught up with in 1/3 s: it is back in between, but not for good.
				wantTime(t, "back", n.Back, 6+0.95/0.75)
				wantTime(t, "drained", n.Drained, 6+1/0.75)
			},
		},
		{
			"errors instead of silence",
			trial{rate: 1000, each: 500 * time.Microsecond, length: 50 * second, stalls: map[int][]span{-1: {{at, at + 2*second}}}, refuse: refused(load.Rejected), marks: []fault.Mark{faultAt(at)}},
			func(t *testing.T, s []fault.Score) {
				n := s[0].Whole
				wantTime(t, "noticed", n.Noticed, 0)
				wantTime(t, "blackout", n.Blackout, 2)
				wantTime(t, "back", n.Back, 2)
				assert.Equal(t, s[0].Errors["rejected"], 2000, "rejected")
				assert.True(t, n.Predicted == nil && strings.Contains(n.NotPredicted, "dropped or failed"),
					"predicted %+v: nothing was left to catch up with", n.Predicted)
				wantTime(t, "drained", n.Drained, 0)
			},
		},
		{
			"refused",
			trial{rate: 1000, each: 500 * time.Microsecond, length: 50 * second, stalls: map[int][]span{-1: {{at, at + 2*second}}}, refuse: refused(load.Refused), marks: []fault.Mark{faultAt(at)}},
			func(t *testing.T, s []fault.Score) {
				wantTime(t, "noticed", s[0].Whole.Noticed, 0)
				assert.True(t, s[0].Errors["refused"] == 2000, "errors %v", s[0].Errors)
			},
		},
		{
			// Each event waits for its timeout of 1 s.
			"black hole",
			trial{
				rate: 1000, each: 500 * time.Microsecond, length: 50 * second, stalls: map[int][]span{-1: {{at, at + 2*second}}}, marks: []fault.Mark{faultAt(at)},
				refuse: func(o *load.Outcome) {
					o.Done, o.Unknown, o.Class, o.Text = o.Sent+second, o.Events, load.Timeout, load.TextNoAnswer
				},
			},
			func(t *testing.T, s []fault.Score) {
				wantTime(t, "noticed", s[0].Whole.Noticed, 0.05)
				wantTime(t, "blackout", s[0].Whole.Blackout, 2)
				wantTime(t, "back", s[0].Whole.Back, 2)
				assert.True(t, s[0].Errors["timeout"] == 2000, "errors %v", s[0].Errors)
			},
		},
		{
			"not over at the end",
			trial{rate: 1000, each: 500 * time.Microsecond, length: 40 * second, stalls: map[int][]span{-1: {{at, time.Hour}}}, marks: []fault.Mark{faultAt(at)}},
			func(t *testing.T, s []fault.Score) {
				n := s[0].Whole
				for what, got := range map[string]*fault.Time{"blackout": n.Blackout, "first ack": n.FirstAck, "back": n.Back, "drained": n.Drained} {
					assert.True(t, got != nil && got.More && got.S >= 9.9, "%s: %+v, want more than 10 s", what, got)
				}
			},
		},
		{
			"too early",
			trial{rate: 1000, each: 500 * time.Microsecond, length: 20 * second, stalls: map[int][]span{-1: {{4 * second, 5 * second}}}, marks: []fault.Mark{faultAt(4 * second)}},
			func(t *testing.T, s []fault.Score) {
				if n := s[0].Whole; n.Back != nil || n.LostEventS != nil || n.Floor != nil || !strings.HasPrefix(s[0].Baseline.Why, "cannot say: only 4 s") {
					t.Errorf("got %+v with the baseline %+v", n, s[0].Baseline)
				}
				wantTime(t, "blackout", s[0].Whole.Blackout, 1)
			},
		},
		{
			"overloaded before",
			trial{rate: 1000, each: 1100 * time.Microsecond, length: 50 * second, stalls: map[int][]span{-1: {{at, at + second}}}, marks: []fault.Mark{faultAt(at)}},
			func(t *testing.T, s []fault.Score) {
				assert.True(t, strings.Contains(s[0].Baseline.Why, "the limit did not hold"), "baseline %+v", s[0].Baseline)
			},
		},
		{
			"two faults",
			trial{rate: 1000, each: 500 * time.Microsecond, length: 60 * second, stalls: map[int][]span{-1: {{at, at + second}, {at + 10*second, at + 12*second}}}, marks: []fault.Mark{faultAt(at), healAt(at + second), faultAt(at + 10*second)}},
			func(t *testing.T, s []fault.Score) {
				assert.Must(t, len(s) == 3 && s[2].Baseline.Why == "" && s[2].Baseline.FromS == s[0].Baseline.FromS,
					"the second fault comes too early for a baseline of its own: %+v", s)
				wantTime(t, "blackout", s[2].Whole.Blackout, 2)
				assert.Equal(t, s[0].ObservedS, 10, "seconds observed")
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.check(t, tt.trial.scores(t)) })
	}
}

// TestHealOfItsFault: a heal has the baseline of the fault of its name, or else that of the last fault.
func TestHealOfItsFault(t *testing.T) {
	mark := func(kind, name string, at float64) fault.Mark { return fault.Mark{Kind: kind, Name: name, AtS: at} }
	x := trial{rate: 100, each: time.Millisecond, length: 90 * second, marks: []fault.Mark{
		mark(fault.MarkFault, "a", 30), mark(fault.MarkFault, "b", 45),
		mark(fault.MarkHeal, "a", 50), mark(fault.MarkHeal, "b", 55), mark(fault.MarkHeal, "c", 70),
	}}
	s := x.scores(t)
	want := []float64{0, 30, 0, 30, 30}
	assert.Must(t, len(s) == len(want), "%d scores, want %d", len(s), len(want))
	for i := range s {
		if b := s[i].Baseline; b.FromS != want[i] || b.Why != "" {
			t.Errorf("%s %s: its baseline is %+v, want one from %v s on", s[i].Kind, s[i].Name, b, want[i])
		}
	}
}

// What became due in an outage still waits at its heal, also if the bins of that time were not kept.
func TestHealLongAfter(t *testing.T) {
	const from, to = time.Minute, 30 * time.Minute
	rec := fault.NewRecorder(50*time.Millisecond, 1, 1, func(int32) int { return 0 })
	rec.Mark(faultAt(from))
	rec.Mark(healAt(to))
	free, end := time.Duration(0), to+5*time.Minute
	for at := time.Duration(0); at < end; at += second / 10 {
		begin := max(at, free)
		if begin >= from && begin < to {
			begin = to
		}
		free = begin + second/100
		rec.Add(0, []load.Outcome{{Batch: load.Batch{Events: 1, DueFirst: at, DueLast: at}, Sent: at, Done: free, Acked: 1}})
	}
	s := fault.Scores(fault.Input{Marks: rec.Marks(), Window: rec.Window, End: end, Limit: 50 * time.Millisecond, Budget: 0.01, Scheduled: true})
	wantTime(t, "drained", s[1].Whole.Drained, (to-from).Seconds()/9) // 10 events/s became due, and then 90/s more are acked
}

// again are spans between two moments in each tenth of a second.
func again(from, to, begin, end time.Duration) (out []span) {
	for at := from; at < to; at += 100 * time.Millisecond {
		out = append(out, span{at + begin, at + end})
	}
	return out
}

// TestQuietLane: a partition without events is not dead.
func TestQuietLane(t *testing.T) {
	rec := fault.NewRecorder(50*time.Millisecond, 1, 2, func(s int32) int { return int(s) })
	send := func(stream int32, due, done time.Duration) {
		rec.Add(0, []load.Outcome{{Batch: load.Batch{Stream: stream, Events: 1, DueFirst: due, DueLast: due}, Sent: due, Done: done, Acked: 1}})
	}
	for at := time.Duration(0); at < 60*second; at += 10 * time.Millisecond {
		send(0, at, at+time.Millisecond)
		if at%(10*second) == 0 { // one event in 10 s
			send(1, at, at+time.Millisecond)
		}
	}
	s := fault.Scores(fault.Input{Marks: []fault.Mark{faultAt(35 * second)}, Lanes: []string{"busy", "quiet"}, Window: rec.Window, End: 60 * second, Limit: 50 * time.Millisecond, Budget: 0.01, Scheduled: true})
	b := s[0].Lanes[1].Blackout
	assert.True(t, b == nil || b.S <= 0.1, "the quiet lane has a blackout of %+v", b)
}

// A long run without marks keeps a minute, and counts what waits all the same.
func TestRecorderForgets(t *testing.T) {
	rec := fault.NewRecorder(50*time.Millisecond, 1, 1, func(int32) int { return 0 })
	for at := time.Duration(0); at < time.Hour; at += 100 * time.Millisecond {
		rec.Add(0, []load.Outcome{{Batch: load.Batch{Events: 3, DueFirst: at, DueLast: at}, Done: at + 250*time.Millisecond, Acked: 3}})
		if at == 30*time.Minute {
			rec.Mark(faultAt(at))
		}
	}
	sum := func(from, to time.Duration) (due uint32) {
		for _, c := range rec.Window(-1, from, to).Cells {
			due += c.Due
		}
		return due
	}
	assert.Equal(t, sum(0, 20*time.Minute), 0, "events of long ago are kept")
	assert.Equal(t, sum(30*time.Minute-30*second, 40*time.Minute), 3*10*630, "events around the mark")
	assert.Equal(t, rec.Window(-1, 50*time.Minute, time.Hour).Waiting, 6, "events that waited")
	if got := rec.Chunks(); got > 100 { // 13 minutes around the mark and at the end, in chunks of 10 s
		t.Errorf("%d chunks are kept", got)
	}
	// An outcome that comes after its time was dropped still counts.
	rec.Add(0, []load.Outcome{{Batch: load.Batch{Events: 1, DueFirst: time.Minute, DueLast: time.Minute}, Done: time.Hour, Acked: 1}})
	assert.Equal(t, rec.Window(-1, 50*time.Minute, time.Hour).Waiting, 7, "events that waited")
}

// TestManyLanes: with more partitions than are scored, the whole is.
func TestManyLanes(t *testing.T) {
	rec := fault.NewRecorder(time.Second, 1, fault.MostLanes+1, func(s int32) int { return int(s) })
	rec.Add(0, []load.Outcome{{Batch: load.Batch{Stream: fault.MostLanes, Events: 2, DueFirst: 0, DueLast: 950 * time.Millisecond}, Done: second, Acked: 1, Failed: 1, Class: load.Timeout}})
	s := rec.Window(-1, 0, 2*second)
	if rec.Lanes() != 1 || s.Cells[0].Due != 1 || s.Cells[0].Answered != 1 || s.Cells[9].Over != 1 || s.Cells[10].Failed != 1 {
		t.Errorf("%d lanes, cells %+v", rec.Lanes(), s.Cells[:11])
	}
	got := rec.Errors(0, 2*second)
	assert.True(t, got["timeout"] == 1, "errors %v", got)
}

// TestFewEvents: of few events in a bin, one over the limit may be chance. One in each is not.
func TestFewEvents(t *testing.T) {
	for _, tt := range []struct {
		name  string
		every int           // of the events after the fault, one of this number is over the limit
		until time.Duration // from when on none is
		back  *fault.Time
	}{
		{"a tenth for good", 10, time.Hour, &fault.Time{S: 30, More: true}},
		{"a tenth for 8 s", 10, 38 * second, &fault.Time{S: 8}},
		{"one of two hundred", 200, time.Hour, &fault.Time{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := fault.NewRecorder(50*time.Millisecond, 1, 1, func(int32) int { return 0 })
			n := 0
			for at := time.Duration(0); at < 60*second; at += 10 * time.Millisecond {
				took := time.Millisecond
				if at >= 30*second && at < tt.until {
					if n++; n%tt.every == 0 {
						took = 60 * time.Millisecond
					}
				}
				rec.Add(0, []load.Outcome{{Batch: load.Batch{Events: 1, DueFirst: at, DueLast: at}, Sent: at, Done: at + took, Acked: 1}})
			}
			s := fault.Scores(fault.Input{Marks: []fault.Mark{faultAt(30 * second)}, Window: rec.Window, End: 60 * second, Limit: 50 * time.Millisecond, Budget: 0.01, Scheduled: true})
			got := s[0].Whole.Back
			// A stretch of 5 s may have 11 of 500 by chance, so it is back a second before the last.
			if got == nil || got.More != tt.back.More || max(got.S-tt.back.S, tt.back.S-got.S) > 1.2 {
				t.Errorf("back %+v, want %+v; baseline %+v", got, tt.back, s[0].Baseline)
			}
		})
	}
}

// TestUnsent: events that were due and never sent until the run ended are a blackout, and wait.
func TestUnsent(t *testing.T) {
	rec := fault.NewRecorder(50*time.Millisecond, 1, 2, func(s int32) int { return int(s) })
	for at := time.Duration(0); at < 20*second; at += 10 * time.Millisecond {
		for lane := range int32(2) {
			rec.Add(0, []load.Outcome{{Batch: load.Batch{Stream: lane, Events: 1, DueFirst: at, DueLast: at}, Sent: at, Done: at + time.Millisecond, Acked: 1}})
		}
	}
	rec.Unsent(0, 1, 20*second, 50*second-10*time.Millisecond, 50*second, 3000)
	s := fault.Scores(fault.Input{Marks: []fault.Mark{faultAt(20 * second)}, Lanes: []string{"alive", "dead"}, Window: rec.Window, End: 50 * second, Limit: 50 * time.Millisecond, Budget: 0.01, Scheduled: true})
	dead := s[0].Lanes[1]
	b := dead.Blackout
	assert.True(t, b != nil && b.More && b.S >= 29.9, "the blackout is %+v", b)
	d := dead.Drained
	assert.True(t, d != nil && d.More, "drained after %+v", d)
	assert.True(t, dead.Over >= 2990 && dead.NotAcked != nil && *dead.NotAcked == 1 && s[0].Worst == 1, "got %+v", dead)
	b = s[0].Lanes[0].Blackout
	assert.True(t, b == nil || b.S <= 0.1, "the other lane has a blackout of %+v", b)
}

// TestOldFailures: failures of long ago leave room for those of a fault.
func TestOldFailures(t *testing.T) {
	rec := fault.NewRecorder(50*time.Millisecond, 1, 1, func(int32) int { return 0 })
	end := 3 * time.Hour
	for at := time.Duration(0); at < end; at += 100 * time.Millisecond {
		rec.Add(0, []load.Outcome{{Batch: load.Batch{Events: 1, DueFirst: at, DueLast: at}, Done: at, Failed: 1, Class: load.Timeout}})
	}
	assert.Equal(t, rec.Errors(end-30*second, end)["timeout"], 300, "timeouts in the last 30 s")
	assert.Equal(t, rec.Errors(0, end/2)["timeout"], 0, "timeouts of long ago are kept")
	since, full, errors := rec.Full()
	assert.True(t, !full && !errors, "the memory is full: %v, %v, %v", since, full, errors)
}

// TestLongAfter: what was dropped long after a fault does not look like an outage.
func TestLongAfter(t *testing.T) {
	for _, tt := range []struct {
		name string
		mark time.Duration
	}{{"with a baseline", time.Minute}, {"without a baseline", 2 * second}} {
		t.Run(tt.name, func(t *testing.T) {
			rec := fault.NewRecorder(50*time.Millisecond, 1, 1, func(int32) int { return 0 })
			rec.Mark(faultAt(tt.mark))
			soon := tt.mark + second // the fault has an effect, else it would not be observed for long
			rec.Add(0, []load.Outcome{{Batch: load.Batch{Events: 1, DueFirst: soon, DueLast: soon}, Sent: soon, Done: soon, Failed: 1, Class: load.Timeout}})
			end := 40 * time.Minute
			for at := time.Duration(0); at < end; at += 100 * time.Millisecond {
				rec.Add(0, []load.Outcome{{Batch: load.Batch{Events: 5, DueFirst: at, DueLast: at + 90*time.Millisecond}, Sent: at, Done: at + 120*time.Millisecond, Acked: 5}})
			}
			s := fault.Scores(fault.Input{Marks: rec.Marks(), Window: rec.Window, End: end, Answers: end, Limit: time.Second, Budget: 0.01, Scheduled: true})[0]
			if f := s.Whole.Floor; f != nil && *f < 0.9 || f == nil && s.Baseline.Why == "" {
				t.Errorf("the lowest rate is %v of that before", show(f))
			}
			b := s.Whole.Blackout
			assert.True(t, b != nil && !b.More && b.S <= 0.3, "the blackout is %+v", b)
			assert.Equal(t, s.ObservedS, 600, "seconds observed")
		})
	}
}

// TestFull: the memory is full some time after a mark if each thread sends to many lanes, and says
// when. It is not if each has a few.
func TestFull(t *testing.T) {
	const threads = 16
	for _, tt := range []struct {
		name string
		of   int // lanes of a thread
		full bool
	}{{"all lanes", fault.MostLanes, true}, {"its own lanes", fault.MostLanes / threads, false}} {
		t.Run(tt.name, func(t *testing.T) {
			rec := fault.NewRecorder(50*time.Millisecond, threads, fault.MostLanes, func(s int32) int { return int(s) })
			rec.Mark(faultAt(0))
			end := 5 * time.Minute
			for at := time.Duration(0); at < end; at += 10 * second {
				for thread := range threads {
					for l := range tt.of {
						b := load.Batch{Events: 1, Stream: int32(l), DueFirst: at, DueLast: at}
						rec.Add(thread, []load.Outcome{{Batch: b, Done: at + time.Millisecond, Acked: 1}})
					}
				}
			}
			since, full, _ := rec.Full()
			assert.Must(t, full == tt.full && (!full || since >= time.Minute && since < end), "full %v since %v", full, since)
			for i, c := range rec.Window(-1, 0, min(since, end)).Cells {
				want := uint32(threads * tt.of)
				assert.True(t, i%100 != 0 || c.Acked == want, "%d acks in bin %d, want %d", c.Acked, i, want)
			}
		})
	}
}

// TestLoadChanges: a prediction is of the load before a fault, so there is none if that changes, nor if
// the system is given to take no more than that.
func TestLoadChanges(t *testing.T) {
	for _, tt := range []struct {
		name    string
		after   time.Duration // between two events from 31 s on
		ceiling float64       // events/s
		why     string
	}{
		{"the same", 10 * time.Millisecond, 0, ""},
		{"half", 20 * time.Millisecond, 0, "the load was another"},
		{"one and a half", 7 * time.Millisecond, 0, "the load was another"},
		{"a ceiling above the load", 10 * time.Millisecond, 200, ""},
		{"a ceiling at the load", 10 * time.Millisecond, 100, "the given ceiling is not above the load"},
		{"a ceiling below it", 10 * time.Millisecond, 50, "the given ceiling is not above the load"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := fault.NewRecorder(50*time.Millisecond, 1, 1, func(int32) int { return 0 })
			free := time.Duration(0)
			every := 10 * time.Millisecond
			for at := time.Duration(0); at < 60*second; at += every {
				if at >= 31*second {
					every = tt.after
				}
				begin := max(at, free)
				if begin >= 30*second && begin < 34*second {
					begin = 34 * second
				}
				free = begin + 5*time.Millisecond
				rec.Add(0, []load.Outcome{{Batch: load.Batch{Events: 1, DueFirst: at, DueLast: at}, Sent: begin, Done: free, Acked: 1}})
			}
			n := fault.Scores(fault.Input{Marks: []fault.Mark{faultAt(30 * second)}, Window: rec.Window, End: 60 * second, Limit: 50 * time.Millisecond, Budget: 0.01, Scheduled: true, Ceiling: tt.ceiling})[0].Whole
			assert.True(t, (n.Predicted != nil) == (tt.why == "") && strings.HasPrefix(n.NotPredicted, tt.why),
				"predicted %+v, or not: %q, want %q", n.Predicted, n.NotPredicted, tt.why)
		})
	}
}
