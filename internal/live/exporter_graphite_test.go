package live

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// The series of sangrenel cover accepted events; the fourth exists if anything was answered or with ZeroP99.
func TestGraphiteAccepted(t *testing.T) {
	for _, tt := range []struct {
		name       string
		counts     measure.Counts
		unanswered bool
		want       string // rate, error rate, output, p99
	}{
		{"nothing", measure.Counts{}, false, "0 0 0"},
		{"all accepted", measure.Counts{Sent: 10, Acked: 10, Bytes: 100, AckedBytes: 100}, false, "10 0 100"},
		{"some refused", measure.Counts{Sent: 10, Acked: 6, Failed: 3, Unknown: 1, Bytes: 100, AckedBytes: 60}, false, "6 40 60"},
		{"all refused", measure.Counts{Sent: 10, Failed: 10, Bytes: 100}, false, "0 100 0"},
		{"events of an earlier interval are refused", measure.Counts{Failed: 10}, false, "0 100 0"},
		{"events of an earlier interval are lost", measure.Counts{Unknown: 5, Acked: 5, AckedBytes: 50}, false, "5 50 50"},
		{"more is refused than sent", measure.Counts{Sent: 2, Failed: 30, Acked: 10, Bytes: 20, AckedBytes: 100}, false, "10 75 100"},
		{"sent, no outcome yet", measure.Counts{Sent: 10, Bytes: 100}, false, "0 0 0"},
		{"no answers, events of an earlier interval failed", measure.Counts{Failed: 3}, true, "0 100 0"},
		{"no answers", measure.Counts{Sent: 10, Unknown: 10, Bytes: 100}, true, "10 0 100"},
		{"no answers, some not sent", measure.Counts{Sent: 10, Unknown: 8, Failed: 2, Bytes: 100}, true, "8 20 100"},
		{"read", measure.Counts{Consumed: 10, Bytes: 100}, false, "10 0 100"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s state
			p := s.point(&load.Snapshot{Interval: measure.Interval{End: time.Second, Counts: tt.counts}, Unanswered: tt.unanswered})
			p.at = time.Unix(7, 0)
			for zeros, want := range map[bool]string{false: tt.want, true: tt.want + " 0"} {
				var got []string
				for line := range strings.Lines(string((&graphite{prefix: "a", zeroP99: zeros}).lines(p))) {
					var v float64
					for _, name := range []string{"rate", "error_rate", "output", "p99"} {
						if _, err := fmt.Sscanf(line, "a.sangrenel."+name+" %f 7\n", &v); err == nil {
							got = append(got, fmt.Sprint(v))
						}
					}
				}
				assert.Equal(t, strings.Join(got, " "), want, "zeros %v", zeros)
			}
		})
	}
}

// Published is called for each interval, and replaces the log's message.
func TestPublished(t *testing.T) {
	addr, lines := listen(t)
	go func() {
		for range lines { // until it is closed
		}
	}()
	for _, tt := range []struct {
		name, addr string
		failed     bool
	}{{"present", addr, false}, {"absent", "127.0.0.1:1", true}} {
		t.Run(tt.name, func(t *testing.T) {
			published := make(chan error, 10)
			h := openedExporter(t, ExporterOptions{
				Graphite: tt.addr, Published: func(err error) { published <- err },
				Logf: func(format string, args ...any) { t.Errorf("logged: "+format, args...) },
			})
			h.Close(context.Background())
			assert.Must(t, len(published) == 3, "called %d times for three intervals", len(published))
			for range 3 {
				err := <-published
				assert.True(t, (err != nil) == tt.failed, "published %v", err)
			}
		})
	}
}

// Labels may be invalid UTF-8; the page stays valid.
func TestInvalidLabels(t *testing.T) {
	h := assert.Value(OpenExporter(ExporterOptions{MetricsAddr: "0"}))(t)
	defer h.Close(context.Background())
	h.Begin(ExportedRun{ID: "k3f9z0ab", Labels: map[string]string{"team": "a\xff"}})
	h.Show(counted(1))
	assert.True(t, scrape(t, h.Addr(), "text/plain")["carronade_run_info"] != nil, "run_info is missing")
}

// Labels whose names become equal in Prometheus keep all their values, in the same order at each scrape.
func TestEqualLabelNames(t *testing.T) {
	r := ExportedRun{ID: "k3f9z0ab", Labels: map[string]string{"a.b": "dot", "a-b": "dash", "a_b": "line", "a": "alone"}}
	want := []string{"id", "k3f9z0ab", "repetition", "1", "version", "v", "label_a", "alone", "label_a_b", "dash;dot;line"}
	for range 100 { // a map has no order
		diff := cmp.Diff(want, infoLabels(r, "v"))
		assert.Must(t, diff == "", "(-want +got):\n%s", diff)
	}
}

// TestNativeBuckets: the spans and differences of a native histogram have all buckets, and are never missing.
func TestNativeBuckets(t *testing.T) {
	for _, want := range []map[int]int64{{}, {0: 3}, {-7: 2, -6: 5, -5: 1, -2: 4, 90: 1}} {
		h := histogramOf(&exponential{buckets: want}, time.Now())
		got, at, count, next := map[int]int64{}, 0, int64(0), 0
		for _, s := range h.PositiveSpan {
			at += int(s.GetOffset())
			for range s.GetLength() {
				count += h.PositiveDelta[next]
				got[at] = count
				at, next = at+1, next+1
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(h.PositiveSpan) == 0 || next != len(h.PositiveDelta) {
			t.Errorf("%d spans, %d of %d differences (-want +got):\n%s", len(h.PositiveSpan), next, len(h.PositiveDelta), diff)
		}
	}
}
