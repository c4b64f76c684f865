package load

import (
	"math"
	"time"
)

// mostVolley is how many shots the engine fires as one at most: enough to make
// what a volley costs vanish, and few enough that a thread looks at its inbox
// often.
const mostVolley = 4096

// volleys reports whether shots may be fired in volleys: where a schedule
// makes each due at its own time, or somebody minds each by itself (the ledger,
// a gate, a second attempt), they go one by one.
func (t *thread) volleys() bool {
	p := &t.run.plan
	return p.Schedule == nil && p.EventsPerShot > 0 && p.Gate == nil && p.Retry == 0 && p.Observe == nil
}

// composeVolley makes one volley of a stripe that nothing schedules. 0: the
// lane or the bound wants single shots now.
func (t *thread) composeVolley(s *stripe, ls *laneState, now time.Duration) (n, phase, claimed int, shut bool) {
	if ls.volleyer == nil || !t.volley {
		return 0, 0, 0, false
	}
	p := &t.run.plan
	most := min(t.room(ls), mostVolley, math.MaxInt32/p.EventsPerShot)
	switch {
	case p.Callers > 0:
		most = min(most, (t.callers.n+len(t.lanes)-1)/len(t.lanes))
	case len(t.stripes) > len(t.lanes):
		most = min(most, max(1, p.MaxInFlight/2)) // another stripe of the lane has its turn
	}
	if most < 2 {
		return 0, 0, 0, false
	}
	most = min(most, ls.volleyer.Volley(s.id, s.next, p.EventsPerShot))
	if most < 2 {
		return 0, 0, 0, false
	}
	got, phase := t.run.claim(most*p.EventsPerShot, now)
	if got == 0 {
		return 0, phase, 0, true
	}
	shots := got / p.EventsPerShot
	if rest := got % p.EventsPerShot; rest > 0 && shots > 0 {
		t.run.unclaim(rest, phase) // a smaller last shot goes alone
		got -= rest
	}
	shot := &t.shots[0]
	*shot = Shot{
		Seq: ls.seq, First: s.next, Stripe: s.id, Events: int32(got), Shots: int32(max(shots, 1)),
		Phase: int32(phase), DueFirst: -1, DueLast: -1,
	}
	ls.seq += uint64(shot.Shots)
	free := t.places(ls)
	shot.Ready = max(free.next(), ls.met)
	shot.Free = max(shot.Ready, ls.again, s.again)
	return 1, phase, got, false
}

// count is how many shots this one stands for.
func (s *Shot) count() int { return int(max(s.Shots, 1)) }
