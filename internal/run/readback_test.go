package run

import (
	"context"
	"errors"
	"slices"
	"testing"

	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// placed has the offsets at which the reading of logs began and ended.
type placed struct{ starts, at []int64 }

func (p placed) Starts() []int64                                { return p.starts }
func (p placed) Positions() []int64                             { return p.at }
func (placed) Ends(context.Context) (ends []int64, err error)   { return nil, nil }
func (placed) Heads(context.Context) (heads []int64, err error) { return nil, nil }

// TestReached: the logs that were read to their ends are distinguished from the
// others.
func TestReached(t *testing.T) {
	for _, tt := range []struct {
		name             string
		starts, at, ends []int64
		want             []bool
	}{
		{"both", []int64{0, 0}, []int64{40, 30}, []int64{40, 30}, []bool{true, true}},
		{"half of the first", []int64{0, 0}, []int64{20, 30}, []int64{40, 30}, []bool{false, true}},
		{"a log that has become shorter", []int64{10, 10}, []int64{40, 30}, []int64{20, 40}, []bool{true, false}},
		{"a log that was created anew", []int64{10, 0}, []int64{40, 30}, []int64{5, 30}, []bool{false, true}},
		{"the ends are unknown", []int64{0, 0}, []int64{40, 30}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &readback{seek: placed{tt.starts, tt.at}}
			if got := b.reached(tt.ends); !slices.Equal(got, tt.want) || all(got) != (tt.want != nil && !slices.Contains(tt.want, false)) {
				t.Errorf("got %v, all %v, want %v", got, all(got), tt.want)
			}
		})
	}
}

// jumping is a source that knows which events it could not read.
type jumping struct{ load.Source }

func (jumping) Skipped() [][]protocol.Span { return [][]protocol.Span{{{From: 3, To: 5}}} }

// silent cannot say where its logs begin.
type silent struct{ placed }

func (silent) Heads(context.Context) ([]int64, error) { return nil, errors.New("no answer") }

// TestRemoved: events that were removed before they were read are known
// although the heads of the logs are not, if the source knows what it skipped.
func TestRemoved(t *testing.T) {
	for _, tt := range []struct {
		name  string
		src   load.Source
		want  []protocol.Span
		fails bool
	}{
		{"a source that knows", jumping{}, []protocol.Span{{From: 3, To: 5}}, false},
		{"a source that does not", fakeSource{}, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &readback{src: tt.src, seek: silent{placed{[]int64{0}, []int64{40}}}}
			var got []protocol.Span
			err := b.reportRemoved(t.Context(), func(_ int32, from, to int64) { got = append(got, protocol.Span{From: from, To: to}) })
			assert.True(t, slices.Equal(got, tt.want) && (err != nil) == tt.fails,
				"got %v and %v, want %v, an error %v", got, err, tt.want, tt.fails)
		})
	}
}
