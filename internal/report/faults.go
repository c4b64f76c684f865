package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"carronade/internal/layout"
	"carronade/internal/verdict/fault"
	"carronade/units"
)

// Faults are the marks on the time axis of a run, and what followed those that have a score.
type Faults struct {
	LimitS float64       `json:"limit_s"`       // on the response time of an event; without a schedule, on the service time; 0: the run only reads
	Budget float64       `json:"budget"`        // share of events that may be over it
	Per    string        `json:"per,omitempty"` // what the lanes of scores are: partition, connection; "": there are none
	Marks  []fault.Mark  `json:"marks"`
	Scores []fault.Score `json:"scores"`
	// Elsewhere are lost, duplicated and reordered events of the run that belong to no fault: they
	// were due at another time, or it is not known when. Null: scores have no such numbers.
	Elsewhere *fault.Delivery `json:"elsewhere,omitempty"`
	Notes     []string        `json:"notes,omitempty"` // what is missing, and why
}

// reading reports whether the scores are of a run that only reads.
func (f *Faults) reading() bool { return f.LimitS == 0 }

// markName names a mark: "fault stop leader".
func markName(m *fault.Mark) string { return m.Kind + " " + m.Name }

// FaultRows are the scores as a table: the headings, and the rows of each score. With all, every
// lane has a row, else only the worst.
func (d *Document) FaultRows(all bool) [][]string {
	f := d.Faults
	if f == nil || len(f.Scores) == 0 {
		return nil
	}
	none, back, row := "no acks", "acks", numberRow
	if f.reading() {
		none, back, row = "no events", "events", readRow
	}
	rows := [][]string{{"", "noticed", none, back, "in limit", "caught", "lost"}, {"", "after", "for", "back after", "after", "up after", "time, s"}}
	for i := range f.Scores {
		s := &f.Scores[i]
		numbers := func(name string, lane int, n *fault.Numbers) []string {
			cells := row(name, n)
			if !f.stopped(i, lane) {
				cells[firstAckColumn] = ""
			}
			return cells
		}
		rows = append(rows, []string{markName(&s.Mark) + " at " + seconds(s.AtS), "", "", "", "", "", ""}, numbers("  whole run", -1, &s.Whole))
		for l := range s.Lanes {
			if all || l == s.Worst {
				name := "  " + s.Lanes[l].Name
				if l == s.Worst && len(s.Lanes) > 1 {
					name += ", worst"
				}
				rows = append(rows, numbers(name, l, &s.Lanes[l]))
			}
		}
		if p := s.Whole.Predicted; p != nil && all {
			rows = append(rows, []string{"  predicted", "", "", "", seconds(p.BackS), seconds(p.DrainedS), eventSeconds(p.LostEventS)})
		}
	}
	return rows
}

// firstAckColumn is the column of FaultRows that a score has nothing in if acks never stopped.
const firstAckColumn = 3

// stopped reports whether acks, or the events of a run that only reads, stopped after a mark; for a heal
// also before it, in the score of its fault. Lane -1 is the whole run.
func (f *Faults) stopped(i, lane int) bool {
	least := cmp.Or(f.LimitS, fault.Bin.Seconds())
	in := func(s *fault.Score) bool {
		n := &s.Whole
		if lane >= 0 && lane < len(s.Lanes) {
			n = &s.Lanes[lane]
		}
		return n.Blackout == nil || n.Blackout.More || n.Blackout.S >= least
	}
	if f.Scores[i].Kind == fault.MarkHeal {
		if of := fault.Healed(&f.Scores[i].Mark, f.Scores[:i]); of != nil && in(of) {
			return true
		}
	}
	return in(&f.Scores[i])
}

// FaultTable is FaultRows with every lane and one line of headings, for pages and documents.
func (d *Document) FaultTable() [][]string {
	rows := d.FaultRows(true)
	if rows == nil {
		return nil
	}
	head := slices.Clone(rows[0])
	for i := range head[1:] {
		head[i+1] += " " + rows[1][i+1]
	}
	return append([][]string{head}, rows[2:]...)
}

