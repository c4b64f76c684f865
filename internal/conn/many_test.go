package conn

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"carronade/target"
)

// TestMany: every connection is made once, and not too many at the same time.
func TestMany(t *testing.T) {
	for _, n := range []int{0, 1, atOnce, 5 * atOnce} {
		made := make([]int, n)
		var now, most atomic.Int64
		var full sync.WaitGroup // until as many as may be are being made
		full.Add(min(n, atOnce))
		err := DialMany(n, func(i int) {
			k := now.Add(1)
			for m := most.Load(); k > m && !most.CompareAndSwap(m, k); m = most.Load() {
			}
			if i < atOnce {
				full.Done()
				full.Wait()
			}
			made[i]++
			now.Add(-1)
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, times := range made {
			if times != 1 {
				t.Errorf("%d connections: number %d was made %d times", n, i, times)
			}
		}
		if got, want := most.Load(), int64(min(n, atOnce)); got != want {
			t.Errorf("%d connections: %d at the same time, want %d", n, got, want)
		}
	}
}

// TestManyFiles: more connections than files may be open are not begun, and the error
// has the number that is needed.
func TestManyFiles(t *testing.T) {
	limit := mostFiles()
	if limit > 1<<30 {
		t.Skip("open files are not limited")
	}
	n := int(limit) - ownFiles + 1
	err := DialMany(n, func(int) { t.Error("a connection was begun") })
	e := (*target.Error)(nil)
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a target.Error", err)
	}
	if want := fmt.Sprintf("the limit of open files is %d, and the run needs about %d", limit, limit+1); e.Err.Error() != want {
		t.Errorf("got %q, want %q", e.Err, want)
	}
	if !strings.Contains(e.Hint, fmt.Sprintf("ulimit -n %d", 2*(limit+1))) {
		t.Errorf("the hint is %q", e.Hint)
	}
}
