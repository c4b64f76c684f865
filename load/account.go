package load

import (
	"sync/atomic"
	"time"

	"carronade/measure"
)

// An account is what a sending thread, a part of what it sends or a stage of a pipeline counts by phase of the
// run, whatever phase the events belong to. The zero value is not ready: see newAccount.
type account struct {
	inFlight int64         // events
	changed  time.Duration // when inFlight last changed
	phases   []phaseCount  // one more than the run has: the drain

	// The phase of the last moment looked up. Nearly all are in the same one, so one comparison finds it.
	phase    int
	from, to time.Duration // known to lie in it
	edition  uint32        // of the ends of phases
}

// A phaseCount is what was counted in one phase.
type phaseCount struct {
	area              float64 // events in flight x nanoseconds
	most              int64   // most events in flight
	arrived, arrivedB uint64  // events answered, and their bytes
	answers           uint64  // batches answered, with any result
	sends, sendsB     uint64  // events sent, and their bytes

	unsent, offered uint64 // of the events of the phase: due and not sent; offered (only when stopped early)
}

// newAccount returns an account for n phases.
func newAccount(n int) account { return account{phases: make([]phaseCount, n)} }

// at returns what is counted in the phase of the run at a point in time.
func (a *account) at(r *Run, at time.Duration) *phaseCount {
	if at < a.from || at >= a.to || a.edition != r.edition.Load() {
		a.find(r, at)
	}
	return &a.phases[a.phase]
}

// find looks up the phase at a point in time.
func (a *account) find(r *Run, at time.Duration) {
	edition := r.edition.Load()
	phase := r.phaseAt(at)
	if edition != a.edition || phase != a.phase || at >= a.to {
		a.from = at
	}
	a.edition, a.phase, a.from = edition, phase, min(a.from, at)
	a.to = max(r.phaseEnd(phase), at+1) // the end may have become known only now, and have passed
}

// addInFlight changes the number of events in flight and integrates it over time. It splits the integral at the
// ends of phases, because a phase may contain no change or several. A number that lasted for no time does
// not count for the maximum.
func (a *account) addInFlight(r *Run, now time.Duration, by int64) {
	for a.inFlight > 0 && a.changed < now {
		p := a.at(r, a.changed)
		to := min(now, a.to)
		p.area += float64(a.inFlight) * float64(to-a.changed)
		p.most = max(p.most, a.inFlight)
		a.changed = to
	}
	a.changed = max(a.changed, now)
	a.inFlight += by
}

// addTo adds to a tally what was counted, apart from what was in flight.
func (p *phaseCount) addTo(t *measure.Tally) {
	t.Arrived += p.arrived
	t.ArrivedBytes += p.arrivedB
	t.Answers += p.answers
	t.Sends += p.sends
	t.SendBytes += p.sendsB
}

// An accounts is what a thread counts: of the whole, and of each of its parts.
type accounts struct {
	account           // of a run with parts, only what is in flight
	parts   []account // nil if the run has none

	published atomic.Int64 // events in flight, as other goroutines see them
}

// open prepares the accounts for a run.
func (a *accounts) open(r *Run) {
	n := len(r.phases) + 1
	a.account = newAccount(n)
	if r.mix != nil {
		for range r.mix.parts {
			a.parts = append(a.parts, newAccount(n))
		}
	}
}

// of returns where events of a part are counted.
func (a *accounts) of(part int) *account {
	if a.parts == nil {
		return &a.account
	}
	return &a.parts[part]
}

// addInFlightOf is addInFlight for events of a part.
func (a *accounts) addInFlightOf(r *Run, now time.Duration, by int64, part int) {
	a.addInFlight(r, now, by)
	if a.parts != nil {
		a.parts[part].addInFlight(r, now, by)
	}
}

// eachOf calls f with what was counted in a phase: once, or for each part.
func (a *accounts) eachOf(phase int, f func(p *phaseCount)) {
	for part := range max(1, len(a.parts)) {
		f(&a.of(part).phases[phase])
	}
}
