package fault_test

import (
	"testing"

	"carronade/internal/verdict/fault"
	"carronade/test/testkit/assert"
)

// TestLateEffect: what begins long after a fault is not of it, unless its heal is not long ago.
func TestLateEffect(t *testing.T) {
	for _, tt := range []struct {
		name     string
		stall    span
		marks    []fault.Mark
		observed float64
		noticed  bool
	}{
		{"at once", span{30 * second, 31 * second}, []fault.Mark{faultAt(30 * second)}, 170, true},
		{"within the minute", span{80 * second, 81 * second}, []fault.Mark{faultAt(30 * second)}, 170, true},
		{"long after", span{120 * second, 121 * second}, []fault.Mark{faultAt(30 * second)}, 60, false},
		{"soon after the heal", span{120 * second, 121 * second}, []fault.Mark{faultAt(30 * second), healAt(100 * second)}, 170, true},
		{"long after the heal", span{180 * second, 181 * second}, []fault.Mark{faultAt(30 * second), healAt(100 * second)}, 130, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := trial{rate: 100, each: 1000000, length: 200 * second, stalls: map[int][]span{-1: {tt.stall}}, marks: tt.marks}
			s := x.scores(t)[0]
			assert.Equal(t, s.ObservedS, tt.observed, "seconds observed")
			assert.Equal(t, s.Whole.Noticed != nil, tt.noticed, "noticed %v", s.Whole.Noticed)
			switch later := s.Later; {
			case tt.noticed && later != nil:
				t.Errorf("a later blackout of %+v, want none", later)
			case !tt.noticed && (later == nil || later.S < 0.9 || later.S > 1.1):
				t.Errorf("a later blackout of %+v, want 1 s", later)
			}
			if !tt.noticed && (s.Whole.Over != 0 || s.Whole.Back == nil || s.Whole.Back.S != 0 || s.Whole.Blackout.S > 1) {
				t.Errorf("got %+v", s.Whole)
			}
		})
	}
}
