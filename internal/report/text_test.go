package report

import (
	"bytes"
	"io"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

var started = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// A spreadKey has the arguments of spread.
type spreadKey struct {
	median time.Duration
	sigma  float64
	n      int
}

var spreads sync.Map // histograms by spreadKey: many inputs have the same

// spread is n durations around a median, without randomness: the quantiles of a log-normal distribution.
func spread(median time.Duration, sigma float64, n int) *measure.Histogram {
	of := spreadKey{median, sigma, n}
	if made, ok := spreads.Load(of); ok {
		return made.(*measure.Histogram).Clone()
	}
	h := measure.NewHistogram()
	for i := range n {
		q := (float64(i) + 0.5) / float64(n)
		h.Record(time.Duration(float64(median) * math.Exp(sigma*math.Sqrt2*math.Erfinv(2*q-1))))
	}
	spreads.Store(of, h.Clone())
	return h
}

func same(d time.Duration, n int) *measure.Histogram {
	h := measure.NewHistogram()
	h.RecordN(d, uint64(n))
	return h
}

type machineText string

func (h machineText) String() string { return string(h) }

// openLoop is an undisturbed produce run of 20 s at 50,000/s.
func openLoop() Input {
	measurement := measure.Tally{
		Name: "measurement", Rate: 50_000, Start: 2 * time.Second, End: 22 * time.Second,
		Counts: measure.Counts{
			Offered: 1_000_000, Sent: 1_000_000, Acked: 1_000_000, Batches: 4000, Answered: 4000,
			Bytes: 100_000_000, WireBytes: 107_300_000,
		},
		Set: measure.Set{
			Response: spread(3100*time.Microsecond, 0.35, 10_000), Service: spread(850*time.Microsecond, 0.4, 4000),
			SendDelay: spread(40*time.Microsecond, 0.5, 4000), Batching: spread(2*time.Millisecond, 0.3, 10_000), Queueing: same(0, 4000),
		},
		Arrived: 1_000_000, ArrivedBytes: 100_000_000, InFlight: 42.4,
	}
	r := &load.Result{
		Started: started, Ended: started.Add(22100 * time.Millisecond), Stopped: load.ByTime, Mode: load.OpenLoop,
		Warmup:      measure.Tally{Name: "warm-up", End: 2 * time.Second, Counts: measure.Counts{Offered: 100_000, Sent: 100_000, Acked: 100_000}},
		Measurement: measurement,
		Drain:       measure.Tally{Name: "drain", Start: 22 * time.Second, End: 22100 * time.Millisecond},
		Stall:       measure.Stall{Longest: 23 * time.Millisecond, LongestAt: 14500 * time.Millisecond},
		Steady:      measure.Steady{OK: true, Known: true, Text: "no upward trend"},
		Usage:       measure.Usage{CPU: 2240 * time.Millisecond, RSS: 40 << 20, MaxRSS: 44 << 20, GCPauses: 31, GCPauseMax: 118 * time.Microsecond, GCCPU: 60 * time.Millisecond},
		Busy:        0.08, WireRead: 400_000,
	}
	for i := range 22 {
		phase := "measurement"
		if i < 2 {
			phase = "warm-up"
		}
		iv := measure.Interval{
			Phase: phase, Start: time.Duration(i) * time.Second, End: time.Duration(i+1) * time.Second,
			Counts:   measure.Counts{Offered: 50_000, Sent: 50_000, Acked: 50_000 - uint64(i%3)*200, Batches: 200, Bytes: 5_000_000},
			InFlight: 40 + uint64(i%5), LagEvents: -1,
			Generator: measure.Usage{CPU: 112 * time.Millisecond, RSS: 40 << 20},
		}
		iv.Response = spread(time.Duration(3000+100*(i%7))*time.Microsecond, 0.3, 200)
		iv.SendDelay = spread(time.Duration(40+i%3)*time.Microsecond, 0.5, 200)
		iv.Service = spread(850*time.Microsecond, 0.3, 200)
		r.Intervals = append(r.Intervals, iv)
	}
	return Input{
		Version: "v0.1.0", RunID: "5c1f09b2", Target: "kafka://127.0.0.1:9092/bench", Op: "produce",
		Labels: map[string]string{"branch": "main", "host": "a"},
		Settings: []Setting{
			{Name: "rate", Value: "50000/s", Default: false},
			{Name: "for", Value: "20s", Default: false},
			{Name: "warmup", Value: "2s", Default: false},
			{Name: "acks", Value: "1", Default: true},
			{Name: "batch-size", Value: "256KiB", Default: true},
			{Name: "compression", Value: "none", Default: true},
			{Name: "linger", Value: "5ms", Default: true},
			{Name: "max-in-flight", Value: "5", Default: true},
			{Name: "seed", Value: "1", Default: true},
			{Name: "group", Value: "", Default: true},
			{Name: "fresh", Value: "false", Default: true},
		},
		Workload: map[string]any{"rate": "50000/s", "for": "20s"},
		Result:   r, Processors: 2,
		Trust: measure.Trust{OK: true},
		Facts: map[string]any{
			"brokers": []any{"1 at 127.0.0.1:9092"}, "cluster_id": "kfake", "partitions": 3, "replicas": 1, "auto_created": true,
		},
		Host:        machineText("4 x Intel Xeon, 8 GiB, Linux 6.1 (x86_64), go1.26"),
		Calibration: &Calibration{At: started.AddDate(0, 0, -2), NullPerS: 31.2e6, DiscardPerS: 12.4e6, EventBytes: 100},
	}
}

// overloaded is a run in which everything went wrong.
func overloaded() Input {
	in := openLoop()
	r := in.Result
	r.Measurement.Counts = measure.Counts{
		Offered: 1_000_000, Sent: 990_000, Dropped: 4_000, Unsent: 6_000, Acked: 970_000, Failed: 12_345, Unknown: 7_655,
		Batches: 3960, Answered: 3900, Retries: 17, Bytes: 99_000_000, WireBytes: 106_000_000,
	}
	r.Measurement.Arrived, r.Measurement.ArrivedBytes = 961_000, 96_100_000
	r.Measurement.Response = spread(400*time.Millisecond, 1, 970_000)
	r.Measurement.Censored = spread(5*time.Second, 0.2, 13_655)
	r.Measurement.Queueing = spread(300*time.Millisecond, 1, 4000)
	r.Measurement.FailedService = spread(900*time.Millisecond, 0.5, 60)
	r.Measurement.Response.Record(2 * time.Hour)
	r.Measurement.Service.Record(300)
	r.Stall = measure.Stall{Longest: 2010 * time.Millisecond, LongestAt: 10 * time.Second, Share: 0.134}
	r.Steady = measure.Steady{Known: true, Text: "events in flight climbed by 134% over the measurement (+20/s); the mean response time climbed by 98% over the measurement (+31.5 ms/s)"}
	r.Failures = []measure.Failure{
		{Class: "timeout", Text: "REQUEST_TIMED_OUT: The request timed out while \x1b[31mwaiting for acknowledgment from the followers of the partition.", Events: 12_000, Batches: 50},
		{Class: "refused", Text: "write to 127.0.0.1:9092: connection reset by peer", Events: 8_000, Batches: 40},
	}
	r.Classes = map[string]uint64{"timeout": 12_000, "refused": 8_000, "canceled": 6}
	in.Trust = measure.Trust{
		Reasons: []string{"response p99 7.9 to 12 ms, since the generator was late; lower the rate, add --threads, or use a faster or quieter machine"},
		Notes:   []string{"the generator used 97.5% of 2 processors"},
	}
	in.Checks = []Check{{Name: "dropped = 0", Text: "4,000"}, {Name: "failures", OK: true, Text: "at most 20,000 failed, and 12,345 did"}}
	in.Problems = []string{"write the HDR log /full/run.hlog: no space left on device"}
	in.Warnings = []string{"topic bench was made by the broker, with 1 partition and 1 replica"}
	in.Ledger = &measure.Ledger{
		Acked: 970_000, Read: 971_010, Lost: 10, Duplicated: 1000, Reordered: 3, Recovered: 20, Contradicted: 5, Inexact: 5, Foreign: 12, Method: "batches",
		Logs: []measure.LedgerLog{{Log: "bench-0", LedgerCounts: measure.LedgerCounts{Acked: 500_000, Read: 500_000}}, {Log: "bench-1", LedgerCounts: measure.LedgerCounts{Acked: 470_000, Read: 471_010, Lost: 10, Duplicated: 1000, Reordered: 3, Recovered: 20, Inexact: 5}}},
	}
	in.Clients = []measure.Client{
		{Broker: "1 127.0.0.1:9092", Requests: 3960, Batches: 3960, EventsPerBatch: 250, Bytes: 99_000_000, CompressionRatio: 1, Reconnects: 2},
		{Broker: "2 broker-with-a-long-name.example.net:9092", Requests: 123_456_789, Batches: 99, EventsPerBatch: 1.5, Bytes: 1 << 40, CompressionRatio: 0.234, ThrottleSeconds: 12.5},
	}
	in.Percentiles = []float64{25, 75}
	in.Repetition, in.Repetitions = 2, 3
	return in
}

func steps() Input {
	in := openLoop()
	r := in.Result
	base := r.Measurement
	for i, rate := range []float64{10_000, 20_000, 40_000, 80_000} {
		s := base
		s.Name, s.Rate = "step", rate
		s.Start = time.Duration(2+5*i) * time.Second
		s.End = s.Start + 5*time.Second
		s.Offered = uint64(rate * 5)
		s.Acked = s.Offered
		s.Arrived = s.Offered
		s.Response = spread(time.Duration(i*i+1)*3*time.Millisecond, 0.3, 1000)
		r.Steps = append(r.Steps, s)
	}
	r.Steps[3].Arrived, r.Steps[3].Acked = 300_000, 390_000
	r.Steps[3].Censored = same(2*time.Second, 100)
	r.Stopped = load.BySchedule
	// Answers of the first step that came after the second had begun.
	late := r.Intervals[7]
	late.Counts = measure.Counts{Acked: 500}
	r.Intervals[7].Acked -= 500
	r.Intervals = append(r.Intervals, late)
	// The last answers, after the measurement.
	tail := r.Intervals[21]
	tail.Start, tail.End, tail.Acked = 22*time.Second, 22100*time.Millisecond, 5
	r.Intervals = append(r.Intervals, tail)
	return in
}

func closedLoop() Input {
	in := openLoop()
	r := in.Result
	r.Mode = load.ClosedLoop
	r.Measurement.Response, r.Measurement.SendDelay, r.Measurement.Batching, r.Measurement.Queueing = nil, nil, nil, nil
	for i := range r.Intervals {
		r.Intervals[i].Response, r.Intervals[i].SendDelay = nil, nil
	}
	r.Warmup, r.Drain = measure.Tally{}, measure.Tally{}
	in.Settings = []Setting{{Name: "concurrency", Value: "16", Default: false}, {Name: "for", Value: "20s", Default: false}}
	in.Host, in.Calibration, in.Facts, in.Labels = nil, nil, nil, nil
	return in
}

func fullSpeed() Input {
	in := closedLoop()
	in.Result.Mode = load.FullSpeed
	in.Target = "null://"
	in.Result.Busy, in.Result.Full = 0.99, 0.12
	in.Trust.Notes = []string{"no system receives these events, so the rate is what this generator can do"}
	in.Result.Measurement.Service = same(400, 1000)
	return in
}

func unacknowledged() Input {
	in := openLoop()
	r := in.Result
	r.Measurement.Unknown, r.Measurement.Acked, r.Measurement.Answered = r.Measurement.Sent, 0, 0
	r.Measurement.Response, r.Measurement.Service = nil, nil
	r.Unanswered = true
	r.Measurement.Arrived, r.Measurement.ArrivedBytes = 0, 0
	for i := range r.Intervals {
		r.Intervals[i].Response, r.Intervals[i].Service, r.Intervals[i].Acked = nil, nil, 0
	}
	in.Gauges = gauges()
	return in
}

// gauges are the metrics of two servers: one reports everything, the other little.
func gauges() []measure.Gauge {
	zero, little, ms := 0.0, 12.5, 0.125
	points := func(from, to float64) (all []measure.Point) {
		for i := range 24 {
			all = append(all, measure.Point{At: time.Duration(i) * time.Second, Value: from + (to-from)*float64(i)/23})
		}
		return all
	}
	return []measure.Gauge{
		{From: "server", Name: "server udp 127.0.0.1:5555 in rate", Unit: "events/s", Counts: true, Before: &zero, After: &little, Points: points(0, 50_000)},
		{From: "server", Name: "server udp 127.0.0.2:5555 in rate", Unit: "events/s", Counts: true, Points: points(1000, 1000)},
		{From: "server", Name: "streams latency 0.999 of a stream with a name that does not end", Unit: "ms", Before: &ms, Missed: 3},
		{From: "server", Name: "queue size", Points: points(-3, 3), After: &zero},
		{From: "host", Name: "memory", Unit: "bytes", Points: points(1<<20, 64<<20)},
	}
}

func consume() Input {
	in := openLoop()
	r := in.Result
	in.Op = "consume"
	r.Mode, r.Stopped = load.Consuming, load.ByIdle
	r.Warmup, r.Drain = measure.Tally{}, measure.Tally{}
	r.Measurement = measure.Tally{
		Name: "measurement", End: 10 * time.Second,
		Counts:  measure.Counts{Consumed: 19_000_000, Bytes: 1_900_000_000, WireBytes: 2_100_000_000},
		Arrived: 19_000_000, ArrivedBytes: 1_900_000_000,
	}
	r.Rebalance, r.Missing = 310*time.Millisecond, 1_000_000
	r.Stall, r.Steady = measure.Stall{}, measure.Steady{}
	for i := range r.Intervals {
		iv := &r.Intervals[i]
		*iv = measure.Interval{Phase: "measurement", Start: iv.Start, End: iv.End, Counts: measure.Counts{Consumed: 1_900_000 + uint64(i)*1000}, LagEvents: 20_000_000 - int64(i)*900_000}
	}
	r.Intervals = r.Intervals[:10]
	for i := range 14 {
		r.Logs = append(r.Logs, load.LogResult{Log: "bench-" + string(rune('a'+i)), Consumed: uint64(1_300_000 + i), Bytes: 130_000_000, Lag: int64(i * 70_000)})
	}
	return in
}

func roundTrip() Input {
	in := openLoop()
	in.Op = "roundtrip"
	in.Result.Measurement.Consumed = 1_000_000
	in.Result.Measurement.EndToEnd = spread(5*time.Millisecond, 0.3, 10_000)
	in.Ledger = &measure.Ledger{Acked: 1_000_000, Read: 1_000_000, Complete: true, Method: "batches and stamps"}
	in.Result.Warmup = measure.Tally{}
	for i := range in.Result.Intervals {
		in.Result.Intervals[i].EndToEnd = spread(5*time.Millisecond, 0.2, 100)
	}
	return in
}

func interrupted() Input {
	in := openLoop()
	r := in.Result
	r.Stopped = load.Interrupted
	r.Measurement.Counts = measure.Counts{Offered: 100, Sent: 100, Unknown: 100, Batches: 3}
	r.Measurement.End = r.Measurement.Start + 20*time.Millisecond
	r.Measurement.Set = measure.Set{SendDelay: same(30*time.Microsecond, 3), Censored: spread(15*time.Millisecond, 0.1, 100)}
	r.Measurement.Arrived, r.Measurement.ArrivedBytes = 0, 0
	r.Intervals = r.Intervals[:2]
	r.Steady = measure.Steady{OK: true, Text: "the measurement was too short to tell (0 whole intervals, at least 5 are needed)"}
	return in
}

// noisy is a run whose generator did not run for half a second.
func noisy() Input {
	in := openLoop()
	r := in.Result
	r.Measurement.SendDelay = spread(40*time.Microsecond, 0.5, 9_700)
	r.Measurement.SendDelay.RecordN(250*time.Millisecond, 300)
	r.Measurement.Lower.Response = spread(2500*time.Microsecond, 0.35, 9_700)
	r.Freezes = measure.Freezes{Count: 3, Total: 520 * time.Millisecond, Longest: []measure.Freeze{
		{At: 2920 * time.Millisecond, Length: 504 * time.Millisecond, Who: "process", Cause: "stopped and continued"},
		{At: 9 * time.Second, Length: 16 * time.Millisecond, Who: "sending thread"},
	}}
	in.Trust = measure.Trust{
		OK: true, Level: measure.Noisy, Doubts: []string{"response p99 5.6 to 7 ms, since the generator was late", "service p99 1.8 to 2.2 ms, since the generator was late"},
		Bounds: []measure.Bound{
			{Time: "response", P: 99, Upper: 7000, Lower: 5600, Level: measure.Noisy},
			{Time: "response", P: 99.9, Upper: 9150, Lower: 5600, Level: measure.NotTrusted},
			{Time: "service", P: 99, Upper: 2200, Lower: 1800, Level: measure.Noisy},
		},
	}
	return in
}

// huge is a week at forty million a second against a cluster with long names.
func huge() Input {
	in := overloaded()
	r := in.Result
	const n = 40_000_000 * 7 * 86400
	r.Measurement.End = r.Measurement.Start + 7*24*time.Hour
	r.Measurement.Counts = measure.Counts{Offered: n, Sent: n, Acked: n - 3e9, Unknown: 2e9, Failed: 1e9, Batches: n / 2400, Answered: n / 2400, Retries: 123_456_789, Bytes: n * 100, WireBytes: n * 105}
	r.Measurement.Arrived, r.Measurement.ArrivedBytes, r.Measurement.InFlight = n-3e9, (n-3e9)*100, 123_456_789
	r.Measurement.Response = spread(20*time.Minute, 1, 10_000)
	r.Measurement.Censored = spread(40*time.Minute, 0.5, 10_000)
	r.Measurement.Batching, r.Measurement.EndToEnd = spread(30*time.Minute, 0.1, 100), spread(3*time.Minute, 2, 100)
	r.Stall = measure.Stall{Longest: 26 * time.Hour, LongestAt: 5 * 24 * time.Hour, Share: 0.99999}
	long := "a-topic-with-a-very-long-name-that-everyone-thought-of-in-a-meeting-41"
	in.Target = "kafka://broker-1.example.net:9092,broker-2.example.net:9092,broker-3.example.net:9092/" + long
	in.Ledger.Acked, in.Ledger.Read, in.Ledger.Lost, in.Ledger.Duplicated = n, n+5_555_555, 4_444_444, 9_999_999
	in.Ledger.Reordered, in.Ledger.Corrupted, in.Ledger.Recovered = 9_999_999, 9_999_999, 9_999_999
	for i := range in.Ledger.Logs {
		in.Ledger.Logs[i].Log = long
		in.Ledger.Logs[i].Lost = 8_888_888
	}
	r.Logs = []load.LogResult{{Log: long, Consumed: n, Bytes: n * 100, Lag: n}}
	for i := range 4 {
		s := r.Measurement
		s.Rate, s.Start, s.End = 123.456e6, time.Duration(i)*time.Hour, time.Duration(i+1)*time.Hour
		r.Steps = append(r.Steps, s)
	}
	in.Clients[1].Reconnects, in.Clients[1].Requests, in.Clients[1].Batches, in.Clients[1].EventsPerBatch = 123_456, 1<<60, 1<<60, 123456
	in.Facts["settings"] = map[string]any{"retention.bytes": 1 << 40, "x": strings.Repeat("y", 200)}
	return in
}

var inputs = map[string]func() Input{
	"open-loop": openLoop, "overloaded": overloaded, "steps": steps, "closed-loop": closedLoop, "full-speed": fullSpeed,
	"unacknowledged": unacknowledged, "consume": consume, "round-trip": roundTrip, "interrupted": interrupted, "huge": huge,
	"under-test": underTest, "system-died": systemDied,
	"died-midway": diedMidway, "refused": refused, "noisy": noisy,
	"stalled": stalled, "failing": failing, "untrusted": untrusted, "losses": losses,
}

// stalled is a run whose system stalled twice.
func stalled() Input {
	in := openLoop()
	r := in.Result
	r.Measurement.Response.RecordN(900*time.Millisecond, 500)
	r.Measurement.Queueing = spread(2*time.Millisecond, 2, 4000)
	r.Stall.Add(6*time.Second, 7*time.Second)
	r.Stall.Add(14500*time.Millisecond, 15600*time.Millisecond)
	r.Stall.Longest, r.Stall.LongestAt, r.Stall.Share = 1100*time.Millisecond, 14500*time.Millisecond, 0.105
	return in
}

// failing is a run of which the system refused some events.
func failing() Input {
	in := openLoop()
	r := in.Result
	r.Measurement.Acked, r.Measurement.Failed, r.Measurement.Unknown, r.Measurement.Retries = 980_000, 19_990, 10, 80
	r.Measurement.Arrived, r.Measurement.ArrivedBytes = 980_000, 98_000_000
	r.Measurement.FailedService = spread(30*time.Millisecond, 0.5, 80)
	r.Failures = []measure.Failure{
		{Class: "throttled", Text: "THROTTLING_QUOTA_EXCEEDED: The throttling quota has been exceeded.", Events: 19_990, Batches: 80},
		{Class: "timeout", Text: "no answer within 30 s", Events: 10, Batches: 1},
	}
	r.Classes = map[string]uint64{"throttled": 19_990, "timeout": 10}
	in.Checks = []Check{{Name: "failure-rate", Text: "2% of the answered events failed, 0.1% allowed"}}
	in.Warnings = []string{"topic bench was made by the broker, with 1 partition and 1 replica"}
	return in
}

// untrusted is a run that the generator delayed.
func untrusted() Input {
	in := noisy()
	in.Trust = measure.Trust{
		Level: measure.NotTrusted, Bounds: in.Trust.Bounds,
		Reasons: []string{"response p99 5.6 to 7 ms, since the generator was late: its process did not run for 504 ms at 2.92 s (stopped and continued); lower the rate, or use a faster or quieter machine"},
		Notes:   []string{"the generator used 97.5% of 2 processors (at most 95%): lower the rate, or use a machine with more processors"},
	}
	return in
}

// losses is a round trip with missing events.
func losses() Input {
	in := roundTrip()
	in.Ledger = &measure.Ledger{
		Acked: 1_000_000, Read: 999_863, Lost: 137, Complete: true, Method: "batches and stamps",
		Logs: []measure.LedgerLog{{Log: "bench-0", LedgerCounts: measure.LedgerCounts{Acked: 333_333, Read: 333_196, Lost: 137}}, {Log: "bench-1", LedgerCounts: measure.LedgerCounts{Acked: 666_667, Read: 666_667}}},
	}
	return in
}

// forms are the two forms of the text.
var forms = []struct {
	ext   string
	write func(*Document, io.Writer, layout.Style) error
}{
	{".txt", (*Document).Text},
	{".brief.txt", func(d *Document, w io.Writer, style layout.Style) error {
		return d.Brief(w, style, Condition{"report", "k3v9x2ab in reports.db"}, Condition{"everything", "carronade report show k3v9x2ab --full"})
	}},
}

func TestText(t *testing.T) {
	for name, input := range inputs {
		for _, form := range forms {
			testText(t, name+form.ext, input, form.write)
		}
	}
}

func testText(t *testing.T, file string, input func() Input, write func(*Document, io.Writer, layout.Style) error) {
	t.Helper()
	t.Run(file, func(t *testing.T) {
		d := build(input())
		var text bytes.Buffer
		assert.OK(t, write(d, &text, layout.Style{}))
		for i, l := range strings.Split(text.String(), "\n") {
			assert.True(t, layout.Width(l) <= layout.Columns, "line %d has %d columns: %q", i+1, layout.Width(l), l)
			assert.Equal(t, strings.TrimRight(l, " "), l, "end of line %d", i+1)
		}
		assert.True(t, !strings.Contains(text.String(), "\x1b"), "ANSI codes without color")
		testkit.Golden(t, filepath.Join("testdata", file), text.String())
		// A stored report prints the same.
		var file, again bytes.Buffer
		assert.OK(t, d.WriteJSON(&file))
		assert.OK(t, write(assert.Value(Read(&file))(t), &again, layout.Style{}))
		assert.Same(t, again.String(), text.String(), "printed after reading")
		// Color does not change the text.
		var colored bytes.Buffer
		assert.OK(t, write(d, &colored, layout.Style{Color: true}))
		assert.True(t, strings.Contains(colored.String(), "\x1b[1m"), "no color")
		on, ends := strings.Count(colored.String(), "\x1b["), strings.Count(colored.String(), layout.Plain)
		assert.True(t, on == 2*ends, "%d codes, %d of them resets", on, ends)
		assert.Same(t, stripped(colored.String()), text.String(), "colored")
	})
}

// stripped is a text without ANSI codes, and without the blanks at line ends that color hides.
func stripped(s string) string {
	for _, code := range []string{layout.Bold, layout.Dim, layout.Red, layout.Yellow, layout.Plain} {
		s = strings.ReplaceAll(s, code, "")
	}
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func TestGoldenFilesHaveTests(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	assert.Must(t, err == nil && len(files) != 0, "no golden files: %v", err)
	for _, f := range files {
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(f), ".txt"), ".brief")
		assert.True(t, inputs[name] != nil, "%s has no test: delete it", f)
	}
}

func TestASCII(t *testing.T) {
	var text bytes.Buffer
	assert.OK(t, build(openLoop()).Text(&text, layout.Style{ASCII: true}))
	for _, r := range text.String() {
		assert.Must(t, r <= 0x7e, "got %q in ASCII text", r)
	}
}
