package measure

import "time"

// A Moment is something that happened at a known time of a run and that may explain what
// was measured then: a pause of a collector, a lost connection, a new leader.
type Moment struct {
	From   string        // where it was seen: "system", "client", "generator"
	Name   string        // what happened: "GC pause", "connection lost"
	At     time.Duration // when it began, from the start of the run
	Length time.Duration // 0: it has none, or it is unknown
}
