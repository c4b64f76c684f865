package trust

import (
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

func times(pairs ...any) *measure.Histogram {
	h := measure.NewHistogram()
	for i := 0; i < len(pairs); i += 2 {
		h.RecordN(pairs[i].(time.Duration), uint64(pairs[i+1].(int)))
	}
	return h
}

// calm returns a run in which nothing is wrong.
func calm(mode load.Mode) *load.Result {
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	r := &load.Result{
		Mode: mode, Started: start, Ended: start.Add(11 * time.Second),
		Measurement: measure.Tally{
			Name: "measurement", End: 10 * time.Second,
			Counts: measure.Counts{Offered: 1000, Sent: 1000, Acked: 1000, Batches: 1000}, Arrived: 1000,
		},
		Drain: measure.Tally{Name: "drain", Start: 10 * time.Second, End: 11 * time.Second},
		Usage: measure.Usage{CPU: 2 * time.Second, GCPauses: 20, GCPauseMax: 200 * time.Microsecond},
		Busy:  0.2, Full: 0.99,
	}
	h := &r.Measurement
	if mode != load.Consuming {
		h.Service, h.Lower.Service = times(4*time.Millisecond, 1000), times(4*time.Millisecond, 1000)
	}
	if mode == load.OpenLoop {
		h.SendDelay = times(50*time.Microsecond, 1000)
		h.Response, h.Lower.Response = times(5*time.Millisecond, 1000), times(5*time.Millisecond-50*time.Microsecond, 1000)
	}
	return r
}

// froze returns one freeze of the generator of a given length.
func froze(total time.Duration) measure.Freezes {
	return measure.Freezes{Count: 1, Total: total, Longest: []measure.Freeze{
		{At: 2 * time.Second, Length: total, Who: "process", Cause: "stopped and continued"},
	}}
}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name  string
		mode  load.Mode
		alter func(*Input)
		// Fragments, one for each reason, doubt and note in order.
		reasons, doubts, notes []string
	}{
		{name: "calm, open loop", mode: load.OpenLoop},
		{name: "calm, closed loop", mode: load.ClosedLoop},
		{name: "calm, full speed", mode: load.FullSpeed},
		{name: "calm, consuming", mode: load.Consuming, alter: func(in *Input) { in.Result.Full = 0 }},
		{
			name: "a kernel that does not count waits", mode: load.OpenLoop,
			alter: func(in *Input) { in.NoWaits = true },
			notes: []string{"this kernel does not report how long threads wait for a processor (schedstat): a late reading thread is not seen"},
		},
		{
			name: "a kernel that does not count waits, consuming", mode: load.Consuming,
			alter: func(in *Input) { in.NoWaits, in.Result.Full = true, 0 },
			notes: []string{"this kernel does not report"},
		},
		{name: "nothing is read", mode: load.ClosedLoop, alter: func(in *Input) { in.NoWaits, in.Discards = true, true }},
		{
			name: "late, and it does not show in the times", mode: load.OpenLoop,
			alter: func(in *Input) {
				in.Result.Measurement.SendDelay = times(50*time.Microsecond, 980, 2*time.Millisecond, 20)
				in.Result.Freezes = froze(500 * time.Millisecond)
			},
		},
		{
			name: "a doubt", mode: load.OpenLoop,
			alter: func(in *Input) {
				in.Result.Measurement.Lower.Response = times(4*time.Millisecond, 1000)
				in.Result.Freezes = froze(500 * time.Millisecond)
			},
			doubts: []string{"response p99 4 to 5 ms, since the generator was late"},
		},
		{
			name: "a reason, and the freeze behind it", mode: load.OpenLoop,
			alter: func(in *Input) {
				in.Result.Measurement.Lower.Response = times(2*time.Millisecond, 1000)
				in.Result.Freezes = froze(500 * time.Millisecond)
			},
			reasons: []string{"response p99 2 to 5 ms, since the generator was late: its process did not run for 500 ms at 2 s (stopped and continued); lower the rate, or"},
		},
		{
			name: "a reason without a schedule", mode: load.ClosedLoop,
			alter:   func(in *Input) { in.Result.Measurement.Lower.Service = times(time.Millisecond, 1000) },
			reasons: []string{"service p99 1 to 4 ms, since the generator was late; use a faster or quieter machine"},
		},
		{
			name: "a reason of one time, and a doubt of another", mode: load.OpenLoop,
			alter: func(in *Input) {
				in.Result.Measurement.Lower.Response = times(time.Millisecond, 1000)
				in.Result.Measurement.Lower.Service = times(3*time.Millisecond, 1000)
			},
			reasons: []string{"response p99 1 to 5 ms"},
			doubts:  []string{"service p99 3 to 4 ms"},
		},
		{
			name: "nothing was kept of the lower values", mode: load.OpenLoop,
			alter:   func(in *Input) { in.Result.Measurement.Lower = measure.Lower{} },
			reasons: []string{"response p99 0 to 5 ms", "service p99 0 to 4 ms"},
		},
		{
			name: "late where nothing is acknowledged", mode: load.OpenLoop,
			alter:   unacknowledged(11 * time.Millisecond),
			reasons: []string{"send delay p99 11 ms; lower the rate"},
		},
		{
			name: "a little late where nothing is acknowledged", mode: load.OpenLoop,
			alter:  unacknowledged(10 * time.Millisecond),
			doubts: []string{"send delay p99 10 ms; lower the rate"},
		},
		{name: "on time where nothing is acknowledged", mode: load.OpenLoop, alter: unacknowledged(time.Millisecond)},
		{
			name: "late where nothing is acknowledged, in one of the steps", mode: load.OpenLoop,
			alter: func(in *Input) {
				unacknowledged(50 * time.Microsecond)(in)
				fine, late := in.Result.Measurement, in.Result.Measurement
				fine.Name, late.Name = "10,000/s", "20,000/s"
				late.SendDelay = times(20*time.Millisecond, 1000)
				in.Result.Steps = []measure.Tally{fine, late}
			},
			reasons: []string{"send delay p99 20 ms in the step of 20,000/s; lower the rate"},
		},
		{
			name: "late, and the age of what was not answered hides it", mode: load.OpenLoop,
			alter: func(in *Input) {
				h := &in.Result.Measurement
				h.Response, h.Lower.Response = times(5*time.Millisecond, 10), times(time.Millisecond, 10)
				h.Service, h.Lower.Service = nil, nil
				h.Censored = times(time.Second, 990)
			},
		},
		{
			name: "a system that takes nothing", mode: load.OpenLoop,
			alter: func(in *Input) {
				h := &in.Result.Measurement
				h.Counts, h.Arrived = measure.Counts{Offered: 1000, Sent: 1000, Failed: 1000, Batches: 1000}, 0
				h.Lower.Response = times(time.Microsecond, 1000)
				h.SendDelay = times(time.Second, 1000)
				in.Result.Freezes = froze(5 * time.Second)
			},
		},
		{
			name: "a system that takes nothing, at full speed", mode: load.ClosedLoop,
			alter: func(in *Input) {
				h := &in.Result.Measurement
				h.Counts, h.Arrived = measure.Counts{Offered: 1000, Sent: 1000, Failed: 1000, Batches: 1000}, 0
				in.Result.Freezes = froze(5 * time.Second)
			},
		},
		{
			name: "freezes do not count with a schedule", mode: load.OpenLoop,
			alter: func(in *Input) { in.Result.Freezes = froze(5 * time.Second) },
		},
		{
			name: "froze for a hundredth, closed loop", mode: load.ClosedLoop,
			alter: func(in *Input) { in.Result.Freezes = froze(100 * time.Millisecond) },
		},
		{
			name: "froze for more than a hundredth, closed loop", mode: load.ClosedLoop,
			alter:  func(in *Input) { in.Result.Freezes = froze(101 * time.Millisecond) },
			doubts: []string{"the generator did not run for 1.01% of the measurement, so the rate may be too low by as much: its process did not run for 101 ms at 2 s (stopped and continued)"},
		},
		{
			name: "froze for a tenth, full speed", mode: load.FullSpeed,
			alter:  func(in *Input) { in.Result.Freezes = froze(time.Second) },
			doubts: []string{"the generator did not run for 10% of the measurement"},
		},
		{
			name: "froze for more than a tenth, full speed", mode: load.FullSpeed,
			alter:   func(in *Input) { in.Result.Freezes = froze(1010 * time.Millisecond) },
			reasons: []string{"the generator did not run for 10.1% of the measurement, so the rate may be too low by as much: its process did not run for 1.01 s at 2 s (stopped and continued); use a faster or quieter machine"},
		},
		{
			name: "froze for more than a tenth, consuming", mode: load.Consuming,
			alter:   func(in *Input) { in.Result.Freezes = froze(3 * time.Second) },
			reasons: []string{"the generator did not run for 30% of the measurement"},
		},
		{
			name: "a busy sending loop", mode: load.OpenLoop,
			alter: func(in *Input) { in.Result.Busy = 0.97 },
			notes: []string{"a sending thread was busy for 97% of the measurement"},
		},
		{name: "a busy sending loop at full speed", mode: load.FullSpeed, alter: func(in *Input) { in.Result.Busy = 0.97 }},
		{
			name: "all processors busy", mode: load.OpenLoop,
			alter: func(in *Input) { in.Result.Usage.CPU = 39 * time.Second },
			notes: []string{"the generator used 97.5% of 4 processors (at most 95%): lower the rate, or"},
		},
		{
			name: "all processors busy, closed loop", mode: load.ClosedLoop,
			alter: func(in *Input) { in.Result.Usage.CPU = 39 * time.Second },
			notes: []string{"the generator used 97.5% of 4 processors"},
		},
		{
			name: "many long pauses with a schedule show in the times", mode: load.OpenLoop,
			alter: func(in *Input) { in.Result.Usage.GCPauses, in.Result.Usage.GCPauseMax = 1000, 20*time.Millisecond },
		},
		{
			name: "many pauses of a millisecond", mode: load.ClosedLoop,
			alter: func(in *Input) { in.Result.Usage.GCPauses, in.Result.Usage.GCPauseMax = 1000, time.Millisecond },
		},
		{
			name: "few long pauses", mode: load.ClosedLoop,
			alter: func(in *Input) { in.Result.Usage.GCPauses, in.Result.Usage.GCPauseMax = 5, 20*time.Millisecond },
		},
		{
			name: "some long pauses", mode: load.ClosedLoop,
			alter:  func(in *Input) { in.Result.Usage.GCPauses, in.Result.Usage.GCPauseMax = 100, 3*time.Millisecond },
			doubts: []string{"the garbage collector stopped the generator for up to 3 ms, 100 times"},
		},
		{
			name: "many long pauses", mode: load.FullSpeed,
			alter:   func(in *Input) { in.Result.Usage.GCPauses, in.Result.Usage.GCPauseMax = 1000, 3*time.Millisecond },
			reasons: []string{"the garbage collector stopped the generator for up to 3 ms, 1000 times; give it more memory"},
		},
		{
			name: "some long pauses of who consumes", mode: load.Consuming,
			alter:  func(in *Input) { in.Result.Usage.GCPauses, in.Result.Usage.GCPauseMax = 100, 3*time.Millisecond },
			doubts: []string{"the garbage collector stopped the clients for up to 3 ms, 100 times"},
		},
		{
			name: "full speed, and the bound was not full", mode: load.FullSpeed,
			alter:   func(in *Input) { in.Result.Full = 0.5 },
			reasons: []string{"the in-flight limit was reached for only 50% of the measurement"},
		},
		{
			name: "full speed for a moment", mode: load.FullSpeed,
			alter: func(in *Input) { in.Result.Full, in.Result.Measurement.End = 0.5, 900*time.Millisecond },
			notes: []string{"a measurement of 900 ms is too short to tell whether the generator or the system was its limit"},
		},
		{
			name: "full speed to nowhere", mode: load.FullSpeed,
			alter: func(in *Input) { in.Result.Full, in.Discards = 0.1, true },
			notes: []string{"no system receives these events"},
		},
		{
			name: "trouble seen by others", mode: load.Consuming,
			alter:   func(in *Input) { in.Clock = []string{"the hypervisor took 30% of the processor"} },
			reasons: []string{"the hypervisor took 30%"},
		},
		{
			name: "the system ended by itself", mode: load.OpenLoop,
			alter:   func(in *Input) { in.System = "exit status 1" },
			reasons: []string{"the system under test ended by itself in the middle of the run: exit status 1"},
		},
		{
			name: "no connection was left", mode: load.OpenLoop,
			alter:   func(in *Input) { in.Connections = "none came back within 1m" },
			reasons: []string{"a fault of the run left no connection in the middle of it: none came back within 1m"},
		},
		{
			name: "a short measurement, and what the process did around it", mode: load.OpenLoop,
			alter: func(in *Input) {
				in.Result.Measurement.End = 5 * time.Millisecond
				in.Result.Usage.CPU = 30 * time.Millisecond
			},
		},
		{
			name: "more than all processors there cannot be", mode: load.OpenLoop,
			alter: func(in *Input) { in.Result.Usage.CPU = 60 * time.Second },
			notes: []string{"the generator used 100% of 4 processors (at most 95%)"},
		},
		{
			name: "all processors busy with reading", mode: load.Consuming,
			alter: func(in *Input) { in.Result.Usage.CPU = 39 * time.Second },
			notes: []string{"the clients used 97.5% of 4 processors (at most 95%): the rate is what they could take; use"},
		},
		{
			name: "threads that no client has use for", mode: load.OpenLoop,
			alter: func(in *Input) { in.Result.Threads, in.Result.MostThreads, in.Result.Clients = 1, 4, 1 },
			notes: []string{"only 1 of 4 --threads sent: each client uses one thread, and the run had 1 client"},
		},
		{
			name: "as many threads as were allowed", mode: load.OpenLoop,
			alter: func(in *Input) { in.Result.Threads, in.Result.MostThreads, in.Result.Clients = 2, 2, 3 },
		},
		{name: "an empty measurement", mode: load.FullSpeed, alter: func(in *Input) { in.Result.Measurement = measure.Tally{}; in.Result.Full = 0 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := Input{Result: calm(tt.mode), Processors: 4}
			if tt.alter != nil {
				tt.alter(&in)
			}
			got := Judge(in)
			level := measure.Trusted
			switch {
			case len(tt.reasons) > 0:
				level = measure.NotTrusted
			case len(tt.doubts) > 0:
				level = measure.Noisy
			}
			assert.True(t, got.OK == (level != measure.NotTrusted) && got.Level == level,
				"got ok %v, %q with reasons %q and doubts %q; want %q", got.OK, got.Level, got.Reasons, got.Doubts, level)
			for _, side := range []struct {
				name      string
				got, want []string
			}{{"reasons", got.Reasons, tt.reasons}, {"doubts", got.Doubts, tt.doubts}, {"notes", got.Notes, tt.notes}} {
				if len(side.got) != len(side.want) {
					t.Errorf("%s: got %q, want %d", side.name, side.got, len(side.want))
					continue
				}
				for i, want := range side.want {
					assert.True(t, strings.Contains(side.got[i], want), "%s: got %q, want something with %q", side.name, side.got[i], want)
				}
			}
		})
	}
}

