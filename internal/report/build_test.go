package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

func encode(t *testing.T, d *Document) map[string]any {
	t.Helper()
	var file bytes.Buffer
	assert.OK(t, d.WriteJSON(&file))
	var doc map[string]any
	assert.OK(t, json.Unmarshal(file.Bytes(), &doc))
	return doc
}

// at follows a path such as "totals.acked"; any number selects the first entry of a list.
func at(t *testing.T, doc any, path string) any {
	t.Helper()
	for name := range strings.SplitSeq(path, ".") {
		switch x := doc.(type) {
		case map[string]any:
			v, ok := x[name]
			assert.Must(t, ok, "%s: no %q", path, name)
			doc = v
		case []any:
			assert.Must(t, len(x) != 0, "%s: an empty list", path)
			doc = x[0]
		default:
			t.Fatalf("%s: %v has no %q", path, doc, name)
		}
	}
	return doc
}

// The names that other programs rely on exist in every mode.
func TestPromisedNames(t *testing.T) {
	always := strings.Fields(`schema workload started_at ended_at phases intervals failures steady.ok trust.ok trust.reasons
		response service send_delay batching queueing end_to_end ledger host lag_events steps
		generator.cpu_s generator.max_rss_bytes generator.gc_pause_max_us`)
	for n := range strings.FieldsSeq("offered sent dropped unsent acked failed unknown retries batches bytes wire_bytes elapsed_s events_per_s bytes_per_s in_flight_mean consumed rebalance_s fetch_s") {
		always = append(always, "totals."+n)
	}
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			doc := encode(t, build(input()))
			for _, path := range always {
				at(t, doc, path)
			}
			assert.Equal(t, at(t, doc, "schema"), Schema, "schema")
			assert.Value(time.Parse(time.RFC3339, at(t, doc, "started_at").(string)))(t)
		})
	}
	t.Run("times", func(t *testing.T) {
		doc := encode(t, build(overloaded()))
		for _, of := range []string{"response", "service", "send_delay", "batching", "queueing", "steps.0.response", "phases.0.send_delay", "intervals.0.service"} {
			if strings.HasPrefix(of, "steps") {
				doc = encode(t, build(steps()))
			}
			for n := range strings.FieldsSeq("count mean_us min_us p50_us p90_us p95_us p99_us p999_us p9999_us max_us") {
				at(t, doc, of+"."+n)
			}
		}
		at(t, encode(t, build(overloaded())), "service.p25_us")
	})
	t.Run("missing times", func(t *testing.T) {
		doc := encode(t, build(closedLoop()))
		for _, n := range []string{"response", "send_delay"} {
			got := at(t, doc, n)
			assert.True(t, got == nil, "%s of a closed loop: got %v, want null", n, got)
		}
	})
	t.Run("response times without answers", func(t *testing.T) {
		doc := encode(t, build(interrupted()))
		assert.Equal(t, at(t, doc, "response.censored"), 100.0, "censored")
		assert.Equal(t, at(t, doc, "service.count"), 0.0, "service times")
	})
	t.Run("consume", func(t *testing.T) {
		doc := encode(t, build(consume()))
		assert.Equal(t, at(t, doc, "lag_events.bench-b"), 70_000.0, "lag_events")
		assert.Equal(t, at(t, doc, "totals.fetch_s"), 9.69, "fetch_s")
		assert.Equal(t, at(t, doc, "totals.missing"), 1e6, "missing")
	})
	t.Run("client metrics", func(t *testing.T) { at(t, encode(t, build(overloaded())), "client_metrics.0.throttle_s") })
}

func TestRates(t *testing.T) {
	for _, tt := range []struct {
		name  string
		input Input
		of    string
		want  float64
	}{
		{"acked: what arrived in the measurement over its length", openLoop(), RateAcked, 50_000},
		{"acked late does not count", overloaded(), RateAcked, 48_050},
		{"nothing is acknowledged", unacknowledged(), RateSent, 50_000},
		{"nothing was answered, though answers were due", interrupted(), RateAcked, 0},
		{"consumed", consume(), RateConsumed, 1.9e6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := build(tt.input).Totals
			assert.True(t, got.RateOf == tt.of && got.EventsPerS == tt.want,
				"got %v %s/s, want %v %s/s", got.EventsPerS, got.RateOf, tt.want, tt.of)
		})
	}
}

