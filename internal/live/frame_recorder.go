package live

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// Limits that keep a frame below mostFrameBytes.
const (
	mostGauges = 12
	mostMarks  = 8
	mostName   = 40  // bytes of a gauge's name
	mostUnit   = 16  // bytes of its unit
	mostText   = 100 // bytes of a mark
)

// tenfold is how many frames are merged into one of the next longer span.
const tenfold = 10

// spanCount is how many spans there are: 1 s, 10 s, 100 s and 1,000 s.
const spanCount = 4

// A Recorder makes the events of one run from its intervals: a frame a second, and
// merged ones for each ten, hundred and thousand of them. It keeps one incomplete frame
// of each span, so its memory does not grow. It is safe for concurrent use. A nil
// Recorder does nothing.
type Recorder struct {
	id   string
	emit func(Event)

	mu     sync.Mutex
	open   [spanCount]mergedSpan // incomplete: of the next frame, and of each longer span
	number int64
	sum    Counts // of all frames
	warm   Counts // of them, those of the warm-up
	gauges []Gauge
	marks  []Mark
	plan   []Mark        // remarks on moments to come, in order
	frozen time.Duration // the longest freeze
	at     time.Duration // the end of the newest interval
	phase  string
	ended  bool
	stage  string // of the run's backlog, see load.Snapshot
}

// A mergedSpan is a span of a run, merged from n shorter ones. n is 0 if there is nothing.
type mergedSpan struct {
	measure.Interval
	n       int
	warm    Counts
	left    Micros
	freezes int64
	frozen  time.Duration
	gauges  []Gauge
	marks   []Mark
}

// NewRecorder begins the run with an id. emit gets its events, in order and one call at a time; it
// must not call the recorder. A merged frame comes after the frame that completes it.
func NewRecorder(id string, run Run, emit func(Event)) *Recorder {
	r := &Recorder{id: id, emit: emit}
	emit(Event{ID: id, Run: &run})
	return r
}

// Show takes the next interval of the run. It does not retain the snapshot.
func (r *Recorder) Show(s load.Snapshot) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	one := mergedSpan{Interval: s.Interval, n: 1, left: NoTime, freezes: int64(s.Freezes), frozen: s.Frozen}
	one.Phase, one.LagLogs = s.Phase, nil
	if s.Left != load.Never {
		one.left = Micros(s.Left)
	}
	one.keepTimes()
	for i := range s.Rows {
		if s.Rows[i].Phase == measure.WarmUp {
			one.warm.Add(measure.Signed(s.Rows[i].Counts))
		}
	}
	if s.Phase != r.phase {
		if r.phase != "" {
			r.mark(s.Interval.Start, s.Phase+" begins")
		}
		r.phase = s.Phase
	}
	if s.Stage != r.stage {
		if r.stage = s.Stage; r.stage != "" {
			r.mark(s.Interval.Start, "backlog: "+r.stage)
		}
	}
	for len(r.plan) > 0 && time.Duration(r.plan[0].At) < s.Interval.End {
		r.mark(time.Duration(r.plan[0].At), r.plan[0].Text)
		r.plan = r.plan[1:]
	}
	if s.Frozen > r.frozen { // the others are in the counts of their frames
		r.markKind(s.Interval.Start, "freeze", "froze for "+units.FormatDuration(s.Frozen)+", the longest so far")
		r.frozen = s.Frozen
	}
	if len(s.Groups) > 0 {
		r.figures("groups", groups(&s))
	}
	r.at = s.Interval.End
	r.open[0].join(&one)
	if r.open[0].End/time.Second > r.open[0].Start/time.Second {
		r.close(nil)
	}
}

// Figures takes the latest values of a source: "server", "system" or "host". They are
// part of the next frame. Beyond some metrics the others are left out.
func (r *Recorder) Figures(from string, figures []measure.Figure) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.figures(from, figures)
}

// groups are the figures of the consumer groups of a round trip.
func groups(s *load.Snapshot) (all []measure.Figure) {
	for i, g := range s.Interval.Groups[:min(len(s.Interval.Groups), len(s.Groups))] {
		rate := measure.PerSecond(g.Consumed, s.Interval.Length())
		all = append(all, measure.Figure{Name: s.Groups[i] + " consumed", Unit: "events/s", Value: rate},
			measure.Figure{Name: s.Groups[i] + " backlog", Unit: "events", Value: float64(g.Backlog)})
	}
	return all
}

