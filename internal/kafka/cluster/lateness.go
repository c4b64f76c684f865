package cluster

import "time"

// A Lateness measures the delay that a fetcher itself adds to events. An answer may wait
// for the fetcher to read it; and between the arrival of an answer and the next request,
// events wait at the broker only because the fetcher has not asked for them.
//
// If an answer does not contain everything that its log has, its delay is also part of
// the next answer's. The delay ends when the fetcher has caught up. Throughput is not
// affected: it counts the events that were read.
type Lateness struct {
	Since     time.Duration // before the request was written: no answer to it arrived earlier
	Written   time.Duration // after the request was written
	CouldAsk  time.Duration // when the request could have been written; 0: it is the first one
	AskDelay  time.Duration // by how much the request was later than that
	ReadDelay time.Duration // how long its answer waited to be read
}

// Asked notes that a request was written between two moments.
func (l *Lateness) Asked(before, after time.Duration) {
	l.Since, l.Written, l.AskDelay = before, after, 0
	if l.CouldAsk > 0 {
		l.AskDelay = max(0, after-l.CouldAsk)
	}
}

// Answered notes an answer: when it arrived, 0 if that is not known, and when it was
// completely read.
func (l *Lateness) Answered(arrived, at time.Duration) {
	if arrived == 0 {
		arrived = at
	}
	l.ReadDelay, l.CouldAsk = at-arrived, arrived
}

// Throttled notes that the broker asked for a pause after its answer.
func (l *Lateness) Throttled(wait time.Duration) { l.CouldAsk += wait }

// Earliest is the time at which the newest answer's events of a partition could have
// arrived if the fetcher had never been late. ownDelay is how much the fetcher's own delays
// delay the partition's events, 0 at first. more: the log has more than the answer.
func (l *Lateness) Earliest(ownDelay *time.Duration, at time.Duration, more bool) time.Duration {
	*ownDelay += l.AskDelay
	earliest := max(1, at-*ownDelay-l.ReadDelay) // 0 means unknown
	if !more {
		*ownDelay = 0
	}
	return earliest
}
