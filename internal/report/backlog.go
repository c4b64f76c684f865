package report

import (
	"fmt"
	"strings"

	"carronade/internal/layout"
	"carronade/internal/workload"
	"carronade/measure"
	"carronade/units"
)

// A ReadBacklog is what a run measured that let events wait before its readers read them. Times are in seconds since
// the start of the run. Sizes are of the events' payloads.
type ReadBacklog struct {
	State  string  `json:"state"`         // at the end; see below
	Wanted string  `json:"wanted"`        // how much had to wait for each group
	Share  float64 `json:"drained_share"` // of the highest backlog that had to be read

	BuildAtS *float64 `json:"build_at_s"` // when readers paused
	BuildS   *float64 `json:"build_s"`    // for how long; if it was not built, until the end
	DrainAtS *float64 `json:"drain_at_s"`
	DrainS   *float64 `json:"drain_s"`             // until every group had drained its backlog; if not, until the end
	LimitS   float64  `json:"drain_timeout_s"`     // of draining; 0: it did not begin
	SendingS *float64 `json:"sending_ended_at_s"`  // null: it went on until the run ended
	MostAtS  float64  `json:"most_at_s,omitempty"` // when the most waited

	// Of the group for which the most waited:
	MostEvents uint64 `json:"most_events"`
	MostBytes  uint64 `json:"most_bytes"`
	LeftEvents uint64 `json:"left_events"` // when draining ended

	// What all groups together read while they drained.
	EventsPerS float64 `json:"drained_events_per_s"`
	BytesPerS  float64 `json:"drained_bytes_per_s"`

	Last        string  `json:"last_group,omitempty"`    // the last that had, or has not, drained its backlog
	AckedPerS   float64 `json:"acked_per_s,omitempty"`   // while it was not drained
	MissingPerS float64 `json:"missing_per_s,omitempty"` // how much faster that group had to read

	Groups []BacklogGroup `json:"groups"`
	Stages []BacklogStage `json:"stages"`
}

// The states of a backlog. In the first three a run ended early.
const (
	BacklogWaiting   = "waiting" // for the end of the warm-up
	BacklogBuilding  = "building"
	BacklogDraining  = "draining"
	BacklogUnbuilt   = "not built"
	BacklogDrained   = "drained"
	BacklogUndrained = "not drained"
)

// A BacklogGroup is the backlog of one group, or of the only reader, which has no name.
type BacklogGroup struct {
	Name       string   `json:"name"`
	DrainS     *float64 `json:"drain_s"` // null: it was not drained
	MostEvents uint64   `json:"most_events"`
	MostBytes  uint64   `json:"most_bytes"`
	LeftEvents uint64   `json:"left_events"`
	EventsPerS float64  `json:"drained_events_per_s"`
	BytesPerS  float64  `json:"drained_bytes_per_s"`
}

// A BacklogStage is how the producers did in whole intervals before, while and after a backlog was built and drained.
type BacklogStage struct {
	Name       string           `json:"name"`
	StartS     float64          `json:"start_s"`
	EndS       float64          `json:"end_s"`
	EventsPerS float64          `json:"acked_per_s"`
	Response   *measure.Summary `json:"response"`
	Service    *measure.Summary `json:"service"`
	SendDelay  *measure.Summary `json:"send_delay"`
}

// stageBacklog adds the stages of the backlog, from the intervals: each belongs to the stage in which it has its
// middle.
func (d *Document) stageBacklog() {
	b := d.Backlog
	if b == nil || b.BuildAtS == nil {
		return
	}
	sent := d.measurementEnd()
	var ends []float64 // of the stages
	ends = append(ends, *b.BuildAtS)
	if b.DrainAtS != nil {
		ends = append(ends, *b.DrainAtS)
		if b.State == BacklogDrained {
			ends = append(ends, *b.DrainAtS+*b.DrainS)
		}
	}
	rows := make([][]Interval, len(ends)+1)
	for i := range d.Intervals {
		iv := &d.Intervals[i]
		middle := (iv.StartS + min(iv.EndS, sent)) / 2
		if iv.StartS >= sent {
			continue
		}
		n := 0
		for n < len(ends) && middle >= ends[n] {
			n++
		}
		rows[n] = append(rows[n], *iv)
	}
	b.Stages = []BacklogStage{}
	for i, name := range []string{"before", "building", "draining", "after"}[:len(rows)] {
		if len(rows[i]) == 0 {
			continue
		}
		s := BacklogStage{Name: name, StartS: rows[i][0].StartS}
		var lasts, arrived float64
		for k := range rows[i] {
			iv := &rows[i][k]
			s.EndS = max(s.EndS, min(iv.EndS, sent))
			lasts, arrived = lasts+iv.WithinS, arrived+float64(iv.Arrived)
		}
		if lasts > 0 {
			s.EventsPerS = arrived / lasts
		}
		t := assembleTimes(rows[i])
		s.Response, s.Service, s.SendDelay = t.Response, t.Service, t.SendDelay
		b.Stages = append(b.Stages, s)
	}
}

// Failure is why a backlog that was not drained fails a run; false if it does not.
func (b *ReadBacklog) Failure() (string, bool) {
	if b.State != BacklogUndrained {
		return "", false
	}
	reads := "readers read"
	if b.Last != "" {
		reads = "the group " + b.Last + " was last and read"
	}
	read := 0.0
	for i := range b.Groups {
		if g := &b.Groups[i]; g.Name == b.Last {
			read = g.EventsPerS
		}
	}
	return fmt.Sprintf("not drained in %s: %s events are left; %s %s while %s came, and needs %s more", seconds(*b.DrainS),
		units.FormatCountShort(b.LeftEvents), reads, units.FormatRate(read), units.FormatRate(b.AckedPerS), units.FormatRate(b.MissingPerS)), true
}

