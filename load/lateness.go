package load

import (
	"context"
	"slices"
	"time"
)

// Lateness measures how late this machine wakes a sending thread. It waits again and again
// for that long, in the same way as the threads of a scheduled run, until span is over or
// the context ends. It returns by how much each wait was too long, the least first.
func Lateness(ctx context.Context, wait, span time.Duration) []time.Duration {
	addProcs(1)
	defer addProcs(-1)
	late := make(chan []time.Duration)
	go func() { // its thread is tuned, and ends with it
		start := time.Now()
		w := newPreciseWaiter(start)
		defer w.close()
		w.prepare()
		var all []time.Duration
		for now := time.Since(start); now < span && ctx.Err() == nil; {
			until := now + wait
			for now < until { // a wait may return early
				w.wait(until, false, false)
				now = time.Since(start)
			}
			all = append(all, now-until)
		}
		late <- all
	}()
	all := <-late
	slices.Sort(all)
	return all
}