// TestWorse: the code that takes precedence is independent of the order.
func TestWorse(t *testing.T) {
	ascending := []int{0, 4, 3, 1, 2, 130}
	for i, a := range ascending {
		for k, b := range ascending {
			assert.Equal(t, host.WorseExit(a, b), ascending[max(i, k)], "%d and %d", a, b)
		}
	}
}

func TestExitCode(t *testing.T) {
	for _, tt := range []struct {
		name  string
		alter func(*Input)
		want  int
	}{
		{"done", func(*Input) {}, host.ExitOK},
		{"failures are results", func(in *Input) { in.Result.Measurement.Failed = 5 }, host.ExitOK},
		{"not steady is a result", func(in *Input) { in.Result.Steady = measure.Steady{Known: true} }, host.ExitOK},
		{"a limit that holds", func(in *Input) { in.Checks = []Check{{OK: true}} }, host.ExitOK},
		{"a limit that does not", func(in *Input) { in.Checks = []Check{{OK: true}, {}} }, host.ExitBroken},
		{"fewer than requested", func(in *Input) { in.Result.Missing = 1 }, host.ExitBroken},
		{"verified, and lost", func(in *Input) { in.Ledger = &measure.Ledger{Lost: 1} }, host.ExitBroken},
		{"verified, and altered", func(in *Input) { in.Ledger = &measure.Ledger{Corrupted: 1} }, host.ExitBroken},
		{"verified, and sent twice", func(in *Input) { in.Ledger = &measure.Ledger{Duplicated: 1} }, host.ExitOK},
		{"verified, and not read", func(in *Input) { in.Ledger = &measure.Ledger{Unread: 1} }, host.ExitCannotTell},
		{"verified, and compacted", func(in *Input) { in.Ledger = &measure.Ledger{Compacted: 1} }, host.ExitOK},
		{"verified, and aborted events seen", func(in *Input) { in.Ledger = &measure.Ledger{Phantom: 1} }, host.ExitBroken},
		{"lost outranks not read", func(in *Input) { in.Ledger = &measure.Ledger{Unread: 1, Lost: 1} }, host.ExitBroken},
		{"a limit outranks not read", func(in *Input) { in.Ledger = &measure.Ledger{Unread: 1}; in.Checks = []Check{{}} }, host.ExitBroken},
		{"not trusted outranks not read", func(in *Input) { in.Ledger = &measure.Ledger{Unread: 1}; in.Trust.OK = false }, host.ExitUntrusted},
		{"not trusted", func(in *Input) { in.Trust = measure.Trust{Reasons: []string{"late"}} }, host.ExitUntrusted},
		{"a broken limit outranks a generator that is not trusted", func(in *Input) { in.Trust.OK = false; in.Checks = []Check{{}} }, host.ExitBroken},
		{"nothing was accepted, with an untrusted generator", func(in *Input) {
			in.Trust.OK = false
			in.Result.Measurement.Acked, in.Result.Measurement.Arrived, in.Result.Measurement.Failed = 0, 0, 1_000_000
		}, host.ExitBroken},
		{"nothing was accepted, and output not written", func(in *Input) {
			in.Result.Measurement.Acked, in.Result.Measurement.Arrived = 0, 0
			in.Problems = []string{"disk full"}
		}, host.ExitFailed},
		{"output not written", func(in *Input) { in.Problems = []string{"disk full"} }, host.ExitFailed},
		{"the target gave up", func(in *Input) { in.Result.Stopped = load.ByTarget }, host.ExitFailed},
		{"more memory than it may have", func(in *Input) { in.Result.Stopped = load.ByMemory }, host.ExitFailed},
		{"interrupted outranks all", func(in *Input) {
			in.Result.Stopped = load.Interrupted
			in.Trust.OK = false
			in.Problems = []string{"disk full"}
		}, host.ExitInterrupted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := openLoop()
			tt.alter(&in)
			assert.Equal(t, build(in).ExitCode(), tt.want)
		})
	}
}

