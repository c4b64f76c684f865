package stats

import (
	"carronade/internal/testkit/assert"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// letters returns two-valued factors.
func letters(n int) []Factor {
	var out []Factor
	for i := range n {
		out = append(out, Factor{Name: string(rune('A' + i)), Values: []string{"low", "high"}})
	}
	return out
}

// A grid has each combination once, and is refused when it is too large.
func TestGrid(t *testing.T) {
	d, err := Grid([]Factor{{"a", []string{"1", "2"}}, {"b", []string{"x", "y", "z"}}})
	assert.OK(t, err)
	var got []string
	for i := range d.Cells {
		got = append(got, fmt.Sprint(d.Settings(i)))
	}
	want := []string{"[a=1 b=x]", "[a=1 b=y]", "[a=1 b=z]", "[a=2 b=x]", "[a=2 b=y]", "[a=2 b=z]"}
	assert.True(t, slices.Equal(got, want), "cells %v, want %v", got, want)
	assert.Equal(t, d.Rounds(), 3, "rounds")
	if _, err := Grid(letters(6)); !errors.Is(err, ErrTooManyCells) {
		t.Errorf("six factors: %v, want too many cells", err)
	}
	if d, err := Grid(letters(5)); err != nil || len(d.Cells) != MaxCells || d.Rounds() != 2 {
		t.Errorf("five factors: %v, want %d cells twice", err, MaxCells)
	}
}

// Each screen has the promised number of cells and the promised resolution: main effects are
// orthogonal; from resolution IV on no interaction is like a main effect; with resolution V no
// two interactions are alike.
func TestScreens(t *testing.T) {
	for _, want := range []struct {
		kind  DesignKind
		cells map[int]int
	}{
		{PlackettBurman, map[int]int{4: 8, 5: 8, 6: 8, 7: 8, 8: 12, 9: 12, 10: 12, 11: 12, 12: 16, 13: 16, 14: 16, 15: 16}},
		{ResolutionIV, map[int]int{4: 8, 5: 16, 6: 16, 7: 16, 8: 16, 9: 32, 10: 32, 11: 32, 12: 32, 13: 32, 14: 32, 15: 32}},
		{ResolutionV, map[int]int{4: 16, 5: 16, 6: 32}},
	} {
		for k := MinScreen; k <= MaxScreen; k++ {
			d, err := Screen(want.kind, letters(k))
			n := want.cells[k]
			if n == 0 {
				assert.True(t, errors.Is(err, ErrTooManyCells), "%s of %d: %v, want too many cells", want.kind, k, err)
				continue
			}
			if err != nil || len(d.Cells) != n {
				t.Errorf("%s of %d: %v, want %d cells", want.kind, k, err, n)
				continue
			}
			checkOrthogonal(t, d)
		}
	}
	for _, k := range []int{3, 16} {
		if _, err := Screen(ResolutionIV, letters(k)); !errors.Is(err, ErrScreen) {
			t.Errorf("%d factors: %v, want that it does not suit", k, err)
		}
	}
	three := letters(4)
	three[1].Values = []string{"1", "2", "3"}
	if _, err := Screen(ResolutionIV, three); !errors.Is(err, ErrScreen) {
		t.Errorf("three values: %v, want that it does not suit", err)
	}
}

func checkOrthogonal(t *testing.T, d *Design) {
	t.Helper()
	name := fmt.Sprintf("%s of %d", d.Kind, len(d.Factors))
	sign := func(cell, f int) int { return 2*d.Cells[cell][f] - 1 }
	sum := func(fs ...int) (s int) {
		for i := range d.Cells {
			p := 1
			for _, f := range fs {
				p *= sign(i, f)
			}
			s += p
		}
		return s
	}
	k := len(d.Factors)
	for a := range k {
		assert.Equal(t, sum(a), 0, "%s: factor %d is not balanced", name, a)
		for b := a + 1; b < k; b++ {
			assert.Equal(t, sum(a, b), 0, "%s: factors %d and %d are not orthogonal", name, a, b)
			for c := b + 1; c < k && d.Kind != PlackettBurman; c++ {
				assert.Equal(t, sum(a, b, c), 0, "%s: the interaction of %d and %d is mixed with %d", name, a, b, c)
			}
		}
	}
	pairs := 0
	for _, term := range d.Terms() {
		switch {
		case term.Main():
		case d.Kind == PlackettBurman:
			t.Errorf("%s: reports an interaction", name)
		case d.Kind == ResolutionV && len(term.Of) > 1:
			t.Errorf("%s: %v are aliases", name, term.Of)
		default:
			pairs += len(term.Of)
		}
	}
	if want := k * (k - 1) / 2; d.Kind != PlackettBurman && pairs != want {
		t.Errorf("%s: names %d interactions, want %d", name, pairs, want)
	}
}

// Each round has every cell, the seed decides the order, and the rounds differ.
func TestOrder(t *testing.T) {
	d, _ := Grid(letters(3))
	order := d.Order(4, 7)
	for i, round := range order {
		sorted := slices.Sorted(slices.Values(round))
		assert.True(t, slices.Equal(sorted, []int{0, 1, 2, 3, 4, 5, 6, 7}), "round %d runs %v", i, round)
	}
	assert.True(t, !slices.Equal(order[0], order[1]) || !slices.Equal(order[1], order[2]), "all rounds have one order")
	if fmt.Sprint(d.Order(4, 7)) != fmt.Sprint(order) || fmt.Sprint(d.Order(4, 8)) == fmt.Sprint(order) {
		t.Error("the seed does not decide the order")
	}
}
