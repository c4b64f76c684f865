package conn

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"carronade/load"
)

// The pauses between attempts to connect, unless the user chose others: those of Kafka's
// Java client (reconnect.backoff.ms and reconnect.backoff.max.ms).
const (
	ReconnectFirst = 50 * time.Millisecond
	ReconnectMost  = time.Second
)

// ErrClosed ends a connection that is no longer needed.
var ErrClosed = errors.New("closed")

// A Next says when to connect again after a connection has ended.
type Next int

// What Keeper.Serve returns.
const (
	Never      Next = iota // the lane is over
	AtOnce                 // the connection was of use
	AfterFirst             // the connection was of use: after the pause that follows the first failed attempt
	AfterPause             // the connection was of no use: as after a failed attempt
	Later                  // the connection has not ended: Resume continues when it has
)

// A Keeper makes a connection of type *K, and another one whenever it is lost, until its
// context ends. The pause after a failed attempt doubles with each further one, and is
// random by a fifth, so that lanes which lost the same server do not return together.
type Keeper[K any] struct {
	First time.Duration // the first pause; the others are at most ReconnectMost, or First if that is longer

	// Dial makes a connection, or returns nil and an error. After ErrClosed none is made
	// any more.
	Dial func(ctx context.Context) (*K, error)
	// Failed is called when Dial has failed, unless the context has ended.
	Failed func(err error)
	// Serve uses a connection until it has ended, and cleans up; or it returns Later.
	Serve func(k *K) Next
}

// Run returns when no connection is to be made any more. k is the first one; nil: there is
// none yet.
func (p Keeper[K]) Run(ctx context.Context, k *K) {
	pause := time.Duration(0)
	p.Keep(ctx, k, &pause)
}

// Keep is Run without a goroutine that waits for each connection: if Serve has returned
// Later, Keep returns false, and Resume must be called when the connection has ended. pause
// is the last one, and kept by the caller; at first 0.
func (p Keeper[K]) Keep(ctx context.Context, k *K, pause *time.Duration) (over bool) {
	for k != nil || ctx.Err() == nil {
		var (
			next = AfterPause
			err  error
		)
		if k == nil {
			k, err = p.Dial(ctx)
		}
		switch {
		case err == nil:
			next, k = p.Serve(k), nil
		case ctx.Err() != nil || errors.Is(err, ErrClosed):
			return true
		default:
			p.Failed(err)
		}
		if next == Later {
			return false
		}
		if !p.wait(ctx, next, pause) {
			return true
		}
	}
	return true
}

// Resume continues Keep after a connection has ended.
func (p Keeper[K]) Resume(ctx context.Context, next Next, pause *time.Duration) (over bool) {
	return !p.wait(ctx, next, pause) || p.Keep(ctx, nil, pause)
}

// wait waits until the next attempt to connect. It returns false if there is none.
func (p Keeper[K]) wait(ctx context.Context, next Next, pause *time.Duration) bool {
	if next == Never {
		return false
	}
	if next != AfterPause {
		*pause = 0
	}
	if next == AtOnce {
		return true
	}
	*pause = min(max(2**pause, p.First), max(ReconnectMost, p.First))
	select {
	case <-ctx.Done():
	case <-time.After(Jittered(*pause)):
	}
	return true
}

// Jittered returns d plus or minus up to a fifth.
func Jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

// An Outage is a time without a connection. The zero value: there is none.
type Outage struct {
	Since time.Duration // when the connection was lost, or the first attempt failed
	Err   error         // what ended the connection, or the last attempt; nil: no outage
}

// Note notes that the connection is missing, and why.
func (o *Outage) Note(at time.Duration, err error) {
	if o.Err == nil {
		o.Since = at
	}
	o.Err = err
}

// NoConnection is the name of outages among the moments of a report.
const NoConnection = "no connection"

// Over ends the outage, if there is one, and reports it, unless it was shorter than a stall.
func (o *Outage) Over(now time.Duration, happened func(name string, began time.Time, length time.Duration)) {
	if length := now - o.Since; o.Err != nil && length >= load.StallAfter {
		happened(NoConnection, time.Now().Add(-length), length)
	}
	*o = Outage{}
}

// Longer reports whether there has been no connection for longer than most.
func (o *Outage) Longer(now, most time.Duration) bool { return o.Err != nil && now-o.Since > most }
