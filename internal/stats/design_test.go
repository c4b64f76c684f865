package stats

import (
	"fmt"
	"slices"
	"strings"
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

// A design has each combination once, and is refused when it is too large.
func TestNewDesign(t *testing.T) {
	d, err := NewDesign([]Factor{{"a", []string{"1", "2"}}, {"b", []string{"x", "y", "z"}}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range d.Cells {
		got = append(got, fmt.Sprint(d.Settings(i)))
	}
	want := []string{"[a=1 b=x]", "[a=1 b=y]", "[a=1 b=z]", "[a=2 b=x]", "[a=2 b=y]", "[a=2 b=z]"}
	if !slices.Equal(got, want) {
		t.Errorf("cells %v, want %v", got, want)
	}
	if d.Rounds() != 3 {
		t.Errorf("%d rounds, want 3", d.Rounds())
	}
	if d, err := NewDesign(letters(5)); err != nil || len(d.Cells) != MaxCells || d.Rounds() != 2 {
		t.Errorf("five factors: %v, want %d cells twice", err, MaxCells)
	}
	for n, want := range map[int]string{6: "2 x 2 x 2 x 2 x 2 x 2 values are 64 combinations, and at most 32 can run", 70: "are 1180591620717411303424 combinations"} {
		if _, err := NewDesign(letters(n)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d factors: %v, want %q", n, err, want)
		}
	}
}

// Each round has every cell, the seed decides the order, and the rounds differ.
func TestOrder(t *testing.T) {
	d, _ := NewDesign(letters(3))
	order := d.Order(4, 7)
	for i, round := range order {
		sorted := slices.Sorted(slices.Values(round))
		if !slices.Equal(sorted, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
			t.Errorf("round %d runs %v", i, round)
		}
	}
	if slices.Equal(order[0], order[1]) && slices.Equal(order[1], order[2]) {
		t.Error("all rounds have one order")
	}
	if fmt.Sprint(d.Order(4, 7)) != fmt.Sprint(order) || fmt.Sprint(d.Order(4, 8)) == fmt.Sprint(order) {
		t.Error("the seed does not decide the order")
	}
}