func TestReadRefusesOtherSchemas(t *testing.T) {
	for _, text := range []string{`{"schema":"carronade.report/99"}`, `{}`, `[]`, `{"schema":`} {
		_, err := Read(strings.NewReader(text))
		assert.True(t, err != nil, "%s: read without an error", text)
	}
}

func TestClock(t *testing.T) {
	for _, tt := range []struct {
		us   float64
		want string
	}{
		{0, "0   "},
		{0.25, "250 ns"},
		{0.9996, "1.00 us"},
		{1, "1.00 us"},
		{12.345, "12.3 us"},
		{999.4, "999 us"},
		{999.6, "1.00 ms"},
		{9_996, "10.0 ms"},
		{1_234_567, "1.23 s "},
		{61e6, "1m01s"},
		{3600e6, "1h00m"},
	} {
		assert.Equal(t, clock(tt.us), tt.want, "clock(%v)", tt.us)
	}
}

func TestFact(t *testing.T) {
	var long []any
	for i := range 20 {
		long = append(long, i)
	}
	for _, tt := range []struct {
		name string
		v    any
		want string
	}{
		{"text", "abc", "abc"},
		{"nothing", nil, "unknown"},
		{"a name that is a number", 1001, "1001"},
		{"a count", 1_234_567, "1,234,567"},
		{"below zero", -12_345.0, "-12,345"},
		{"a share", 0.23456, "0.2346"},
		{"a duration", 1500 * time.Millisecond, "1.5 s"},
		{"a list", []string{"a", "b"}, "a, b"},
		{"a long list", long, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, and 8 more"},
		{"a map", map[string]any{"created_by": "broker", "partitions": 3}, "created by broker, partitions 3"},
		{"brokers", []map[string]any{{"id": 1, "address": "a:1"}, {"id": 2, "address": "b:1"}}, "address a:1, id 1; address b:1, id 2"},
		{"a value without JSON", func() {}, "0x"},
	} {
		got := fact(tt.v)
		assert.True(t, got == tt.want || tt.want == "0x" && strings.HasPrefix(got, "0x"), "%s: got %q, want %q", tt.name, got, tt.want)
	}
}

// A stored report with any content is either refused or printed.
func FuzzRead(f *testing.F) {
	for _, input := range inputs {
		var file bytes.Buffer
		d := build(input())
		d.Intervals = d.Intervals[:min(len(d.Intervals), 2)]
		assert.OK(f, d.Seal())
		assert.OK(f, d.WriteJSON(&file))
		f.Add(file.String())
	}
	f.Add(`{"schema":"carronade.report/1"}`)
	f.Add(`{"schema":"carronade.report/1","trust":{},"ledger":{"logs":[{}]},"steps":[{}],"phases":[{"end_s":1e300}],"response":{"count":1},"totals":{"events_per_s":1e308,"elapsed_s":-5}}`)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		var page bytes.Buffer
		assert.OK(t, d.Text(&page, layout.Style{}))
		assert.True(t, !strings.ContainsAny(page.String(), "\x1b\r"), "control characters from %q", text)
		_ = d.Check()
		_ = d.Histogram("response")
		Assemble(d, d.Intervals)
	})
}

