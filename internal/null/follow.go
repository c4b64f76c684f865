package null

import (
	"fmt"
	"slices"
	"time"

	"carronade/load"
)

// A follower completes reads as soon as they begin. It implements load.Follower.
type follower struct {
	streams int
	now     func() time.Duration
	done    func([]load.Outcome)
	out     []load.Outcome
}

// Logs implements load.Follower: each client has one.
func (f *follower) Logs() []string {
	var out []string
	for i := range f.streams {
		out = append(out, fmt.Sprintf("client-%d", i))
	}
	return out
}

// Start implements load.Follower.
func (f *follower) Start(now func() time.Duration, done func([]load.Outcome)) {
	f.now, f.done = now, done
}

// Read implements load.Follower.
func (f *follower) Read(sent []load.Outcome) {
	now := f.now()
	f.out = slices.Grow(f.out[:0], len(sent))
	for i := range sent {
		o := &sent[i]
		f.out = append(f.out, load.Outcome{Batch: o.Batch, Lane: o.Lane, Sent: now, Done: now, Acked: o.Events, Read: o.Bytes, Place: o.Place})
	}
	f.done(f.out)
}

// Pending implements load.Follower.
func (*follower) Pending() []string { return nil }

// Stop implements load.Follower.
func (f *follower) Stop() {}
