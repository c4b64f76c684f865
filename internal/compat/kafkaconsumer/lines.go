package kafkaconsumer

import (
	"fmt"
	"io"
	"time"

	"carronade/internal/report"
	"carronade/load"
	"carronade/units"
)

// Headers. The last four columns were added after 2018.
const (
	simpleHeader   = "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
	detailedHeader = "time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
	newHeader      = ", rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)

// mb is the tool's MB.
const mb = 1 << 20

// lines prints a run's lines.
type lines struct {
	s      *settings
	w      io.Writer
	strict bool

	started time.Time
	before  load.Snapshot // of the previous interval
	rows    int
	last    *load.Snapshot // closed by the end of the run, not of its interval
}

func (l *lines) begun(at time.Time) { l.started = at }

func (l *lines) metrics(w io.Writer, d *report.Document) {
	if l.s.metrics {
		metrics(w, d, l.s)
	}
}

func (l *lines) header() {
	if !l.s.header {
		return
	}
	text := simpleHeader
	if l.s.detailed {
		text = detailedHeader
	}
	if l.s.generation != of2018 {
		text += newHeader
	}
	fmt.Fprintln(l.w, text)
}

// interval receives a snapshot. One off the grid of intervals is from the end of
// the run. Its row waits for the report, which has the time of the last record.
func (l *lines) interval(s load.Snapshot) {
	if !l.s.detailed {
		return
	}
	every := time.Duration(min(max(l.s.interval, 10), (24*time.Hour).Milliseconds())) * time.Millisecond
	if s.At%every != 0 {
		l.last = &s
		return
	}
	l.row(s, s.At)
}

// row prints the row of an interval with this end.
func (l *lines) row(s load.Snapshot, end time.Duration) {
	length, joining := end-l.before.At, s.Rebalance-l.before.Rebalance
	n, bytes := s.Total.Consumed-l.before.Total.Consumed, s.Total.Bytes-l.before.Total.Bytes
	if l.strict && n == 0 {
		return // the tool printed rows only when records arrived
	}
	if l.strict && l.rows > 0 {
		joining = 0 // the tool counted later rebalance times elsewhere
	}
	l.before = s
	l.rows++
	fmt.Fprintf(l.w, "%s, 0, %.4f, %.4f, %d, %.4f", l.s.dates.format(l.started.Add(end)),
		float64(s.Total.Bytes)/mb, per(float64(bytes)/mb, length), s.Total.Consumed, per(float64(n), length))
	l.fetching(joining, length, float64(bytes)/mb, float64(n))
}

// fetching prints the columns added after 2018, and ends the row.
func (l *lines) fetching(joining, length time.Duration, mbs, n float64) {
	if l.s.generation == of2018 {
		fmt.Fprintln(l.w)
		return
	}
	joining = min(max(joining, 0), length)
	fetch := length - joining
	ms := length.Round(time.Millisecond).Milliseconds() - joining.Round(time.Millisecond).Milliseconds()
	if l.strict {
		fetch = time.Duration(ms) * time.Millisecond
	}
	fmt.Fprintf(l.w, ", %d, %d, %.4f, %.4f\n", joining.Round(time.Millisecond).Milliseconds(), max(ms, 0), per(mbs, fetch), per(n, fetch))
}

// per is a rate per second; 0 if the time is 0.
func per(n float64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return n / d.Seconds()
}

// end prints the lines at the end of the run.
func (l *lines) end(d *report.Document) {
	length := units.Seconds(d.Totals.ElapsedS)
	if l.s.detailed && !l.strict && l.last != nil && length > l.before.At && l.last.Total.Consumed > l.before.Total.Consumed {
		l.row(*l.last, length)
	}
	waited := time.Duration(l.s.timeout) * time.Millisecond
	if tooFew(d) {
		what := "messages"
		if l.s.generation == of43 {
			what = "records"
		}
		if l.s.from != "--zookeeper" {
			fmt.Fprintf(l.w, "WARNING: Exiting before consuming the expected number of %s: timeout (%d ms) exceeded. You can use the --timeout option to increase the timeout.\n", what, l.s.timeout)
		}
		if l.strict && l.s.generation != of2018 {
			length += waited // the tool's time included the wait
		}
	}
	if l.s.detailed {
		return
	}
	if l.strict {
		length = length.Truncate(time.Millisecond)
	}
	mbs, n := float64(d.Totals.Bytes)/mb, float64(d.Totals.Consumed)
	fmt.Fprintf(l.w, "%s, %s, %.4f, %.4f, %d, %.4f", l.s.dates.format(l.started), l.s.dates.format(l.started.Add(length)),
		mbs, per(mbs, length), d.Totals.Consumed, per(n, length))
	l.fetching(units.Seconds(d.Totals.RebalanceS), length, mbs, n)
}
