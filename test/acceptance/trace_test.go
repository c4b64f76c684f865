//go:build conformance

package acceptance

import (
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
	"carronade/test/testkit/parquettest"
)

// A traceReport is the report's part about a trace and sampled events.
type traceReport struct {
	Trace *struct {
		Rows, Dropped uint64
		Error         string
	}
	Samples *struct {
		Of, Every uint64
	}
}

func readTraceReport(t *testing.T, e ended) traceReport {
	t.Helper()
	var d traceReport
	decode(t, e.stdout, &d)
	assert.Must(t, d.Trace != nil && d.Trace.Dropped == 0 && d.Trace.Error == "", "the report's trace: %+v", d.Trace)
	return d
}

// TestTrace: the counts of a run's report are in its trace.
func TestTrace(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	for _, tt := range []struct {
		name  string
		flags []string
		rows  func(d *document) uint64 // according to the report; nil: rows are parts of batches
	}{
		{"produce", []string{"--rate", "5000/s", "--for", "2s", "--warmup", "1s"}, func(d *document) uint64 { return d.wholeRun().Batches }},
		{"full speed", []string{"--count", "200000"}, func(d *document) uint64 { return d.wholeRun().Batches }},
		{"every event", []string{"--rate", "5000/s", "--for", "2s", "--trace-events", "100%", "--key", "seq", "--fresh"}, func(d *document) uint64 { return d.wholeRun().Sent }},
		{"client", []string{"--rate", "5000/s", "--for", "2s", "--engine", "client"}, func(d *document) uint64 { return d.wholeRun().Batches }},
		{"round trip", []string{"--op", "roundtrip", "--rate", "2000/s", "--for", "2s"}, nil},
		{"round trip, closed loop", []string{"--op", "roundtrip", "--concurrency", "3", "--count", "600"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "run.parquet")
			s := prepare(t, append([]string{"run", topicURL(broker, broker.CreateTopic(t, 2, 1)), "--trace", path, "--json", "--quiet"}, tt.flags...)...)
			s.begin()
			e := s.wait(runTimeout).succeeded(t)
			d, of := e.document(t), readTraceReport(t, e)
			all := d.wholeRun()
			got := parquettest.Open(t, path)
			assert.True(t, uint64(got.Rows) == of.Trace.Rows && (tt.rows == nil || uint64(got.Rows) == tt.rows(d)),
				"%d rows, the report says %d", got.Rows, of.Trace.Rows)
			if n := got.Column("events").Sum(); uint64(n) != all.Sent || got.Column("acked").Sum() != n {
				t.Errorf("%d events, of them %d acked; the report counts %d", n, got.Column("acked").Sum(), all.Sent)
			}
			n := got.Column("bytes").Sum()
			assert.True(t, uint64(n) == all.Bytes, "%d bytes, the report counts %d", n, all.Bytes)
			if logs := got.Column("partition").Ints; slices.Min(logs) != 0 || slices.Max(logs) != 1 || got.Column("log_offset").Nulls() != 0 ||
				slices.ContainsFunc(got.Column("outcome").Texts, func(outcome string) bool { return outcome != "acked" }) {
				t.Errorf("partitions from %d to %d, %d rows without an offset, or some not acked", slices.Min(logs), slices.Max(logs), got.Column("log_offset").Nulls())
			}
			if n := got.Column("consumed_ns").Nulls(); (n == 0) != strings.HasPrefix(tt.name, "round trip") {
				t.Errorf("%d rows of %d were not consumed", n, got.Rows)
			}
			if n := got.Column("key").Nulls(); (n == 0) != strings.HasPrefix(tt.name, "every event") {
				t.Errorf("%d rows of %d have no key", n, got.Rows)
			}
			if strings.HasPrefix(tt.name, "round trip") {
				endToEnd(t, s, d, of)
			}
		})
	}
}

