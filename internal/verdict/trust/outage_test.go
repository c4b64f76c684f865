package trust

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// seconds returns a run of one-second intervals, one per letter:
//
//	.  all is well       s  events are due, and nothing is answered
//	r  all is refused    m  most is refused         h  fewer than half is
//	1  one is refused, and nothing else was due
//	d  all is dropped    _  nothing is due, nor waiting
func seconds(mode load.Mode, letters string) *load.Result {
	r := &load.Result{Mode: mode, Measurement: measure.Tally{Name: "measurement", End: time.Duration(len(letters)) * time.Second}}
	r.Measurement.Service, r.Measurement.Batching = times(4*time.Millisecond, 1000), times(time.Millisecond, 1000)
	counts := map[rune]measure.Counts{
		'.': {Offered: 100, Sent: 100, Acked: 100},
		's': {Offered: 100},
		'r': {Offered: 100, Sent: 100, Failed: 60, Unknown: 40},
		'm': {Offered: 100, Sent: 100, Acked: 40, Failed: 60},
		'h': {Offered: 100, Sent: 100, Acked: 55, Failed: 45},
		'1': {Offered: 1, Sent: 1, Failed: 1},
		'd': {Offered: 100, Dropped: 100},
		'_': {},
	}
	backlog := uint64(0)
	for i, letter := range letters {
		c := counts[letter]
		if letter == 's' {
			backlog += c.Offered
		} else if letter == '.' && backlog > 0 {
			c.Sent, c.Acked, backlog = c.Sent+backlog, c.Acked+backlog, 0
		}
		iv := measure.Interval{Phase: "measurement", Start: time.Duration(i) * time.Second, End: time.Duration(i+1) * time.Second, Counts: c}
		if c.Acked > 0 {
			iv.Service = times(4*time.Millisecond, int(c.Acked))
		}
		r.Measurement.Counts.Add(c)
		r.Intervals = append(r.Intervals, iv)
	}
	return r
}

// frozenFrom stops the generator from the first second to the second one, from the third to the fourth, and so on.
func frozenFrom(seconds ...int) func(*load.Result) {
	return func(r *load.Result) {
		for i := 0; i < len(seconds); i += 2 {
			from, to := time.Duration(seconds[i])*time.Second, time.Duration(seconds[i+1])*time.Second
			r.Freezes.Process = append(r.Freezes.Process, measure.Freeze{At: from, Length: to - from, Who: "process"})
		}
	}
}