// figures does what Figures does. The caller holds the lock.
func (r *Recorder) figures(from string, figures []measure.Figure) {
	r.gauges = slices.DeleteFunc(r.gauges, func(g Gauge) bool { return g.From == from })
	for _, f := range figures {
		if f.Total || from == "host" && !shown[f.Name] {
			continue
		}
		r.gauges = append(r.gauges, Gauge{From: from, Name: cut(f.Name, mostName), Unit: cut(f.Unit, mostUnit), Value: f.Value})
	}
	for n := len(r.gauges); n > mostGauges; n-- {
		i := n - 1
		for least, k := 2, n-1; k >= 0; k-- { // of the least important ones the last
			if rank := r.gauges[k].rank(); rank < least {
				least, i = rank, k
			}
		}
		r.gauges = slices.Delete(r.gauges, i, i+1)
	}
}

// rank says how important a metric is if there are too many: this machine's are the least,
// and what a program reports about itself matters more than what is seen from outside.
func (g *Gauge) rank() int {
	switch {
	case g.From == "host":
		return 0
	case g.From == "system" && minor[g.Name]:
		return 1
	}
	return 2
}

// minor are metrics of the processes of a system that matter less than others.
var minor = map[string]bool{
	"PSS": true, "processes": true, "threads": true, "open files": true,
	"disk read": true, "disk written": true, "read": true, "written": true,
}

// shown are the metrics of this machine that frames have.
var shown = map[string]bool{"CPU": true, "steal": true, "memory available": true}

// Plan adds remarks on moments to come, in the order of their times: each becomes part of the frame
// of its moment.
func (r *Recorder) Plan(marks ...Mark) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plan = append(r.plan, marks...)
}

// Mark adds a remark at the current time of the run.
func (r *Recorder) Mark(text string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mark(r.at, text)
}

// MarkFault adds a fault or a heal at a time of the run.
func (r *Recorder) MarkFault(at time.Duration, kind, name string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.markKind(at, kind, kind+" "+name)
}

func (r *Recorder) mark(at time.Duration, text string) { r.markKind(at, "", text) }

func (r *Recorder) markKind(at time.Duration, kind, text string) {
	if len(r.marks) < mostMarks {
		r.marks = append(r.marks, Mark{At: Seconds(at), Text: cut(text, mostText), Kind: kind})
	}
}

// End ends the run. If what was measured does not add up to done's totals, because some
// became known only at the end, a last frame has the difference. done without a report
// has no totals: it gets those of the frames.
func (r *Recorder) End(done Done) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	rest, restWarm := r.rest(&done)
	if r.open[0].n > 0 || rest != (Counts{}) {
		r.close(func(f *Frame) {
			f.Counts.Add(rest)
			if w := (Counts{}); restWarm != w {
				if f.Warmup == nil {
					f.Warmup = &w
				}
				f.Warmup.Add(restWarm)
			}
		})
	}
	r.ended = true
	r.emit(Event{ID: r.id, Done: &done})
}

// rest is what the frames lack of the totals.
func (r *Recorder) rest(done *Done) (all, warm Counts) {
	sum, sumWarm := r.sum, r.warm
	sum.Add(measure.Signed(r.open[0].Counts))
	sumWarm.Add(r.open[0].warm)
	if done.Report == "" {
		done.Totals = sum
		done.Totals.Subtract(sumWarm)
		if sumWarm != (Counts{}) {
			done.Warmup = &sumWarm
		}
		return all, warm
	}
	if done.Warmup != nil {
		warm = *done.Warmup
	}
	all = done.Totals
	all.Add(warm)
	all.Subtract(sum)
	warm.Subtract(sumWarm)
	return all, warm
}

// close emits the frame of the open part, and the merged ones that it completes. last
// changes the last frame of a run.
func (r *Recorder) close(last func(*Frame)) {
	p := &r.open[0]
	if p.n == 0 { // nothing was measured since the frame before
		p.Start, p.End, p.Phase, p.LagEvents, p.left = r.at, r.at, r.phase, -1, NoTime
	}
	p.gauges, p.marks = slices.Clone(r.gauges), r.marks
	r.marks = nil
	r.number++
	f := p.frame(r.number, 1)
	if last != nil {
		last(&f)
	}
	f.fit()
	r.sum.Add(f.Counts)
	if f.Warmup != nil {
		r.warm.Add(*f.Warmup)
	}
	r.emit(Event{ID: r.id, Frame: &f})
	if last == nil { // merged frames are of complete ones
		shorter, span := *p, int64(1)
		for i := 1; i < spanCount; i++ {
			to := &r.open[i]
			to.join(&shorter)
			span *= tenfold
			if to.n < tenfold {
				break
			}
			merged := to.frame(r.number, span)
			merged.fit()
			r.emit(Event{ID: r.id, Frame: &merged})
			shorter = *to
			shorter.n = 1
			*to = mergedSpan{}
		}
	}
	*p = mergedSpan{}
}

