package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"carronade/internal/layout"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// histogram has n values, the last of them slow.
func histogram(n int, usual, slow time.Duration, slowOnes int) *measure.Histogram {
	h := measure.NewHistogram()
	for i := range n {
		if i >= n-slowOnes {
			h.Record(slow)
		} else {
			h.Record(usual)
		}
	}
	return h
}

// limited is a document of an open loop of 10 s at 100/s, whose p99 is 27 ms, 9 ms without the generator.
func limited() *Document {
	up, low := histogram(1000, time.Millisecond, 27*time.Millisecond, 50), histogram(1000, time.Millisecond, 9*time.Millisecond, 50)
	before, after, mean, most := 100.0, 350.0, 0.4, 0.7
	d := &Document{
		Mode: load.OpenLoop, Trust: measure.Trust{OK: true, Level: measure.Noisy},
		Totals: Totals{
			Counts:   measure.Counts{Offered: 1000, Sent: 995, Dropped: 3, Unsent: 2, Acked: 985, Failed: 6, Unknown: 4, Retries: 7},
			ElapsedS: 10, EventsPerS: 98.5, RateOf: RateAcked,
		},
		Times: Times{
			Response: measure.Summarize(up, nil, nil), ResponseLower: measure.Summarize(low, nil, nil),
			Service: measure.Summarize(low, nil, nil), ServiceLower: measure.Summarize(low, nil, nil),
		},
		Stall:     Stall{LongestS: 0.4},
		Steady:    measure.Steady{Known: true, OK: true, Text: "no upward trend"},
		Generator: Generator{Processors: 2},
		System:    &System{PeakRSSBytes: 1 << 30, CPUS: 12},
		StartedAt: time.Unix(100, 0), EndedAt: time.Unix(110, 0),
		Phases: []Phase{{Name: measure.Measurement, Totals: Totals{Counts: measure.Counts{Unknown: 4}}}},
		Ledger: &measure.Ledger{Acked: 985, Read: 980, Lost: 5, Recovered: 1, Complete: true},
		Gauges: []Gauge{
			{From: "server", Name: "heap used", Unit: "", Mean: &mean, Max: &most, Points: []Point{{0, 0.2}, {1, 0.7}}},
			{From: "server", Name: "bytes in", Unit: "bytes", Total: true, Before: &before, After: &after},
		},
	}
	return d
}

// TestCheckLimits: whether each kind of limit holds, is broken or undecided, and what it says.
func TestCheckLimits(t *testing.T) {
	const holds, broken, open = "holds", "broken", "open"
	for _, c := range []struct{ limit, want, text string }{
		{"p99<30ms", holds, "27 ms"},
		{"p99<20ms", open, "9 to 27 ms (the generator was late)"},
		{"p99<8ms", broken, "9 to 27 ms (the generator was late)"},
		{"p50<2ms", holds, "1 ms"},
		{"p50<1us", broken, "1 ms"},
		{"service.p99<8ms", broken, "9 ms"},
		{"max<=27.1ms", holds, "27 ms"},
		{"mean<2ms", open, "1.4 to 2.3 ms (the generator was late)"},
		{"mean<1us", broken, ""},
		{"end-to-end.p99<1s", open, "no end to end times"},
		{"p99.7<1s", open, "does not have this percentile"},
		{"throughput>=90/s", holds, "98.5/s"},
		{"throughput>=99/s", broken, "98.5/s"},
		{"target-share>=98%", holds, "98.5%"},
		{"target-share>=99%", broken, "98.5%"},
		{"failure-rate<=1%", broken, "1.01%"},
		{"failure-rate<=2%", holds, ""},
		{"failed=6", holds, "6"},
		{"unknown<4", broken, "4"},
		{"dropped=0", broken, "3"},
		{"unsent<=2", holds, "2"},
		{"retries<=7", holds, "7"},
		{"longest-stall<300ms", broken, "400 ms"},
		{"lost=0", broken, "5"},
		{"not-found<=8", holds, "8"},
		{"not-found<8", broken, "8"},
		{"duplicated=0", holds, "0"},
		{"index-share>=99%", open, "no documents were counted"},
		{"cpu<=60%", holds, "60%"},
		{"cpu<50%", broken, "60%"},
		{"rss<1GiB", broken, "1 GiB"},
		{"server.heap_used<0.6", broken, "0.7"},
		{"server.heap_used>0.1", holds, "0.2"},
		{"server.heap_used>=0.3", broken, "0.2"},
		{"server.Heap used<0.8", holds, "0.7"},
		{"server.bytes_in<200", broken, "250 B"},
		{"server.nothing<1", open, "no metric of the server has this name; it has bytes in, heap used"},
		{"system.RSS<1", open, "no metrics of the system were reported"},
		{"steady", holds, "no upward trend"},
		{"keeps-up", open, "too short"},
	} {
		l := assert.Value(workload.ParseLimit(c.limit))(t)
		check(t, limited(), &l, c.want, c.text)
	}
}

