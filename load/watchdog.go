package load

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"carronade/measure"
)

// A watchdog finds the times in which the generator did not run. A dedicated thread
// wakes every few milliseconds and does nothing else: when it wakes late, the process
// was stopped, throttled or suspended. Sending threads report their own late wake-ups.
// Safe for concurrent use.
type watchdog struct {
	beat atomic.Int64 // when the watchdog's thread last ran; 0: not running
	last atomic.Int64 // end of the newest freeze of the process; 0: none

	active atomic.Int32  // threads that have something to do soon, or expect an answer
	resume chan struct{} // capacity 1: signals that a thread became active

	clip  func(from, to time.Duration) time.Duration // the part of a span within the measurement
	cause func(length time.Duration) string          // why the generator has not run until now; nil: not known
	stop  chan struct{}
	ended chan struct{}

	mu             sync.Mutex
	processFreezes Frozen
	known          []freeze // times in which the process or a thread did not run: disjoint, in order, the newest mostFreezes
	withoutCause   []unexplained
	result         measure.Freezes
}

const (
	beatEvery = 5 * time.Millisecond
	// leastFreeze is the shortest freeze that is listed. On a busy machine a thread
	// occasionally waits for a processor for some milliseconds.
	leastFreeze = 10 * time.Millisecond
	// afterFreeze is how long after a freeze readers may still be reading the data that
	// waited for them.
	afterFreeze = 2 * time.Millisecond
	// lateEvidence is how long after the end of a freeze a signal may be noticed at most.
	lateEvidence = 250 * time.Millisecond
	// mostFreezes limits how many are remembered individually.
	mostFreezes = 4096
	// mostListed limits how many are in the report.
	mostListed = 10
)

// What did not run.
const (
	frozeProcess   = "process"
	frozeSending   = "sending thread"
	frozeReceiving = "receiving thread"
)

// start starts the watchdog; now returns the run's clock.
func (w *watchdog) start(now func() time.Duration) {
	addProcs(1)
	w.stop, w.ended = make(chan struct{}), make(chan struct{})
	w.beat.Store(int64(max(now(), 1)))
	go func() {
		defer close(w.ended)
		wait := newBeat()
		defer wait.close()
		for {
			select {
			case <-w.stop:
				return
			default:
			}
			if w.active.Load() == 0 {
				if !w.pause(now) {
					return
				}
			}
			wait.sleep(beatEvery)
			w.findCauses(now())
			at := now()
			before := time.Duration(w.beat.Swap(int64(at)))
			if at-before >= leastFreeze {
				w.note(frozeProcess, before, at)
			}
		}
	}()
}

// pause waits until a thread has something to do. It returns false if the watchdog has
// been stopped.
func (w *watchdog) pause(now func() time.Duration) bool {
	w.findCauses(now())
	w.beat.Store(0)
	defer func() { w.beat.Store(int64(max(now(), 1))) }()
	select {
	case <-w.stop:
		return false
	case <-w.resume:
		return true
	}
}

// addActive changes the number of active threads by n: those that have something to do
// soon or expect an answer. Without active threads the watchdog pauses: a freeze would
// affect nothing, and watching costs more than a run at a few events a second.
func (w *watchdog) addActive(n int32) {
	if w.active.Add(n) == n && n > 0 {
		select {
		case w.resume <- struct{}{}:
		default:
		}
	}
}

// end stops the watchdog and returns what it found.
func (w *watchdog) end() measure.Freezes {
	if w.stop != nil {
		close(w.stop)
		<-w.ended
		addProcs(-1)
	}
	w.findCauses(time.Duration(w.beat.Swap(0)))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.processFreezes {
		w.result.Process = append(w.result.Process, measure.Freeze{At: f.from, Length: f.to - f.from, Who: frozeProcess})
	}
	return w.result
}

// endedWithin returns how many freezes of the process ended after from, up to to, and how long
// the longest was.
func (w *watchdog) endedWithin(from, to time.Duration) (n int, longest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.processFreezes) - 1; i >= 0 && w.processFreezes[i].to > from; i-- {
		if f := w.processFreezes[i]; f.to <= to {
			n++
			longest = max(longest, f.to-f.from)
		}
	}
	return n, longest
}