func TestOutage(t *testing.T) {
	const open, closed, full = load.OpenLoop, load.ClosedLoop, load.FullSpeed
	for _, tt := range []struct {
		name    string
		mode    load.Mode
		letters string
		alter   func(r *load.Result)
		ok      bool
		stall   bool // not steady, and no outage
		silent  float64
		want    string // a part of the text
	}{
		{name: "calm", mode: open, letters: "..........", ok: true, want: "no upward trend"},
		{name: "dead from the middle on", mode: open, letters: "...sssssss", silent: 0.6, want: "nothing was answered from second 4 to second 10"},
		{name: "dead from the middle on, at full speed", mode: full, letters: "...sssssss", silent: 0.7, want: "nothing was answered from second 3 to second 10"},
		{name: "dead, and what was in flight is lost", mode: full, letters: "...rssssss", silent: 0.7, want: "nothing was answered from second 3 to second 10"},
		{name: "dead, and most of an interval is lost", mode: full, letters: "...msssss.", silent: 0.6, want: "hardly anything was answered from second 3 to second 9"},
		{name: "dead, and back", mode: closed, letters: "...sssss..", silent: 0.5, want: "nothing was answered from second 3 to second 8"},
		{name: "one second of thirty", stall: true, mode: full, letters: "..........s...................", silent: 1. / 30, want: "nothing was answered from second 10 to second 11"},
		{name: "one second of ten", stall: true, mode: full, letters: "....s.....", silent: 0.1, want: "from second 4 to second 5"},
		{name: "two of ten", mode: full, letters: "..s....s..", silent: 0.2, want: "nothing was answered in 2 stretches of 2 s together, the longest from second 2 to second 3"},
		{name: "five in a row of many", mode: full, letters: strings.Repeat(".", 50) + "sssss" + strings.Repeat(".", 50), silent: 5. / 105, want: "nothing was answered from second 50 to second 55"},
		{name: "four in a row of many", stall: true, mode: full, letters: strings.Repeat(".", 50) + "ssss" + strings.Repeat(".", 50), silent: 4. / 104, want: "nothing was answered from second 50 to second 54"},
		{name: "all is refused", mode: open, letters: "rrrrrr", silent: 1, want: "no event was accepted from second 0 to second 6"},
		{name: "all is refused, and the run is short", mode: open, letters: "rr", silent: 1, want: "no event was accepted from second 0 to second 2"},
		{name: "a short run with an outage", mode: full, letters: ".ss.", ok: true, silent: 0.5, want: "from second 1 to second 3; the measurement was too short to tell"},
		{name: "all is refused for a while", mode: closed, letters: "....rrr...", silent: 0.3, want: "no event was accepted from second 4 to second 7"},
		{name: "most is refused for a while", mode: open, letters: "....mmm...", silent: 0.3, want: "most events were not accepted from second 4 to second 7"},
		{name: "fewer than half are refused", mode: open, letters: "hhhhhhhhhh", ok: true, want: "no upward trend"},
		{name: "single failures where little is due", mode: open, letters: ".1._.1._.1", ok: true, want: "no upward trend"},
		{name: "failures in a row where little is due", mode: open, letters: "..1111....", silent: 0.4, want: "no event was accepted from second 2 to second 6"},
		{name: "all is dropped for a while", mode: open, letters: "..dd......", silent: 0.2, want: "nothing was answered from second 2 to second 4"},
		{name: "nothing is due", mode: open, letters: ".___._____", ok: true, want: "no upward trend"},
		{
			name: "answers take seconds", mode: closed, letters: "s.sss.ss.s", ok: true, want: "no upward trend",
			alter: func(r *load.Result) { r.Measurement.Service = times(time.Second, 10) },
		},
		{
			name: "batches take seconds to fill", mode: open, letters: "...sss.sss.sss", ok: true, want: "no upward trend",
			alter: func(r *load.Result) { r.Measurement.Batching = times(time.Second, 10) },
		},
		{
			name: "an outage while answers take long", mode: closed, letters: "s.sss.sssssss.", silent: 0.5, want: "from second 6 to second 13",
			alter: func(r *load.Result) { r.Measurement.Service = times(300*time.Millisecond, 10) },
		},
		{
			name: "nothing is acknowledged", mode: open, letters: "rrrrrrrrrr", ok: true, want: "no upward trend",
			alter: func(r *load.Result) {
				r.Unanswered = true
				for i := range r.Intervals {
					r.Intervals[i].Failed, r.Intervals[i].Unknown = 0, 100
				}
			},
		},
		{
			name: "nothing is acknowledged, and most fails", mode: open, letters: "rrrrrrrrrr", silent: 1, want: "most events were not accepted from second 0",
			alter: func(r *load.Result) { r.Unanswered = true },
		},
		{
			name: "nothing is acknowledged, and nothing listens", mode: open, letters: ".....sssss", silent: 0.4, want: "nothing could be sent from second 6 to second 10",
			alter: func(r *load.Result) { r.Unanswered = true },
		},
		{name: "consuming", mode: load.Consuming, letters: "ssssssssss", ok: true, want: "no upward trend"},
		{
			name: "answers to the warm-up", mode: open, letters: "sss.......", ok: true, want: "no upward trend",
			alter: func(r *load.Result) {
				for i := range 3 {
					r.Intervals = append(r.Intervals, measure.Interval{Phase: "warm-up", Start: r.Intervals[i].Start, End: r.Intervals[i].End, Counts: measure.Counts{Acked: 100}})
				}
				slices.SortStableFunc(r.Intervals, func(a, b measure.Interval) int { return int(a.Start - b.Start) })
			},
		},
		{
			name: "the second of three short steps", mode: full, letters: "...sss...", silent: 1, want: "nothing was answered from second 3 to second 6 (b)",
			alter: func(r *load.Result) {
				r.Steps = []measure.Tally{
					{Name: "a", End: 3 * time.Second}, {Name: "b", Start: 3 * time.Second, End: 6 * time.Second}, {Name: "c", Start: 6 * time.Second, End: 9 * time.Second},
				}
			},
		},
		{
			name: "across short steps", mode: full, letters: "..ss.....", silent: 2. / 9, want: "nothing was answered from second 2 to second 4",
			alter: func(r *load.Result) {
				r.Steps = []measure.Tally{
					{Name: "a", End: 3 * time.Second}, {Name: "b", Start: 3 * time.Second, End: 6 * time.Second}, {Name: "c", Start: 6 * time.Second, End: 9 * time.Second},
				}
			},
		},
		{
			name: "the generator did not run, four times", mode: full, letters: "..ss.ss.ss.ss....", ok: true, want: "no upward trend",
			alter: frozenFrom(2, 4, 5, 7, 8, 10, 11, 13),
		},
		{
			name: "the generator did not run, more often than is listed", mode: open, letters: strings.Repeat(".s", 15), ok: true, want: "no upward trend",
			alter: func(r *load.Result) {
				for i := 1; i < 30; i += 2 {
					frozenFrom(i, i+1)(r)
				}
			},
		},
		{
			name: "a second without an answer before and after a freeze", mode: full, letters: "...........sssssss...........", stall: true, silent: 2. / 24,
			want: "nothing was answered from second 11 to second 18", alter: frozenFrom(12, 17),
		},
		{
			name: "dead from the middle on, and the generator froze in it and at its end", mode: open, letters: strings.Repeat(".", 5) + strings.Repeat("s", 15), silent: 11. / 17,
			want: "nothing was answered from second 6 to second 20", alter: frozenFrom(7, 8, 14, 15, 19, 20),
		},
		{
			name: "the generator froze when the system died", mode: full, letters: "...sssssss", silent: 6. / 9,
			want: "nothing was answered from second 3 to second 10", alter: frozenFrom(3, 4),
		},
		{
			name: "an answer while the generator froze half of the time", mode: full, letters: "..sss.sss.", silent: 6. / 9,
			want: "nothing was answered in 2 stretches of 6 s together, the longest from second 2 to second 5", alter: frozenFrom(5, 6),
		},
		{name: "all is refused, and nothing is due in between", mode: open, letters: "...rr_rr__.", silent: 4. / 11, want: "no event was accepted from second 3 to second 8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := seconds(tt.mode, tt.letters)
			if tt.alter != nil {
				tt.alter(r)
			}
			got := Steady(r)
			assert.True(t, got.OK == tt.ok && (got.OK || got.Known) && math.Abs(got.Silent-tt.silent) <= 1e-9,
				"got ok %v, known %v, silent %v; want %v, silent %v", got.OK, got.Known, got.Silent, tt.ok, tt.silent)
			assert.True(t, strings.Contains(got.Text, tt.want), "got %q, want something with %q", got.Text, tt.want)
			assert.True(t, (tt.ok || tt.stall) == (got.Outage == "") && strings.HasPrefix(got.Text, got.Outage),
				"got the outage %q within the text %q", got.Outage, got.Text)
		})
	}
}

