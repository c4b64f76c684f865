package conn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"carronade/internal/testkit/assert"
	"carronade/target"
)

// TestMany: every connection is made once, and not too many at the same time.
func TestMany(t *testing.T) {
	for _, n := range []int{0, 1, atOnce, 5 * atOnce} {
		made := make([]int, n)
		var now, most atomic.Int64
		var full sync.WaitGroup // until as many as may be are being made
		full.Add(min(n, atOnce))
		err := DialMany(t.Context(), n, func(_ context.Context, i int) error {
			k := now.Add(1)
			for m := most.Load(); k > m && !most.CompareAndSwap(m, k); m = most.Load() {
			}
			if i < atOnce {
				full.Done()
				full.Wait()
			}
			made[i]++
			now.Add(-1)
			return nil
		})
		assert.OK(t, err)
		for i, times := range made {
			assert.Equal(t, times, 1, "%d connections: number %d was made times", n, i)
		}
		if got, want := most.Load(), int64(min(n, atOnce)); got != want {
			t.Errorf("%d connections: %d at the same time, want %d", n, got, want)
		}
	}
}

// TestManyFails: the first error ends the other attempts, which wait for their context here, begins
// no further ones, and is the one that is returned.
func TestManyFails(t *testing.T) {
	refused := errors.New("refused")
	var begun atomic.Int64
	err := DialMany(t.Context(), 10*atOnce, func(ctx context.Context, i int) error {
		begun.Add(1)
		if i == 1 {
			return refused
		}
		<-ctx.Done()
		return ctx.Err()
	})
	assert.True(t, errors.Is(err, refused), "got %v, want %v", err, refused)
	if n := begun.Load(); n > 2*atOnce {
		t.Errorf("%d of %d attempts were begun", n, 10*atOnce)
	}
}

// TestManyCanceled: DialMany calls connect also with a context that has ended, because a call may not need it.
func TestManyCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var begun atomic.Int64
	if err := DialMany(ctx, 3*atOnce, func(context.Context, int) error { begun.Add(1); return nil }); err != nil || begun.Load() != 3*atOnce {
		t.Errorf("%d of %d calls were begun: %v", begun.Load(), 3*atOnce, err)
	}
}

// TestManyFiles: more connections than files may be open are not begun, and the error
// has the number that is needed.
func TestManyFiles(t *testing.T) {
	for _, tt := range []struct {
		name    string
		n, open int
		most    uint64
		want    string
	}{
		{"enough", 1000, 20, 1052, ""},
		{"one too few", 1000, 21, 1052, "the limit of open files is 1052, and the run needs about 1053 (21 are open now)"},
		{"many are open", 10, 1015, 1024, "the limit of open files is 1024, and the run needs about 1057 (1015 are open now)"},
		{"no limit", 1 << 30, 20, 1<<64 - 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := enoughFiles(tt.n, tt.open, tt.most)
			if tt.want == "" {
				assert.True(t, err == nil, "got %v", err)
				return
			}
			e := (*target.Error)(nil)
			assert.Must(t, errors.As(err, &e), "got %v, want a target.Error", err)
			assert.Equal(t, e.Err.Error(), tt.want, "got %q", e.Err)
			if want := fmt.Sprintf("ulimit -n %d", 2*(tt.open+tt.n+OtherFiles)); !strings.Contains(e.Hint, want) {
				t.Errorf("the hint is %q, want %q in it", e.Hint, want)
			}
		})
	}
	limit := mostFiles()
	if limit > 1<<30 {
		t.Skip("open files are not limited")
	}
	if err := DialMany(t.Context(), int(limit), func(context.Context, int) error { t.Error("a connection was begun"); return nil }); err == nil {
		t.Error("as many connections as files may be open")
	}
}

// TestOpenFiles: files that are opened count.
func TestOpenFiles(t *testing.T) {
	before := openFiles()
	for range 40 {
		f, err := os.Open(os.DevNull)
		assert.OK(t, err)
		defer f.Close()
	}
	if got := openFiles() - before; got < 30 { // others may end meanwhile
		t.Errorf("40 files were opened, and %d more are open", got)
	}
}
