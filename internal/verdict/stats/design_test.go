package stats

import (
	"fmt"
	"slices"
	"testing"

	"carronade/test/testkit/assert"
)

// letters returns two-valued factors.
func letters(n int) []Factor {
	var out []Factor
	for i := range n {
		out = append(out, Factor{Name: string(rune('A' + i)), Values: []string{"low", "high"}})
	}
	return out
}

// A design has each combination once, and is refused when it is too large.
func TestNewDesign(t *testing.T) {
	d := assert.Value(NewDesign([]Factor{{"a", []string{"1", "2"}}, {"b", []string{"x", "y", "z"}}}))(t)
	var got []string
	for i := range d.Cells {
		got = append(got, fmt.Sprint(d.Settings(i)))
	}
	want := []string{"[a=1 b=x]", "[a=1 b=y]", "[a=1 b=z]", "[a=2 b=x]", "[a=2 b=y]", "[a=2 b=z]"}
	assert.True(t, slices.Equal(got, want), "cells %v, want %v", got, want)
	assert.Equal(t, d.Rounds(), 3, "rounds")
	if d, err := NewDesign(letters(5)); err != nil || len(d.Cells) != MaxCells || d.Rounds() != 2 {
		t.Errorf("five factors: %v, want %d cells twice", err, MaxCells)
	}
	for n, want := range map[int]string{6: "2 x 2 x 2 x 2 x 2 x 2 values are 64 combinations, and at most 32 can run", 70: "are 1180591620717411303424 combinations"} {
		_, err := NewDesign(letters(n))
		assert.ErrorHas(t, err, want, "%d factors", n)
	}
}

// Each round has every cell, the seed decides the order, and the rounds differ.
func TestOrder(t *testing.T) {
	d, _ := NewDesign(letters(3))
	order := d.Order(4, 7)
	for i, round := range order {
		sorted := slices.Sorted(slices.Values(round))
		assert.True(t, slices.Equal(sorted, []int{0, 1, 2, 3, 4, 5, 6, 7}), "round %d runs %v", i, round)
	}
	assert.True(t, !slices.Equal(order[0], order[1]) || !slices.Equal(order[1], order[2]), "all rounds have one order")
	assert.True(t, fmt.Sprint(d.Order(4, 7)) == fmt.Sprint(order) && fmt.Sprint(d.Order(4, 8)) != fmt.Sprint(order),
		"the seed does not decide the order")
}