func TestDead(t *testing.T) {
	for _, tt := range []struct {
		name       string
		mode       load.Mode
		unanswered bool
		counts     measure.Counts
		arrived    uint64
		stopped    load.Reason
		stalled    float64
		frozen     bool
		want       string // "": alive
	}{
		{name: "alive", counts: measure.Counts{Offered: 10, Sent: 10, Acked: 1, Failed: 9}},
		{name: "refuses everything", counts: measure.Counts{Offered: 12000, Sent: 12000, Failed: 12000}, want: "the system accepted no event: 12,000 failed"},
		{name: "unknown", counts: measure.Counts{Offered: 10, Sent: 7, Failed: 2, Unknown: 5, Unsent: 2, Dropped: 1}, want: "accepted no event: 2 failed, 5 unknown, 1 dropped, 2 unsent"},
		{name: "never answers", counts: measure.Counts{Offered: 10, Unsent: 10}, want: "the system answered nothing: 10 unsent"},
		{name: "answers to the warm-up only", counts: measure.Counts{Offered: 10, Unsent: 10}, arrived: 5},
		{name: "the generator did not run", frozen: true, counts: measure.Counts{Offered: 10, Unsent: 10}},
		{name: "the generator did not run, and what it sent was refused", frozen: true, counts: measure.Counts{Offered: 10, Sent: 5, Failed: 5, Unsent: 5}, want: "accepted no event: 5 failed"},
		{name: "interrupted at once", stopped: load.Interrupted, counts: measure.Counts{Offered: 10, Sent: 10, Unknown: 10}},
		{name: "nothing was due", mode: load.OpenLoop},
		{name: "nothing was left to send", mode: load.FullSpeed},
		{name: "nothing to send to", mode: load.FullSpeed, stalled: 1, want: "the system answered nothing: nothing could be sent"},
		{name: "consumes", mode: load.Consuming, counts: measure.Counts{Offered: 10}},
		{name: "nothing is acknowledged", unanswered: true, counts: measure.Counts{Offered: 10, Sent: 10, Unknown: 10}},
		{name: "nothing is acknowledged, all fails", unanswered: true, counts: measure.Counts{Offered: 10, Sent: 10, Failed: 10}, want: "accepted no event: 10 failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &load.Result{Mode: tt.mode, Stopped: tt.stopped, Stall: measure.Stall{Share: tt.stalled}, Unanswered: tt.unanswered, Measurement: measure.Tally{Counts: tt.counts, Arrived: tt.arrived}}
			if tt.frozen {
				r.Measurement.End = 10 * time.Second
				frozenFrom(1, 10)(r)
			}
			got, dead := Dead(r)
			assert.True(t, dead == (tt.want != "") && strings.Contains(got, tt.want),
				"got %v, %q; want something with %q", dead, got, tt.want)
		})
	}
}