func check(t *testing.T, d *Document, l *workload.Limit, want, text string) {
	t.Helper()
	c := d.CheckLimits([]workload.Limit{*l})[0]
	got := "broken"
	if c.OK {
		got = "holds"
	} else if c.CannotTell {
		got = "open"
	}
	assert.True(t, got == want && strings.Contains(strings.ReplaceAll(c.Text, "\u00a0", " "), text) && c.Name == l.String(),
		"%s: %s (%s), want %s (%s)", l.Text, got, c.Text, want, text)
}

// TestLimitsInDoubt: what the generator may have caused breaks no limit, and what was not read holds none.
func TestLimitsInDoubt(t *testing.T) {
	d := limited()
	d.Trust = measure.Trust{Level: measure.NotTrusted, Reasons: []string{"late"}}
	d.Ledger = &measure.Ledger{Acked: 985, Read: 900, Unread: 85}
	d.Steady = measure.Steady{}
	h := histogram(900, time.Millisecond, time.Millisecond, 0)
	d.Service = measure.Summarize(h, histogram(100, 5*time.Millisecond, 5*time.Millisecond, 0), nil)
	for _, c := range []struct{ limit, want, text string }{
		{"throughput>=99/s", "open", "the generator may be the cause"},
		{"throughput>=90/s", "holds", "98.5/s"},
		{"p99<8ms", "broken", "27 ms"},
		{"lost=0", "open", "85 of 985 were not read"},
		{"not-found<=2", "open", "the read-back ended early"},
		{"duplicated=0", "open", "were not read"},
		{"dropped=0", "open", "the generator may be the cause"},
		{"longest-stall<300ms", "open", "the generator may be the cause"},
		{"unread=0", "broken", "85"},
		{"steady", "open", ""},
		{"service.p99<1s", "open", ">= 5"},
		{"service.p99<2ms", "broken", ">= 5"},
		{"service.p50<2ms", "holds", "1 ms"},
		{"service.max<5s", "open", ">= 5 ms, because events were never answered"},
		{"service.max<4ms", "broken", ">= 5"},
		{"service.mean<1s", "open", ">= 1.4 ms, because events were never answered"},
		{"service.mean<1.3ms", "broken", ">= 1.4 ms"},
	} {
		l := assert.Value(workload.ParseLimit(c.limit))(t)
		check(t, d, &l, c.want, c.text)
	}
}

