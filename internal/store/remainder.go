package store

import (
	"carronade/internal/report"
	"carronade/load"
)

// Remainder reports whether what is kept, by its head, is only the beginning of
// the run whose whole report d is: a run that began in a store which then went
// away keeps its report elsewhere, and what it left behind is taken for a killed
// run's.
func Remainder(head []byte, d *report.Document) bool {
	left, err := report.Join(head, nil)
	return err == nil && left.RunID == d.RunID && left.Stopped == load.Killed && d.Stopped != load.Killed
}
