package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/report"
	"carronade/test/testkit/assert"
)

func TestQueue(t *testing.T) {
	unavailable, none := errors.New("unavailable"), func(int) error { return nil }
	between := func(from, to int) func(int) error {
		return func(try int) error {
			if try >= from && try < to {
				return unavailable
			}
			return nil
		}
	}
	const forever = 1 << 30
	for _, tt := range []struct {
		name  string
		fails func(try int) error
		size  int    // bytes of an interval
		want  string // what was stored of five intervals, one every 3.1 s
		tries int
	}{
		{"an available store", none, 1, "[0] [1] [2] [3] [4]", 5},
		{"unavailable once", between(1, 2), 1, "[0] [1] [2] [3] [4]", 6},
		{"unavailable for several attempts", between(1, 4), 1, "[0] [1 2 3] [4]", 6}, // tried after 1, 2 and 4 s
		{"unavailable to the end", between(3, forever), 1, "[0] [1] [2]", 6},
		{"a report that is gone", func(try int) error {
			if try == 2 {
				return fmt.Errorf("keep: %w", ErrGone)
			}
			return nil
		}, 1, "[0] [1]", 3},
		{"more than the limit", between(0, 4), mostWaiting/2 - 1, "[3] [4]", 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var kept []string
				tries := 0
				q := NewQueue(func(_ context.Context, batch []report.Encoded) error {
					defer func() { tries++ }()
					if err := tt.fails(tries); err != nil {
						return err
					}
					var ns []int
					for _, e := range batch {
						ns = append(ns, int(e.StartS))
					}
					kept = append(kept, fmt.Sprint(ns))
					return nil
				}, func(context.Context) {})
				for i := range 5 {
					q.Add(report.Encoded{StartS: float64(i), JSON: make([]byte, tt.size)})
					<-time.After(3100 * time.Millisecond) // no pause ends at this moment
				}
				q.Close()
				assert.Equal(t, fmt.Sprint(kept), "["+tt.want+"]")
				assert.Equal(t, tries, tt.tries, "tried times")
			})
		})
	}
}

// While nothing is stored, the queue reports once per pulse that the process is
// alive, until the report is gone.
func TestQueueBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beats := make(chan struct{}, 10)
		q := NewQueue(func(context.Context, []report.Encoded) error { return ErrGone }, func(context.Context) { beats <- struct{}{} })
		for range 3 {
			<-beats
		}
		q.Add(report.Encoded{})
		synctest.Wait()
		select {
		case <-beats:
			t.Error("a beat for a report that is gone")
		case <-time.After(3 * Pulse):
		}
		q.Close()
	})
}

// Close does not wait for a store that does not answer.
func TestQueueClosesWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		q := NewQueue(func(ctx context.Context, _ []report.Encoded) error {
			if tries++; tries == 1 {
				return errors.New("unavailable")
			}
			<-ctx.Done() // like a network without answers
			return ctx.Err()
		}, func(context.Context) {})
		q.Add(report.Encoded{})
		<-time.After(5 * time.Second)
		before := time.Now()
		q.Close()
		took := time.Since(before)
		assert.True(t, took <= 0 && tries == 2, "closed after %v and %d tries, want at once and 2", took, tries)
	})
}
