package cluster

import (
	"slices"
	"testing"

	"carronade/test/testkit/assert"
)

// The lag of a log is what a broker reported less what was delivered, and unknown before a report.
func TestProgress(t *testing.T) {
	t.Parallel()
	p := NewProgress(nil, []int64{5, 7, 9})
	p.Begin(1, 70) // such as a committed offset
	p.Deliver(0, 8)
	p.Reported(0, 20, 15)
	p.Reported(2, 3, 3) // an old answer: the log is not behind
	for _, tt := range []struct {
		name      string
		got, want []int64
	}{
		{"starts", p.Starts(), []int64{5, 70, 9}},
		{"positions", p.Positions(), []int64{8, 70, 9}},
		{"lag", p.Lag(), []int64{12, -1, 0}},
		{"what may be read", []int64{p.Behind(0), p.Behind(1), p.Behind(2)}, []int64{7, -1, 0}},
	} {
		assert.True(t, slices.Equal(tt.got, tt.want), "%s: got %v, want %v", tt.name, tt.got, tt.want)
	}
}
