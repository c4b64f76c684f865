package ledger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"carronade/load"
	"carronade/test/testkit/assert"
)

func sameLog(int32) int32 { return 0 }

type paired struct {
	Stream        int32
	First         uint64
	Events, Acked int32
	Place         int64
	At            time.Duration
	Seq           uint64
}

// collect returns a join and the pairings that it has reported.
func collect(logOf func(int32) int32) (*Join, *[]paired) {
	var mu sync.Mutex
	var got []paired
	j := NewJoin(logOf, func(o load.Outcome, at, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, paired{Stream: o.Stream, First: o.First, Events: o.Events, Acked: o.Acked, Place: o.Place, At: at, Seq: o.Seq})
	})
	return j, &got
}

func ackedBatch(seq, first uint64, n int32, place int64) load.Outcome {
	return load.Outcome{Batch: load.Batch{Seq: seq, First: first, Events: n}, Acked: n, Place: place}
}

func TestJoin(t *testing.T) {
	batch := []load.Outcome{ackedBatch(7, 100, 10, 50)}
	arrival := func(base int64, n int32, at time.Duration) []load.Arrival {
		return []load.Arrival{{Base: base, Events: n, At: at}}
	}
	for _, tt := range []struct {
		name string
		do   func(j *Join)
		want []paired
	}{
		{"answer first", func(j *Join) { j.Fired(batch); j.Arrived(arrival(50, 10, 3)) }, []paired{
			{First: 100, Events: 10, Acked: 10, Place: 50, At: 3, Seq: 7},
		}},
		{"arrival first", func(j *Join) { j.Arrived(arrival(50, 10, 3)); j.Fired(batch) }, []paired{
			{First: 100, Events: 10, Acked: 10, Place: 50, At: 3, Seq: 7},
		}},
		{"in two pieces", func(j *Join) { j.Fired(batch); j.Arrived(arrival(50, 4, 3)); j.Arrived(arrival(54, 6, 5)) }, []paired{
			{First: 100, Events: 4, Acked: 4, Place: 50, At: 3, Seq: 7},
			{First: 104, Events: 6, Acked: 6, Place: 54, At: 5, Seq: 7},
		}},
		{"the second piece first", func(j *Join) { j.Arrived(arrival(54, 6, 5)); j.Fired(batch); j.Arrived(arrival(50, 4, 6)) }, []paired{
			{First: 104, Events: 6, Acked: 6, Place: 54, At: 5, Seq: 7},
			{First: 100, Events: 4, Acked: 4, Place: 50, At: 6, Seq: 7},
		}},
		{"a piece of two batches", func(j *Join) {
			j.Arrived(arrival(50, 20, 3))
			j.Fired(batch)
			j.Fired([]load.Outcome{ackedBatch(8, 110, 10, 60)})
		}, []paired{
			{First: 100, Events: 10, Acked: 10, Place: 50, At: 3, Seq: 7},
			{First: 110, Events: 10, Acked: 10, Place: 60, At: 3, Seq: 8},
		}},
		{"the middle of it", func(j *Join) { j.Fired(batch); j.Arrived(arrival(53, 2, 3)); j.Arrived(arrival(40, 30, 9)) }, []paired{
			{First: 103, Events: 2, Acked: 2, Place: 53, At: 3, Seq: 7},
			{First: 100, Events: 3, Acked: 3, Place: 50, At: 9, Seq: 7},
			{First: 105, Events: 5, Acked: 5, Place: 55, At: 9, Seq: 7},
		}},
		{"twice", func(j *Join) { j.Arrived(arrival(50, 10, 3)); j.Arrived(arrival(50, 10, 4)); j.Fired(batch) }, []paired{
			{First: 100, Events: 10, Acked: 10, Place: 50, At: 3, Seq: 7},
		}},
		{"refused", func(j *Join) {
			j.Fired([]load.Outcome{{Batch: load.Batch{Events: 10}, Failed: 10, Place: -1}})
			j.Arrived(arrival(0, 10, 3))
		}, nil},
		{"unknown and without stamps", func(j *Join) {
			j.Fired([]load.Outcome{{Batch: load.Batch{Events: 10}, Unknown: 10, Place: -1}})
			j.Arrived(arrival(0, 10, 3))
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j, got := collect(sameLog)
			tt.do(j)
			assert.Same(t, *got, tt.want)
		})
	}
}

