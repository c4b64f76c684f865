package run

import (
	"testing"
	"testing/synctest"
	"time"

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
			m.deliver(&outcome{faults: f, ledger: &tt.total}, readers{{places: tt.places}}, load.RoundRobin(2))
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

// The events that a run drops while its system takes none are in the score of the fault.
func TestDroppedAreScored(t *testing.T) {
	const from, to = 20 * time.Second, 24 * time.Second
	synctest.Test(t, func(t *testing.T) {
		k := &fakeKind{perBatch: 1, lostFrom: from, lostUntil: to}
		d := assert.Value(Execute(t.Context(), Job{
			Portable: true, Workload: resolve(t, k, "rate=100/s", "for=1m", "overload=drop", "marks=true"),
			Marks: markAt(t, from),
		}))(t)
		assert.Must(t, len(d.Faults.Scores) == 1, "%d scores, want 1", len(d.Faults.Scores))
		n := d.Faults.Scores[0].Whole
		b := n.Blackout
		assert.True(t, b != nil && !b.More && b.S >= 3.9 && b.S <= 4.1, "the blackout is %+v, want 4 s", b)
		if dropped := d.Totals.Dropped; dropped < 399 || dropped > 401 || n.Over != dropped {
			t.Errorf("of some 400 events that were due in the blackout, %d were dropped, and %d count as over the limit", dropped, n.Over)
		}
	})
}

// markAt returns a Job.Marks that marks a fault at a time of the run.
func markAt(t *testing.T, at time.Duration) func(m *Marker) {
	return func(m *Marker) {
		time.AfterFunc(at, func() {
			now := time.Now()
			_, err := m.Mark(fault.MarkFault, "stall", "mark", now, now)
			assert.True(t, err == nil, "%v", err)
		})
	}
}

// TestEmptyLog: a run that reads has no blackout while the system says that its log is empty, and has one
// while the system says nothing.
func TestEmptyLog(t *testing.T) {
	const at = 20 * time.Second
	for _, tt := range []struct {
		name     string
		until    time.Duration // the end of the time without a connection, which begins at at
		blackout float64       // s
		ok       bool          // the limit holds
	}{{"it answers", at, 0, true}, {"it is silent for 5 s", 25 * time.Second, 5, false}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &fakeKind{says: 500 * time.Millisecond, lostFrom: at, lostUntil: tt.until}
				d, err := Execute(t.Context(), Job{
					Portable: true, Workload: resolve(t, k, "op=consume", "for=1m", "idle-timeout=1h", "slo=outage<3s"), Marks: markAt(t, at),
				})
				assert.OK(t, err)
				assert.Must(t, len(d.Faults.Scores) == 1, "%d scores, want 1", len(d.Faults.Scores))
				b := d.Faults.Scores[0].Whole.Blackout
				assert.True(t, b != nil && !b.More && b.S == tt.blackout, "the blackout is %+v, want %v s", b, tt.blackout)
				assert.True(t, len(d.Checks) == 1 && d.Checks[0].OK == tt.ok,
					"the checks are %+v, want one that holds: %v", d.Checks, tt.ok)
				<-k.session.ended
			})
		})
	}
}

// TestNotBegun: a command or fault of the run that is still to come does not explain that nothing arrives.
func TestNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &fakeKind{feed: 10 * time.Millisecond, lostFrom: 20 * time.Second, lostUntil: time.Hour}
		d, err := Execute(t.Context(), Job{Portable: true, Workload: resolve(t, k, "op=consume", "for=5m", "at=200s", "exec=true")})
		assert.OK(t, err)
		assert.True(t, d.Stopped == load.ByIdle && d.Totals.ElapsedS <= 21,
			"ended by %s after %v s, want %s after 20 s", d.Stopped, d.Totals.ElapsedS, load.ByIdle)
		<-k.session.ended
	})
}

// TestRoomForMarks: requests over the network leave room for the marks of the owner, and both leave
// room for those of the run's own faults.
func TestRoomForMarks(t *testing.T) {
	e := &execution{Job: Job{Workload: resolve(t, &fakeKind{}, "rate=100/s", "for=1h")}}
	m := &Marker{e: e, rec: fault.NewRecorder(time.Second, 1, 1, func(int32) int { return 0 }), began: time.Now()}
	const planned = 20
	m.reserve(planned)
	room := func(mark func(at time.Time) error) (n int) {
		for ; n < 100; n++ {
			if mark(time.Now()) != nil {
				break
			}
		}
		return n
	}
	got, want := room(func(at time.Time) error { _, err := m.MarkRemote("note", "a", "web", at, at); return err }), (fault.MostMarks-planned)/2
	assert.True(t, got == want, "there is room for %d marks of requests, want %d", got, want)
	got, want = room(func(at time.Time) error { _, err := m.Mark("note", "a", "mark", at, at); return err }), (fault.MostMarks-planned)/2
	assert.True(t, got == want, "there is room for %d marks of the owner, want %d", got, want)
	got = room(func(at time.Time) error { return m.own("note", "a", "fault", at, at) })
	assert.True(t, got == planned, "there is room for %d marks of faults, want %d", got, planned)
}