// TestStepsHold: the answer of a run with steps is the highest that holds the limits, below the first that does not.
func TestStepsHold(t *testing.T) {
	build := func(p99 ...int) *Document {
		d := limited()
		d.Steps = nil
		for i, ms := range p99 {
			rate := float64(10_000 * (i + 1))
			d.Steps = append(d.Steps, Phase{Rate: rate, Totals: Totals{EventsPerS: rate, RateOf: RateAcked, ElapsedS: 10, Counts: measure.Counts{Offered: uint64(rate) * 10}}, Times: Times{
				Response: measure.Summarize(histogram(1000, time.Millisecond, time.Duration(ms)*time.Millisecond, 50), nil, nil),
			}})
		}
		return d
	}
	l := assert.Value(workload.ParseLimit("p99<20ms"))(t)
	for _, c := range []struct {
		p99                     []int
		ok                      bool
		text, headline, warning string
	}{
		{[]int{2, 5, 12}, true, "30 k/s, the last step: 12 ms", "all 3 steps hold the limits, up to 30 k/s, 30 k/s of 30 k/s acked, response p99 12.0 ms there", ""},
		{[]int{2, 5, 31}, true, "20 k/s: 5 ms; 30 k/s: 31 ms", "20 k/s holds the limits, 30 k/s does not, 20 k/s of 20 k/s acked, response p99 5.00 ms there", ""},
		{[]int{2, 25, 5, 31}, true, "10 k/s: 2 ms; 20 k/s: 25 ms", "10 k/s holds the limits, 20 k/s does not", "not monotonic: 20 k/s does not hold the limits and 30 k/s does"},
		{[]int{50, 60}, false, "10 k/s, the first step: 50 ms", "not even 10 k/s holds the limits", ""},
		{[]int{50, 6}, false, "10 k/s, the first step: 50 ms", "not even 10 k/s holds the limits", "10 k/s does not hold the limits and 20 k/s does"},
	} {
		d := build(c.p99...)
		got := d.CheckLimits([]workload.Limit{l})[0]
		d.markSteps([]workload.Limit{l})
		spaces := func(s string) string { return strings.ReplaceAll(s, "\u00a0", " ") }
		assert.True(t, got.OK == c.ok && !got.CannotTell && (spaces(got.Text) == c.text || strings.HasPrefix(spaces(got.Text), c.text)),
			"%v: got %+v, want %v, %q", c.p99, got, c.ok, c.text)
		h := spaces(d.Headline())
		assert.True(t, strings.HasPrefix(h, c.headline), "%v: headline %q, want %q", c.p99, h, c.headline)
		w := spaces(strings.Join(d.Warnings, "; "))
		assert.True(t, (w == "") == (c.warning == "") && strings.Contains(w, c.warning), "%v: warnings %q, want %q", c.p99, w, c.warning)
	}
	// What the generator may have added decides nothing: the second step is undecided.
	d := build(2, 31, 40)
	d.Steps[1].ResponseLower = measure.Summarize(histogram(1000, time.Millisecond, 3*time.Millisecond, 50), nil, nil)
	d.markSteps([]workload.Limit{l})
	if h := strings.ReplaceAll(d.Headline(), "\u00a0", " "); !strings.HasPrefix(h, "10 k/s holds the limits, 20 k/s: cannot tell") || len(d.Warnings) > 0 || !d.Steps[1].Undecided || d.Steps[1].Holds != nil {
		t.Errorf("an undecided step: headline %q, warnings %q", h, d.Warnings)
	}
	d = build(2, 5, 12)
	d.markSteps(nil)
	if h := strings.ReplaceAll(d.Headline(), "\u00a0", " "); !strings.HasPrefix(h, "3 steps, at most 30 k/s of 30 k/s acked, response p99 12.0 ms there") || d.Steps[0].Holds != nil {
		t.Errorf("without limits: headline %q, first step %v", h, d.Steps[0].Holds)
	}
}

// TestBacklogIsABound: in whatever order events are done, no percentile of
// answers and of waiting events is below the reported bound.
func TestBacklogIsABound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rate, rows = 50, 6
		type event struct{ due, done time.Duration } // done beyond the run: never
		events := make([]event, rate*rows)
		for i := range events {
			due := time.Duration(i) * time.Second / rate
			took := time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(t, "took"))
			if rapid.Bool().Draw(t, "quick") {
				took /= 1000
			}
			events[i] = event{due, due + took}
		}
		var b Backlog
		for r := range rows {
			start, end := time.Duration(r)*time.Second, time.Duration(r+1)*time.Second
			var c measure.Counts
			answers := measure.NewHistogram()
			var seen []time.Duration // as an observer at the end of the row would see them
			for _, e := range events {
				if e.due >= start && e.due < end {
					c.Offered++
				}
				switch {
				case e.done >= start && e.done < end:
					c.Acked++
					answers.Record(e.done - e.due)
					seen = append(seen, e.done-e.due)
				case e.due < end && e.done >= end:
					seen = append(seen, end-e.due)
				}
			}
			b.Add(end.Seconds(), &c)
			slices.Sort(seen)
			for _, p := range []float64{50, 90, 99, 100} {
				v, ok := b.At(p, measure.Summarize(answers, nil, []float64{100}))
				if !ok || !v.AtLeast {
					continue
				}
				rank := min(max(int(p/100*float64(len(seen))+0.9999999), 1), len(seen))
				if truth := seen[rank-1]; v.D > truth {
					t.Fatalf("row %d, p%v: at least %v, and it was %v", r, p, v.D, truth)
				}
			}
		}
	})
}