// A simulated system: servers that process events in order of arrival, each for a time, and that do nothing during an outage.
type simulated struct {
	rate    float64 // of events, at random times; 0: a closed loop, as many in flight as servers
	servers int
	mean    float64 // mean service time, seconds
	shape   string  // of its distribution: constant, exponential
	fails   float64 // share of answers that are failures
	span    int     // length of the run, in intervals of a second
	outage  float64 // length of the outage
}

func (s simulated) run(rnd *rand.Rand) *load.Result {
	span := float64(s.span)
	from := rnd.Float64() * (span - s.outage)
	free := make([]float64, s.servers)
	r := &load.Result{Mode: load.ClosedLoop, Measurement: measure.Tally{Name: "measurement", End: time.Duration(s.span) * time.Second}}
	r.Measurement.Service = measure.NewHistogram()
	ivs := make([]measure.Interval, s.span)
	for i := range ivs {
		ivs[i] = measure.Interval{Phase: "measurement", Start: time.Duration(i) * time.Second, End: time.Duration(i+1) * time.Second, Set: measure.Set{Service: measure.NewHistogram()}}
	}
	due := 0.0
	for {
		server := 0
		for i := range free {
			if free[i] < free[server] {
				server = i
			}
		}
		if s.rate > 0 {
			r.Mode = load.OpenLoop
			due += rnd.ExpFloat64() / s.rate
		} else {
			due = free[server]
		}
		if due >= span {
			break
		}
		service := s.mean
		if s.shape == "exponential" {
			service *= rnd.ExpFloat64()
		}
		start := max(due, free[server])
		done := start + service
		if s.outage > 0 && done > from && start < from+s.outage {
			done += from + s.outage - max(start, from)
		}
		free[server] = done
		sent := &ivs[int(due)]
		sent.Offered++
		sent.Sent++
		for i := int(due); i < min(int(done), s.span); i++ {
			ivs[i].InFlight++
		}
		if done >= span {
			continue
		}
		at := &ivs[int(done)]
		if rnd.Float64() < s.fails {
			at.Failed++
			continue
		}
		at.Acked++
		took := time.Duration((done - start) * 1e9)
		at.Service.Record(took)
		r.Measurement.Service.Record(took)
	}
	r.Intervals = ivs
	return r
}

// TestOutageSimulated measures how often a verdict is wrong. docs/method.md contains the numbers.
func TestOutageSimulated(t *testing.T) {
	testkit.Need(t, "some seconds")
	for _, tt := range []struct {
		name        string
		s           simulated
		least, most float64 // share of runs reported to have an outage
	}{
		{"many answers", simulated{rate: 200, servers: 4, mean: 0.01, shape: "exponential", span: 30}, 0, 0},
		{"an answer in three seconds", simulated{servers: 1, mean: 3, shape: "constant", span: 60}, 0, 0},
		{"an answer a second, more or less", simulated{servers: 1, mean: 1, shape: "exponential", span: 60}, 0, 0.1},
		{"few events", simulated{rate: 0.5, servers: 1, mean: 0.2, shape: "exponential", span: 60}, 0, 0.01},
		{"many events, one in ten fails", simulated{rate: 200, servers: 4, mean: 0.01, shape: "exponential", fails: 0.1, span: 30}, 0, 0},
		{"few events, one in ten fails", simulated{rate: 1, servers: 1, mean: 0.01, shape: "exponential", fails: 0.1, span: 30}, 0, 0.02},
		{"a stall of one second in thirty", simulated{rate: 200, servers: 4, mean: 0.01, shape: "exponential", span: 30, outage: 1}, 0, 0},
		{"an outage of three seconds in ten", simulated{rate: 200, servers: 4, mean: 0.01, shape: "exponential", span: 10, outage: 3}, 1, 1},
		{"an outage of three seconds in ten, closed loop", simulated{servers: 4, mean: 0.01, shape: "constant", span: 10, outage: 3}, 1, 1},
		{"an outage of seven seconds in five minutes", simulated{rate: 50, servers: 4, mean: 0.01, shape: "exponential", span: 300, outage: 7}, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(1, 2))
			runs, found := 300, 0
			if tt.s.rate*float64(tt.s.span) > 1000 { // with many events the result is nearly always the same
				runs = 40
			}
			for range runs {
				if r := tt.s.run(rnd); outageOf(r, &r.Measurement).bad {
					found++
				}
			}
			got := float64(found) / float64(runs)
			t.Logf("found in %.1f%%", 100*got)
			assert.True(t, got >= tt.least && got <= tt.most,
				"an outage in %.1f%% of runs, want %.0f%% to %.0f%%", 100*got, 100*tt.least, 100*tt.most)
		})
	}
}
