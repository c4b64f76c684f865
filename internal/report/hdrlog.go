package report

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/internal/place"
	"carronade/measure"
)

// A Log writes the histograms of each interval in HdrHistogram's interval log,
// format 1.3 with V2 compressed histograms, like Java's HistogramLogWriter
// (org.HdrHistogram 2.2.2): HistogramLogProcessor and HistogramLogAnalyzer read
// it. Values are microseconds, interval maxima milliseconds. Each line has a
// tag: response, service, send_delay or end_to_end for the measurement and
// everything after it until the end of the run, with the prefix "warm-up." for
// the warm-up. The histograms of a tag add up to those of the report, except
// events without an answer, which have no time.
//
// A full disk must not end a run. The first error is kept, nothing more is
// written, and Close returns it. A Log has one owner.
type Log struct {
	w       io.Writer
	close   func() error
	name    string
	started bool
	err     error
	buf     bytes.Buffer
}

// NewLog returns a log to w, called name in errors.
func NewLog(w io.Writer, name string) *Log { return &Log{w: w, name: name} }

// CreateLog returns a log to a new file, which replaces an older one.
func CreateLog(path string) (*Log, error) {
	f, err := place.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create the HDR log: %w", err)
	}
	return &Log{w: f, close: f.Close, name: path}, nil
}

// Begin writes the header of the log: the start of the run, and comments, one per line.
func (l *Log) Begin(started time.Time, about ...string) {
	l.started = true
	for _, a := range about {
		fmt.Fprintf(&l.buf, "#%s\n", layout.Clean(a))
	}
	ms := started.UnixMilli()
	at := fmt.Sprintf("%d.%03d", ms/1000, ms%1000)
	fmt.Fprintf(&l.buf, "#[Histogram log format version %s]\n", hdrhistogram.HISTOGRAM_LOG_FORMAT_VERSION)
	fmt.Fprintf(&l.buf, "#[BaseTime: %s (seconds since epoch)]\n", at)
	fmt.Fprintf(&l.buf, "#[StartTime: %s (seconds since epoch), %s]\n", at, started.UTC().Format(time.RFC3339))
	l.buf.WriteString(`"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"` + "\n")
	l.flush()
}

// Interval writes a line for each histogram of the interval that is not nil. If two phases
// meet in an interval, it may come as two, one for each.
func (l *Log) Interval(iv *measure.Interval) {
	if l.err != nil {
		return
	}
	if !l.started {
		l.Begin(time.Now().Add(-iv.End))
	}
	prefix := ""
	if iv.Phase == measure.WarmUp {
		prefix = "warm-up."
	}
	for _, h := range []struct {
		tag string
		h   *measure.Histogram
	}{{"response", iv.Response}, {"service", iv.Service}, {"send_delay", iv.SendDelay}, {"end_to_end", iv.EndToEnd}} {
		if h.h == nil {
			continue
		}
		fmt.Fprintf(&l.buf, "Tag=%s%s,%.3f,%.3f,%.3f,%s\n", prefix, h.tag,
			iv.Start.Seconds(), iv.Length().Seconds(), measure.Micros(h.h.Max())/1e3, h.h.EncodeHDR())
	}
	l.flush()
}

// flush writes an interval in one call, so that a growing log always ends with
// a complete line.
func (l *Log) flush() {
	if l.err == nil {
		if _, err := l.buf.WriteTo(l.w); err != nil {
			l.fail(err)
		}
	}
	l.buf.Reset()
}

func (l *Log) fail(err error) {
	if l.err == nil {
		l.err = fmt.Errorf("write the HDR log %s: %w", l.name, host.Reason(err))
	}
}

// Err returns the first error; after it nothing was written.
func (l *Log) Err() error { return l.err }

// Close closes the file if the log created it, and returns the first error of
// the log.
func (l *Log) Close() error {
	if l.close != nil {
		if err := l.close(); err != nil {
			l.fail(err)
		}
		l.close = nil
	}
	return l.err
}
