package run

import (
	"testing"

	"carronade/internal/report"
	"carronade/internal/run/ledger"
	"carronade/internal/verdict/fault"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// TestDeliver: what was lost, duplicated and reordered belongs to the fault around which it was due.
func TestDeliver(t *testing.T) {
	faultAt := func(at, observed float64) fault.Score {
		return fault.Score{Mark: fault.Mark{Kind: fault.MarkFault, AtS: at}, ObservedS: observed}
	}
	heal := faultAt(22, 8)
	heal.Kind = fault.MarkHeal
	for _, tt := range []struct {
		name, load string
		places     ledger.Places
		total      measure.Ledger
		want       []*fault.Delivery
		rest       *fault.Delivery
	}{
		{
			"of two streams", "rate=100/s",
			// Each stream has 50 events a second: 14 s to 16 s, 39 s to 41 s, 9 s to 11 s.
			ledger.Places{Lost: []ledger.Span{{Stream: 0, Lo: 700, Hi: 800}}, Duplicated: []ledger.Span{{Stream: 1, Lo: 1950, Hi: 2050}}, Reordered: []ledger.Span{{Stream: 1, Lo: 450, Hi: 550}, {Stream: 0, Lo: 1000, Hi: 1001}}},
			measure.Ledger{Lost: 107, Duplicated: 100, Reordered: 101},
			[]*fault.Delivery{{Lost: 50, Reordered: 1}, nil, {Duplicated: 100}},
			&fault.Delivery{Lost: 57, Reordered: 100},
		},
		{"nothing", "rate=100/s", ledger.Places{}, measure.Ledger{}, []*fault.Delivery{{}, nil, {}}, &fault.Delivery{}},
		{"without a schedule", "concurrency=1", ledger.Places{Lost: []ledger.Span{{Stream: 0, Lo: 700, Hi: 800}}}, measure.Ledger{Lost: 100}, []*fault.Delivery{nil, nil, nil}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan := assert.Value(resolve(t, &fakeKind{}, tt.load, "for=1h", "marks=true").Plan())(t)
			m := &marking{plan: &plan}
			f := &report.Faults{Scores: []fault.Score{faultAt(20, 20), heal, faultAt(40, 20)}}
			m.deliver(&outcome{faults: f, ledger: &tt.total}, &readback{places: tt.places}, load.RoundRobin(2))
			var got []*fault.Delivery
			for i := range f.Scores {
				got = append(got, f.Scores[i].Delivery)
			}
			assert.Same(t, got, tt.want)
			assert.Same(t, f.Elsewhere, tt.rest, "elsewhere")
			assert.Equal(t, tt.rest != nil, (len(f.Notes) == 0), "the notes are %q", f.Notes)
		})
	}
}
