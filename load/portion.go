package load

import "time"

// A Portion is the part of a run that one of several generators fires: the events of the
// clients From up to To, To excluded. The zero Portion is the whole run.
//
// All generators of a run compute the same schedule and the same streams, and each fires
// the streams of its own clients. So their events together are those that a single
// generator with all clients fires: with the same numbers, due times, partitions and
// bytes. Limits on events, bytes and concurrency are not divided by the engine; each
// generator's plan has its own.
type Portion struct{ From, To int }

// Whole reports whether the portion is all of a run.
func (p Portion) Whole() bool { return p == Portion{} }

// Has reports whether the portion contains a client.
func (p Portion) Has(client int) bool { return p.Whole() || client >= p.From && client < p.To }

// Clients returns how many of a run's clients the portion contains.
func (p Portion) Clients(all int) int {
	if p.Whole() {
		return all
	}
	return max(0, min(p.To, all)-min(p.From, all))
}

// ownBefore returns how many of the events 0..n-1 of the run are fired here.
func (r *Run) ownBefore(n uint64) uint64 {
	if r.plan.Portion.Whole() {
		return n
	}
	sum := uint64(0)
	for _, s := range r.own {
		sum += r.partitioner.Before(s, n)
	}
	return sum
}

// ownDueBefore returns how many events of a phase are fired here and due before a time.
// The result counts from the beginning of the run.
func (r *Run) ownDueBefore(p *phase, at time.Duration) uint64 {
	if r.plan.Portion.Whole() {
		return min(max(r.plan.Schedule.Count(at), p.from), p.to)
	}
	sum := uint64(0)
	for _, s := range r.own {
		sum += min(max(r.dueBefore(s, at), r.partitioner.Before(s, p.from)), r.partitioner.Before(s, p.to))
	}
	return sum
}

// ownClients returns how many of the target's clients fire here.
func (r *Run) ownClients() int { return r.plan.Portion.Clients(r.target.Clients()) }

// leaseOver ends the run if its lease is over, and reports whether it is. Nothing that
// was due before is sent.
func (r *Run) leaseOver(now time.Duration) bool {
	if r.plan.Lease == nil || int64(now) < r.plan.Lease.Load() {
		return false
	}
	r.End(ByLease)
	return true
}
