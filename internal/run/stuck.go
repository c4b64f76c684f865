package run

import (
	"fmt"
	"strings"
	"time"

	"carronade/load"
	"carronade/units"
)

// stuckAfter is how long nothing must have moved before a run prints what it waits for. It prints
// that again whenever the wait has doubled.
const stuckAfter = 30 * time.Second

// A progressFunc reports whether anything has moved since the last call, and what the run waits
// for; waits is nil if nothing needs to move now.
type progressFunc func() (moved bool, waits func() string)

// watchProgress prints what the run waits for when nothing has moved for long, to help with
// runs that hang. The returned function ends it.
func (e *execution) watchProgress(l progressFunc) (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		since, next := time.Now(), stuckAfter
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			moved, waits := l()
			idle := time.Since(since)
			switch {
			case moved || waits == nil:
				if next > stuckAfter {
					e.Logf("the run continues, after %s", units.FormatDuration(idle.Round(time.Second)))
				}
				since, next = time.Now(), stuckAfter
			case idle >= next:
				e.Logf("no progress for %s; waiting for %s", units.FormatDuration(next), waits())
				next *= 2
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}

// opening is the progressFunc of a run whose target is being opened.
func (e *execution) opening() (moved bool, waits func() string) {
	return false, func() string { return "a connection to " + e.Workload.Target() }
}

// sendingProgress returns the progressFunc of a run that sends.
func sendingProgress(r *load.Run, tgt load.Target) progressFunc {
	before := r.Progress()
	before.Due = 0 // possibly none was sent
	return func() (moved bool, waits func() string) {
		now := r.Progress()
		if now.Moved(before) {
			before = now
			return true, nil
		}
		if !now.Waits(before) {
			return false, nil
		}
		return false, func() string {
			var text string
			switch {
			case now.InFlight > 0:
				text = fmt.Sprintf("the answers to %s", units.Plural(int(now.InFlight), "event"))
			case now.Due > before.Due:
				text = fmt.Sprintf("a connection that takes events, of which %s have become due", units.FormatCount(now.Due-before.Due))
			default:
				text = "a connection that takes events"
			}
			if now.Done > 0 {
				text += ", the newest answer came at " + units.FormatDuration(now.Done)
			}
			if pending := tgt.Capabilities().Pending; pending != nil {
				text += ": " + listed(pending())
			}
			return text
		}
	}
}

// readingProgress returns the progressFunc of a run that reads. If the run ends when nothing
// arrives, only a missing assignment can block it, since that time does not count.
func readingProgress(r *load.Reading, src load.Source, ends bool) progressFunc {
	last, idle := r.Last(), src.Rebalancing()
	return func() (moved bool, waits func() string) {
		newest, without := r.Last(), src.Rebalancing()
		unassigned := without > idle
		idle = without
		switch {
		case newest != last:
			last = newest
			return true, nil
		case ends && !unassigned:
			return false, nil
		}
		return false, func() string {
			text := "the first events"
			if last >= 0 {
				text = "events, the newest came at " + units.FormatDuration(last)
			}
			if disconnected(src.Capabilities().Connected) {
				text += ": no connection is open"
			}
			if unassigned {
				text += ": no partitions are assigned, for " + units.FormatDuration(without.Round(time.Second)) + " in all"
			}
			return text
		}
	}
}

// mostPending limits the connections that are named.
const mostPending = 8

func listed(texts []string) string {
	if n := len(texts) - mostPending; n > 0 {
		texts = append(texts[:mostPending:mostPending], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(texts, "; ")
}