// unacknowledged changes a run to one in which nothing is answered and events were sent late by a given time.
func unacknowledged(late time.Duration) func(in *Input) {
	return func(in *Input) {
		r := in.Result
		r.Unanswered = true
		r.Measurement.Counts = measure.Counts{Offered: 1000, Sent: 1000, Unknown: 1000, Batches: 1000}
		r.Measurement.Set, r.Measurement.Lower = measure.Set{SendDelay: times(late, 1000)}, measure.Lower{}
	}
}

// TestWaysOut: the advice in a reason is possible and would help.
func TestWaysOut(t *testing.T) {
	for _, tt := range []struct {
		name                              string
		clients, threads, most, processor int
		late, busy, full                  string // the ends of two reasons and a note
	}{
		{
			name: "one client, the usual case", clients: 1, threads: 1, processor: 4,
			late: "; lower the rate, add --clients, or use a faster or quieter machine",
			busy: "; add --clients, or lower the rate",
			full: "; add --clients, lower --max-in-flight, or use a faster machine",
		},
		{
			name: "a thread for each processor", clients: 8, threads: 4, processor: 4,
			late: "; lower the rate, or use a faster or quieter machine",
			busy: "; lower the rate",
			full: "; lower --max-in-flight, or use a faster machine",
		},
		{
			name: "limited by the flag", clients: 4, threads: 2, most: 2, processor: 4,
			late: "; lower the rate, allow more --threads, or use a faster or quieter machine",
			busy: "; allow more --threads, or lower the rate",
			full: "; allow more --threads, lower --max-in-flight, or use a faster machine",
		},
		{
			name: "limited by both", clients: 2, threads: 2, most: 2, processor: 4,
			late: "; lower the rate, add --clients and allow more --threads, or use a faster or quieter machine",
			busy: "; add --clients and allow more --threads, or lower the rate",
			full: "; add --clients and allow more --threads, lower --max-in-flight, or use a faster machine",
		},
		{
			name: "not known", processor: 4,
			late: "; lower the rate, or use a faster or quieter machine",
			busy: "; lower the rate",
			full: "; lower --max-in-flight, or use a faster machine",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := calm(load.OpenLoop)
			r.Clients, r.Threads, r.MostThreads = tt.clients, tt.threads, tt.most
			r.Measurement.Lower.Response, r.Busy = times(time.Millisecond, 1000), 0.97
			late := Judge(Input{Result: r, Processors: tt.processor})
			r = calm(load.FullSpeed)
			r.Clients, r.Threads, r.MostThreads, r.Full = tt.clients, tt.threads, tt.most, 0.5
			full := Judge(Input{Result: r, Processors: tt.processor})
			for _, c := range []struct {
				got  []string
				want string
			}{{late.Reasons, tt.late}, {late.Notes, tt.busy}, {full.Reasons, tt.full}} {
				assert.True(t, len(c.got) == 1 && strings.HasSuffix(c.got[0], c.want), "got %q, want the end %q", c.got, c.want)
			}
		})
	}
}

