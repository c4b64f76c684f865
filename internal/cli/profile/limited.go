package profile

import (
	traffic "carronade/internal/profile"
)

// A limited sink takes a number of records, until its input must end. A reader of package traffic
// asks it with Full.
type limited struct {
	*sampling
	in    *input
	left  uint64
	taken uint64
}

// limited returns a sink for the records of in, as the flags want it.
func (f *profileFlags) limited(in *input) (*limited, error) {
	count, _, err := f.limits()
	if err != nil {
		return nil, err
	}
	s, err := newSampling(f.keep)
	if err != nil {
		return nil, err
	}
	return &limited{sampling: s, in: in, left: count}, nil
}

// Record implements traffic.Sink.
func (l *limited) Record(r *traffic.Record) {
	if l.left == 0 {
		return
	}
	l.left--
	l.taken++
	l.sampling.Record(r)
}

// Full implements traffic.Limit: it looks at the time only now and then.
func (l *limited) Full() bool { return l.left == 0 || l.taken%1024 == 0 && l.in.stopped() }
