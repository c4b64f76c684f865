package run

import (
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// What one generator sent is checked against what another one read, whichever chunks come first.
func TestFleetLedger(t *testing.T) {
	const batches, events = 100, 10
	for _, c := range []struct {
		name  string
		spoil func(k int, a *load.Arrival) bool // false: it does not arrive
		early bool                              // what was sent comes before the reader has said what it reads
		want  measure.Ledger
	}{
		{"all arrive", nil, false, measure.Ledger{Acked: 1000, Read: 1000, Complete: true}},
		{"all arrive, the reader is late", nil, true, measure.Ledger{Acked: 1000, Read: 1000, Complete: true}},
		{"two batches are lost", func(k int, _ *load.Arrival) bool { return k != 7 && k != 50 }, true, measure.Ledger{Acked: 1000, Read: 980, Lost: 20, Complete: true}},
		{"one is altered", func(k int, a *load.Arrival) bool {
			if k == 9 {
				a.Sum ^= 1 << 30 // that of no other batch
			}
			return true
		}, false, measure.Ledger{Acked: 1000, Read: 1000, Corrupted: 10, Complete: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sends, reads := NewRecords(), NewRecords()
			sends.times, sends.logOf = true, func(int32) int32 { return 0 }
			assert.OK(t, reads.found(&Logs{Names: []string{"t-0"}, Starts: []int64{40}}))
			for k := range batches {
				due := time.Duration(k) * 20 * time.Millisecond
				o := load.Outcome{Acked: events, Place: int64(40 + k*events), Sum: uint32(1000 + k), Sent: due + time.Millisecond}
				o.First, o.Events, o.DueFirst, o.DueLast, o.Ready, o.FirstSent = uint64(k*events), events, due, due, due, -1
				sends.Fired([]load.Outcome{o})
				a := load.Arrival{Base: o.Place, Events: events, Sum: o.Sum, At: due + 5*time.Millisecond}
				if c.spoil == nil || c.spoil(k, &a) {
					reads.Arrived(0, []load.Arrival{a})
				}
			}
			f := &fleetLedger{verify: true, times: true, phases: 1, interval: time.Second, logOf: map[int32]int32{}, byPhase: map[int32]*endToEnd{}, byRow: map[rowKey]*endToEnd{}}
			order := []*Records{reads, sends}
			if c.early {
				order = []*Records{sends, reads}
			}
			for _, r := range order {
				for _, chunk := range r.Rest() {
					f.take(chunk)
				}
			}
			v := f.verdict(&Reading{Whole: []bool{true}, Ends: []int64{40 + batches*events}})
			got := measure.Ledger{Acked: v.Acked, Read: v.Read, Lost: v.Lost, Corrupted: v.Corrupted, Complete: v.Complete}
			assert.True(t, got.Acked == c.want.Acked && got.Read == c.want.Read && got.Lost == c.want.Lost && got.Corrupted == c.want.Corrupted && got.Complete && f.broken == nil,
				"got %+v (%v), want %+v", got, f.broken, c.want)
			r := &load.Result{Intervals: []measure.Interval{{Phase: measure.Measurement, End: time.Second}, {Phase: measure.Measurement, Start: time.Second, End: 2 * time.Second}}}
			f.addTimes(r, time.Millisecond)
			if n := r.Measurement.EndToEnd.Count(); n != v.Read || r.Measurement.Consumed != n || r.Intervals[0].Consumed+r.Intervals[1].Consumed != n {
				t.Errorf("%d end-to-end times, %d consumed, intervals %d and %d; want %d", n, r.Measurement.Consumed, r.Intervals[0].Consumed, r.Intervals[1].Consumed, v.Read)
			}
			p := r.Measurement.EndToEnd.Percentile(50)
			assert.True(t, p >= 5*time.Millisecond && p <= 5100*time.Microsecond, "end to end p50 %v, want 5 ms", p)
			// Less the millisecond that sending was late, and the one of the clocks.
			p = r.Measurement.Lower.EndToEnd.Percentile(50)
			assert.True(t, p >= 2900*time.Microsecond && p <= 3100*time.Microsecond, "lower bound %v, want 3 ms", p)
		})
	}
}

// TestFleetLedgerInPart: without all records, nothing is called lost.
func TestFleetLedgerInPart(t *testing.T) {
	f := &fleetLedger{verify: true, logOf: map[int32]int32{}}
	f.begin(&Logs{Names: []string{"t-0"}, Starts: []int64{0}})
	sends := NewRecords()
	sends.logOf = func(int32) int32 { return 0 }
	o := load.Outcome{Acked: 5, Place: 10, Sum: 1}
	o.Events, o.DueFirst = 5, -1
	sends.Fired([]load.Outcome{o})
	f.take(sends.Rest()[0])
	f.left[1] = 5
	whole := &Reading{Whole: []bool{true}, Ends: []int64{15}}
	v := f.verdict(whole)
	assert.True(t, v.Lost == 0 && v.Unread == 5 && !v.Complete, "what may have been read is lost: %+v", v)
	f.left = [2]uint64{3, 0}
	v = f.verdict(whole)
	assert.True(t, v.Lost == 5 && v.Acked == 8 && v.Inexact == 3 && !v.Complete, "3 events without a record: %+v", v)
}

// TestFleetLedgerRows: a run of any length has a bounded number of rows, of which few take the
// memory of a whole histogram, and all events are in them.
func TestFleetLedgerRows(t *testing.T) {
	testkit.Need(t, "a second")
	f := &fleetLedger{times: true, interval: time.Second, byPhase: map[int32]*endToEnd{}, byRow: map[rowKey]*endToEnd{}}
	o := load.Outcome{}
	o.Events, o.FirstSent = 1, -1
	const seconds = mostRows + 500
	for i := range seconds {
		o.DueFirst = time.Duration(i) * time.Second
		o.Sent = o.DueFirst
		f.arrived(o, o.DueFirst+time.Millisecond, o.DueFirst)
	}
	n := len(f.byRow)
	assert.True(t, n <= mostRows && f.interval == 2*time.Second && len(f.open) <= mostOpen, "got %d rows of %v, %d of them open", n, f.interval, len(f.open))
	r := &load.Result{}
	for i := range seconds / 2 {
		r.Intervals = append(r.Intervals, measure.Interval{Phase: measure.Measurement, Start: time.Duration(i) * 2 * time.Second, End: time.Duration(i+1) * 2 * time.Second})
	}
	f.addTimes(r, 0)
	for i := range r.Intervals {
		iv := &r.Intervals[i]
		assert.Must(t, iv.Consumed == 2 && iv.EndToEnd.Count() == 2, "interval %d: got %d events, want 2", i, iv.Consumed)
	}
}

// TestFleetLedgerSteps: the times of a step are those of its own events, also if another step has
// the same name, as in a load that rises and falls again.
func TestFleetLedgerSteps(t *testing.T) {
	f := &fleetLedger{
		times: true, warm: true, interval: time.Second,
		byPhase: map[int32]*endToEnd{}, byRow: map[rowKey]*endToEnd{},
	}
	o := load.Outcome{}
	o.FirstSent = -1
	for phase := range 4 {
		o.Phase, o.Events = int32(phase), int32(10+phase)
		f.arrived(o, time.Millisecond, 0)
	}
	r := &load.Result{Steps: []measure.Tally{{Name: "1,000/s"}, {Name: "5,000/s"}, {Name: "1,000/s"}}}
	f.addTimes(r, 0)
	got := []uint64{r.Warmup.Consumed, r.Steps[0].Consumed, r.Steps[1].Consumed, r.Steps[2].Consumed, r.Measurement.Consumed}
	want := []uint64{10, 11, 12, 13, 36}
	assert.True(t, slices.Equal(got, want), "got %d events of the warm-up, the steps and the measurement, want %d", got, want)
}

// TestFleetLedgerEarly: what a generator had no room for counts, also if it comes before the
// reader has said what it reads, and that does not fit either.
func TestFleetLedgerEarly(t *testing.T) {
	sends := NewRecords()
	sends.left = [2]uint64{7, 0}
	f := &fleetLedger{verify: true, logOf: map[int32]int32{}, waiting: mostEarly}
	f.take(sends.Rest()[0])
	assert.Equal(t, f.left, [2]uint64{7, 0}, "events without a record")
}

// Events of a generator that was lost before it delivered their records are not taken for checked.
func TestFleetLedgerLost(t *testing.T) {
	for _, c := range []struct {
		name  string
		acked uint64
		want  measure.Ledger
	}{{"all records came", 5, measure.Ledger{Acked: 5, Complete: true}}, {"some did not", 9, measure.Ledger{Acked: 9, Inexact: 4}}} {
		t.Run(c.name, func(t *testing.T) {
			f := &fleetLedger{verify: true, logOf: map[int32]int32{}}
			f.begin(&Logs{Names: []string{"t-0"}, Starts: []int64{0}})
			sends := NewRecords()
			sends.logOf = func(int32) int32 { return 0 }
			o := load.Outcome{Acked: 5, Place: 10, Sum: 1}
			o.Events, o.DueFirst = 5, -1
			sends.Fired([]load.Outcome{o})
			f.take(sends.Rest()[0])
			g := &Combined{Agents: []Measured{{Reading: &Reading{Whole: []bool{true}, Ends: []int64{15}}}}, Rows: []report.Agent{{Reads: true, State: "complete"}}}
			out := &outcome{result: &load.Result{}}
			out.result.Measurement.Acked = c.acked
			f.finish(nil, g, out)
			if v := out.ledger; v.Acked != c.want.Acked || v.Inexact != c.want.Inexact || v.Complete != c.want.Complete || (len(out.warnings) > 0) == v.Complete {
				t.Errorf("got %+v with %q, want %+v", v, out.warnings, c.want)
			}
		})
	}
}

// Records with numbers that the run does not have are refused, take no memory, and are named.
func TestFleetLedgerHostile(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(r *Records, k int32)
		want string
	}{
		{"phases", func(r *Records, k int32) {
			o := load.Outcome{Acked: 1, Place: int64(k), Sent: 1}
			o.Events, o.Phase, o.DueFirst, o.FirstSent = 1, k+1, -1, -1
			r.Fired([]load.Outcome{o})
		}, "one is of phase 1, and the run has 1"},
		{"logs of what was sent", func(r *Records, k int32) {
			o := load.Outcome{Acked: 1, Place: int64(k)}
			o.Stream, o.Events, o.DueFirst, o.FirstSent = k+1, 1, -1, -1
			r.Fired([]load.Outcome{o})
		}, "one is in log 1, and 1 are read"},
		{"logs of what was read", func(r *Records, k int32) {
			r.Arrived(0, []load.Arrival{{Log: k + 1, Base: int64(k), Events: 1}})
		}, "one is in log 1, and 1 are read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fleetLedger{verify: true, times: true, phases: 1, interval: time.Second, logOf: map[int32]int32{}, byPhase: map[int32]*endToEnd{}, byRow: map[rowKey]*endToEnd{}}
			f.begin(&Logs{Names: []string{"t-0"}, Starts: []int64{0}})
			r := NewRecords()
			r.Of(func(stream int32) int32 { return stream }, true, nil)
			for k := range int32(1000) {
				c.make(r, k)
			}
			for _, chunk := range r.Rest() {
				f.take(chunk)
			}
			assert.True(t, f.broken != nil && strings.Contains(f.broken.Error(), c.want), "got %v, want %s", f.broken, c.want)
			assert.True(t, len(f.byPhase)+len(f.byRow)+len(f.logOf) <= 0,
				"%d phases, %d rows, %d streams", len(f.byPhase), len(f.byRow), len(f.logOf))
			v := f.verdict(&Reading{Whole: []bool{true}, Ends: []int64{0}})
			assert.True(t, v.Lost == 0, "events are called lost: %+v", v)
		})
	}
}

