package stats

import "slices"

// A FactorChange is one factor going from one of its values to another.
type FactorChange struct{ Factor, From, To int }

// A Term is what a design estimates: the effect of one change, averaged over the values of the
// other factors, or how much larger that effect is with another change. Of has the names: one
// change or two. Several names are aliases: the design cannot tell them apart, and the estimate
// is the sum of all.
type Term struct {
	Of      [][]FactorChange
	weights []float64 // of the logarithms of the cells' means
}

// Main is whether the term is the effect of one change.
func (t *Term) Main() bool { return len(t.Of[0]) == 1 }

// Terms returns all terms of the design: main effects, then interactions of two factors where
// the design can tell them from main effects.
func (d *Design) Terms() []Term {
	var out []Term
	for f := range d.Factors {
		for _, c := range d.changes(f) {
			out = append(out, Term{Of: [][]FactorChange{{c}}, weights: d.contrast(c)})
		}
	}
	if d.Kind == PlackettBurman { // there they are spread over the main effects
		return out
	}
	first := len(out)
	for f := range d.Factors {
		for g := f + 1; g < len(d.Factors); g++ {
			for _, a := range d.changes(f) {
				for _, b := range d.changes(g) {
					t := Term{Of: [][]FactorChange{{a, b}}, weights: d.contrast(a, b)}
					same := slices.IndexFunc(out[first:], func(o Term) bool { return slices.Equal(o.weights, t.weights) })
					if same >= 0 {
						out[first+same].Of = append(out[first+same].Of, t.Of[0])
						continue
					}
					out = append(out, t)
				}
			}
		}
	}
	return out
}

// changes are those from a factor's first value to each other one.
func (d *Design) changes(f int) []FactorChange {
	var out []FactorChange
	for v := 1; v < len(d.Factors[f].Values); v++ {
		out = append(out, FactorChange{f, 0, v})
	}
	return out
}

// contrast returns the weights of a product of changes: of each the cells with its new value
// minus those with its old one, each group by its mean.
func (d *Design) contrast(changes ...FactorChange) []float64 {
	w := make([]float64, len(d.Cells))
	groups := map[[2]int]float64{} // cells with these values
	key := func(cell []int) (k [2]int) {
		for i, c := range changes {
			k[i] = cell[c.Factor]
		}
		return k
	}
	for _, cell := range d.Cells {
		groups[key(cell)]++
	}
	for i, cell := range d.Cells {
		sign := 1.0
		for _, c := range changes {
			switch cell[c.Factor] {
			case c.To:
			case c.From:
				sign = -sign
			default:
				sign = 0
			}
		}
		if sign != 0 {
			w[i] = sign / groups[key(cell)]
		}
	}
	return w
}
