package report

import "carronade/units"

// Samples are single events of a run: of every Every consecutive ones that came back, one
// chosen at random, so that a few thousand remain.
type Samples struct {
	Of       uint64   `json:"of"`    // events that came back
	Every    uint64   `json:"every"` // one of this number was kept
	EndToEnd []Sample `json:"end_to_end"`
}

// A Sample is one event of a round trip.
type Sample struct {
	Item       string  `json:"item"`          // log and offset, or stream and index
	StartUS    float64 `json:"start_us"`      // due time (send time without a schedule)
	EndToEndUS float64 `json:"end_to_end_us"` // from there until it was consumed
}

// A Trace describes the file of rows that a run wrote next to its report.
type Trace struct {
	File    string `json:"file"`
	Rows    uint64 `json:"rows"`    // written
	Dropped uint64 `json:"dropped"` // rows lost because the writer was too slow or had stopped
	Every   uint64 `json:"every"`   // one row for this number of events; 0: one row per batch
	Bytes   int64  `json:"bytes"`
	Error   string `json:"error"` // why it stopped before the run; "" if it did not
}

// text describes the trace.
func (t *Trace) text() string {
	what := units.Plural(t.Rows, "row")
	switch {
	case t.Every == 1:
		what += ", one an event"
	case t.Every > 1:
		what += ", of one in " + units.FormatCount(t.Every) + " events"
	default:
		what += ", one a batch"
	}
	dropped := ""
	if t.Dropped > 0 {
		dropped = units.FormatCount(t.Dropped) + " could not be written"
	}
	return joinNonEmpty(t.File, what, dropped, units.FormatSize(t.Bytes), t.Error)
}