// TestVerified: what a run says about its read-back.
func TestVerified(t *testing.T) {
	for _, tt := range []struct {
		name           string
		ledger         measure.Ledger
		ok, cannotTell bool
		text           string
		says           []string // in the text, ignoring line breaks
	}{
		{
			"nothing missing",
			measure.Ledger{Acked: 40_000, Read: 40_000, Complete: true},
			true, false,
			"nothing was lost or altered",
			[]string{"holds         verify: nothing was lost or altered"},
		},
		{
			"removed",
			measure.Ledger{Acked: 40_000, Read: 35_000, Unread: 5000, Removed: 5000, Complete: true},
			false, true,
			"cannot tell: 5,000 of 40,000 were removed before they were read (retention or deletion)",
			[]string{"no failures, 5,000 unread", "cannot tell   verify: 5,000 of 40,000 were removed before they were read"},
		},
		{
			"not reached",
			measure.Ledger{Acked: 40_000, Read: 35_000, Unread: 5000},
			false, true,
			"cannot tell: 5,000 of 40,000 were not read: the read-back ended before it reached them", nil,
		},
		{
			"removed, and not reached",
			measure.Ledger{Acked: 40_000, Read: 35_000, Unread: 5000, Removed: 2000},
			false, true,
			"cannot tell: 2,000 of 40,000 were removed before they were read (retention or deletion), and 3,000 were not reached by the read-back", nil,
		},
		{
			"undecidable",
			measure.Ledger{Acked: 40_000, Read: 35_000, Unread: 5000, Complete: true},
			false, true,
			"cannot tell: 5,000 of 40,000 were not found, and whether they should be there is not known", nil,
		},
		{
			"one removed",
			measure.Ledger{Acked: 5, Read: 4, Unread: 1, Removed: 1, Complete: true},
			false, true, "cannot tell: 1 of 5 was removed before it was read (retention or deletion)", nil,
		},
		{
			"one not reached",
			measure.Ledger{Acked: 5, Read: 4, Unread: 1},
			false, true, "cannot tell: 1 of 5 was not read: the read-back ended before it reached it", nil,
		},
		{
			"one removed, and one not reached",
			measure.Ledger{Acked: 5, Read: 3, Unread: 2, Removed: 1},
			false, true, "cannot tell: 1 of 5 was removed before it was read (retention or deletion), and 1 was not reached by the read-back", nil,
		},
		{
			"one removed, and two undecidable",
			measure.Ledger{Acked: 5, Read: 2, Unread: 3, Removed: 1, Complete: true},
			false, true, "cannot tell: 1 of 5 was removed before it was read (retention or deletion), and 2 were not found, and whether they should be there is not known", nil,
		},
		{
			"one undecidable",
			measure.Ledger{Acked: 5, Read: 4, Unread: 1, Complete: true},
			false, true, "cannot tell: 1 of 5 was not found, and whether it should be there is not known", nil,
		},
		{
			"lost, and removed",
			measure.Ledger{Acked: 40_000, Read: 34_999, Lost: 1, Unread: 5000, Removed: 5000, Complete: true},
			false, false,
			"1 event lost; whether the others are there is unknown: 5,000 of 40,000 were removed before they were read (retention or deletion)",
			[]string{"1 lost, 5,000 unread", "BROKEN        verify: 1 event lost"},
		},
		{
			"compacted",
			measure.Ledger{Acked: 80_000, Read: 22_756, Compacted: 57_244, Complete: true},
			true, false, "nothing was lost or altered; 57,244 events removed by compaction",
			[]string{"compacted     57,244 events were removed by compaction"},
		},
		{
			"transactions",
			measure.Ledger{Acked: 20_000, Read: 20_000, Committed: 16_000, CommittedRead: 16_000, Aborted: 4000, Complete: true},
			true, false, "nothing was lost or altered",
			[]string{"committed     a read_committed consumer found 16,000 of 16,000, and none of 4,000 aborted"},
		},
		{
			"phantoms",
			measure.Ledger{Acked: 20_000, Read: 20_000, Committed: 16_000, CommittedRead: 16_000, Aborted: 4000, Phantom: 7, Complete: true},
			false, false,
			"7 aborted events seen by a read_committed consumer",
			[]string{"7 phantom", "16,000 of 16,000, and 7 that were aborted"},
		},
		{
			"inexact",
			measure.Ledger{Acked: 40_000, Read: 40_000, Inexact: 12, Complete: true},
			true, false,
			"nothing was lost or altered, as far as checked: 12 events could not be checked individually", nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := openLoop()
			in.Ledger = &tt.ledger
			d := build(in)
			c := d.Checks[len(d.Checks)-1]
			assert.True(t, c.Name == "verify" && c.OK == tt.ok && c.CannotTell == tt.cannotTell && c.Text == tt.text,
				"got %+v, want %v, %v, %q", c, tt.ok, tt.cannotTell, tt.text)
			var page strings.Builder
			assert.OK(t, d.Text(&page, layout.Style{}))
			flat := strings.Join(strings.Fields(page.String()), " ")
			for _, want := range tt.says {
				want = strings.Join(strings.Fields(want), " ")
				assert.True(t, strings.Contains(flat, want), "the text does not say %q:\n%s", want, page.String())
			}
		})
	}
}

