//go:build conformance

package acceptance

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/parquettest"
)

// fireRaw has agents on this machine fire at a stand-in that discards, each of which keeps a trace. It returns the report, the
// service times of all batches of all traces, and their response times, which are those of events if a batch has one.
func fireRaw(t *testing.T, agents int, flags ...string) (d *document, all, response []time.Duration) {
	t.Helper()
	sink := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--discard")
	home := t.TempDir()
	in := func(args ...string) *session {
		s := prepare(t, args...)
		s.home = home
		s.begin()
		return s
	}
	in("fleet", "start", "--listen", "127.0.0.1:0").awaitStdout(1, "listening on")
	var folders []string
	for i := range agents {
		name := fmt.Sprintf("a%d", i)
		join, traces := filepath.Join(t.TempDir(), "join"), t.TempDir()
		in("fleet", "token", "--name", name, "-o", join).wait(runTimeout).want(t, 0)
		in("agent", "--join", join, "--allow-target", "127.0.0.1:*", "--data", t.TempDir(), "--traces", traces).awaitStdout(1, "is connected")
		folders = append(folders, traces)
	}
	e := in(append([]string{"run", "kafka://" + sink.addr + "/t", "--json", "--fleet"}, flags...)...).wait(runTimeout).wantOneOf(t, 0, 3)
	d = e.document(t)
	var acked uint64
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.parquet"))
		assert.Must(t, err == nil && len(files) == 1, "traces of an agent: %v, %v", files, err)
		file := parquettest.Open(t, files[0])
		due, sent, done := file.Column("due_ns").Ints, file.Column("sent_ns").Ints, file.Column("done_ns").Ints
		for i, n := range file.Column("acked").Ints {
			if n > 0 {
				all = append(all, time.Duration(done[i]-sent[i]))
				response = append(response, time.Duration(done[i]-due[i]))
				acked += uint64(n)
			}
		}
	}
	assert.True(t, acked == d.Totals.Acked && uint64(len(all)) == d.Service.Count,
		"the traces have %d acked events in %d batches, the report %d in %d", acked, len(all), d.Totals.Acked, d.Service.Count)
	return d, all, response
}

// sameP99 checks that the merged p99 is that of the joined times, in the histogram's cell of it.
func sameP99(t *testing.T, name string, got *times, all []time.Duration) {
	t.Helper()
	slices.Sort(all)
	raw := all[int(math.Ceil(0.99*float64(len(all))))-1]
	cell := measure.NewHistogram()
	cell.Record(raw)
	cell.Record(all[len(all)-1]) // a percentile is not above the largest
	want := float64(cell.Percentile(50)) / float64(time.Microsecond)
	assert.True(t, got != nil && got.P99US == want,
		"%s: merged p99 %+v us, of the joined traces %v, in the cell up to %v us", name, got, raw, want)
}

// The p99 of a fleet's report is that of the joined times of its agents, and not an average of theirs.
func TestFleetRaw(t *testing.T) {
	d, all, response := fireRaw(t, 2, "--rate", "2k/s", "--for", "1s", "--batch-events", "1")
	assert.True(t, d.Totals.Sent == 2000 && len(all) == 2000, "sent %d events in %d batches, want 2000", d.Totals.Sent, len(all))
	sameP99(t, "service", d.Service, all)
	sameP99(t, "response", d.Response, response)
}

// TestFleetMillion: four agents on one machine send a million events a second together.
func TestFleetMillion(t *testing.T) {
	testkit.OnlyConformance(t, "needs the whole machine for twenty seconds: TestFleetRaw has the same at a small rate")
	const rate, seconds = 1_000_000, 10
	d, all, _ := fireRaw(t, 4, "--rate", "1M/s", "--for", fmt.Sprintf("%ds", seconds), "--size", "100")
	assert.True(t, math.Abs(float64(d.Totals.Sent)/(rate*seconds)-1) <= 0.001,
		"sent %d events, want %d within 0.1 %%", d.Totals.Sent, rate*seconds)
	sameP99(t, "service", d.Service, all)
	if d.Trust.OK != nil && !*d.Trust.OK {
		t.Logf("not trusted: %s", strings.Join(d.Trust.Reasons, "; "))
	}
}
