package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/report"
)

func TestQueue(t *testing.T) {
	away, none := errors.New("away"), func(int) error { return nil }
	between := func(from, to int) func(int) error {
		return func(try int) error {
			if try >= from && try < to {
				return away
			}
			return nil
		}
	}
	const forever = 1 << 30
	for _, tt := range []struct {
		name  string
		fails func(try int) error
		size  int    // bytes of an interval
		want  string // what was kept, after five were given, one every 3.1 s
		tries int
	}{
		{"a store that is there", none, 1, "[0] [1] [2] [3] [4]", 5},
		{"a store that is away once", between(1, 2), 1, "[0] [1] [2] [3] [4]", 6},
		{"away for long", between(1, 4), 1, "[0] [1 2 3] [4]", 6}, // tried after 1, 2 and 4 s
		{"away to the end", between(3, forever), 1, "[0] [1] [2]", 6},
		{"a report that is gone", func(try int) error {
			if try == 2 {
				return fmt.Errorf("keep: %w", ErrGone)
			}
			return nil
		}, 1, "[0] [1]", 3},
		{"more than may wait", between(0, 4), mostWaiting/2 - 1, "[3] [4]", 6},
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
					<-time.After(3100 * time.Millisecond) // no pause ends just then
				}
				q.Close()
				if got := fmt.Sprint(kept); got != "["+tt.want+"]" {
					t.Errorf("got %s, want [%s]", got, tt.want)
				}
				if tries != tt.tries {
					t.Errorf("tried %d times, want %d", tries, tt.tries)
				}
			})
		})
	}
}

// While nothing is kept the store hears of the process once a pulse, until the
// report is gone.
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
			t.Error("a report that is gone was told of")
		case <-time.After(3 * Pulse):
		}
		q.Close()
	})
}

// A store that does not answer is not waited for at the end.
func TestQueueClosesWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		q := NewQueue(func(ctx context.Context, _ []report.Encoded) error {
			if tries++; tries == 1 {
				return errors.New("away")
			}
			<-ctx.Done() // as a network does from which nothing comes back
			return ctx.Err()
		}, func(context.Context) {})
		q.Add(report.Encoded{})
		<-time.After(5 * time.Second)
		before := time.Now()
		q.Close()
		if took := time.Since(before); took > 0 || tries != 2 {
			t.Errorf("closed after %v and %d tries, want at once and 2", took, tries)
		}
	})
}
