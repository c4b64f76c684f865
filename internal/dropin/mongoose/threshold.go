package mongoose

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"carronade/load"
)

// A threshold is the additional accounting while at least a given number of
// operations is in flight. It begins when that number is reached, and ends
// permanently when there are fewer. It is checked once per second.
type threshold struct {
	s    *step
	f    *files
	out  io.Writer
	from uint64 // operations; 0: no threshold

	entered, left bool
	at            time.Duration // start of the accounting
	meter         *meter
}

func newThreshold(s *step, f *files, out io.Writer) *threshold {
	t := &threshold{s: s, f: f, out: out}
	if s.threshold > 0 && s.concurrency > 0 {
		t.from = uint64(math.Ceil(s.threshold * float64(s.concurrency*s.nodeCount())))
	}
	return t
}

// interval adds an interval of the run.
func (t *threshold) interval(s load.Snapshot) {
	if t.from == 0 || t.left {
		return
	}
	reached := s.Interval.InFlight >= t.from
	switch {
	case reached && !t.entered:
		t.entered, t.at = true, s.At-s.Interval.Length()
		t.meter = newMeter(t.s)
		t.log("the threshold of %d active load operations count is reached, starting the additional metrics accounting")
	case !reached && t.entered:
		t.end()
		return
	case !t.entered:
		return
	}
	s.At -= t.at
	t.meter.interval(s)
	if t.meter.due() && t.f.periodic {
		t.f.add("metrics.threshold.csv", t.meter.metrics(time.Now()), false)
	}
}

// end ends the accounting, if it has begun.
func (t *threshold) end() {
	if !t.entered || t.left {
		return
	}
	t.left = true
	t.log("the active load operations count is below the threshold of %d, stopping the additional metrics accounting")
	if t.f.summary {
		t.f.add("metrics.threshold.total.csv", t.meter.metrics(time.Now()), true)
	}
}

func (t *threshold) log(format string) {
	who := "MetricsContextImpl(" + t.s.op + "-" + strconv.Itoa(t.s.concurrency) + "x1@" + t.s.id + "): "
	logf(t.out, 'I', "MetricsManagerImpl", "%s", who+fmt.Sprintf(format, t.from))
}
