package stats

// A FactorChange is one factor going from one of its values to another.
type FactorChange struct{ Factor, From, To int }

// A Term is what a design estimates: the effect of one change, averaged over the values of the
// other factors, or how much larger that effect is with another change.
type Term struct {
	Of      []FactorChange // one change, or two of different factors
	weights []float64      // of the logarithms of the cells' means
}

// Main is whether the term is the effect of one change.
func (t *Term) Main() bool { return len(t.Of) == 1 }

// Terms returns all terms of the design: main effects, then interactions of two factors.
func (d *Design) Terms() []Term {
	var out []Term
	add := func(changes ...FactorChange) { out = append(out, Term{changes, d.contrast(changes...)}) }
	for f := range d.Factors {
		for _, c := range d.changes(f) {
			add(c)
		}
	}
	for f := range d.Factors {
		for g := f + 1; g < len(d.Factors); g++ {
			for _, a := range d.changes(f) {
				for _, b := range d.changes(g) {
					add(a, b)
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
