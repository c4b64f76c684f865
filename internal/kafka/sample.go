package kafka

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/protocol"
)

// A SampleWork reads a topic to look at its records: from the place that the option from
// gives, to the ends that its partitions have when it begins. Reading from latest has no such
// end.
type SampleWork struct {
	URL     *url.URL
	Options protocol.Values // of Kind
	Given   map[string]bool
	Count   uint64        // end after that many records; 0: no limit
	For     time.Duration // end after this time; 0: no limit
	Logf    func(format string, args ...any)

	// Batch is called with each batch and its records, which are not compressed, by one
	// goroutine at a time. Only the records from offset from on and before to belong to the
	// sample. They are valid during the call.
	Batch func(partition int32, b *wire.Batch, records []byte, from, to int64)
}

// A SampleResult says what was read.
type SampleResult struct {
	Topic      string
	Partitions int
	Offsets    uint64 // in the range that was to be read: records, and gaps where some were removed
	Read       uint64 // records
	// Whole is set if every record of the topic was read, as of when reading began.
	Whole       bool
	Live        bool              // it was read from its end on
	Corrupt     uint64            // batches with a wrong checksum or that cannot be decompressed
	Interrupted bool              // the context ended
	Settings    map[string]string // of the topic that affect speed
	Elapsed     time.Duration
}

// Sample reads records of a topic. It creates no topic. When the context ends it returns what
// was read until then.
func Sample(ctx context.Context, w SampleWork) (*SampleResult, error) {
	s := protocol.Spec{URL: w.URL, Op: cluster.OpConsume, Options: w.Options, Given: w.Given, Logf: w.Logf}
	c, err := cluster.ParseConfig(s)
	if err != nil {
		return nil, err
	}
	live := c.From.Kind == "latest"
	c.Decode, c.UntilEnd, c.Group = true, !live, ""
	cl, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	src, err := newWireSource(ctx, cl, false)
	if err != nil {
		return nil, err
	}
	r := &SampleResult{Topic: c.Topic, Partitions: cl.Partitions(), Settings: cl.Settings, Live: live}
	if !live {
		ends, err := cl.Ends(ctx)
		if err != nil {
			return nil, err
		}
		for i, start := range src.Starts() {
			r.Offsets += uint64(max(0, ends[i]-start))
		}
		if r.Offsets == 0 {
			return r, nil
		}
	}
	return r, r.read(ctx, w, c, src)
}

func (r *SampleResult) read(ctx context.Context, w SampleWork, c *cluster.Config, src *wireSource) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	if w.For > 0 {
		timer := time.AfterFunc(w.For, stop)
		defer timer.Stop()
	}
	began := time.Now()
	var (
		mu    sync.Mutex
		ended bool // by Count
	)
	src.inspect = func(p *partition, b *wire.Batch, records []byte) {
		mu.Lock()
		defer mu.Unlock()
		if ended {
			return
		}
		if records == nil {
			r.Corrupt++
			return
		}
		from, to := max(p.offset, b.BaseOffset), min(p.end, b.BaseOffset+int64(b.LastOffsetDelta)+1)
		n := min(uint64(to-from), uint64(b.NumRecords))
		if w.Count > 0 && r.Read+n >= w.Count {
			if extra := r.Read + n - w.Count; extra > 0 {
				to -= int64(extra)
				n -= extra
			}
			ended = true
			stop()
		}
		r.Read += n
		w.Batch(p.id, b, records, from, to)
	}
	err := src.Receive(reading, func() time.Duration { return time.Since(began) }, func(int, []load.Arrival) {})
	mu.Lock()
	defer mu.Unlock()
	r.Elapsed, r.Interrupted = time.Since(began), ctx.Err() != nil
	complete := err == nil && !ended || r.Offsets > 0 && r.Read == r.Offsets
	if errors.Is(err, context.Canceled) && reading.Err() != nil {
		err = nil
	}
	r.Whole = complete && c.From.Kind == "earliest" && r.Corrupt == 0
	if err != nil {
		return fmt.Errorf("read the topic %s: %w", c.Topic, err)
	}
	return nil
}