func endToEnd(t *testing.T, s *session, d *document, of traceReport) {
	t.Helper()
	export := prepare(t, "report", "export", "last", "--as", "e2e-csv")
	export.home = s.home
	export.begin()
	rows := assert.Value(csv.NewReader(strings.NewReader(export.wait(runTimeout).want(t, 0).stdout)).ReadAll())(t)
	if of.Samples == nil || of.Samples.Of != d.EndToEnd.Count || uint64(len(rows)) != of.Samples.Of/of.Samples.Every {
		t.Fatalf("%d rows, samples %+v, of %d events", len(rows), of.Samples, d.EndToEnd.Count)
	}
	last := -1.0
	for _, r := range rows {
		assert.Must(t, len(r) == 3 && strings.Contains(r[0], "/"), "got %q", r)
		start, err1 := strconv.ParseFloat(r[1], 64)
		took, err2 := strconv.ParseFloat(r[2], 64)
		if err1 != nil || err2 != nil || start < last || took < d.EndToEnd.MinUS || took > d.EndToEnd.MaxUS {
			t.Fatalf("row %q after %v; end to end is %v to %v us", r, last, d.EndToEnd.MinUS, d.EndToEnd.MaxUS)
		}
		last = start
	}
}

// Ctrl-C leaves a complete trace; kill -9 leaves all rows that were written before.
func TestTraceCutShort(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		kill bool
	}{{"Ctrl-C", false}, {"kill -9", true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "run.parquet")
			s := start(t, "run", "null://", "--rate", "20000/s", "--batch-events", "1", "--for", "5m", "--trace", path, "--json")
			size := int64(0)
			awaitGrowth(t, path, &size) // an empty file
			awaitGrowth(t, path, &size) // the first rows, of less than two seconds if the run began late
			awaitGrowth(t, path, &size)
			if tt.kill {
				assert.OK(t, s.cmd.Process.Kill())
				<-s.done
			} else {
				s.signal(os.Interrupt)
				e := s.wait(15*time.Second).wantOneOf(t, 130)
				d, of := e.document(t), readTraceReport(t, e)
				assert.True(t, of.Trace.Rows == d.wholeRun().Batches, "%d rows of %d batches", of.Trace.Rows, d.wholeRun().Batches)
			}
			got := parquettest.Open(t, path)
			last := slices.Max(got.Column("sequence").Ints)
			assert.True(t, got.Rows >= 10_000 && last == int64(got.Rows-1), "%d rows, the last of them %d", got.Rows, last)
		})
	}
}

// awaitGrowth waits until a file is longer than before.
func awaitGrowth(t *testing.T, path string, than *int64) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	timeout := time.NewTimer(time.Minute)
	defer timeout.Stop()
	for {
		if info, err := os.Stat(path); err == nil && info.Size() > *than {
			*than = info.Size()
			return
		}
		select {
		case <-tick.C:
		case <-timeout.C:
			t.Fatalf("%s did not grow beyond %d bytes", path, *than)
		}
	}
}

var totalCount = regexp.MustCompile(`Total count\s*=\s*(\d+)`)

// TestHDR reads the log of a run with HdrHistogram's Java reader, which comes with Kafka.
func TestHDR(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	log := filepath.Join(t.TempDir(), "run.hlog")
	d := run(t, "run", topicURL(broker, broker.CreateTopic(t, 1, 1)), "--rate", "2000/s", "--for", "3s", "--hdr", log, "--json", "--quiet").succeeded(t).document(t)
	read := func(tag string) (uint64, string) {
		cmd := exec.Command("java", "-cp", filepath.Join(kafkatest.Jars(t), "*"), "org.HdrHistogram.HistogramLogProcessor", "-i", log, "-tag", tag)
		out, err := cmd.CombinedOutput()
		assert.OK(t, err, "HistogramLogProcessor: \n%s", out)
		m := totalCount.FindSubmatch(out)
		assert.Must(t, m != nil, "HistogramLogProcessor found no histograms of %s:\n%s", tag, out)
		n := assert.Value(strconv.ParseUint(string(m[1]), 10, 64))(t)
		return n, string(out)
	}
	if n, out := read("response"); n != d.Response.Count || n != 6000 {
		t.Errorf("the log has %d response times, the report %d, want 6000\n%s", n, d.Response.Count, out)
	}
	n, _ := read("service")
	assert.True(t, n == d.Service.Count, "the log has %d service times, the report %d", n, d.Service.Count)
}