// withOutage is a run of eight seconds at 1000 events per second, without answers from the third second to the end of the fifth.
func withOutage() *Document {
	d := &Document{Mode: load.OpenLoop, Totals: Totals{RateOf: RateAcked, ElapsedS: 8}, Phases: []Phase{{Name: measure.Measurement, EndS: 8}}}
	for i := range 8 {
		iv := Interval{Phase: measure.Measurement, StartS: float64(i), EndS: float64(i + 1), Counts: measure.Counts{Offered: 1000, Sent: 1000, Acked: 1000}, EventsPerS: 1000}
		h := measure.NewHistogram()
		switch {
		case i >= 2 && i < 5:
			iv.Acked, iv.EventsPerS = 0, 0
		case i == 5:
			iv.Acked, iv.EventsPerS = 4000, 4000
			h.RecordSpan(time.Millisecond, 3*time.Second, 4000)
		default:
			h.RecordN(5*time.Millisecond, 1000)
		}
		iv.Response = measure.Summarize(h, nil, nil)
		d.Response = iv.Response
		d.Intervals = append(d.Intervals, iv)
	}
	return d
}

func TestOutageIsSeen(t *testing.T) {
	d := withOutage()
	got := d.responses(99)
	for at, want := range map[float64]measure.Value{
		1: {P: 99, D: 5 * time.Millisecond},
		3: {P: 99, D: time.Second, AtLeast: true},
		4: {P: 99, D: 2 * time.Second, AtLeast: true},
		6: {P: 99, D: 5 * time.Millisecond},
	} {
		assert.Equal(t, got[at], want, "at %v s", at)
	}
	v, ok := got[2]
	assert.True(t, !ok, "at 2 s: got %v, want nothing: no answer came, and the waiting events are younger than a row", v)
	var b strings.Builder
	assert.OK(t, d.Text(&b, layout.Style{}))
	assert.Has(t, b.String(), "  4 s", ">= 1.00 s", ">= 2.00 s")
	// If nothing is due or nothing is answered, nothing waits.
	d.Mode = load.ClosedLoop
	got = d.responses(99)
	assert.True(t, got == nil, "a closed loop: got %v", got)
	d.Mode, d.Totals.RateOf = load.OpenLoop, RateSent
	got = d.responses(99)
	assert.True(t, got == nil, "nothing is acknowledged: got %v", got)
}

