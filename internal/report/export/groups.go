package export

import (
	"io"

	"carronade/internal/report"
)

// writeGroups writes what each consumer group of a round trip did, interval by interval.
func writeGroups(w io.Writer, rs Reports, _ Options) error {
	columns := []string{"id", "phase", "start_s", "end_s", "group", "consumed", "backlog_events", "unassigned_s"}
	return writeRows(w, columns, rs, func(d *report.Document, put func(row ...string) error) error {
		if len(d.Groups) == 0 {
			return &MissingError{ID: d.ID, What: "it has no consumer groups: they need --op roundtrip --groups N"}
		}
		for i := range d.Intervals {
			iv := &d.Intervals[i]
			for k, g := range iv.Groups[:min(len(iv.Groups), len(d.Groups))] {
				if err := put(d.ID, iv.Phase, number(iv.StartS), number(iv.EndS), d.Groups[k].Name, count(g.Consumed), count(g.Backlog), number(g.UnassignedS)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
