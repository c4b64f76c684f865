package kafka

import "time"

// A lateness measures the delay that a fetcher itself adds to events. An answer may wait
// for the fetcher to read it; and between the arrival of an answer and the next request,
// events wait at the broker only because the fetcher has not asked for them.
//
// If an answer does not contain everything that its log has, its delay is also part of
// the next answer's. The delay ends when the fetcher has caught up. Throughput is not
// affected: it counts the events that were read.
type lateness struct {
	since     time.Duration // before the request was written: no answer to it arrived earlier
	written   time.Duration // after the request was written
	couldAsk  time.Duration // when the request could have been written; 0: it is the first one
	askDelay  time.Duration // by how much the request was later than that
	readDelay time.Duration // how long its answer waited to be read
}

// asked notes that a request was written between two moments.
func (l *lateness) asked(before, after time.Duration) {
	l.since, l.written, l.askDelay = before, after, 0
	if l.couldAsk > 0 {
		l.askDelay = max(0, after-l.couldAsk)
	}
}

// answered notes an answer: when it arrived, 0 if that is not known, and when it was
// completely read.
func (l *lateness) answered(arrived, at time.Duration) {
	if arrived == 0 {
		arrived = at
	}
	l.readDelay, l.couldAsk = at-arrived, arrived
}

// throttled notes that the broker asked for a pause after its answer.
func (l *lateness) throttled(wait time.Duration) { l.couldAsk += wait }

// earliest is the time at which the newest answer's events of a partition could have
// arrived if the fetcher had never been late. more: the log has more than the answer.
func (l *lateness) earliest(ownDelay *time.Duration, at time.Duration, more bool) time.Duration {
	*ownDelay += l.askDelay
	earliest := max(1, at-*ownDelay-l.readDelay) // 0 means unknown
	if !more {
		*ownDelay = 0
	}
	return earliest
}