// underTest is the run shown in the README of hey-apm, `test 30s 1 2 3 4`, with the numbers of its output: 6,477
// requests of three documents each, of which 15,385 were indexed.
func underTest() Input {
	in := closedLoop()
	const batches, bytes = 6477, 46_995_000
	r := in.Result
	r.Measurement.Start, r.Measurement.End = 0, 30*time.Second
	r.Measurement.Counts = measure.Counts{
		Offered: 3 * batches, Sent: 3 * batches, Acked: 3 * batches, Batches: batches, Answered: batches,
		Bytes: bytes, AckedBytes: bytes, WireBytes: 5_100_000,
	}
	r.Measurement.Arrived, r.Measurement.ArrivedBytes = 3*batches, bytes
	r.Measurement.Statuses = measure.Statuses{{Code: 202, Batches: batches, Events: 3 * batches}}
	r.Intervals = nil
	in.Target = "apm+http://127.0.0.1:8200"
	in.Settings = []Setting{{Name: "concurrency", Value: "4"}, {Name: "for", Value: "30s"}, {Name: "events", Value: "1"}, {Name: "spans", Value: "2"}, {Name: "frames", Value: "3"}}
	in.Indexed = &measure.Indexed{
		Address: "http://127.0.0.1:9200", Store: "Elasticsearch 6.3.0", Pattern: "apm-*", Before: 1, After: 15_386,
		Expected: 3 * batches, Span: 30 * time.Second, Waited: 5 * time.Second, Stable: true,
		HealthBefore: "yellow", HealthAfter: "yellow", Note: "below 90%: fewer documents than events accepted",
	}
	perCPU, efficiency := 1942.4, 60*(bytes/30.)/157_700_000
	in.System = &System{
		Facts: map[string]any{
			"command": "./apm-server -e -E apm-server.tracing.enabled=true", "pid": 4242,
			"flags":  map[string]any{"apm-server.tracing.enabled": "true"},
			"branch": "trace-apm-server", "revision": "c961d664fbe5893d523bd9077be64617f57a96e7",
			"revision_date": "2018-05-18T10:21:13Z", "unstaged_changes": false,
			"build_cached": false, "build_s": 41.5, "memory_limit_bytes": int64(4 << 30), "cpu_limit": 1.5,
			"ready_after_s": 0.412, "environment": []any{"GODEBUG"},
		},
		LastLines: []string{}, PeakRSSBytes: 157_700_000, CPUS: 10, EventsPerCPUS: &perCPU, Efficiency: &efficiency,
		GCPauses: 12, GCPauseS: 0.03, GCPauseMaxS: 0.0041,
	}
	return in
}

// systemDied is the same run with a system that died.
func systemDied() Input {
	in := underTest()
	in.Result.Stopped = load.BySystem
	in.Result.Measurement.Statuses = measure.Statuses{{Code: 202, Batches: 6000, Events: 18_000}, {Code: 503, Batches: 477, Events: 1431}}
	in.Result.Measurement.Counts.Acked, in.Result.Measurement.Counts.Failed = 18_000, 1431
	in.Trust = measure.Trust{Reasons: []string{"the system under test ended by itself: signal: killed"}}
	in.Indexed.Stable, in.Indexed.Queued = false, new(float64)
	in.System = &System{
		Facts: map[string]any{"process": "apm-server", "pid": 4242, "branch": "main", "revision": "c961d66", "revision_date": "2018-05-18T10:21:13Z", "unstaged_changes": true, "build_cached": true, "build_s": 41.5},
		Died:  true, Exit: "signal: killed, 12.1s after it was started", LastLines: []string{"one", "two", "\x1b[31mout of memory\x1b[0m"},
	}
	return in
}

// A report has everything that hey-apm prints after a test.
func TestEverythingOfHeyAPMsTable(t *testing.T) {
	var text bytes.Buffer
	assert.OK(t, build(underTest()).Text(&text, layout.Style{}))
	flattened := strings.Join(strings.Fields(text.String()), " ")
	for _, want := range []struct{ name, text string }{
		{"pushed", "pushed 1.49 MiB/s (44.8 MiB) of events, 166 KiB/s (4.86 MiB) on the wire"}, // 1.6 Mb/s in 10^6 bytes
		{"accepted", "accepted 1.49 MiB/s (44.8 MiB) of events"},
		{"responses by code", "202 6,477 100% 216/s 19,431"},
		{"responses in all", "total 6,477 100% 216/s 19,431"},
		{"documents", "15,385 documents, 79.18% of the 19,431 expected, 513/s"},
		{"service time of a request", "p99 2.1"},
		{"peak RSS", "memory 150 MiB resident at most, in this run"},
		{"efficiency", "efficiency 0.596 of memory: 89.6 MiB a minute accepted, before compression, over its peak"},
		{"branch", "branch trace-apm-server"},
		{"revision and its date", "c961d664fbe5893d523bd9077be64617f57a96e7 of 2018-05-18 10:21:13 UTC"},
		{"flags", "flags apm-server.tracing.enabled=true"},
		{"limits", "limits 4 GiB of memory, 1.5 processors"},
	} {
		assert.True(t, strings.Contains(flattened, want.text), "%s: the report does not say %q:\n%s", want.name, want.text, text.String())
	}
}