// keepTimes copies the histograms that frames are made of, and drops the others.
func (p *mergedSpan) keepTimes() {
	all := p.Set
	p.Set = measure.Set{
		Response: all.Response.Compact(), Service: all.Service.Compact(), SendDelay: all.SendDelay.Compact(),
		EndToEnd: all.EndToEnd.Compact(), Censored: all.Censored.Compact(), UnreadAges: all.UnreadAges.Compact(),
	}
	p.Statuses, p.Classes = nil, nil
}

// join adds the next part, which follows p.
func (p *mergedSpan) join(next *mergedSpan) {
	if p.n == 0 {
		*p = *next
		p.n = 1
		return
	}
	phase := next.Phase
	p.Interval = measure.Join(p.Interval, next.Interval)
	p.Phase = phase
	p.n++
	p.warm.Add(next.warm)
	p.freezes += next.freezes
	p.frozen = max(p.frozen, next.frozen)
	p.gauges, p.left = next.gauges, next.left
	marks := append(slices.Clip(p.marks), next.marks...)
	p.marks = marks[:min(len(marks), mostMarks)]
}

// frame makes the frame of a part.
func (p *mergedSpan) frame(number, span int64) Frame {
	f := Frame{
		Number: number, Span: span, From: Seconds(p.Start), To: Seconds(p.End), Phase: p.Phase, Left: p.left,
		Counts: measure.Signed(p.Counts), InFlight: int64(p.InFlight), Lag: Level(p.LagEvents),
		Response: timesOf(p.Response, p.Censored), Service: timesOf(p.Service, nil), EndToEnd: timesOf(p.EndToEnd, p.UnreadAges),
		SendDelay: NoTime, Freezes: p.freezes, Frozen: Micros(p.frozen),
		CPU: Micros(p.Generator.CPU), Memory: int64(p.Generator.RSS),
		GCPauses: int64(p.Generator.GCPauses), GCPauseMax: Micros(p.Generator.GCPauseMax),
		Gauges: p.gauges, Marks: p.marks,
	}
	for _, t := range []struct{ h, censored *measure.Histogram }{{p.Response, p.Censored}, {p.EndToEnd, p.UnreadAges}, {h: p.Service}} {
		if t.h.Count() > 0 {
			f.Bins = binsOf(t.h)
		}
		if t.h.Count()+t.censored.Count() > 0 {
			break
		}
	}
	if p.SendDelay.Count() > 0 {
		f.SendDelay = Micros(p.SendDelay.Percentile(99))
	}
	if warm := p.warm; warm != (Counts{}) {
		f.Warmup = &warm
	}
	return f
}

// binsPerDecade is the number of bins per power of ten: that of the histograms of reports.
const binsPerDecade = 20

// binsOf are the bins of a histogram that has values; see Frame.
func binsOf(h *measure.Histogram) []int64 {
	bin := func(d time.Duration) int64 {
		return int64(math.Floor(math.Log10(max(measure.Micros(min(d, h.Max(), measure.Highest)), 1)) * binsPerDecade))
	}
	first := bin(h.Min())
	out := make([]int64, bin(h.Max())-first+2)
	out[0] = first
	h.EachBucket(func(top time.Duration, n uint64) { out[bin(top)-first+1] += int64(n) })
	return out
}

// fit removes what a frame can do without until it is small enough: long names of metrics
// and remarks.
func (f *Frame) fit() {
	for len(f.Gauges)+len(f.Marks) > 0 {
		if text, err := json.Marshal(f); err == nil && len(text) <= mostFrameBytes {
			return
		}
		if n := len(f.Marks); n > len(f.Gauges)/2 {
			f.Marks = f.Marks[:n-1]
		} else {
			f.Gauges = f.Gauges[:len(f.Gauges)-1]
		}
	}
}

// percentiles are those of Times.
var percentiles = []float64{50, 90, 99}

func timesOf(h, censored *measure.Histogram) Times {
	t := Times{P50: NoTime, P90: NoTime, P99: NoTime, Max: NoTime}
	if h.Count()+censored.Count() == 0 {
		return t
	}
	for i, v := range measure.Percentiles(h, censored, percentiles) {
		*[]*Micros{&t.P50, &t.P90, &t.P99}[i] = Micros(v.D)
		if v.AtLeast && t.AtLeast == 0 {
			t.AtLeast = int64(v.P)
		}
	}
	t.Max = Micros(max(h.Max(), censored.Max()))
	if censored.Count() > 0 && t.AtLeast == 0 {
		t.AtLeast = 100
	}
	return t
}

// cut shortens a text to one line of at most n bytes.
func cut(text string, n int) string {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
	if len(text) <= n {
		return text
	}
	for n -= len("…"); n > 0 && text[n]&0xC0 == 0x80; n-- { // not within a character
	}
	return text[:n] + "…"
}
