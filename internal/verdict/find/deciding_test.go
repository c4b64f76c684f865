package find

import (
	"testing"
	"time"

	"carronade/measure"
	"carronade/test/testkit/assert"
)

// An answer counts the trials that it rests on, and those of them that the generator may have affected.
func TestDeciding(t *testing.T) {
	trial := func(role Role, rate float64, inFlight int, result Result, trust measure.Level) Tried {
		tried := Tried{Trial: Trial{Role: role, Rate: rate, Concurrency: inFlight}, Trust: trust}
		if result != "" {
			tried.Verdict = &Verdict{Result: result}
		}
		return tried
	}
	const remark = ": the generator may have affected it"
	for _, tt := range []struct {
		name string
		a    Answer
		want Deciding
		says string
	}{
		{"the ends", Answer{Holds: 900, Fails: 1000, Trials: []Tried{
			trial(Probe, 0, 8, "", measure.NotTrusted), trial(Search, 500, 0, Pass, measure.NotTrusted), trial(Search, 900, 0, Pass, ""), trial(Confirm, 900, 0, Pass, measure.Noisy),
			trial(Confirm, 1000, 0, Fail, measure.NotTrusted), trial(Confirm, 1000, 0, Fail, measure.NotTrusted), trial(Confirm, 1000, 0, Invalid, measure.NotTrusted), trial(Again, 900, 0, Pass, measure.Noisy),
		}}, Deciding{Trials: 4, Noisy: 1, NotTrusted: 2}, "of 4 trials that the answer rests on, 2 were not trusted and 1 was noisy" + remark},
		{"one end", Answer{Fails: 1000, Trials: []Tried{trial(Search, 1000, 0, Fail, measure.Noisy)}}, Deciding{Trials: 1, Noisy: 1}, "of 1 trial that the answer rests on, 1 was noisy" + remark},
		{"trusted", Answer{Holds: 900, Trials: []Tried{trial(Confirm, 900, 0, Pass, ""), trial(Typical, 720, 0, Pass, measure.Noisy)}}, Deciding{Trials: 1}, ""},
		{"reading", Answer{Holds: 900, Fails: 950, Trials: []Tried{
			trial(WarmUp, 0, 0, "", measure.NotTrusted), trial(Read, 0, 0, Pass, measure.Noisy), trial(Read, 0, 0, Pass, ""), trial(Read, 0, 0, Invalid, measure.NotTrusted),
		}}, Deciding{Trials: 2, Noisy: 1}, "of 2 trials that the answer rests on, 1 was noisy" + remark},
		{"requests in flight", Answer{Knee: &Knee{Enough: 8, Below: 7, Best: 32}, Trials: []Tried{
			trial(Search, 0, 4, "", measure.NotTrusted), trial(Search, 0, 8, "", measure.Noisy), trial(Confirm, 0, 7, "", ""), trial(Confirm, 0, 32, "", measure.Noisy),
		}}, Deciding{Trials: 3, Noisy: 2}, "of 3 trials that the answer rests on, 2 were noisy" + remark},
		{"no end", Answer{Trials: []Tried{trial(Search, 1000, 0, Undecided, measure.Noisy)}}, Deciding{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.a.Deciding = tt.a.deciding()
			var got Deciding
			if d := tt.a.Deciding; d != nil {
				got = *d
			}
			says := ""
			for _, r := range tt.a.Remarks() {
				if r.Name == Doubtful {
					says = r.Text
				}
			}
			assert.True(t, got == tt.want && says == tt.says, "got %+v, %q; want %+v, %q", got, says, tt.want, tt.says)
		})
	}
}

// A search counts the trials of its own history.
func TestDecidingOfASearch(t *testing.T) {
	o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 10 * time.Minute}
	_, history := newServer(1, exponential).find(o)
	for i := range history {
		if history[i].Trial.Role == Confirm {
			history[i].Trust = measure.Noisy
		}
	}
	_, a := o.Next(history)
	if a == nil || a.Ending != Found || a.Deciding == nil || a.Deciding.Noisy < 2 || a.Deciding.Noisy > a.Deciding.Trials || a.Deciding.NotTrusted != 0 {
		t.Fatalf("got %+v", a)
	}
	again := o.Again(history)
	assert.True(t, again.Deciding != nil && again.Deciding.Noisy != 0, "judged again: %+v", again.Deciding)
}
