package export

import (
	"fmt"
	"io"
	"slices"

	"carronade/internal/report"
	"carronade/measure"
	"carronade/units"
)

// noHistograms is the error of a report whose program stored only summaries.
const noHistograms = "it has no histograms of its intervals: its program kept none"

// writeHDR writes the log that `run --hdr` writes during the run, from the
// histograms in the report.
func writeHDR(w io.Writer, d *report.Document, _ Options) error {
	log := report.NewLog(w, "")
	about := []string{"carronade " + d.Version, "target " + d.Target}
	if d.ID != "" {
		about = append(about, "report "+d.ID)
	}
	log.Begin(d.StartedAt, about...)
	lines := 0
	for i := range d.Intervals {
		iv := &d.Intervals[i]
		row := measure.Interval{Phase: iv.Phase, Start: units.Seconds(iv.StartS), End: units.Seconds(iv.EndS)}
		row.Each(func(name string, to **measure.Histogram) {
			if !slices.Contains(seriesTimes, name) {
				return
			}
			if *to = iv.Histogram(name); *to != nil {
				lines++
			}
		})
		log.Interval(&row)
	}
	if lines == 0 {
		return &MissingError{ID: d.ID, What: noHistograms}
	}
	return log.Err()
}

// timeHistogram returns the histogram of a time over the measurement (with no name the first of the main
// times that was measured, and its name), and the ages of
// events without a value of it (for the response time those without an answer, for the
// end-to-end time those that were not read), nil if there are none.
func timeHistogram(d *report.Document, name string) (found string, h, ages *measure.Histogram, err error) {
	find := func(name string) bool {
		h, ages = d.Histogram(name), nil
		if of := measure.AgesOf(name); of != "" {
			ages = d.Histogram(of)
		}
		return h.Count()+ages.Count() > 0
	}
	if name == "" {
		for _, t := range d.All() { // the first of the main times
			if t.Main && find(t.Name) {
				return t.Name, h, ages, nil
			}
		}
		return "", nil, nil, &MissingError{ID: d.ID, What: "it has no histogram of a response, service or end-to-end time"}
	}
	if times := report.TimeNames(); !slices.Contains(times, name) {
		return "", nil, nil, fmt.Errorf("unknown time %q; the times are %s", name, list(times))
	}
	if !find(name) {
		return "", nil, nil, &MissingError{ID: d.ID, What: "it has no histogram of the time " + name}
	}
	return name, h, ages, nil
}