// note records a freeze. If it overlaps known ones, only the rest is added to the
// total.
func (w *watchdog) note(who string, from, to time.Duration) {
	if to-from < leastFreeze {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if who == frozeProcess {
		w.processFreezes.Add(from, to)
		storeMax(&w.last, int64(to))
	}
	first, fresh := w.know(from, to)
	if w.clip != nil {
		if w.clip(from, to) == 0 {
			return // outside the measurement, so no result depends on it
		}
		w.result.Total += fresh
	}
	if !first && who != frozeProcess {
		return
	}
	if !first { // a thread reported it before; that the process froze is more precise
		w.result.Longest = slices.DeleteFunc(w.result.Longest, func(f measure.Freeze) bool {
			gone := f.Who != frozeProcess && f.At < to && from < f.At+f.Length
			if gone {
				w.result.Count--
			}
			return gone
		})
	}
	w.result.Count++
	f := measure.Freeze{At: from, Length: to - from, Who: who}
	if len(w.result.Longest) == mostListed && w.result.Longest[mostListed-1].Length >= f.Length {
		return
	}
	if w.cause != nil {
		w.withoutCause = append(w.withoutCause, unexplained{Freeze: f})
	}
	w.result.Longest = append(w.result.Longest, f)
	slices.SortStableFunc(w.result.Longest, func(a, b measure.Freeze) int { return cmp.Compare(b.Length, a.Length) })
	w.result.Longest = w.result.Longest[:min(len(w.result.Longest), mostListed)]
}

// know adds a span to the known ones. It reports whether it is the first to cover any of its time,
// and returns how much of the measurement it is the first to cover. It is called for each answer
// that was read late, of which thousands may follow a freeze: it must cost less than an answer.
func (w *watchdog) know(from, to time.Duration) (first bool, fresh time.Duration) {
	at, _ := slices.BinarySearchFunc(w.known, from, func(k freeze, from time.Duration) int {
		if k.to <= from {
			return -1
		}
		return 1
	})
	add := func(from, to time.Duration) {
		if from < to && w.clip != nil {
			fresh += w.clip(from, to)
		}
	}
	end, covered, whole := at, from, freeze{from, to}
	for ; end < len(w.known) && w.known[end].from < to; end++ {
		k := w.known[end]
		add(covered, k.from)
		covered = k.to
		whole.from, whole.to = min(whole.from, k.from), max(whole.to, k.to)
	}
	add(covered, to)
	w.known = slices.Replace(w.known, at, end, whole)
	w.known = slices.Delete(w.known, 0, max(0, len(w.known)-mostFreezes))
	return at == end, fresh
}

// An unexplained freeze has no cause yet.
type unexplained struct {
	measure.Freeze
	again time.Duration // when its cause is looked up for the second time; 0: it was not looked up yet
}

// findCauses looks up the causes of new freezes. The watchdog's thread does so one beat
// after it noticed them, because the evidence, such as a signal, may arrive a moment
// after the thread runs again. On a busy machine a signal takes longer, as several
// threads must run for it: the cause of a freeze without one is looked up once more,
// while the freeze is still most of the time since it began.
func (w *watchdog) findCauses(at time.Duration) {
	w.mu.Lock()
	open := w.withoutCause
	w.withoutCause = nil
	w.mu.Unlock()
	for _, f := range open {
		length := f.Length
		if f.again > 0 {
			if length = at - f.At; length > 2*f.Length {
				continue
			}
		}
		cause := ""
		if at >= f.again {
			cause = w.cause(length)
		}
		w.mu.Lock()
		i := slices.IndexFunc(w.result.Longest, func(l measure.Freeze) bool { return l.At == f.At && l.Who == f.Who })
		switch {
		case i < 0:
		case cause != "":
			w.result.Longest[i].Cause = cause
		case f.again == 0:
			f.again = f.At + f.Length + min(f.Length/2, lateEvidence)
			w.withoutCause = append(w.withoutCause, f)
		case at < f.again:
			w.withoutCause = append(w.withoutCause, f)
		}
		w.mu.Unlock()
	}
}

// earliest returns the earliest moment at which an event that was noticed at a point in
// time can have happened: that moment, unless the process did not run then, or had only
// just begun to run again.
func (w *watchdog) earliest(at time.Duration) time.Duration {
	if b := time.Duration(w.beat.Load()); b > 0 && at-b >= leastFreeze {
		return b // a freeze that the watchdog itself has not noticed yet
	}
	if at > time.Duration(w.last.Load())+afterFreeze {
		return at
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.processFreezes) - 1; i >= 0; i-- {
		f := w.processFreezes[i]
		if at > f.to+afterFreeze {
			break
		}
		if at > f.from {
			return f.from
		}
	}
	return at
}

// within returns how much of a span the process did not run, as far as its freezes are
// remembered.
func (w *watchdog) within(from, to time.Duration) time.Duration {
	if from >= time.Duration(w.last.Load()) {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.processFreezes.Within(from, to)
}

// since returns the freezes of the process that ended after a moment, as far as they are remembered.
func (w *watchdog) since(after time.Duration) Frozen {
	if after >= time.Duration(w.last.Load()) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.processFreezes, func(f freeze) bool { return f.to > after })
	return slices.Clone(w.processFreezes[i:])
}

// noteUnwatched notes a freeze that the watchdog did not see, because it was paused: a wait
// from before to wake ended later, at now. While an answer was expected, the freeze may
// have begun at any moment of the wait.
func (t *thread) noteUnwatched(before, wake, now time.Duration) {
	if t.watched || now-wake < leastFreeze {
		return
	}
	if !t.idle() {
		wake = before
	}
	t.run.watchdog.note(frozeProcess, wake, now)
}

// watch keeps the watchdog running while this thread has something to do soon or has
// expected an answer for some time, and returns when a wait from before to wake must
// end. Most answers come before the watchdog's first beat. Until then the end of the
// wait shows a freeze as well, and at a few events a second waking the watchdog for
// each costs more than the events.
func (t *thread) watch(before, wake time.Duration, idle bool) time.Duration {
	if t.run.plan.Completed != nil { // the acked events are awaited elsewhere
		return wake
	}
	watched := t.watched
	switch {
	case wake-before <= longIdle:
		watched = watched || before-t.idleUntil > longIdle
	case idle:
		watched, t.idleUntil = false, wake
	case !watched:
		since := time.Duration(t.waitingSince.Load())
		if watched = since == Never || before-since >= beatEvery; !watched {
			wake = since + beatEvery
		}
	}
	if watched != t.watched {
		t.watched = watched
		t.run.watchdog.addActive(map[bool]int32{true: 1, false: -1}[watched])
	}
	return wake
}
