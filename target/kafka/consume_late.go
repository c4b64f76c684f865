package kafka

import "time"

// A lateness is what a stream itself adds to the time in which events reach it. An
// answer may wait for the stream to read it; and between the arrival of an answer and
// the next request, events wait at the broker only because the stream has not asked.
//
// While an answer does not hold all that its log has, the next one comes after what
// was delayed, and so inherits the delay. It is forgotten once the stream has caught
// up. Throughput is not concerned: that is what was read.
type lateness struct {
	since   time.Duration // before the request was written: no answer to it arrived earlier
	written time.Duration // and after
	free    time.Duration // when the request could have been written; 0: there was none before
	asking  time.Duration // by how much the request was later than that
	waiting time.Duration // how long its answer waited to be read
}

// asked notes that a request was written between two moments.
func (l *lateness) asked(before, after time.Duration) {
	l.since, l.written, l.asking = before, after, 0
	if l.free > 0 {
		l.asking = max(0, after-l.free)
	}
}

// answered notes an answer that arrived at a time, 0 where that is not known, and was
// read whole at another.
func (l *lateness) answered(arrived, at time.Duration) {
	if arrived == 0 {
		arrived = at
	}
	l.waiting, l.free = at-arrived, arrived
}

// silent notes that the broker wants no request for so long after its answer.
func (l *lateness) silent(wait time.Duration) { l.free += wait }

// earliest is when what the newest answer has of a partition could have arrived, had
// the stream never been late. more: the log has more than the answer.
func (l *lateness) earliest(p *part, at time.Duration, more bool) time.Duration {
	p.behind += l.asking
	earliest := max(1, at-p.behind-l.waiting) // 0 says that it is not known
	if !more {
		p.behind = 0
	}
	return earliest
}