// intervals returns one-second intervals of the measurement.
func intervals(n int, f func(i int, iv *measure.Interval)) []measure.Interval {
	out := make([]measure.Interval, n)
	for i := range out {
		at := time.Duration(i) * time.Second
		out[i] = measure.Interval{Phase: "measurement", Start: at, End: at + time.Second, InFlight: 50, Counts: measure.Counts{Offered: 1000, Sent: 1000, Acked: 1000}}
		out[i].Service = times(4*time.Millisecond, 100)
		f(i, &out[i])
	}
	return out
}

func TestSteady(t *testing.T) {
	ms := func(x float64) *measure.Histogram { return times(time.Duration(x*float64(time.Millisecond)), 100) }
	wave := []float64{0, 2, -1, 1, -2, 2, 0, -1, 1, -2}
	for _, tt := range []struct {
		name      string
		n         int
		steps     []measure.Tally
		f         func(i int, iv *measure.Interval)
		ok, known bool
		want      string
		flight    float64 // slope
	}{
		{name: "flat", n: 10, f: func(int, *measure.Interval) {}, ok: true, known: true, want: "no upward trend"},
		{name: "too short", n: 4, f: func(int, *measure.Interval) {}, ok: true, want: "too short to tell (4 whole intervals"},
		{name: "noise", n: 10, f: func(i int, iv *measure.Interval) { iv.Response = ms(10 + wave[i]) }, ok: true, known: true, want: "no upward trend"},
		{name: "one stall", n: 10, f: func(i int, iv *measure.Interval) {
			if i == 8 {
				iv.InFlight, iv.Response = 5000, ms(900)
			}
		}, ok: true, known: true, want: "no upward trend"},
		{name: "in flight climbs", n: 10, f: func(i int, iv *measure.Interval) { iv.InFlight = 100 + 20*uint64(i) }, known: true, flight: 20, want: "events in flight climbed by 105% over the measurement (+20/s)"},
		{name: "in flight climbs by a part of a batch", n: 10, f: func(i int, iv *measure.Interval) { iv.InFlight = uint64(i) / 3 }, ok: true, known: true, flight: 0.33, want: "no upward trend"},
		{name: "response climbs", n: 10, f: func(i int, iv *measure.Interval) { iv.Response = ms(10 + float64(i)/2) }, known: true, want: "the mean response time climbed by 40.8% over the measurement (+500 us/s)"},
		{name: "response falls", n: 10, f: func(i int, iv *measure.Interval) { iv.Response = ms(10 - float64(i)/2) }, ok: true, known: true, want: "no upward trend"},
		{name: "service stands in", n: 10, f: func(i int, iv *measure.Interval) { iv.Service = ms(10 + float64(i)/2) }, known: true, want: "climbed"},
		{name: "the schedule climbs", n: 10, f: func(i int, iv *measure.Interval) {
			iv.Offered = 1000 + 100*uint64(i)
			iv.InFlight = iv.Offered / 20
		}, ok: true, want: "the target rate changed"},
		{name: "a long climb", n: 3600, f: func(i int, iv *measure.Interval) { iv.Response = ms(10 + float64(i)/1000) }, known: true, want: "climbed by 30.5%"},
		{
			name: "the second step climbs", n: 20,
			steps: []measure.Tally{{Name: "step 1", End: 10 * time.Second}, {Name: "step 2: 2 k/s", Start: 10 * time.Second, End: 20 * time.Second}},
			f: func(i int, iv *measure.Interval) {
				if i >= 10 {
					iv.Offered = 2000
					iv.InFlight = 100 + 50*uint64(i-10)
				}
			}, known: true, flight: 50, want: "(step 2: 2 k/s)",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &load.Result{
				Mode: load.OpenLoop, Intervals: intervals(tt.n, tt.f), Steps: tt.steps,
				Measurement: measure.Tally{End: time.Duration(tt.n) * time.Second, Counts: measure.Counts{Sent: 10000, Batches: 1000}},
			}
			got := Steady(r)
			assert.True(t, got.OK == tt.ok && got.Known == tt.known && strings.Contains(got.Text, tt.want),
				"got ok %v, known %v, %q; want %v, %v, %q", got.OK, got.Known, got.Text, tt.ok, tt.known, tt.want)
			d := got.InFlightSlope - tt.flight
			assert.True(t, d <= 0.05 && d >= -0.05, "slope of in flight: got %v, want %v", got.InFlightSlope, tt.flight)
		})
	}
}