// FaultTexts are the sentences below the table.
func (d *Document) FaultTexts() []string {
	f := d.Faults
	out := f.terms()
	for i := range f.Scores {
		s := &f.Scores[i]
		for _, text := range f.Remarks(s) {
			out = append(out, fmt.Sprintf("%s at %s: %s", markName(&s.Mark), seconds(s.AtS), text))
		}
	}
	return append(append(out, f.elsewhere()...), f.Notes...)
}

// elsewhere is a sentence on what belongs to no fault, if there is something.
func (f *Faults) elsewhere() []string {
	if e := f.Elsewhere; e != nil && *e != (fault.Delivery{}) {
		return []string{"due at another time, or not known when: " + deliveryText(e)}
	}
	return nil
}

// isMark reports whether a row of FaultRows names the mark of the rows below it.
func isMark(row []string) bool { return row[0] != "" && row[1] == "" && row[0][0] != ' ' }

func numberRow(name string, n *fault.Numbers) []string {
	lost := "-"
	if n.LostEventS != nil {
		lost = eventSeconds(*n.LostEventS)
	}
	noticed := timeText(n.Noticed)
	if n.Noticed == nil {
		noticed = "not"
	}
	return []string{name, noticed, timeText(n.Blackout), timeText(n.FirstAck), timeText(n.Back), timeText(n.Drained), lost}
}

// readRow is numberRow for a run that only reads: nothing is due in it, so nothing can be late.
func readRow(name string, n *fault.Numbers) []string {
	return []string{name, "-", timeText(n.Blackout), timeText(n.FirstAck), "-", "-", "-"}
}

// eventSeconds is an amount of lost time.
func eventSeconds(x float64) string { return units.FormatCountShort(uint64(max(0, math.Round(x)))) }

// timeText is a time of a score; "-" if it cannot be said.
func timeText(t *fault.Time) string {
	switch {
	case t == nil:
		return "-"
	case t.More:
		return "> " + seconds(t.S)
	}
	return seconds(t.S)
}

// orphan says that a heal has no fault of its name before it, which may be a mistake.
func (f *Faults) orphan(s *fault.Score) string {
	if s.Kind != fault.MarkHeal {
		return ""
	}
	text := "no fault was marked before it"
	for i := range f.Marks {
		if m := &f.Marks[i]; m.Kind == fault.MarkFault && m.AtS <= s.AtS {
			if m.Name == s.Name {
				return ""
			}
			text = "no fault of its name was marked before it: it counts as the end of the last one"
		}
	}
	return text
}

// Remarks are sentences on a score: its baseline, the headroom, what failed.
func (f *Faults) Remarks(s *fault.Score) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if text := f.orphan(s); text != "" {
		say("%s", text)
	}
	if why := s.Baseline.Why; why != "" {
		say("%s", why)
	}
	switch p := s.Whole.Predicted; {
	case p != nil:
		of := "its median rate while it caught up"
		if p.Given {
			of = "as given"
		}
		seen := ""
		if d, a := s.Whole.Drained, s.Whole.FirstAck; d != nil && a != nil && !d.More {
			seen = ", seen " + seconds(max(0, d.S-a.S))
		}
		say("headroom %.3g (capacity %s, %s): predicted to catch up in %s%s", p.Headroom, units.FormatRate(p.PerS), of, seconds(p.CatchUpS), seen)
	case s.Whole.NotPredicted != "" && s.Baseline.Why == "":
		say("no prediction: %s", s.Whole.NotPredicted)
	}
	if fl := s.Whole.Floor; fl != nil {
		text := "lowest rate over a second " + units.FormatPercent(*fl) + " of that before"
		if n := s.Whole.NotAcked; n != nil && *n > 0 {
			text += "; not acked: " + units.FormatPercent(*n) + " of what was due"
		}
		say("%s", text)
	}
	if len(s.Errors) > 0 {
		var parts []string
		for _, class := range sortedClasses(s.Errors) {
			parts = append(parts, class+" "+units.FormatCount(s.Errors[class]))
		}
		say("failed or unknown: %s", strings.Join(parts, ", "))
	}
	if l := s.Delivery; l != nil {
		say("delivery of what was due from %s before it on: %s", seconds(fault.Lead.Seconds()), deliveryText(l))
	}
	if b := s.Later; b != nil {
		say("a blackout of %s began more than %s after it and its heals: it is not in the score, and may be of another cause", timeText(b), seconds(fault.LateEffect.Seconds()))
	}
	if n := s.Errors["timeout"]; n > 0 {
		say("the client's timeout cut %s short: they would have waited longer", units.Plural(n, "event"))
	}
	return out
}