// Without acks nothing can be lost, which does not mean that nothing is missing.
func TestReadBackWithoutAcks(t *testing.T) {
	for _, tt := range []struct {
		name        string
		found       uint64
		says, check string
	}{
		{"all", 1_000_000, "1,000,000 of 1,000,000 read back", "nothing was lost or altered"},
		{"not all", 999_993, "999,993 of 1,000,000 read back", "nothing that was found was altered; 7 events not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := unacknowledged()
			in.Ledger = &measure.Ledger{Read: tt.found, Recovered: tt.found, Complete: true}
			d := build(in)
			got := d.Headline()
			assert.True(t, strings.Contains(got, tt.says) && !strings.Contains(got, "lost"), "got %q, want %q", got, tt.says)
			if got := d.Checks[len(d.Checks)-1]; !got.OK || got.Text != tt.check {
				t.Errorf("got %+v, want %q", got, tt.check)
			}
			first, label := d.Verdicts()[0], ""
			for _, v := range d.Verdicts() {
				if v.Limit == Verify {
					label = v.Label
				}
			}
			switch {
			case tt.found == 1_000_000 && (first.Label == "NOT FOUND" || label != "holds"):
				t.Errorf("all was found: first %+v, verify %s", first, label)
			case tt.found < 1_000_000 && (first.Label != "NOT FOUND" || first.Mark != Bad || !strings.HasPrefix(first.Texts[0], "7 of 1,100,000 events not found; nothing is acknowledged") || label != "checked"):
				t.Errorf("seven are missing: first %+v, verify %s", first, label)
			}
		})
	}
}

// TestBatchesHaveAboutSoManyEvents: the mean number of events of a batch, of those sent or, if a
// run only reads, of those consumed.
func TestBatchesHaveAboutSoManyEvents(t *testing.T) {
	for _, tt := range []struct {
		in              Input
		events, batches uint64
		want            string
	}{
		{closedLoop(), 100_007, 10_001, ", 10 each"},
		{closedLoop(), 29_000, 10_000, ", 2.9 each"},
		{closedLoop(), 9_996_000, 100_000, ", 100 each"},
		{closedLoop(), 33_333, 1000, ", 33 each"},
		{consume(), 51_016, 15_331, ", 3.3 each"},
		{roundTrip(), 40_000, 10_000, ", 4 each"},
	} {
		m := &tt.in.Result.Measurement
		m.Batches = tt.batches
		if tt.in.Result.Mode == load.Consuming {
			m.Consumed = tt.events
		} else {
			m.Sent = tt.events
		}
		var text bytes.Buffer
		assert.OK(t, build(tt.in).Text(&text, layout.Style{}))
		assert.True(t, strings.Contains(text.String(), tt.want),
			"%d events in %d batches: want %q in\n%s", tt.events, tt.batches, tt.want, text.String())
	}
}

// TestEndedByHand: an interruption cuts short a run that had a limit, and is
// the normal end of one without. Both exit with the same code.
func TestEndedByHand(t *testing.T) {
	for _, whole := range []bool{false, true} {
		d := build(Input{Result: &load.Result{Mode: load.OpenLoop, Stopped: load.Interrupted, Whole: whole}, Trust: measure.Trust{OK: true}})
		assert.True(t, d.Partial != whole && d.ExitCode() == host.ExitInterrupted, "whole %v: partial %v, exit %d", whole, d.Partial, d.ExitCode())
		var b strings.Builder
		assert.OK(t, d.Text(&b, layout.Style{}))
		assert.True(t, strings.Contains(b.String(), "  ended ") == whole && strings.Contains(b.String(), "  partial ") != whole, "whole %v:\n%s", whole, b.String())
	}
}

