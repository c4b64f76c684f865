package workload

import (
	"errors"
	"fmt"
	"time"

	"carronade/protocol"
	"carronade/units"
)

const groupBacklog = "a backlog"

// backlogTable has the settings of a backlog that a round trip builds and drains.
func backlogTable() []Setting {
	notOps := []string{Produce, Consume, ReadSingle, Pipeline}
	return []Setting{
		{
			Option: protocol.Option{Name: "backlog", Group: groupBacklog, Independent: true, Help: "readers pause until this much waits for each group, then they read; the run ends when that is drained", Word: "SIZE|N|TIME"},
			NotOps: notOps,
			check:  func(text string) error { return second(parseBacklog(text)) },
		},
		{
			Option: protocol.Option{Name: "backlog-drained", Type: protocol.Share, Group: groupBacklog, Independent: true, Help: "drained is a backlog of which each group has read this share (default 99%)"},
			NotOps: notOps,
			check:  checkShare,
		},
		{
			Option: protocol.Option{Name: "backlog-after", Type: protocol.Duration, Group: groupBacklog, Independent: true, Help: "how long the run goes on after that (default 0s)"},
			NotOps: notOps,
			check:  durationBetween(0, 366*24*time.Hour),
		},
		{
			Option: protocol.Option{Name: "drain-timeout", Type: protocol.Duration, Group: groupBacklog, Independent: true, Help: "end a run whose backlog is not drained after this time (default: 10 times that of building it)"},
			NotOps: notOps,
			check:  durationBetween(time.Millisecond, 366*24*time.Hour),
		},
	}
}

// A Backlog is what a round trip lets wait before its readers read.
type Backlog struct {
	// How much must wait for each group; one of them is set.
	Events, Bytes uint64
	Time          time.Duration

	Drained float64       // the share of the highest backlog that must be read
	After   time.Duration // how long the run goes on when it is drained
	Timeout time.Duration // of draining; 0: BuildTimes the time of building
}

// Defaults of a backlog.
const (
	backlogDrained = 0.99
	BuildTimes     = 10
)

// Backlog is the backlog that the run builds and drains; nil: none.
func (w *Workload) Backlog() *Backlog {
	if !w.Has("backlog") {
		return nil
	}
	b := parsed(w, "backlog", parseBacklog)
	if b.Drained = backlogDrained; w.Has("backlog-drained") {
		b.Drained = w.share("backlog-drained")
	}
	b.After, b.Timeout = w.Duration("backlog-after"), w.Duration("drain-timeout")
	return &b
}

// String is how much must wait.
func (b *Backlog) String() string {
	switch {
	case b.Events > 0:
		return units.Plural(b.Events, "event")
	case b.Bytes > 0:
		return units.FormatSize(int64(b.Bytes)) //nolint:gosec // it was parsed as one
	}
	return units.FormatDuration(b.Time)
}

// parseBacklog parses a size, a number of events or a time. Ambiguous text such as 10m is refused.
func parseBacklog(text string) (b Backlog, err error) {
	b.Time, b.Events, err = parseWarmup(text)
	switch size, noSize := units.ParseSize(text); {
	case noSize != nil:
	case err != nil:
		b.Bytes, err = uint64(size), nil //nolint:gosec // not negative
	case b.Events != uint64(size): //nolint:gosec // not negative
		err = &protocol.Error{
			Err:  fmt.Errorf("%s is both a size and a number of events", text),
			Hint: fmt.Sprintf("write %d for the events, or a size in kB or KiB", b.Events),
		}
	}
	_, unclear := errors.AsType[*protocol.Error](err)
	switch {
	case err == nil && b == Backlog{}:
		err = errors.New("must be above 0")
	case err != nil && !unclear:
		err = fmt.Errorf("must be a size such as 20GiB, a number of events such as 10M or a time such as 60s, not %q", text)
	}
	return b, err
}

// backlogConflicts checks the settings of a backlog against others.
func (w *Workload) backlogConflicts(fault func(name, hint, format string, args ...any)) {
	b := w.Backlog()
	if b == nil {
		for _, name := range []string{"backlog-drained", "backlog-after", "drain-timeout"} {
			if w.Has(name) {
				fault(name, "add --backlog SIZE, or leave it out", "is about a backlog, and the run builds none")
			}
		}
		return
	}
	switch {
	case w.Has("concurrency"):
		fault("backlog", "give --rate instead of --concurrency", "in a closed loop, a caller waits until its event is read: nothing is sent while readers pause")
	case w.Unacknowledged():
		fault("backlog", "ask for acknowledgements", "it has the events that were acked, and none is")
	}
	few := func(name string, end bool, have string) {
		if end {
			fault("backlog", "raise --"+name+", or leave it out: the run then ends when the backlog is drained", "%s cannot wait in a run of %s", b, have)
		}
	}
	few("count", b.Events > 0 && w.Has("count") && w.Count("count") <= b.Events, units.Plural(w.Count("count"), "event"))
	few("bytes", b.Bytes > 0 && w.Has("bytes") && uint64(w.size("bytes")) <= b.Bytes, w.String("bytes")) //nolint:gosec // not negative
	few("for", b.Time > 0 && w.Has("for") && w.Duration("for") <= b.Time, w.String("for"))
}