func sortedClasses(of map[string]uint64) []string {
	out := make([]string, 0, len(of))
	for class := range of {
		out = append(out, class)
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
	return out
}

func deliveryText(l *fault.Delivery) string {
	return fmt.Sprintf("%s lost, %s duplicated, %s reordered", units.FormatCount(l.Lost), units.FormatCount(l.Duplicated), units.FormatCount(l.Reordered))
}

// terms are what the columns mean that their headings do not say: the limit that events are counted by,
// the lost time, or what a blackout of a run is that only reads.
func (f *Faults) terms() []string {
	if f.reading() {
		return []string{"no events for (a blackout): no event, although there were some or the system did not say that there are none"}
	}
	out := []string{fmt.Sprintf("in limit: at most %s for %s of the events", seconds(f.LimitS), units.FormatPercent(1-f.Budget))}
	if slices.ContainsFunc(f.Scores, func(s fault.Score) bool { return s.Whole.LostEventS != nil }) {
		out = append(out, "lost time: how much longer all events together waited than before: ten events that waited 1 s longer each are 10 s")
	}
	return out
}

// briefScores is how many scores the brief report has.
const briefScores = 3

// faults prints the scores, and the marks that have none.
func (d *Document) faults(p *layout.Page, brief, few bool) {
	f := d.Faults
	if f == nil || len(f.Marks)+len(f.Notes) == 0 {
		return
	}
	p.Section("Faults")
	if len(f.Scores) > 0 {
		shown := *d
		if brief && len(f.Scores) > briefScores {
			less := *f
			less.Scores = f.Scores[:briefScores]
			shown.Faults = &less
		}
		t := layout.Table{Headings: 2, Elastic: []int{0}, Keep: []int{20}}
		rows := shown.FaultRows(!brief)
		if few {
			rows = slices.DeleteFunc(rows, func(r []string) bool { return strings.HasSuffix(r[0], ", worst") })
		}
		for _, r := range rows {
			if isMark(r) {
				r = make([]string, len(r)) // its name may take the whole line
			}
			t.Row(r...)
		}
		for i, line := range t.Lines(layout.Columns-2, p.Style) {
			if isMark(rows[i]) {
				line = layout.Cut(rows[i][0], layout.Columns-2)
			}
			p.Line("  " + line)
		}
		for i, text := range f.terms() {
			if i == 0 && !few || !brief {
				p.Note(text)
			}
		}
		left := 0
		for i := range shown.Faults.Scores {
			s := &f.Scores[i]
			for _, text := range f.Remarks(s) {
				if brief && (strings.HasPrefix(text, "headroom ") || strings.HasPrefix(text, "no prediction: ") || strings.HasPrefix(text, "lowest rate ")) {
					continue
				}
				if few {
					left++
					continue
				}
				if len(f.Scores) > 1 {
					text = fmt.Sprintf("%s at %s: %s", markName(&s.Mark), seconds(s.AtS), text)
				}
				p.Note(text)
			}
		}
		if left > 0 {
			p.Note(fmt.Sprintf("and %s more on them: --full prints them", units.Plural(left, "sentence")))
		}
		if n := len(f.Scores) - len(shown.Faults.Scores); n > 0 {
			p.Note(fmt.Sprintf("and %d more: --full prints them", n))
		}
		for _, text := range f.elsewhere() {
			if !brief {
				p.Note(text)
			}
		}
		if l := d.Ledger; l != nil && !few {
			p.Note("over the whole run: " + deliveryText(&fault.Delivery{Lost: l.Lost, Duplicated: l.Duplicated, Reordered: l.Reordered}))
		}
	}
	for i := range f.Marks {
		m := &f.Marks[i]
		scored := slices.ContainsFunc(f.Scores, func(s fault.Score) bool { return s.Mark == *m })
		if brief && (scored || m.Kind == fault.MarkNote) {
			continue
		}
		text := seconds(m.AtS)
		if m.BoundS > 0 {
			text += " ± " + seconds(m.BoundS)
		}
		text += ": " + markName(m)
		if !scored && m.Kind != fault.MarkNote && d.Totals.RateOf != RateSent {
			text += " (after the measurement: no score)"
		}
		p.Note(layout.Clean(text))
	}
	for _, n := range f.Notes {
		p.Note(n)
	}
}

// WorstTimes are the longest of the same times over all scores.
type WorstTimes struct {
	Longest *fault.Time // nil: none can be said
	Open    *fault.Time // the longest of those that were not over; nil: none
	Why     string      // why a time cannot be said; "": all can

	// Later is the longest blackout of which it is not known whether a fault caused it; nil: none.
	Later *fault.Time
}

// Known returns the longest time, nil unless all can be said and were over.
func (w *WorstTimes) Known() *fault.Time {
	if w.Why != "" || w.Open != nil {
		return nil
	}
	return w.Longest
}

// WorstOutage is the longest blackout of a partition, a connection or the whole run.
func (d *Document) WorstOutage() WorstTimes {
	return d.worstTimes(func(s *fault.Score) []*fault.Time {
		all := []*fault.Time{s.Whole.Blackout}
		for i := range s.Lanes {
			all = append(all, s.Lanes[i].Blackout)
		}
		return all
	})
}

// WorstRecovery is the longest time until the limit holds again, of the whole run.
func (d *Document) WorstRecovery() WorstTimes {
	return d.worstTimes(func(s *fault.Score) []*fault.Time { return []*fault.Time{s.Whole.Back} })
}

func (d *Document) worstTimes(of func(s *fault.Score) []*fault.Time) (w WorstTimes) {
	f := d.Faults
	switch {
	case f != nil && len(f.Marks) > 0 && d.Totals.RateOf == RateSent:
		return WorstTimes{Why: "nothing is acknowledged, so there are no scores"}
	case f == nil || len(f.Scores) == 0:
		return WorstTimes{Why: "no fault was marked in the measurement"}
	}
	for i := range d.Faults.Scores {
		s := &d.Faults.Scores[i]
		if b := s.Later; b != nil && (w.Later == nil || b.S > w.Later.S) {
			w.Later = b
		}
		if s.Baseline.Why != "" && !f.reading() { // there, a blackout is compared with nothing
			if w.Why == "" {
				w.Why = markName(&s.Mark) + ": " + strings.TrimPrefix(s.Baseline.Why, "cannot say: ")
			}
			continue
		}
		for _, t := range of(s) {
			if t == nil {
				continue
			}
			if w.Longest == nil || t.S > w.Longest.S || t.S == w.Longest.S && t.More {
				w.Longest = t
			}
			if t.More && (w.Open == nil || t.S > w.Open.S) {
				w.Open = t
			}
		}
	}
	if w.Longest == nil && w.Why == "" {
		if w.Why = "nothing was due after the faults"; f.reading() {
			w.Why = "there was nothing to read after the faults"
		}
	}
	return w
}

// worstLane is the lane with the longest blackout; nil without lanes.
func worstLane(s *fault.Score) *fault.Numbers {
	if s.Worst < 0 || s.Worst >= len(s.Lanes) {
		return nil
	}
	return &s.Lanes[s.Worst]
}
