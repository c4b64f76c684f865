package store

import (
	"carronade/internal/report"
	"carronade/load"
)

// Remainder reports whether a stored report, given by its head, is only the
// beginning of the run whose complete report d is: if the store of a run
// becomes unavailable, the report is stored elsewhere, and its beginning looks
// like that of a killed run.
func Remainder(head []byte, d *report.Document) bool {
	left, err := report.Join(head, nil)
	return err == nil && left.RunID == d.RunID && left.Stopped == load.Killed && d.Stopped != load.Killed
}
