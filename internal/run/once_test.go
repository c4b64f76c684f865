package run

import (
	"slices"
	"testing"

	"carronade/test/testkit/assert"
)

func TestUnique(t *testing.T) {
	got := unique([]string{"a", "b"}, nil, []string{"b", "c", "a"})
	want := []string{"a", "b", "c"}
	assert.True(t, slices.Equal(got, want), "got %q, want %q", got, want)
}
