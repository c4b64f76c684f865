package franz

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"carronade/load"
	"carronade/test/testkit/assert"
)

// After too many uncommitted transactions, the result of later ones is unknown.
func TestFatesAreBounded(t *testing.T) {
	t.Parallel()
	l := &lane{id: 3}
	tr := &transactor{s: &sender{lanes: []*lane{l}}, uncommittedRanges: make([]uncommittedRange, mostUncommitted)}
	for i := range uint64(10) {
		l.addToTransaction(&load.Batch{First: i * 100, Events: 100})
		tr.recordEnd(i%2 == 0, true)
	}
	n := 0
	tr.uncommitted(func(stream int32, first, events uint64, aborted bool) {
		n++
		assert.True(t, stream == 3 && first == 100 && events == 900 && !aborted,
			"got %d events from %d of stream %d, aborted %v; want 900 from 100 of 3, unknown", events, first, stream, aborted)
	})
	assert.Equal(t, n, 1, "reports")
}

// TestSentAgain sends batches again, in the same transaction and in a later one: only
// the events whose last transaction was not committed are reported.
func TestSentAgain(t *testing.T) {
	t.Parallel()
	type transaction struct {
		batches [][2]uint64 // first, attempt; of 10 events each
		how     string
	}
	for _, tt := range []struct {
		name string
		txns []transaction
		want string // of batches, by their first events
	}{
		{"in order", []transaction{{[][2]uint64{{0, 0}, {10, 0}, {20, 0}}, "aborted"}, {[][2]uint64{{30, 0}}, "committed"}}, "aborted 0 10 20"},
		{"in the same", []transaction{{[][2]uint64{{0, 0}, {10, 0}, {20, 0}, {10, 1}}, "aborted"}}, "aborted 0 10 20"},
		{"in the same, the first", []transaction{{[][2]uint64{{50, 0}, {60, 0}}, "committed"}, {[][2]uint64{{70, 0}, {50, 1}, {80, 0}}, "aborted"}}, "aborted 50 70 80"},
		{"with others between", []transaction{{[][2]uint64{{0, 0}, {10, 0}, {20, 0}, {30, 0}}, "committed"}, {[][2]uint64{{0, 1}, {30, 1}}, "aborted"}}, "aborted 0 30"},
		{"committed after", []transaction{{[][2]uint64{{0, 0}, {10, 0}, {20, 0}, {30, 0}}, "aborted"}, {[][2]uint64{{20, 1}, {0, 1}, {40, 0}}, "committed"}}, "aborted 10 30"},
		{"refused, and not known after", []transaction{{[][2]uint64{{0, 0}, {10, 0}}, "aborted"}, {[][2]uint64{{10, 1}}, "unknown"}}, "aborted 0 unknown 10"},
		{"three times", []transaction{{[][2]uint64{{0, 0}, {10, 0}}, "aborted"}, {[][2]uint64{{10, 1}, {10, 2}}, "committed"}, {[][2]uint64{{0, 1}, {20, 0}}, "aborted"}}, "aborted 0 20"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := &lane{id: 3}
			tr := &transactor{s: &sender{lanes: []*lane{l}}}
			for _, x := range tt.txns {
				for _, s := range x.batches {
					l.addToTransaction(&load.Batch{First: s[0], Events: 10, Attempt: int32(s[1])})
				}
				tr.recordEnd(x.how == "committed", x.how == "aborted")
			}
			noted := map[bool]map[uint64]bool{true: {}, false: {}}
			tr.uncommitted(func(_ int32, first, events uint64, aborted bool) {
				for i := range events {
					noted[aborted][first+i] = true
				}
			})
			var got []string
			for _, aborted := range []bool{true, false} {
				if len(noted[aborted]) > 0 {
					got = append(got, map[bool]string{true: "aborted", false: "unknown"}[aborted])
				}
				for _, i := range slices.Sorted(maps.Keys(noted[aborted])) {
					if i%10 == 0 {
						got = append(got, strconv.FormatUint(i, 10))
					}
				}
				n := len(noted[aborted])
				assert.True(t, n%10 == 0, "%d events are reported, which are not complete batches", n)
			}
			assert.Equal(t, strings.Join(got, " "), tt.want)
		})
	}
}
