package store

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/report"
)

func TestQueue(t *testing.T) {
	away := errors.New("away")
	for _, tt := range []struct {
		name  string
		fails map[int]error // by the number of the try
		size  int           // bytes of an interval
		want  string        // what was kept, after five were given one by one
	}{
		{"a store that is there", nil, 1, "[0] [1] [2] [3] [4]"},
		{"a store that is away once", map[int]error{1: away}, 1, "[0] [1 2] [3] [4]"},
		{"away for long", map[int]error{1: away, 2: away, 3: away}, 1, "[0] [1 2 3 4]"},
		{"away to the end", map[int]error{3: away, 4: away, 5: away}, 1, "[0] [1] [2]"},
		{"a report that is gone", map[int]error{2: fmt.Errorf("keep: %w", ErrGone)}, 1, "[0] [1]"},
		{"more than may wait", map[int]error{0: away, 1: away, 2: away, 3: away}, mostWaiting/2 - 1, "[3 4]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var kept []string
				tries, beats := 0, 0
				q := NewQueue(func(batch []report.Encoded) error {
					defer func() { tries++ }()
					if err := tt.fails[tries]; err != nil {
						return err
					}
					var ns []int
					for _, e := range batch {
						ns = append(ns, int(e.StartS))
					}
					kept = append(kept, fmt.Sprint(ns))
					return nil
				}, func() { beats++ })
				for i := range 5 {
					q.Add(report.Encoded{StartS: float64(i), JSON: make([]byte, tt.size)})
					synctest.Wait()
				}
				q.Close()
				if got := fmt.Sprint(kept); got != "["+tt.want+"]" {
					t.Errorf("got %s, want [%s]", got, tt.want)
				}
				if got := q.Failed(); got != len(tt.fails) {
					t.Errorf("%d tries failed, want %d", got, len(tt.fails))
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
		q := NewQueue(func([]report.Encoded) error { return ErrGone }, func() { beats <- struct{}{} })
		for range 3 {
			<-beats
		}
		q.Add(report.Encoded{})
		synctest.Wait()
		select {
		case <-beats:
			t.Error("a report that is gone was told of")
		case <-afterPulses(3):
		}
		q.Close()
	})
}

func afterPulses(n int) <-chan time.Time { return time.After(time.Duration(n) * Pulse) }
