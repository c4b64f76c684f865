package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// underTest is the run shown in the README of hey-apm, `test 30s 1 2 3 4`, with
// the numbers of its output: 6,477 requests of three documents each, of which
// 15,385 were indexed.
func underTest() Input {
	in := closedLoop()
	const batches, bytes = 6477, 46_995_000
	r := in.Result
	r.Measurement.Start, r.Measurement.End = 0, 30*time.Second
	r.Measurement.Counts = measure.Counts{
		Offered: 3 * batches, Sent: 3 * batches, Acked: 3 * batches, Batches: batches, Answered: batches,
		Bytes: bytes, AckedBytes: bytes, WireBytes: 5_100_000,
	}
	r.Measurement.Arrived, r.Measurement.ArrivedBytes = 3*batches, bytes
	r.Measurement.Statuses = measure.Statuses{{Code: 202, Batches: batches, Events: 3 * batches}}
	r.Intervals = nil
	in.Target = "apm+http://127.0.0.1:8200"
	in.Settings = []Setting{{Name: "concurrency", Value: "4"}, {Name: "for", Value: "30s"}, {Name: "events", Value: "1"}, {Name: "spans", Value: "2"}, {Name: "frames", Value: "3"}}
	in.Indexed = &measure.Indexed{
		Address: "http://127.0.0.1:9200", Store: "Elasticsearch 6.3.0", Pattern: "apm-*", Before: 1, After: 15_386,
		Expected: 3 * batches, Span: 30 * time.Second, Waited: 5 * time.Second, Stable: true,
		HealthBefore: "yellow", HealthAfter: "yellow", Note: "below 90%: fewer documents than events accepted",
	}
	perCPU, efficiency := 1942.4, 60*(bytes/30.)/157_700_000
	in.System = &System{
		Facts: map[string]any{
			"command": "./apm-server -e -E apm-server.tracing.enabled=true", "pid": 4242,
			"flags":  map[string]any{"apm-server.tracing.enabled": "true"},
			"branch": "trace-apm-server", "revision": "c961d664fbe5893d523bd9077be64617f57a96e7",
			"revision_date": "2018-05-18T10:21:13Z", "unstaged_changes": false,
			"build_cached": false, "build_s": 41.5, "memory_limit_bytes": int64(4 << 30), "cpu_limit": 1.5,
			"ready_after_s": 0.412, "environment": []any{"GODEBUG"},
		},
		LastLines: []string{}, PeakRSSBytes: 157_700_000, CPUS: 10, EventsPerCPUS: &perCPU, Efficiency: &efficiency,
		GCPauses: 12, GCPauseS: 0.03, GCPauseMaxS: 0.0041,
	}
	return in
}

// systemDied is the same run with a system that died.
func systemDied() Input {
	in := underTest()
	in.Result.Stopped = load.BySystem
	in.Result.Measurement.Statuses = measure.Statuses{{Code: 202, Batches: 6000, Events: 18_000}, {Code: 503, Batches: 477, Events: 1431}}
	in.Result.Measurement.Counts.Acked, in.Result.Measurement.Counts.Failed = 18_000, 1431
	in.Trust = measure.Trust{Reasons: []string{"the system under test ended by itself: signal: killed"}}
	in.Indexed.Stable, in.Indexed.Queued = false, new(float64)
	in.System = &System{
		Facts: map[string]any{"process": "apm-server", "pid": 4242, "branch": "main", "revision": "c961d66", "revision_date": "2018-05-18T10:21:13Z", "unstaged_changes": true, "build_cached": true, "build_s": 41.5},
		Died:  true, Exit: "signal: killed, 12.1s after it was started", LastLines: []string{"one", "two", "\x1b[31mout of memory\x1b[0m"},
	}
	return in
}

// A report has everything that hey-apm prints after a test.
func TestEverythingOfHeyAPMsTable(t *testing.T) {
	var text bytes.Buffer
	assert.OK(t, build(underTest()).Text(&text, layout.Style{}))
	flattened := strings.Join(strings.Fields(text.String()), " ")
	for _, want := range []struct{ name, text string }{
		{"pushed", "pushed 1.49 MiB/s (44.8 MiB) of events, 166 KiB/s (4.86 MiB) on the wire"}, // 1.6 Mb/s in 10^6 bytes
		{"accepted", "accepted 1.49 MiB/s (44.8 MiB) of events"},
		{"responses by code", "202 6,477 100% 216/s 19,431"},
		{"responses in all", "total 6,477 100% 216/s 19,431"},
		{"documents", "15,385 documents, 79.18% of the 19,431 expected, 513/s"},
		{"service time of a request", "p99 2.1"},
		{"peak RSS", "memory 150 MiB resident at most, in this run"},
		{"efficiency", "efficiency 0.596 of memory: 89.6 MiB a minute accepted, before compression, over its peak"},
		{"branch", "branch trace-apm-server"},
		{"revision and its date", "c961d664fbe5893d523bd9077be64617f57a96e7 of 2018-05-18 10:21:13 UTC"},
		{"flags", "flags apm-server.tracing.enabled=true"},
		{"limits", "limits 4 GiB of memory, 1.5 processors"},
	} {
		assert.True(t, strings.Contains(flattened, want.text),
			"%s: the report does not say %q:\n%s", want.name, want.text, text.String())
	}
}
