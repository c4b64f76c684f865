package stats

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
)

// MaxCells is the largest number of cells of a design.
const MaxCells = 32

// The numbers of factors that a screen can have.
const (
	MinScreen = 4
	MaxScreen = 15
)

// A DesignKind is a kind of design.
type DesignKind string

// The kinds.
const (
	FullGrid       DesignKind = "full grid"
	PlackettBurman DesignKind = "Plackett-Burman"
	ResolutionIV   DesignKind = "resolution IV"
	ResolutionV    DesignKind = "resolution V"
)

// A Factor is a setting with the values that it takes, at least two. Effects are those of a
// change from the first value.
type Factor struct {
	Name   string
	Values []string
}

// A Design says which combinations of values to run.
type Design struct {
	Kind    DesignKind
	Factors []Factor
	Cells   [][]int // for each cell, the index of the value of each factor
}

// Errors of designs. The message of a wrapping error has the numbers.
var (
	ErrTooManyCells = errors.New("too many cells")
	ErrScreen       = errors.New("does not suit a screen")
)

// Grid returns all combinations. The last factor varies fastest.
func Grid(factors []Factor) (*Design, error) {
	n := 1
	for _, f := range factors {
		if n *= len(f.Values); n > 1<<20 {
			break // enough to refuse it
		}
	}
	if n > MaxCells {
		var by []string
		for _, f := range factors {
			by = append(by, fmt.Sprint(len(f.Values)))
		}
		return nil, fmt.Errorf("%w: %s are more than %d", ErrTooManyCells, strings.Join(by, " x "), MaxCells)
	}
	d := &Design{Kind: FullGrid, Factors: factors}
	for i := range n {
		cell := make([]int, len(factors))
		for k, rest := len(factors)-1, i; k >= 0; k-- {
			cell[k] = rest % len(factors[k].Values)
			rest /= len(factors[k].Values)
		}
		d.Cells = append(d.Cells, cell)
	}
	return d, nil
}

// Screen returns a two-level design of a kind. For five factors, resolution V has no more cells
// than resolution IV, so it is returned for both.
func Screen(kind DesignKind, factors []Factor) (*Design, error) {
	k := len(factors)
	if k < MinScreen || k > MaxScreen {
		return nil, fmt.Errorf("%w: %d settings, but it takes %d to %d", ErrScreen, k, MinScreen, MaxScreen)
	}
	for _, f := range factors {
		if len(f.Values) != 2 {
			return nil, fmt.Errorf("%w: %s has %d values, but each setting takes two", ErrScreen, f.Name, len(f.Values))
		}
	}
	d := &Design{Kind: kind, Factors: factors}
	switch kind {
	case PlackettBurman:
		d.Cells = plackettBurman(k)
	case ResolutionIV:
		if k == 5 {
			d.Kind = ResolutionV
			d.Cells = fraction(4, k, resolutionV)
			break
		}
		base := 3
		for 1<<(base-1) < k { // with n basic factors, resolution IV has room for half of 2^n
			base++
		}
		d.Cells = fraction(base, k, oddWords(base))
	case ResolutionV:
		if k > 6 {
			return nil, fmt.Errorf("%w: resolution V of %d settings has 64 cells or more", ErrTooManyCells, k)
		}
		d.Cells = fraction(max(4, k-1), k, resolutionV)
	default:
		return nil, fmt.Errorf("%w: %q is not a kind of screen", ErrScreen, kind)
	}
	return d, nil
}

// resolutionV are the generators of resolution V for 5 and 6 factors: the product of all basic
// factors.
var resolutionV = []uint{1<<5 - 1}

// oddWords are the products of odd numbers of basic factors, the shortest first. With these as
// generators every word that is constant has an even length, so at least four: resolution IV.
func oddWords(base int) []uint {
	var out []uint
	for length := 3; length <= base; length += 2 {
		for w := range uint(1) << base {
			if ones(w) == length {
				out = append(out, w)
			}
		}
	}
	return out
}

func ones(w uint) (n int) {
	for ; w > 0; w &= w - 1 {
		n++
	}
	return n
}

// fraction returns the cells of a fraction: all combinations of basic factors, and further
// factors as products of them.
func fraction(base, k int, words []uint) [][]int {
	cells := make([][]int, 1<<base)
	for i := range cells {
		cell := make([]int, k)
		for f := range k {
			if f < base {
				cell[f] = i >> f & 1
				continue
			}
			low := 0 // of the factors in the word, those at their low value
			for b := range base {
				if words[f-base]>>b&1 == 1 {
					low += 1 - i>>b&1
				}
			}
			cell[f] = 1 - low&1
		}
		cells[i] = cell
	}
	return cells
}

// The first rows of the designs of Plackett and Burman (1946); the others are its rotations,
// and a last row of low values.
var firstRows = map[int]string{
	8:  "+++-+--",
	12: "++-+++---+-",
	16: "++++-+-++--+---",
}

func plackettBurman(k int) [][]int {
	n := 4 * (k/4 + 1)
	row := firstRows[n]
	cells := make([][]int, 0, n)
	for i := range n - 1 {
		cell := make([]int, k)
		for f := range k {
			if row[(f+n-1-i)%(n-1)] == '+' {
				cell[f] = 1
			}
		}
		cells = append(cells, cell)
	}
	return append(cells, make([]int, k))
}

// Combinations is how many combinations of the values there are.
func (d *Design) Combinations() int {
	n := 1
	for _, f := range d.Factors {
		n *= len(f.Values)
	}
	return n
}

// Settings are the values of a cell as NAME=VALUE.
func (d *Design) Settings(cell int) []string {
	out := make([]string, len(d.Factors))
	for i, f := range d.Factors {
		out[i] = f.Name + "=" + f.Values[d.Cells[cell][i]]
	}
	return out
}

// leastDegrees is how many degrees of freedom the noise should have: with fewer, intervals are
// wide because the noise is hardly known.
const leastDegrees = 6

// Rounds is how often to run each cell if the user does not say: twice, and small designs more
// often.
func (d *Design) Rounds() int {
	r := 2
	for (len(d.Cells)-1)*(r-1) < leastDegrees {
		r++
	}
	return r
}

// Order returns the cells in the order in which to run them: each round has all cells, in
// another random order. So what changes slowly affects all of them, and no cell always follows
// the same one.
func (d *Design) Order(rounds int, seed uint64) [][]int {
	r := rand.New(rand.NewPCG(seed, uint64(len(d.Cells)))) //nolint:gosec // an order, and no secret
	out := make([][]int, rounds)
	for i := range out {
		out[i] = r.Perm(len(d.Cells))
	}
	return out
}
