package profile

import (
	"fmt"
	"io"

	"carronade/internal/layout"
	traffic "carronade/internal/profile"
	"carronade/units"
)

// off says how far a fit is from the sample.
func off(distance float64) string {
	if distance == 0 {
		return "exact"
	}
	return units.FormatPercent(distance) + " off"
}

// sizeWords describes sizes and how well they are fitted.
func sizeWords(f traffic.SizeFit) string {
	text := f.String()
	switch f.Family {
	case traffic.Constant:
		return text + "; exact"
	case traffic.Weighted:
		text += "; each size with its count"
	case traffic.Quantiles:
		text += fmt.Sprintf("; by quantiles, %s", off(f.Error))
	default:
		text += "; " + off(f.Error)
	}
	if !f.Exact {
		text += "; sizes counted to 0.4%"
	}
	return text
}

// sizeNote says what keys of the workload have instead of the sizes of the source.
func sizeNote(f traffic.SizeFit) string {
	if f.Family == traffic.Constant {
		return "."
	}
	return ". Keys of the workload have one size, the mean."
}

// keyWords describes keys and how well they are fitted.
func keyWords(k *traffic.KeyFit) string {
	distinct := units.FormatCount(k.Distinct) + " distinct"
	switch {
	case !k.Exact:
		distinct = fmt.Sprintf("about %s distinct (%s to %s)", units.FormatCount(k.Distinct), units.FormatCount(k.DistinctLow), units.FormatCount(k.DistinctHigh))
	case !k.Whole && k.DistinctHigh > k.Distinct:
		distinct = fmt.Sprintf("at least %s distinct, as the sample has them; an estimate for the source is %s to %s", units.FormatCount(k.Distinct), units.FormatCount(k.DistinctLow), units.FormatCount(k.DistinctHigh))
	case !k.Whole:
		distinct = "at least " + distinct
	}
	switch k.Family {
	case traffic.NoKeys:
		return "none"
	case traffic.UniqueKeys:
		return "nearly every record has its own; " + distinct
	case traffic.UniformKeys:
		return fmt.Sprintf("%s, equally frequent, %s", distinct, off(k.Error))
	}
	return fmt.Sprintf("%s, zipf exponent %.4g (%.4g to %.4g), %s; %s have the most frequent key, %s its most frequent 1%%",
		distinct, k.Zipf, k.ZipfLow, k.ZipfTop, off(k.Error), units.FormatPercent(k.TopShare), units.FormatPercent(k.Top1Percent))
}

// paceWords describes when events came.
func paceWords(p *traffic.PaceFit) []string {
	text := fmt.Sprintf("Arrivals: %s in the mean, for %s from %s; fitted as %s, %s.", units.FormatRate(p.Rate), units.FormatDuration(p.Span), p.First.Format("2006-01-02 15:04:05Z"), p.Family, off(p.Error))
	about := []string{text}
	if d := p.Dispersion; d != nil {
		about = append(about, fmt.Sprintf("Index of dispersion in windows of %s: %s (0 is constant, 1 is Poisson), %s from one window to the next.", units.FormatDuration(d.Window), index(d.Index), index(d.Local)))
		if d.Local > 3 && p.Family != traffic.BurstPace {
			about = append(about, "Arrivals are burstier than this schedule.")
		}
	}
	return about
}

// index prints an index of dispersion.
func index(v float64) string {
	if v >= 100 {
		return units.FormatCount(uint64(v))
	}
	return fmt.Sprintf("%.2g", v)
}

// A row of the summary.
type row struct{ label, text string }

const labelWidth = 11

// summarize prints a title and rows, at 80 columns.
func summarize(w io.Writer, title string, rows []row) {
	for _, line := range layout.Wrap(layout.Clean(title), columns) {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		label := r.label
		for _, line := range layout.Wrap(layout.Clean(r.text), columns-labelWidth-3) {
			fmt.Fprintf(w, "  %s %s\n", layout.PadRight(label, labelWidth), line)
			label = ""
		}
	}
}

// mostHeaders limits the headers of the summary.
const mostHeaders = 6

// summary are the rows of records.
func (r *recordPlan) summary() []row {
	rows := []row{{"sizes", sizeWords(r.Sizes)}, {"keys", keyWords(&r.Keys)}}
	if s := r.Keys.Share; s > 0 && s < 0.9995 {
		rows = append(rows, row{"", units.FormatPercent(1-s) + " of the records have none"})
	}
	if r.Nulls > 0 {
		rows = append(rows, row{"nulls", units.FormatPercent(float64(r.Nulls)/float64(r.Records)) + " of the values are null, which a workload cannot send"})
	}
	for i, h := range r.Headers {
		label := "headers"
		if i > 0 {
			label = ""
		}
		if i == mostHeaders {
			rows = append(rows, row{"", fmt.Sprintf("and %d more", len(r.Headers)-i)})
			break
		}
		rows = append(rows, row{label, fmt.Sprintf("%s, in %s of the records: %s, %s", h.Name, units.FormatPercent(h.Share), h.Size, values(&h))})
	}
	if c := r.Content; c.Codec != "" {
		rows = append(rows, row{"content", fmt.Sprintf("compresses to %s by %s; %s", units.FormatPercent(c.Ratio), c.Codec, r.value("payload"))})
	}
	if b := r.Batches; b != nil {
		text := fmt.Sprintf("%s of %d-%d records, mean %.1f", units.FormatCount(b.Batches), b.Events.Min, b.Events.Max, b.Events.Mean)
		if b.Codec != "" {
			text += "; " + b.Codec
		}
		rows = append(rows, row{"batches", text})
	}
	rows = append(rows, paceRow(&r.Pace))
	if p := r.Partitions; p != nil {
		rows = append(rows, row{"partitions", fmt.Sprintf("%d, with %s to %s of the records", p.Partitions, units.FormatPercent(p.Smallest), units.FormatPercent(p.Largest))})
	}
	return rows
}