func TestJoinByStamps(t *testing.T) {
	stamps := func(run uint32, stream int32, first uint64, n int) (s []load.Stamp) {
		for i := range n {
			s = append(s, load.Stamp{Run: run, Stream: stream, Index: first + uint64(i), Offset: int64(i)})
		}
		return s
	}
	unknown := func(stream int32, first uint64, n int32) []load.Outcome {
		return []load.Outcome{{Batch: load.Batch{Stream: stream, First: first, Events: n}, Unknown: n, Place: -1}}
	}
	want := []paired{{Stream: 1, First: 5, Events: 3, Place: -1, At: 9}}
	for _, arrivalFirst := range []bool{false, true} {
		t.Run(fmt.Sprint("arrival first: ", arrivalFirst), func(t *testing.T) {
			j, got := collect(sameLog)
			j.Stamped(42)
			s := append(stamps(41, 1, 5, 3), stamps(42, 0, 0, 2)...)
			s = append(s, stamps(42, 1, 5, 3)...)
			s = append(s, load.Stamp{Bad: true})
			a := []load.Arrival{{Base: 1000, Events: int32(len(s)), At: 9, Stamps: s}}
			if arrivalFirst {
				j.Arrived(a)
				j.Fired(unknown(1, 5, 3))
			} else {
				j.Fired(unknown(1, 5, 3))
				j.Arrived(a)
			}
			assert.Same(t, *got, want)
		})
	}
}

// TestJoinPairsEverything lets batches and arrivals overlap in every way, and checks
// that each event is paired once, with its arrival.
func TestJoinPairsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		total := rapid.Int64Range(1, 300).Draw(t, "events")
		most := rapid.Int64Range(1, 40).Draw(t, "most")
		var steps []func(j *Join)
		owner, times := make([]uint64, total), make([]time.Duration, total)
		for lo := int64(0); lo < total; {
			n := min(1+rnd.Int64N(most), total-lo)
			o := ackedBatch(uint64(lo), uint64(lo), int32(n), lo)
			steps = append(steps, func(j *Join) { j.Fired([]load.Outcome{o}) })
			for i := range n {
				owner[lo+i] = o.Seq
			}
			lo += n
		}
		for lo := int64(0); lo < total; {
			n := min(1+rnd.Int64N(most), total-lo)
			a := load.Arrival{Base: lo, Events: int32(n), At: time.Duration(1000 + lo)}
			steps = append(steps, func(j *Join) { j.Arrived([]load.Arrival{a}) })
			for i := range n {
				times[lo+i] = a.At
			}
			lo += n
		}
		shuffle(rnd, steps, rapid.SampledFrom([]int{3, -1}).Draw(t, "disorder"))
		j, got := collect(sameLog)
		for _, s := range steps {
			s(j)
		}
		seen := make([]bool, total)
		for _, c := range *got {
			for i := range int64(c.Events) {
				e := c.Place + i
				assert.Must(t, !seen[e], "event %d is paired twice", e)
				seen[e] = true
				if owner[e] != c.Seq || times[e] != c.At || int64(c.First)+i != e {
					t.Fatalf("event %d is reported for batch %d, arrived at %d, index %d; want %d, %d", e, c.Seq, c.At, int64(c.First)+i, owner[e], times[e])
				}
			}
		}
		assert.Must(t, !slices.Contains(seen, false), "an event is not paired")
		if j.Waiting() != 0 || j.givenUp.Load() != 0 {
			t.Fatalf("%d wait and %d are given up, want none", j.Waiting(), j.givenUp.Load())
		}
	})
}

