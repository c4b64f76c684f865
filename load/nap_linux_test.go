package load

import (
	"sync"
	"testing"
	"time"
)

// prompt is a target of one lane that answers at once, from another
// goroutine, and counts how often it is written to.
type prompt struct {
	sink    Sink
	work    chan []Outcome
	out     []Outcome
	flushes int
	wg      sync.WaitGroup
}

func (f *prompt) Partitioner() Partitioner { return RoundRobin(1) }
func (f *prompt) Client(int32) int         { return 0 }
func (f *prompt) Clients() int             { return 1 }
func (f *prompt) Route(int32) Lane         { return f }
func (f *prompt) Wire() (uint64, uint64)   { return 0, 0 }
func (f *prompt) ID() int                  { return 0 }
func (f *prompt) Room(int32, uint64) int   { return 1 }

func (f *prompt) Start(s Sink) {
	f.sink, f.work = s, make(chan []Outcome, 1<<16)
	f.wg.Go(func() {
		for out := range f.work {
			for i := range out {
				out[i].Done = s.Now()
			}
			s.Complete(out)
		}
	})
}

func (f *prompt) Fire(batches []Batch) int {
	for i := range batches {
		f.out = append(f.out, Outcome{Batch: batches[i], Sent: f.sink.Now(), Acked: batches[i].Events, Place: -1})
	}
	return len(batches)
}

func (f *prompt) Flush() {
	f.flushes++
	f.work <- f.out
	f.out = nil
}

func (f *prompt) Close() error {
	close(f.work)
	f.wg.Wait()
	return nil
}

// Events closer to each other than a nap are fired together, and those of a
// low rate each by itself.
func TestNaps(t *testing.T) {
	const length = 300 * time.Millisecond
	for _, tt := range []struct {
		name     string
		rate     float64
		inFlight int
		most     int // flushes
	}{
		{"close", 100_000, 10_000, int(length/nap) + 100},
		{"far apart", 500, 10_000, 150},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &prompt{}
			r, err := New(Plan{Schedule: Constant(tt.rate), BatchEvents: 1, MaxInFlight: tt.inFlight, Measurement: Limits{Time: length}}, f)
			if err != nil {
				t.Fatal(err)
			}
			r.Start()
			res, err := r.Wait()
			if err != nil {
				t.Fatal(err)
			}
			want := uint64(tt.rate * length.Seconds())
			if h := res.Measurement; h.Acked != want || h.Dropped+h.Unsent > 0 {
				t.Errorf("%+v, want %d acked", h.Counts, want)
			}
			if f.flushes > tt.most {
				t.Errorf("%d writes for %d events, want %d at most", f.flushes, want, tt.most)
			}
			if tt.rate < 1000 && f.flushes < 100 {
				t.Errorf("%d writes for %d events that were far apart", f.flushes, want)
			}
		})
	}
}

// Answers end a wait for the bound at once: with naps between, one batch in
// flight could keep 10,000 a second, and the median of those due over 300 ms at
// 13,000 would wait 45 ms.
func TestNapsEndWithAnAnswer(t *testing.T) {
	const rate, length, tries = 13_000, 300 * time.Millisecond, 10
	run := func(p Plan) *Result {
		t.Helper()
		p.BatchEvents, p.MaxInFlight = 1, 1
		r, err := New(p, &prompt{})
		if err != nil {
			t.Fatal(err)
		}
		r.Start()
		res, err := r.Wait()
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	var got []time.Duration
	for range tries {
		// A machine that cannot do it without a schedule cannot do it with one.
		if free := run(Plan{Measurement: Limits{Events: rate * uint64(length) / uint64(time.Second)}}); free.Measurement.Length() > length*2/3 {
			continue
		}
		p50 := run(Plan{Schedule: Constant(rate), Measurement: Limits{Time: length}}).Measurement.Response.Percentile(50)
		if p50 < 45*time.Millisecond/2 {
			return
		}
		got = append(got, p50)
	}
	if len(got) == 0 {
		t.Skip("this machine is too busy")
	}
	t.Errorf("response time p50 %v", got)
}