// TestFleetMoments: what agents' clients reported is in the report, by agent.
func TestFleetMoments(t *testing.T) {
	moment := func(at time.Duration) []measure.Moment {
		return []measure.Moment{{From: "client", Name: "reconnect", At: at, Length: time.Millisecond}}
	}
	var out outcome
	e := &execution{}
	e.merge(&Combined{
		Agents: []Measured{{Result: &load.Result{}, Moments: moment(2 * time.Second)}, {Result: &load.Result{}, Moments: moment(time.Second)}},
		Rows:   []report.Agent{{Name: "a"}, {Name: "b"}},
	}, &load.Plan{}, &out)
	got := e.moments.of(&load.Result{Freezes: measure.Freezes{Process: []measure.Freeze{{At: 3 * time.Second}}}}, out.moments)
	var names []string
	for _, m := range got {
		names = append(names, m.From+" "+m.Name)
	}
	want := []string{"b reconnect", "a reconnect", "generator freeze"}
	assert.True(t, slices.Equal(names, want), "got %q, want %q", names, want)
}

// The steps of a generator that was lost have the rates of its intervals: what arrived in the drain is in no rate.
func TestStepsOfTheLost(t *testing.T) {
	r := &load.Result{Intervals: []measure.Interval{{
		Phase: measure.Measurement, End: time.Second, Within: time.Second, Arrived: 90, Counts: measure.Counts{Sent: 100, Acked: 100},
	}}}
	addSteps(r, []*load.Result{{Steps: []measure.Tally{{Name: measure.Measurement, End: time.Second}}}})
	assert.Equal(t, len(r.Steps), 1, "steps")
	assert.Equal(t, r.Steps[0].EventsPerSecond(), 90, "rate")
	assert.Equal(t, r.Steps[0].Acked, 100, "acked")
}
