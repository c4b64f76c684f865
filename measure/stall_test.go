package measure

import (
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"github.com/google/go-cmp/cmp"
)

func TestStallAdd(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name  string
		add   [][2]time.Duration
		want  []Span
		count uint64
	}{
		{"one", [][2]time.Duration{{100 * ms, 300 * ms}}, []Span{{100 * ms, 200 * ms}}, 1},
		{"one that continued", [][2]time.Duration{{100 * ms, 300 * ms}, {100 * ms, 500 * ms}}, []Span{{100 * ms, 400 * ms}}, 1},
		{"two that meet", [][2]time.Duration{{100 * ms, 300 * ms}, {300 * ms, 500 * ms}}, []Span{{100 * ms, 200 * ms}, {300 * ms, 200 * ms}}, 2},
		{"two that overlap", [][2]time.Duration{{100 * ms, 300 * ms}, {200 * ms, 500 * ms}}, []Span{{100 * ms, 200 * ms}, {300 * ms, 200 * ms}}, 2},
		{"one within another", [][2]time.Duration{{100 * ms, 300 * ms}, {200 * ms, 250 * ms}}, []Span{{100 * ms, 200 * ms}}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s Stall
			for _, x := range tt.add {
				s.Add(x[0], x[1])
			}
			diff := cmp.Diff(tt.want, s.Spans)
			assert.True(t, diff == "" && s.Count == tt.count, "%d stalls, want %d (-want +got):\n%s", s.Count, tt.count, diff)
		})
	}
}

// Of very many stalls the longest are kept, in order of time.
func TestStallsAreBounded(t *testing.T) {
	var s Stall
	for i := range 2 * MostSpans {
		at := time.Duration(i) * time.Second
		s.Add(at, at+time.Duration(100+i%2)*time.Millisecond)
	}
	assert.Must(t, s.Count == 2*MostSpans && len(s.Spans) == MostSpans, "%d stalls, %d kept", s.Count, len(s.Spans))
	short := 0
	for i, x := range s.Spans {
		if i > 0 && x.At <= s.Spans[i-1].At {
			t.Fatalf("stall %d is at %v, after %v", i, x.At, s.Spans[i-1].At)
		}
		if x.Length == 100*time.Millisecond {
			short++
		}
	}
	assert.True(t, short <= 1, "%d short stalls are kept instead of long ones", short)
}