func TestJoinIsBounded(t *testing.T) {
	j, got := collect(sameLog)
	j.most = 100
	for i := range int64(250) {
		j.Fired([]load.Outcome{ackedBatch(uint64(i), uint64(i), 1, 10*i)})
	}
	assert.True(t, j.Waiting() == 100 && j.givenUp.Load() == 150, "%d wait and %d are given up, want 100 and 150", j.Waiting(), j.givenUp.Load())
	for i := range int64(mostReads + 1000) {
		j.Arrived([]load.Arrival{{Base: 10*i + 5, Events: 1}})
	}
	n := j.reads.Load()
	assert.True(t, n <= mostReads, "%d arrivals are kept", n)
	j.Arrived([]load.Arrival{{Base: 2490, Events: 1}})
	assert.Equal(t, len(*got), 1, "calls")
}

func TestJoinOfARecreatedLog(t *testing.T) {
	j, got := collect(sameLog)
	j.Fired([]load.Outcome{ackedBatch(1, 0, 10, 0)})
	j.Fired([]load.Outcome{ackedBatch(2, 10, 5, 3)})
	j.Arrived([]load.Arrival{{Base: 3, Events: 5, At: 1}})
	want := []paired{{First: 10, Events: 5, Acked: 5, Place: 3, At: 1, Seq: 2}}
	assert.Same(t, *got, want)
	assert.Equal(t, j.givenUp.Load(), 10, "given up")
}

func TestJoinConcurrently(t *testing.T) {
	var mu sync.Mutex
	var events uint64
	j := NewJoin(func(s int32) int32 { return s % 3 }, func(o load.Outcome, _, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		events += uint64(o.Events)
	})
	const n = 5000
	var group sync.WaitGroup
	for s := range int32(3) {
		group.Go(func() {
			for i := range int64(n) {
				o := ackedBatch(uint64(i), uint64(i), 2, 2*i)
				o.Stream = s
				j.Fired([]load.Outcome{o})
			}
		})
		group.Go(func() {
			for i := int64(0); i < 2*n; i += 10 {
				j.Arrived([]load.Arrival{{Log: s, Base: i, Events: 10}})
			}
		})
	}
	group.Wait()
	assert.Equal(t, events, 3*2*n, "events paired")
}

