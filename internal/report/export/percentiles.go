package export

import (
	"fmt"
	"io"
	"math"
	"math/bits"
	"time"

	"carronade/internal/report"
	"carronade/measure"
	"carronade/units"
)

// ticksPerHalf is the number of lines for each halving of the distance to 100
// %, the default of HdrHistogram's tools.
const ticksPerHalf = 5

// writePercentiles writes the table of a time over the measurement, in
// microseconds. Events without an answer count in the response time, and those that
// were not read in the end-to-end time, as they do in the report: otherwise a system that died would look better the sooner it
// died. A comment at the end, which the plotter skips, says from which line on
// values are lower bounds.
func writePercentiles(w io.Writer, d *report.Document, o Options) error {
	name, h, ages, err := timeHistogram(d, o.Time)
	if err != nil {
		return err
	}
	if ages.Count() == 0 {
		_, err = distribution(w, h, nil, ticksPerHalf)
		return err
	}
	first, err := distribution(w, h, ages, ticksPerHalf)
	if err != nil {
		return err
	}
	lack := "had no answer"
	if name == "end_to_end" {
		lack = "were not read"
	}
	_, err = fmt.Fprintf(w, "#[At least = %12.3f, No answer      = %12d]\n"+
		"# %s of %s events %s: from percentile %.6f on, where At least stands, values are lower bounds\n",
		micros(first.D), ages.Count(), units.FormatCount(ages.Count()), units.FormatCount(h.Count()+ages.Count()), lack, first.P/100)
	return err
}

// A cell is a value of the table and the number of observations up to it.
type cell struct {
	us   uint64
	upTo uint64
}

// distribution writes a percentile distribution like Java's HdrHistogram
// (AbstractHistogram.outputPercentileDistribution and PercentileIterator, 2.2):
// the plotter at hdrhistogram.github.io reads it. The three lines at the end
// are computed from the cells, as there: the mean is that of the middles of
// cells. If there are ages of events without an answer, the cells contain both,
// and the values are those of measure.Percentiles. It then returns the first
// value from which on all are lower bounds; the last always is one.
func distribution(w io.Writer, h, ages *measure.Histogram, perHalf int) (first measure.Value, err error) {
	all := h
	if ages.Count() > 0 {
		all = measure.NewHistogram()
		all.Merge(h)
		all.Merge(ages)
	}
	var cells []cell
	total, mean := uint64(0), 0.0
	all.EachBucket(func(top time.Duration, n uint64) {
		us := uint64(min(top, measure.Highest) / measure.Lowest)
		total += n
		mean += float64(middle(us)) * float64(n)
		if k := len(cells); k > 0 && cells[k-1].us == us { // values above the range count at its end
			cells[k-1].upTo = total
			return
		}
		cells = append(cells, cell{us, total})
	})
	mean /= float64(total)

	if _, err := fmt.Fprintf(w, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)"); err != nil {
		return first, err
	}
	var levels []float64
	var at []cell
	for i, level := 0, 0.0; ; {
		// The first cell that includes the level, whose own percentile may be
		// higher.
		for 100*float64(cells[i].upTo)/float64(total) < level && i+1 < len(cells) {
			i++
		}
		levels, at = append(levels, level), append(at, cells[i])
		if cells[i].upTo == total {
			break
		}
		// Each half of the remaining distance has as many steps as the half
		// before.
		halves := math.Pow(2, math.Floor(math.Log2(100/(100-level)))+1)
		level += 100 / (float64(perHalf) * halves)
	}
	levels, at = append(levels, 100), append(at, cells[len(cells)-1])
	values := make([]float64, len(at))
	for i, c := range at {
		values[i] = float64(c.us)
	}
	if ages.Count() > 0 {
		first = bounded(h, ages, levels, values)
	}
	for i, level := range levels {
		rest := fmt.Sprintf(" %14.2f", 1/(1-level/100))
		if i == len(levels)-1 {
			rest = ""
		}
		if _, err := fmt.Fprintf(w, "%12.3f %2.12f %10d%s\n", values[i], level/100, at[i].upTo, rest); err != nil {
			return first, err
		}
	}

	last := cells[len(cells)-1]
	variance := 0.0
	before := uint64(0)
	for _, c := range cells {
		away := float64(middle(c.us)) - mean
		variance += away * away * float64(c.upTo-before)
		before = c.upTo
	}
	_, err = fmt.Fprintf(w, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n#[Max     = %12.3f, Total count    = %12d]\n#[Buckets = %12d, SubBuckets     = %12d]\n",
		mean, math.Sqrt(variance/float64(total)), float64(last.us), total, buckets, subBuckets)
	return first, err
}

// bounded fills values, in microseconds, with the percentiles at levels of
// answers and ages, and returns the first one from which all are lower bounds.
// Each level is checked separately: an event that was given up early could have
// been the fastest, but that says nothing about percentiles far above it.
func bounded(h, ages *measure.Histogram, levels, values []float64) (first measure.Value) {
	bounds, least := true, math.Inf(1)
	for i := len(levels) - 1; i >= 0; i-- {
		v := measure.Percentiles(h, ages, levels[i:i+1])[0]
		if bounds = bounds && v.AtLeast; bounds {
			first = v
		}
		least = min(least, micros(v.D)) // percentiles must not fall
		values[i] = least
	}
	return first
}

// micros is a time in microseconds, at most the end of the range.
func micros(d time.Duration) float64 { return measure.Micros(min(d, measure.Highest)) }

// The geometry of a histogram of 1 us to 1 h with three significant digits, in
// HdrHistogram's terms.
const (
	subBuckets = 2048
	buckets    = 22
)

// middle is HdrHistogram's median equivalent value of the cell that ends at us.
func middle(us uint64) uint64 {
	shift := max(bits.Len64(us|(subBuckets-1))-bits.Len(subBuckets-1), 0)
	low := us >> shift << shift
	return low + 1<<shift>>1
}
