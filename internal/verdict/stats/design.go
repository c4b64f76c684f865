package stats

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
)

// MaxCells is the largest number of cells of a design.
const MaxCells = 32

// A Factor is a setting with the values that it takes, at least two. Effects are those of a
// change from the first value.
type Factor struct {
	Name   string
	Values []string
}

// A Design is all combinations of values of some factors.
type Design struct {
	Factors []Factor
	Cells   [][]int // for each cell, the index of the value of each factor
}

// NewDesign returns a design of at most MaxCells cells. The last factor varies fastest.
func NewDesign(factors []Factor) (*Design, error) {
	n := big.NewInt(1) // of any number of factors
	var by []string
	for _, f := range factors {
		n.Mul(n, big.NewInt(int64(len(f.Values))))
		by = append(by, fmt.Sprint(len(f.Values)))
	}
	if n.Cmp(big.NewInt(MaxCells)) > 0 {
		return nil, fmt.Errorf("%s values are %s combinations, and at most %d can run", strings.Join(by, " x "), n, MaxCells)
	}
	d := &Design{Factors: factors}
	for i := range n.Int64() {
		cell := make([]int, len(factors))
		for k, rest := len(factors)-1, int(i); k >= 0; k-- {
			cell[k] = rest % len(factors[k].Values)
			rest /= len(factors[k].Values)
		}
		d.Cells = append(d.Cells, cell)
	}
	return d, nil
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