// undrained is the finding of a limit on the time until a backlog was drained that was not. A run that ended before
// its time does not decide a limit that is longer.
func (b *ReadBacklog) undrained(l *workload.Limit) finding {
	f := finding{value: b.DrainS, holds: false, text: "more than " + l.Kind.Format(*b.DrainS) + ", and it was not drained"}
	f.open = b.State != BacklogUndrained && l.Op.Holds(*b.DrainS, l.Value)
	return f
}

// built is how much waited, and how long it took.
func (b *ReadBacklog) built() string {
	most := units.FormatCountShort(b.MostEvents) + " events (" + units.FormatSize(int64(b.MostBytes)) + ")" //nolint:gosec // of events that were sent
	switch {
	case b.BuildS == nil:
		return "readers did not pause: the warm-up was not over"
	case b.DrainAtS == nil:
		return fmt.Sprintf("%s of %s in %s, when sending ended", most, b.Wanted, seconds(*b.BuildS))
	}
	return fmt.Sprintf("%s in %s", most, seconds(*b.BuildS))
}

// drained is how it was drained; "" if that did not begin.
func (b *ReadBacklog) drained() string {
	if b.DrainS == nil {
		return ""
	}
	rate := fmt.Sprintf("at %s (%s/s)", units.FormatRate(b.EventsPerS), units.FormatSize(int64(b.BytesPerS)))
	if b.State == BacklogDrained {
		text := fmt.Sprintf("%s in %s, %s", units.FormatPercent(b.Share), seconds(*b.DrainS), rate)
		if b.SendingS != nil && *b.SendingS < *b.DrainAtS+*b.DrainS {
			text += ", after sending had ended"
		}
		return text
	}
	return fmt.Sprintf("for %s, %s: %s events are left", seconds(*b.DrainS), rate, units.FormatCountShort(b.LeftEvents))
}

// headline is the result in a few words; "" if there is none.
func (b *ReadBacklog) headline() string {
	switch {
	case b == nil:
		return ""
	case b.State == BacklogDrained:
		return fmt.Sprintf("a backlog of %s drained in %s", b.Wanted, seconds(*b.DrainS))
	}
	return fmt.Sprintf("a backlog of %s %s", b.Wanted, map[string]string{
		BacklogWaiting: "not begun", BacklogBuilding: "not built", BacklogUnbuilt: "not built", BacklogDraining: "not drained", BacklogUndrained: "not drained",
	}[b.State])
}

// GroupRows is the table of groups, with headings in the first row; nil for one reader.
func (b *ReadBacklog) GroupRows() [][]string {
	if b == nil || len(b.Groups) == 0 || len(b.Groups) == 1 && b.Groups[0].Name == "" {
		return nil
	}
	rows := [][]string{{"group", "drained in", "events", "bytes", "most behind", "left"}}
	for i := range b.Groups {
		g := &b.Groups[i]
		in := "not"
		if g.DrainS != nil {
			in = seconds(*g.DrainS)
		}
		rows = append(rows, []string{g.Name, in, units.FormatRate(g.EventsPerS), units.FormatSize(int64(g.BytesPerS)) + "/s", units.FormatCountShort(g.MostEvents), units.FormatCountShort(g.LeftEvents)})
	}
	return rows
}

// StageRows is the table of how producers did, with headings in the first row; nil if nothing is known.
func (b *ReadBacklog) StageRows() [][]string {
	if b == nil || len(b.Stages) == 0 {
		return nil
	}
	rows := [][]string{{"sending", "from", "to", "acked", "response p50", "response p99", "send delay p99"}}
	for i := range b.Stages {
		s := &b.Stages[i]
		times := s.Response
		if times == nil { // without a schedule
			times, rows[0][4], rows[0][5] = s.Service, "service p50", "service p99"
		}
		rows = append(rows, []string{s.Name, seconds(s.StartS), seconds(s.EndS), units.FormatRate(s.EventsPerS), percentile(times, 50), percentile(times, 99), percentile(s.SendDelay, 99)})
	}
	return rows
}

// BacklogText says what was built and drained, in a line each; nil without a backlog.
func (d *Document) BacklogText() []string {
	if d.Backlog == nil {
		return nil
	}
	out := []string{"built: " + d.Backlog.built()}
	if text := d.Backlog.drained(); text != "" {
		out = append(out, "drained: "+text)
	}
	return append(out, backlogTimes)
}

const backlogTimes = "end-to-end times have the wait of these events"

// backlog prints what was built and drained.
func (d *Document) backlog(p *layout.Page, brief bool) {
	b := d.Backlog
	if b == nil {
		return
	}
	if brief {
		p.Line("")
	} else {
		p.Section("Backlog")
	}
	for _, text := range d.BacklogText() {
		if label, rest, ok := strings.Cut(text, ": "); ok {
			p.Pair("", label, rest)
		}
	}
	for _, rows := range [][][]string{b.GroupRows(), b.StageRows()} {
		if rows == nil || brief && len(rows) > briefSteps {
			continue
		}
		t := layout.Table{Headings: 1, Elastic: []int{0}, Middle: true}
		for _, r := range rows {
			t.Row(r...)
		}
		p.Table(&t)
	}
	p.Note(backlogTimes)
}
