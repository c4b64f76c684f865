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

// ticks is how many lines each halving of the distance to 100 % has, as
// HdrHistogram's tools have it unless told otherwise.
const ticks = 5

// writePercentiles writes the table of a time over the hold, in microseconds.
// Events without an answer stand in that of the response time at the age that
// they reached, as in the report: without them a system that died would look
// the better the sooner it did. A comment at the end, which the plotter skips,
// says from where on values are lower bounds.
func writePercentiles(w io.Writer, ds []*report.Document, o Options) error {
	h, ages, err := timed(ds[0], o.Time)
	if err != nil {
		return err
	}
	all := h
	if ages.Count() > 0 {
		all = measure.NewHistogram()
		all.Merge(h)
		all.Merge(ages)
	}
	if err := distribution(w, all, ticks); err != nil || ages.Count() == 0 {
		return err
	}
	_, err = fmt.Fprintf(w, "#[At least = %12.3f, No answer      = %12d]\n"+
		"# %s of %s events had no answer and stand here at the age that they reached: from At least on, values are lower bounds\n",
		float64(ages.Min())/float64(time.Microsecond), ages.Count(), units.FormatCount(ages.Count()), units.FormatCount(all.Count()))
	return err
}

// A cell is a value of the table and how many observations there are up to it.
type cell struct {
	us   uint64
	upTo uint64
}

// distribution writes a percentile distribution as Java's HdrHistogram does
// (AbstractHistogram.outputPercentileDistribution and PercentileIterator, 2.2):
// the plotter at hdrhistogram.github.io reads it. The three lines at the end
// are of the cells, as there: their mean is of the middles of cells.
func distribution(w io.Writer, h *measure.Histogram, perHalf int) error {
	var cells []cell
	total, mean := uint64(0), 0.0
	h.EachBucket(func(top time.Duration, n uint64) {
		us := uint64(min(top, measure.Highest) / measure.Lowest)
		total += n
		mean += float64(middle(us)) * float64(n)
		if k := len(cells); k > 0 && cells[k-1].us == us { // what is above the range counts at its end
			cells[k-1].upTo = total
			return
		}
		cells = append(cells, cell{us, total})
	})
	mean /= float64(total)

	if _, err := fmt.Fprintf(w, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)"); err != nil {
		return err
	}
	i := 0
	for level := 0.0; ; {
		// The first cell that holds the level, and its own percentile at most.
		for 100*float64(cells[i].upTo)/float64(total) < level && i+1 < len(cells) {
			i++
		}
		c := cells[i]
		if _, err := fmt.Fprintf(w, "%12.3f %2.12f %10d %14.2f\n", float64(c.us), level/100, c.upTo, 1/(1-level/100)); err != nil {
			return err
		}
		if c.upTo == total {
			break
		}
		// As many steps to each half of what is left as to the half before.
		halves := math.Pow(2, math.Floor(math.Log2(100/(100-level)))+1)
		level += 100 / (float64(perHalf) * halves)
	}
	last := cells[len(cells)-1]
	if _, err := fmt.Fprintf(w, "%12.3f %2.12f %10d\n", float64(last.us), 1.0, total); err != nil {
		return err
	}

	variance := 0.0
	before := uint64(0)
	for _, c := range cells {
		away := float64(middle(c.us)) - mean
		variance += away * away * float64(c.upTo-before)
		before = c.upTo
	}
	_, err := fmt.Fprintf(w, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n#[Max     = %12.3f, Total count    = %12d]\n#[Buckets = %12d, SubBuckets     = %12d]\n",
		mean, math.Sqrt(variance/float64(total)), float64(last.us), total, buckets, subBuckets)
	return err
}

// The geometry of a histogram of 1 us to 1 h with three significant digits, as
// HdrHistogram names it.
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
