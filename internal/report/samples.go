package report

import "carronade/units"

// Samples are single events of a run, where it kept some: of every Every
// consecutive ones that came back one, chosen at random, so that there are a few
// thousand however many there were.
type Samples struct {
	Of       uint64   `json:"of"`    // events that came back
	Every    uint64   `json:"every"` // one of so many was kept
	EndToEnd []Sample `json:"end_to_end"`
}

// A Sample is one event of a round trip.
type Sample struct {
	Item       string  `json:"item"`          // log and offset, or stream and index
	StartUS    float64 `json:"start_us"`      // when it was due (sent, without a schedule)
	EndToEndUS float64 `json:"end_to_end_us"` // from there to its consumption
}

// A Trace says what became of the file of rows that a run wrote beside its
// report.
type Trace struct {
	File    string `json:"file"`
	Rows    uint64 `json:"rows"`    // written
	Dropped uint64 `json:"dropped"` // that the writer could not keep up with, or that came after it had stopped
	Every   uint64 `json:"every"`   // a row for one of so many events; 0: a row a batch
	Bytes   int64  `json:"bytes"`
	Error   string `json:"error"` // why it stopped before the run; "" when it did not
}

// text is what a person is told of a trace.
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
