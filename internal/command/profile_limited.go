package command

import (
	"carronade/internal/traffic"
)

// A limited sink takes a number of records, until its input must end. Its owner asks it with
// full.
type limited struct {
	traffic.Sink
	in       *input
	left     uint64
	taken    uint64
	warnings []string
}

// Record implements traffic.Sink.
func (l *limited) Record(r *traffic.Record) {
	if l.left == 0 {
		return
	}
	l.left--
	l.taken++
	l.Sink.Record(r)
}

// Full implements traffic.Limit: it looks at the time only now and then.
func (l *limited) Full() bool { return l.left == 0 || l.taken%1024 == 0 && l.in.stopped() }
