package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"carronade/units"
)

// A Progress is how far the partitions of a cluster were read, which are the logs of a source. It has
// the methods of load.Source and load.Seeker that are the same for both engines. One goroutine at
// a time advances a log; others may ask meanwhile.
type Progress struct {
	cl     *Cluster
	starts []int64        // by log
	next   []atomic.Int64 // by log: to be delivered next

	end, readable []atomic.Int64 // by log: the high watermark, and the end of what may be read, as last reported; -1: unknown
}

// NewProgress returns the progress of reading that begins at starts, offsets by log.
func NewProgress(cl *Cluster, starts []int64) *Progress {
	p := &Progress{cl: cl, starts: starts, next: make([]atomic.Int64, len(starts)), end: make([]atomic.Int64, len(starts)), readable: make([]atomic.Int64, len(starts))}
	for log, start := range starts {
		p.next[log].Store(start)
		p.end[log].Store(-1)
		p.readable[log].Store(-1)
	}
	return p
}

// Begin changes where reading of a log begins, before it does.
func (p *Progress) Begin(log int, offset int64) {
	p.starts[log] = offset
	p.next[log].Store(offset)
}

// Deliver notes that everything before an offset of a log was delivered.
func (p *Progress) Deliver(log int32, next int64) { p.next[log].Store(next) }

// Reported notes the high watermark of a log, and the end of what may be read of it, as a broker reported them. A
// reader of committed events lags behind the first, and gets nothing beyond the second.
func (p *Progress) Reported(log int32, end, readable int64) {
	p.end[log].Store(end)
	p.readable[log].Store(readable)
}

// Next is the offset of a log that is to be delivered next.
func (p *Progress) Next(log int) int64 { return p.next[log].Load() }

// Logs implements load.Source.
func (p *Progress) Logs() []string { return p.cl.Logs() }

// Behind is how many events of a log may be read and are not delivered, as last reported; -1: unknown.
func (p *Progress) Behind(log int) int64 { return p.before(&p.readable[log], log) }

func (p *Progress) before(end *atomic.Int64, log int) int64 {
	if end := end.Load(); end >= 0 {
		return max(0, end-p.next[log].Load())
	}
	return -1
}

// Lag implements load.Source.
func (p *Progress) Lag() []int64 {
	lag := make([]int64, len(p.next))
	for log := range lag {
		lag[log] = p.before(&p.end[log], log)
	}
	return lag
}

// Starts returns, per log, the offset where reading began.
func (p *Progress) Starts() []int64 { return slices.Clone(p.starts) }

// Positions returns, per log, the offset up to which everything was delivered.
func (p *Progress) Positions() []int64 {
	at := make([]int64, len(p.next))
	for log := range at {
		at[log] = p.next[log].Load()
	}
	return at
}

// Ends asks the brokers for the current end of each log: the high watermark, also if reading ends at the last
// stable offset.
func (p *Progress) Ends(ctx context.Context) ([]int64, error) {
	return p.cl.Offsets(ctx, highWatermark)
}

// Heads asks the brokers for the current beginning of each log.
func (p *Progress) Heads(ctx context.Context) ([]int64, error) { return p.cl.Heads(ctx) }

// WhyNothing says why nothing was delivered, from where the logs end now; last is the last error of reading, "" if
// there was none.
func (p *Progress) WhyNothing(ctx context.Context, last string) string {
	ends, err := p.cl.Ends(ctx)
	if err != nil {
		if last == "" {
			last = err.Error()
		}
		return last
	}
	left, written := int64(0), false
	for log, end := range ends {
		written = written || end > 0
		left += max(0, end-p.Next(log))
	}
	switch {
	case !written:
		return "nothing was ever written to " + p.cl.Config.Topic
	case left == 0 && p.cl.Config.Group != "":
		return "the group " + p.cl.Config.Group + " was at the end of the logs already, and nothing was written since"
	case left == 0:
		return "it began at the end of the logs (" + p.cl.Config.StartText() + "), and nothing was written since"
	case last != "":
		return fmt.Sprintf("there were %s, but %s", units.Plural(uint64(left), "event"), last)
	}
	return fmt.Sprintf("there were %s, and no broker delivered them", units.Plural(uint64(left), "event"))
}
