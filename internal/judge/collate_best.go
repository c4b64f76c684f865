package judge

import (
	"slices"
	"strings"

	"carronade/internal/store"
	"carronade/internal/verdict/stats"
)

// markBest marks the best rows if the statistics support it: for throughput,
// for the first 99th percentile that a group has, and for efficiency, all
// tested together. If there are too few repetitions, it marks the row that is
// ahead.
func markBest(groups []Group) {
	for gi := range groups {
		g := &groups[gi]
		if len(g.Rows) < 2 {
			continue
		}
		var judged []quantity
		percentile := false
		for _, c := range columns {
			if !c.marked || percentile && strings.HasSuffix(c.field, "_p99") || !g.allHave(c.field) {
				continue
			}
			percentile = percentile || strings.HasSuffix(c.field, "_p99")
			judged = append(judged, c)
		}
		o := stats.Defaults
		o.Alpha /= float64(max(len(judged), 1))
		for _, c := range judged {
			o.Effect = Effects{}.of(c)
			if best, sure := g.best(&c, o); sure {
				cell := g.Rows[best].Cells[c.field]
				cell.Best = true
				g.Rows[best].Cells[c.field] = cell
			} else if lead, far := g.ahead(&c); far {
				cell := g.Rows[lead].Cells[c.field]
				cell.Ahead = true
				g.Rows[lead].Cells[c.field] = cell
			}
		}
	}
}

// best is the best row of a column, and whether that is certain. The row must
// also be the best if its lower bounds are as bad as possible.
func (g *Group) best(c *quantity, o stats.Options) (best int, sure bool) {
	samples := make([][]float64, len(g.Rows))
	worst := 0.0
	for i := range g.Rows {
		samples[i] = sample(trusted(g.Rows[i].rows()), c.field)
		if len(samples[i]) == 0 {
			return -1, false // without values of every row, no row is the best
		}
		worst = max(worst, slices.Max(samples[i]))
	}
	apart := func(a, b int) float64 {
		return betweenGroups(c, trusted(g.Rows[a].rows()), trusted(g.Rows[b].rows()))
	}
	best, sure = stats.Best(samples, c.better, apart, o)
	if !sure {
		return best, false
	}
	// The row must also be the best without what the generators added to the
	// others.
	others, moved := slices.Clone(samples), false
	for i := range g.Rows {
		if rows := trusted(g.Rows[i].rows()); i != best && anyMoved(c.field, rows) {
			others[i], moved = correctedSample(rows, c.field), true
		}
	}
	if moved {
		if again, still := stats.Best(others, c.better, apart, o); !still || again != best {
			return best, false
		}
	}
	if rows := trusted(g.Rows[best].rows()); anyBound(c.field, rows) {
		samples[best] = raised(rows, c.field, ceilingFactor*worst)
		again, still := stats.Best(samples, c.better, apart, o)
		return best, still && again == best
	}
	return best, true
}

// farAhead times the median of every other row is how much better the median of a
// row must be to be called ahead without a test. All runs of a row may have been made while another program
// took half of the machine, and few repetitions do not show that.
const farAhead = 2

// ahead returns the row of a column that is far better than every other one, if no
// row is the best because of too few repetitions. All of its values must be better
// than all others, also without what the generators added to those. Throughput is
// not compared if the rows have different target rates.
func (g *Group) ahead(c *quantity) (lead int, far bool) {
	samples := make([][]float64, len(g.Rows))
	medians := make([]float64, len(g.Rows))
	few := false
	for i := range g.Rows {
		if c.field == throughput.field && (g.differs(i, "rate") || g.differs(i, "shape")) {
			return -1, false
		}
		rows := trusted(g.Rows[i].rows())
		samples[i] = sample(rows, c.field)
		if len(samples[i]) == 0 {
			return -1, false
		}
		few = few || len(samples[i]) < stats.Least
		medians[i] = stats.Median(samples[i], stats.Confidence).Median
		if (medians[i]-medians[lead])*float64(c.better) > 0 {
			lead = i
		}
	}
	if !few || anyBound(c.field, trusted(g.Rows[lead].rows())) {
		return lead, false
	}
	for i := range g.Rows {
		if i == lead {
			continue
		}
		other := correctedSample(trusted(g.Rows[i].rows()), c.field)
		own, most := medians[lead], stats.Median(other, stats.Confidence).Median
		switch c.better {
		case stats.More:
			far = own > farAhead*most && slices.Min(samples[lead]) > slices.Max(other)
		default:
			far = farAhead*own < most && slices.Max(samples[lead]) < slices.Min(other)
		}
		if !far {
			return lead, false
		}
	}
	return lead, far
}

// differs reports whether a row and the first one have different values of a text.
func (g *Group) differs(i int, name string) bool {
	return g.Rows[i].entries[0].Text(name) != g.Rows[0].entries[0].Text(name)
}

// allHave reports whether every row has the field.
func (g *Group) allHave(field string) bool {
	return !slices.ContainsFunc(g.Rows, func(l Line) bool { _, ok := l.Cells[field]; return !ok })
}

// trusted keeps the rows whose generator was not the limit.
func trusted(rows []store.Row) []store.Row {
	return slices.DeleteFunc(rows, func(r store.Row) bool {
		x, ok := r.Num("trusted")
		return ok && x == 0
	})
}
