package load

import (
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// TestMergeMembers: each generator has a row for each member, and reads as some of them.
func TestMergeMembers(t *testing.T) {
	a := MemberResult{Consumed: 30, Bytes: 300, EventsPerS: 3, Partitions: 2, Rebalances: 1, UnassignedS: .5}
	b := MemberResult{Consumed: 7, Bytes: 70, EventsPerS: 1, Partitions: 2}
	began := time.Now()
	got := Merge([]string{"a", "b"}, []*Result{
		{Started: began, Members: []MemberResult{a, {Partitions: 2}}},
		{Started: began, Members: []MemberResult{{Partitions: 2}, b}},
	})
	assert.Same(t, got.Members, []MemberResult{a, b}, "members")
}
