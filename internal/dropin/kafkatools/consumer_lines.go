package kafkatools

import (
	"fmt"
	"io"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/report"
	"carronade/load"
	"carronade/units"
)

// Headers. The last four columns were added after 2018.
const (
	consumerHeader         = "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
	consumerDetailedHeader = "time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
	consumerNewHeader      = ", rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)

// consumerLines prints a run's lines.
type consumerLines struct {
	s      *consumerSettings
	w      io.Writer
	strict bool

	started time.Time
	before  load.Snapshot // of the previous interval
	rows    int
	last    *load.Snapshot // closed by the end of the run, not of its interval
}

func (l *consumerLines) begun(at time.Time) { l.started = at }

func (l *consumerLines) metrics(d *report.Document) []*kafkaMetrics {
	if !l.s.metrics {
		return nil
	}
	return []*kafkaMetrics{consumerMetrics(d, l.s)}
}

func (l *consumerLines) header() {
	if !l.s.header {
		return
	}
	text := consumerHeader
	if l.s.detailed {
		text = consumerDetailedHeader
	}
	if l.s.generation != of2018 {
		text += consumerNewHeader
	}
	fmt.Fprintln(l.w, text)
}

// interval receives a snapshot. One off the grid of intervals is from the end of
// the run. Its row waits for the report, which has the time of the last record.
func (l *consumerLines) interval(s load.Snapshot) {
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
func (l *consumerLines) row(s load.Snapshot, end time.Duration) {
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
		float64(s.Total.Bytes)/mib, dropin.Per(float64(bytes)/mib, length), s.Total.Consumed, dropin.Per(float64(n), length))
	l.fetching(joining, length, float64(bytes)/mib, float64(n))
}

// fetching prints the columns added after 2018, and ends the row.
func (l *consumerLines) fetching(joining, length time.Duration, mbs, n float64) {
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
	fmt.Fprintf(l.w, ", %d, %d, %.4f, %.4f\n", joining.Round(time.Millisecond).Milliseconds(), max(ms, 0), dropin.Per(mbs, fetch), dropin.Per(n, fetch))
}

// warnTooFew prints that the run ended by --timeout.
func (s *consumerSettings) warnTooFew(w io.Writer) {
	fmt.Fprintf(w, "WARNING: Exiting before consuming the expected number of %s: timeout (%d ms) exceeded. You can use the --timeout option to increase the timeout.\n", s.generation.events(), s.timeout)
}

// end prints the lines at the end of the run.
func (l *consumerLines) end(d *report.Document) {
	length := units.Seconds(d.Totals.ElapsedS)
	if l.s.detailed && !l.strict && l.last != nil && length > l.before.At && l.last.Total.Consumed > l.before.Total.Consumed {
		l.row(*l.last, length)
	}
	waited := time.Duration(l.s.timeout) * time.Millisecond
	if tooFew(d) {
		if l.s.from != "--zookeeper" {
			l.s.warnTooFew(l.w)
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
	mbs, n := float64(d.Totals.Bytes)/mib, float64(d.Totals.Consumed)
	fmt.Fprintf(l.w, "%s, %s, %.4f, %.4f, %d, %.4f", l.s.dates.format(l.started), l.s.dates.format(l.started.Add(length)),
		mbs, dropin.Per(mbs, length), d.Totals.Consumed, dropin.Per(n, length))
	l.fetching(units.Seconds(d.Totals.RebalanceS), length, mbs, n)
}
