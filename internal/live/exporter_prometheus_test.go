package live

import (
	"context"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"github.com/google/go-cmp/cmp"
)

// Labels may be invalid UTF-8; the page stays valid.
func TestInvalidLabels(t *testing.T) {
	h := assert.Value(OpenExporter(ExporterOptions{MetricsAddr: "0"}))(t)
	defer h.Close(context.Background())
	h.Begin(ExportedRun{ID: "k3f9z0ab", Labels: map[string]string{"team": "a\xff"}})
	h.Show(counted(1))
	assert.True(t, scrape(t, h.Addr(), "text/plain")["carronade_run_info"] != nil, "run_info is missing")
}

// TestEqualLabelNames: labels whose names become equal in Prometheus keep all their
// values, in the same order at each scrape.
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