// TestCPUShareOfAShortMeasurement: a measurement shorter than an interval includes processor
// time from before and after it; a share above 100 % is not printed.
func TestCPUShareOfAShortMeasurement(t *testing.T) {
	for _, tt := range []struct {
		measurement time.Duration
		want        string
	}{{time.Second, "CPU           10 ms, 0.5% of 2 processors\n"}, {4 * time.Millisecond, "CPU           10 ms\n"}} {
		r := &load.Result{Mode: load.Consuming, Measurement: measure.Tally{Name: measure.Measurement, End: tt.measurement}, Usage: measure.Usage{CPU: 10 * time.Millisecond}}
		var b strings.Builder
		assert.OK(t, build(Input{Result: r, Processors: 2}).Text(&b, layout.Style{}))
		assert.True(t, strings.Contains(b.String(), tt.want), "a measurement of %v: no %q in\n%s", tt.measurement, tt.want, b.String())
	}
}

// TestTotalsHaveNoMean: the mean of a total that only grows is meaningless.
func TestTotalsHaveNoMean(t *testing.T) {
	points := []measure.Point{{At: time.Second, Value: 5}, {At: 2 * time.Second, Value: 7}}
	d := build(Input{
		Result: &load.Result{Measurement: measure.Tally{Name: measure.Measurement, End: 3 * time.Second}},
		Gauges: []measure.Gauge{{From: "server", Name: "requests", Total: true, Points: points}, {From: "server", Name: "heap", Points: points}},
	})
	g := d.Gauges[0]
	assert.True(t, g.Mean == nil && g.Max == nil && g.Total && len(g.Points) == 2, "a total: got %+v", g)
	g = d.Gauges[1]
	assert.True(t, g.Mean != nil && *g.Mean == 6 && *g.Max == 7 && !g.Total, "a level: got %+v", g)
}

// TestMostInFlight: the peak of the in-flight events is kept apart from the maximum at the ends of intervals, and printed. Older
// reports, and those of loads that do not count the peak, have only the latter.
func TestMostInFlight(t *testing.T) {
	in := openLoop()
	in.Result.Measurement.InFlightPeak = 777
	d := build(in)
	doc := encode(t, d)
	assert.Equal(t, at(t, doc, "totals.in_flight_peak"), 777.0, "the peak")
	assert.Equal(t, at(t, doc, "totals.in_flight_max"), 44.0, "at the end of an interval")
	var text strings.Builder
	assert.OK(t, d.Text(&text, layout.Style{}))
	assert.True(t, strings.Contains(flat(text.String()), "most in flight 777"), "the peak is not printed:\n%s", &text)
	var old Document
	assert.OK(t, json.Unmarshal([]byte(`{"schema":"carronade.report/1","mode":"open loop","totals":{"sent":10,"acked":10,"rate_of":"acked","in_flight_mean":3.5,"in_flight_max":7}}`), &old))
	assert.Equal(t, old.Totals.MostInFlight(), 7, "an older report in flight at most")
	again, err := json.Marshal(old.Totals)
	assert.True(t, err == nil && !strings.Contains(string(again), "in_flight_peak"), "an older report has a peak: %s, %v", again, err)
}

// TestSendRates: what was sent in the drain is in no rate, also if nothing was sent before. Only a report of
// an older version, which has no send rate, divides its counts by the measurement.
func TestSendRates(t *testing.T) {
	none, some := 0.0, 20.0
	for _, tt := range []struct {
		name    string
		sent    *float64
		answers float64
		want    [3]float64 // events sent, batches sent, batches answered
	}{
		{"nothing before the drain", &none, 0, [3]float64{0, 0, 0}},
		{"some", &some, 5, [3]float64{20, 10, 5}},
		{"an older version", nil, 0, [3]float64{50, 25, 25}},
	} {
		x := Totals{ElapsedS: 2, SentPerS: tt.sent, AnswersPerS: tt.answers, Counts: measure.Counts{Sent: 100, Batches: 50, Answered: 50}}
		sent, _, _ := x.SendRates()
		assert.Equal(t, [3]float64{sent, x.BatchRate(), x.AnswerRate(50)}, tt.want, "%s: rates", tt.name)
	}
}