// The last interval of a phase is often incomplete and must not count.
func TestSteadyIgnoresIncompleteIntervals(t *testing.T) {
	in := intervals(5, func(int, *measure.Interval) {})
	in[4].End = in[4].Start + 10*time.Millisecond
	in = append(in, measure.Interval{Phase: "drain", Start: 5 * time.Second, End: 6 * time.Second})
	late := in[3] // late answers of the previous step, in the same interval
	late.Counts = measure.Counts{Acked: 7}
	in = slices.Insert(in, 3, late)
	got := rows(in, 0, time.Minute)
	assert.Same(t, len(got), 4)
	assert.True(t, got[3].Acked == 1007 && got[3].Offered == 1000, "two rows of an interval: got %+v", got[3].Counts)
}

func TestClocksThatDiffer(t *testing.T) {
	for _, tt := range []struct {
		name            string
		wall, monotonic time.Duration
		want            string
	}{
		{"together", time.Minute, time.Minute, ""},
		{"slewed by the time daemon", time.Hour, time.Hour - 2*time.Second, ""},
		{"slept", 70 * time.Second, 11 * time.Second, "differ by 59 s"},
		{"set back", -time.Hour, 11 * time.Second, "differ by 1h00m"},
	} {
		got := clockDifference(tt.wall, tt.monotonic)
		assert.True(t, (tt.want != "" || got == "") && strings.Contains(got, tt.want), "%s: got %q, want something with %q", tt.name, got, tt.want)
	}
	now := time.Now()
	assert.Equal(t, clock(&load.Result{Started: now, Ended: now.Add(time.Minute)}), "", "a calm minute")
}
