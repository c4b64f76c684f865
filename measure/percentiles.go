package measure

// A Use is where a percentile is shown. Reports, their fields, files and limits have all of them.
type Use uint8

// The uses.
const (
	Brief    Use = 1 << iota // the brief table, figures over time, and dashboards
	Compared                 // rows of comparisons, and times without the generator's own delays
	Collated                 // columns of collations
)

// percentiles is the table of the percentiles in every summary, ascending. A line here adds one everywhere.
// Late ones came after files with columns for the others had been written: their columns are at the end.
var percentiles = []struct {
	p    float64
	uses Use
	late bool
}{
	{p: 50, uses: Brief | Compared | Collated},
	{p: 90, uses: Brief},
	{p: 95, uses: Collated},
	{p: 99, uses: Brief | Compared | Collated},
	{p: 99.9, uses: Brief | Compared | Collated},
	{p: 99.99},
}

// StandardPercentiles returns the percentiles in every summary.
func StandardPercentiles() []float64 { return PercentilesOf(0) }

// PercentilesOf returns the standard percentiles with a use; 0: all of them.
func PercentilesOf(use Use) (all []float64) {
	for _, s := range percentiles {
		if s.uses&use == use {
			all = append(all, s.p)
		}
	}
	return all
}

// ColumnPercentiles returns the standard percentiles as columns of files have them: those with a place among the
// other columns of a time, and those at the end.
func ColumnPercentiles() (begin, end []float64) {
	for _, s := range percentiles {
		if s.late {
			end = append(end, s.p)
		} else {
			begin = append(begin, s.p)
		}
	}
	return begin, end
}
