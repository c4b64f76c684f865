package run

import (
	"context"
	"slices"
	"testing"
)

// placed is where the reading of logs began and came to.
type placed struct{ starts, at []int64 }

func (p placed) Starts() []int64                                { return p.starts }
func (p placed) Positions() []int64                             { return p.at }
func (placed) Ends(context.Context) (ends []int64, err error)   { return nil, nil }
func (placed) Heads(context.Context) (heads []int64, err error) { return nil, nil }

// TestReached tells the logs that were read to their ends from the others.
func TestReached(t *testing.T) {
	for _, tt := range []struct {
		name             string
		starts, at, ends []int64
		want             []bool
	}{
		{"both", []int64{0, 0}, []int64{40, 30}, []int64{40, 30}, []bool{true, true}},
		{"half of the first", []int64{0, 0}, []int64{20, 30}, []int64{40, 30}, []bool{false, true}},
		{"one that has become shorter", []int64{10, 10}, []int64{40, 30}, []int64{20, 40}, []bool{true, false}},
		{"one that was made anew", []int64{10, 0}, []int64{40, 30}, []int64{5, 30}, []bool{false, true}},
		{"nobody knows where they end", []int64{0, 0}, []int64{40, 30}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &readback{seek: placed{tt.starts, tt.at}}
			if got := b.reached(tt.ends); !slices.Equal(got, tt.want) || all(got) != (tt.want != nil && !slices.Contains(tt.want, false)) {
				t.Errorf("got %v, all %v, want %v", got, all(got), tt.want)
			}
		})
	}
}
