package run

import (
	"slices"
	"testing"
)

func TestUnique(t *testing.T) {
	got := unique([]string{"a", "b"}, nil, []string{"b", "c", "a"})
	if want := []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
