package cluster

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/measure"
)

// DueBefore returns how many operations of a load with a rate are due before a
// time from the start.
func (w *TopicLoad) DueBefore(at time.Duration) uint64 {
	if w.For > 0 {
		at = min(at, w.For)
	}
	if w.Rate <= 0 || at <= 0 {
		return 0
	}
	n := int(math.Ceil(at.Seconds() * w.Rate))
	for n > 0 && w.dueOf(n-1) >= at { // due times are rounded to nanoseconds
		n--
	}
	for w.dueOf(n) < at {
		n++
	}
	total, each := w.operations(), w.each()
	if total >= 0 && n > total/each {
		return uint64(total)
	}
	return uint64(n) * uint64(each)
}

// dueOf returns when a request is due at the rate.
func (w *TopicLoad) dueOf(i int) time.Duration {
	return time.Duration(float64(i) / w.Rate * float64(time.Second))
}

// each returns the number of operations in a request.
func (w *TopicLoad) each() int {
	if w.Op == OpListTopics || w.Op == OpReadTopics {
		return 1
	}
	return max(1, w.PerRequest)
}

// run makes the requests: Concurrency at once, each when it is due. It returns when all are
// answered, or when the context ends, with the result so far. It is called once.
func (t *work) run(ctx context.Context) *TopicResult {
	total := t.operations()
	going, stop := context.WithCancel(ctx)
	defer stop()
	t.stop = stop
	var (
		wg     sync.WaitGroup
		begun  int // operations
		next   int // request
		nextMu sync.Mutex
		start  = time.Now()
		claim  = func() (i int, names []string, ok bool) {
			nextMu.Lock()
			defer nextMu.Unlock()
			switch {
			case begun == total:
				return 0, nil, false
			case going.Err() != nil:
				t.end(time.Since(start), false)
				return 0, nil, false
			case t.For > 0 && (time.Since(start) >= t.For || t.Rate > 0 && t.dueOf(next) >= t.For):
				t.end(t.For, true)
				return 0, nil, false
			}
			n := t.PerRequest
			if total > 0 {
				n = min(n, total-begun)
			}
			names = t.names(begun, n)
			begun += n
			next++
			return next - 1, names, true
		}
	)
	if t.Started != nil {
		t.Started(start)
	}
	most := t.Concurrency
	if total > 0 {
		most = min(most, 1+(total-1)/t.PerRequest)
	}
	for range most {
		wg.Go(func() {
			// Its own client, so that requests do not queue on one connection.
			own, err := kgo.NewClient(t.cl.Config.ClientOptions()...)
			if err != nil {
				own = t.cl.Control
			} else {
				defer own.Close()
			}
			for {
				i, names, ok := claim()
				if !ok {
					return
				}
				a := &attempt{names: names, errs: make([]error, len(names))}
				if t.Rate > 0 {
					a.due, a.free = t.dueOf(i), time.Since(start)
					if !wait(going, a.due-a.free) {
						t.end(time.Since(start), false)
						return
					}
				}
				t.begin()
				a.sent = time.Since(start)
				if t.Rate <= 0 {
					a.due, a.free = a.sent, a.sent
				}
				t.do(ctx, own, a)
				t.record(a, time.Since(start))
			}
		})
	}
	wg.Wait()
	t.result(time.Since(start), total)
	t.res.Interrupted = ctx.Err() != nil
	return t.res
}

// wait waits and reports whether the load still goes on.
func wait(going context.Context, d time.Duration) bool {
	if d <= 0 {
		return going.Err() == nil
	}
	due := time.NewTimer(d)
	defer due.Stop()
	select {
	case <-going.Done():
		return false
	case <-due.C:
		return true
	}
}

// result completes the result of a load of total operations.
func (t *work) result(elapsed time.Duration, total int) {
	r := t.res
	r.Elapsed = elapsed
	if r.Begun = t.ended; r.Begun < 0 {
		r.Begun = elapsed
	}
	bound := total < 0 || t.Times > 0 && t.For > 0
	want := uint64(0)
	switch {
	case bound && t.Rate > 0:
		want = t.DueBefore(r.Begun)
	case total >= 0 && (!bound || !t.byTime):
		want = uint64(total)
	}
	if want > r.Operations {
		r.Unsent = want - r.Operations
	}
	if s := r.Elapsed.Seconds(); s > 0 {
		r.PerSecond = float64(r.Done) / s
		r.BusyMean = t.busy.Seconds() / s
	}
	for _, f := range t.rows {
		r.Failures = append(r.Failures, f.Failure)
	}
	slices.SortFunc(r.Failures, func(a, b measure.Failure) int {
		if a.Events != b.Events {
			return int(b.Events) - int(a.Events)
		}
		return slices.Compare([]string{a.Class, a.Text}, []string{b.Class, b.Text})
	})
	slices.SortFunc(r.Topics, func(a, b Topic) int { return slices.Compare([]string{a.Name}, []string{b.Name}) })
}

// do makes one request.
func (t *work) do(ctx context.Context, client *kgo.Client, a *attempt) {
	timeout := t.cl.Config.RequestTimeout
	if t.Op != OpReadTopics { // a topic may be large, and each fetch has its own deadline
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout+time.Second)
		defer cancel()
	}
	admin := kadm.NewClient(client)
	admin.SetTimeoutMillis(int32(timeout.Milliseconds()))
	switch t.Op {
	case OpCreateTopics:
		specs := make([]TopicSpec, len(a.names))
		for i, n := range a.names {
			specs[i] = t.Spec
			specs[i].Name = n
		}
		a.errs = CreateTopics(ctx, client, specs, timeout)
	case OpDeleteTopics:
		a.deleteTopics(ctx, client, timeout)
	case OpListTopics:
		a.errs[0] = t.list(ctx, admin)
	case OpDescribeTopics:
		t.describe(ctx, admin, a)
	case OpDeleteRecords:
		t.deleteRecords(ctx, admin, a)
	case OpReadTopics:
		a.errs[0] = t.read(ctx, client, a)
	}
}
