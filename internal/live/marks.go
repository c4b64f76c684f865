package live

import "time"

// A MarkFunc marks a run in progress with a fault, a heal or a note that became known between two
// moments. It returns when that was, in seconds from the start of the run, and to what it is exact.
type MarkFunc func(kind, name string, from, to time.Time) (atS, boundS float64, err error)

// MostMarkName is the longest name of a mark, in bytes.
const MostMarkName = 100