func BenchmarkJoin(b *testing.B) {
	for _, n := range []int32{1, 2400} {
		b.Run(fmt.Sprint(n, " events"), func(b *testing.B) {
			j := NewJoin(sameLog, func(load.Outcome, time.Duration, time.Duration) {})
			const batch, behind = 64, 16
			out := make([]load.Outcome, batch)
			in := make([]load.Arrival, batch)
			b.ReportAllocs()
			var k int64
			for b.Loop() {
				for i := range out {
					out[i] = ackedBatch(uint64(k), uint64(k)*uint64(n), n, k*int64(n))
					in[i] = load.Arrival{Base: (k - behind*batch) * int64(n), Events: n}
					k++
				}
				j.Fired(out)
				if in[0].Base >= 0 {
					j.Arrived(in)
				}
			}
			b.ReportMetric(float64(k)*float64(n)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// Whatever is consumed, and in whichever pieces, each event of a batch that the join takes is reported once,
// as paired or as missing, and the bytes of the parts add up.
func TestJoinReportsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var events, missed int32
		var bytes, wire int64
		add := func(o *load.Outcome) {
			events += o.Events
			bytes += o.Bytes
			wire += o.Wire
		}
		j := NewJoin(sameLog, func(o load.Outcome, _, _ time.Duration) { add(&o) })
		j.Missing(func(o load.Outcome) { add(&o); missed += o.Events })
		j.most = rapid.Int64Range(1, 4).Draw(t, "most")
		var wantEvents int32
		var wantBytes, wantWire int64
		next := int64(0)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			n := rapid.Int32Range(1, 20).Draw(t, "events")
			if rapid.Bool().Draw(t, "fired") {
				o := ackedBatch(uint64(next), uint64(next), n, next)
				o.Bytes, o.Wire = rapid.Int64Range(0, 1000).Draw(t, "bytes"), rapid.Int64Range(0, 99).Draw(t, "wire")
				if rapid.IntRange(0, 5).Draw(t, "lost") == 0 {
					o.Acked, o.Failed = 0, n
				}
				if j.Takes(&o) {
					wantEvents, wantBytes, wantWire = wantEvents+n, wantBytes+o.Bytes, wantWire+o.Wire
				}
				j.Fired([]load.Outcome{o})
				next += int64(n)
				continue
			}
			j.Arrived([]load.Arrival{{Base: rapid.Int64Range(0, next+5).Draw(t, "base"), Events: n}})
		}
		waiting := j.Waiting()
		j.GiveUpRest()
		if j.Waiting() != 0 {
			t.Fatalf("%d batches still wait", j.Waiting())
		}
		assert.Must(t, waiting <= 0 || missed != 0, "waiting batches were not reported")
		if events != wantEvents || bytes != wantBytes || wire != wantWire {
			t.Fatalf("got %d events, %d bytes, %d on the wire; want %d, %d, %d", events, bytes, wire, wantEvents, wantBytes, wantWire)
		}
	})
}

// TestJoinEarliest: events sent after the request did not wait for the request.
func TestJoinEarliest(t *testing.T) {
	for _, tt := range []struct {
		name    string
		sent    time.Duration
		first   time.Duration // sent at the first attempt; 0: there was none before
		arrival load.Arrival
		want    time.Duration
	}{
		{"nothing known", 5, 0, load.Arrival{At: 100}, 100},
		{"sent before the request", 49, 0, load.Arrival{At: 100, Earliest: 60, Requested: 50, Waited: 3}, 60},
		{"sent afterwards", 50, 0, load.Arrival{At: 100, Earliest: 60, Requested: 50, Waited: 3}, 97},
		{"sent again afterwards", 55, 20, load.Arrival{At: 100, Earliest: 60, Requested: 50, Waited: 3}, 60},
		{"time of the request not known", 55, 0, load.Arrival{At: 100, Earliest: 60}, 60},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := time.Duration(-1)
			j := NewJoin(sameLog, func(_ load.Outcome, _, earliest time.Duration) { got = earliest })
			o := ackedBatch(1, 0, 10, 50)
			o.Sent = tt.sent
			if tt.first > 0 {
				o.Attempt, o.FirstSent = 1, tt.first
			}
			tt.arrival.Base, tt.arrival.Events = 50, 10
			j.Arrived([]load.Arrival{tt.arrival})
			j.Fired([]load.Outcome{o})
			assert.Equal(t, got, tt.want)
		})
	}
}

// With a backlog, more batches wait than have room: neighbours are merged, no event is given up, and when each was
// due stays known from its index. What cannot be merged has more room.
func TestJoinMerges(t *testing.T) {
	for _, tt := range []struct {
		name    string
		streams int32 // of the log, in turns
		waits   int   // batches that wait at most, of those fired
	}{{"one stream", 1, 4000}, {"two streams", 2, 8 * 4000}} {
		t.Run(tt.name, func(t *testing.T) {
			const batches, events = 20_000, 10
			met := map[int32]uint64{} // by stream: the next event
			j := NewJoin(sameLog, func(o load.Outcome, _, _ time.Duration) {
				assert.Equal(t, o.First, met[o.Stream], "the next event of the stream")
				met[o.Stream] += uint64(o.Events)
			})
			j.most = 4000
			j.Missing(func(o load.Outcome) { t.Errorf("%d events were given up", o.Events) })
			j.Counting(true)
			most := 0
			for i := range batches {
				o := ackedBatch(uint64(i), uint64(i)/uint64(tt.streams)*events, events, int64(i*events))
				o.Stream, o.Bytes = int32(i)%tt.streams, events*100
				j.Fired([]load.Outcome{o})
				most = max(most, j.Waiting())
			}
			assert.True(t, most <= tt.waits, "%d batches waited, want at most %d", most, tt.waits)
			acked, read := j.Counts()
			assert.Equal(t, acked, Count{batches * events, batches * events * 100}, "acked")
			assert.Equal(t, read, Count{}, "read")
			for i := 0; i < batches*events; i += 25 {
				j.Arrived([]load.Arrival{{Base: int64(i), Events: 25, At: 1}})
			}
			acked, read = j.Counts()
			assert.Equal(t, read, acked, "read in the end")
		})
	}
}
