package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/protocol"
)

// A follower reads what a run has produced: each batch is a fetch of its partition and
// offsets. It implements load.Follower, and load.Sink for the reader, whose completed reads it
// passes on. One client reads all of a partition, so reads of a partition begin in order.
type follower struct {
	r    *itemReader
	from *cluster.Cluster // where it reads: the cluster that is produced to, or another one
	own  bool             // it is another one, which the follower closes
	logs []string

	logOf func(stream int32) int32 // the partition of a stream
	done  func([]load.Outcome)
	now   func() time.Duration
}

// newFollower prepares to read what is produced to the topic of a cluster.
func newFollower(ctx context.Context, cl *cluster.Cluster, out producerEngine) (*follower, error) {
	f := &follower{from: cl, logs: cl.Logs(), logOf: out.LogOf}
	if cl.Config.ReadFrom != nil {
		c := *cl.Config
		c.Seeds, c.Topic, c.Create, c.Op = cl.Config.ReadFrom.Seeds, cl.Config.ReadFrom.Topic, nil, cluster.OpRead // it is not created
		from, err := c.Connect(ctx)
		if err != nil {
			return nil, fmt.Errorf("--read-from: %w", err)
		}
		f.from, f.own, f.logs = from, true, from.Logs()
		if from.Partitions() < cl.Partitions() {
			_ = f.close()
			return nil, &protocol.Error{
				Doing: "--read-from", Err: fmt.Errorf("the topic %s has %d partitions there, and %s has %d", c.Topic, from.Partitions(), cl.Config.Topic, cl.Partitions()),
				Hint: "name a topic with the same records at the same offsets: the same cluster by another address, or an exact mirror",
			}
		}
	}
	var err error
	if f.r, err = newItemReader(ctx, f.from, nil); err != nil {
		return nil, errors.Join(err, f.close())
	}
	f.r.partitioner, f.r.lags = out.Partitioner(), f.own
	return f, nil
}

// Logs implements load.Follower.
func (f *follower) Logs() []string { return f.logs }

// Start implements load.Follower.
func (f *follower) Start(now func() time.Duration, done func([]load.Outcome)) {
	f.now, f.done = now, done
	f.r.Start(f)
}

// Read implements load.Follower.
func (f *follower) Read(sent []load.Outcome) {
	now := f.now()
	for i := range sent {
		o := &sent[i]
		part := f.logOf(o.Stream)
		c := f.r.clients[int(part)%len(f.r.clients)]
		c.mu.Lock()
		c.fire(&o.Batch, part, o.Place, now)
		c.mu.Unlock()
	}
	for _, c := range f.r.clients {
		c.Flush()
	}
}

// Pending implements load.Follower.
func (f *follower) Pending() []string { return f.r.Pending() }

// Stop implements load.Follower.
func (f *follower) Stop() {
	for _, c := range f.r.clients {
		_ = c.Close() // it has no errors
	}
}

func (f *follower) facts() map[string]any {
	facts := make(map[string]any)
	if n := f.r.retried.Load(); n > 0 {
		facts["reads_retried"] = n
	}
	if f.own {
		facts["read_from"] = map[string]any{"brokers": f.from.Config.Seeds, "topic": f.from.Config.Topic}
	}
	return facts
}

// close ends all connections.
func (f *follower) close() error {
	var err error
	if f.r != nil {
		err = f.r.Close()
	}
	if f.own {
		f.from.Close()
	}
	return err
}

// Now implements load.Sink.
func (f *follower) Now() time.Duration { return f.now() }

// Complete implements load.Sink.
func (f *follower) Complete(out []load.Outcome) { f.done(out) }

// Ready implements load.Sink: reads are never refused.
func (*follower) Ready(int, time.Duration) {}
