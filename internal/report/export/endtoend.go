package export

import (
	"encoding/csv"
	"io"

	"carronade/internal/report"
)

// writeEndToEnd writes sampled events of a round trip, without a heading: item,
// offset of its writing in microseconds, end-to-end time in microseconds. Rows
// are in order of the offset. The offset is when the event was due (sent,
// without a schedule), from the start of the run, and the time is from there to
// its consumption, so it is never negative.
func writeEndToEnd(w io.Writer, d *report.Document, _ Options) error {
	if d.Samples == nil || len(d.Samples.EndToEnd) == 0 {
		return &MissingError{ID: d.ID, What: "it has no sampled end-to-end times; only a round trip (--op roundtrip) has them"}
	}
	out := csv.NewWriter(w)
	for _, s := range d.Samples.EndToEnd {
		if err := out.Write([]string{s.Item, number(s.StartUS), number(s.EndToEndUS)}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
