//go:build conformance

package acceptance

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestRiemannKilled kills the server in the middle of an open loop and starts another
// one: every event is accounted for, and the run continues.
func TestRiemannKilled(t *testing.T) {
	t.Parallel()
	for _, clients := range []string{"1", "4"} {
		t.Run(clients+" connections", func(t *testing.T) {
			t.Parallel()
			first := startStandin(t, "riemann", "--listen", "127.0.0.1:0", "--delay", "5ms")
			s := start(t, "run", "riemann://"+first.addr, "--rate", "2000/s", "--clients", clients, "--for", "6s", "--json")
			s.awaitStderr(progressText)
			pause(t, 1500*time.Millisecond)
			first.killInDebt(100 * time.Millisecond)
			pause(t, time.Second)
			second := startStandin(t, "riemann", "--listen", first.addr, "--delay", "5ms")
			d := s.wait(runTimeout).succeeded(t).document(t)
			second.kill()
			all := d.Totals
			assert.Equal(t, all.Offered, 12_000, "offered")
			assert.True(t, all.Unknown != 0, "no event is unknown, although the server was killed with events in flight")
			assert.True(t, all.Acked >= 6_000, "acked %d events of 12000: the run did not continue", all.Acked)
			assert.True(t, len(d.Failures) != 0, "no failure is named")
			late := uint64(0)
			for _, iv := range d.Intervals {
				if iv.StartS >= 4.9 {
					late += iv.Acked
				}
			}
			assert.True(t, late != 0, "no event was acked after the server came back")
		})
	}
}

// TestRiemannFrozen freezes a server in an open loop, on one connection and on eight.
func TestRiemannFrozen(t *testing.T) {
	const measurement = 5 * time.Second
	for _, tt := range []struct {
		clients, bound string
		queueing       bool
	}{
		{"1", "10000", false},
		{"8", "10000", false},
		{"1", "1", true},
		{"8", "1", true},
	} {
		t.Run(fmt.Sprintf("%s connections, bound %s", tt.clients, tt.bound), func(t *testing.T) {
			r := startStandin(t, "riemann", "--listen", "127.0.0.1:0")
			s := start(t, "run", "riemann://"+r.addr, "--rate", "2000/s", "--clients", tt.clients, "--max-in-flight", tt.bound, "--for", measurement.String(), "--json")
			s.awaitStderr(progressText)
			pause(t, time.Second)
			freeze := r.freezeFor(time.Second)
			d := s.wait(runTimeout).succeeded(t).document(t)
			assert.Must(t, d.Response != nil && d.Queueing != nil && d.Service != nil, "the report has no response, queueing or service")
			d.checkFreeze(t, freeze, measurement, 1.05)
			assert.True(t, d.Totals.Acked == 10_000 && d.Response.Count == 10_000,
				"acked %d, response times of %d, want 10000", d.Totals.Acked, d.Response.Count)
			d.checkQueueing(t, freeze, tt.queueing)
		})
	}
}

// TestRiemannStopsReading freezes a server for a second, at a rate that fills its
// socket, so that writes block.
func TestRiemannStopsReading(t *testing.T) {
	r := startStandin(t, "riemann", "--listen", "127.0.0.1:0")
	const measurement = 5 * time.Second
	s := start(t, "run", "riemann://"+r.addr, "--rate", "200k/s", "--batch-events", "100", "--max-in-flight", "100k", "--for", measurement.String(), "--json")
	s.awaitStderr(progressText)
	pause(t, time.Second)
	freeze := r.freezeFor(time.Second)
	d := s.wait(runTimeout).succeeded(t).document(t)
	assert.Equal(t, d.Totals.Acked, 1_000_000, "events acked")
	d.checkFreeze(t, freeze, measurement, 1.1)
	if delay := d.SendDelay.P99US / 1e6; delay > freeze.least.Seconds()/2+d.Freezes.TotalS {
		t.Errorf("send delay p99 is %.3f s: a full socket is not a delay of the generator", delay)
	}
}

// TestAsRiemannLoad runs the command published in 2013, by a link with the script's name, until it is
// interrupted. It parses the output and the files by their format only: the sums are those of the report.
func TestAsRiemannLoad(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		args  []string
		batch float64
	}{
		{"single event sends", nil, 1},
		{"bulk sends", []string{"-w", "2", "-c", "3", "--batch-size=400"}, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := startStandin(t, "riemann", "--listen", "127.0.0.1:0", "--discard")
			dir := t.TempDir()
			link, file := filepath.Join(dir, "riemann-load.sh"), filepath.Join(dir, "report.json")
			assert.OK(t, os.Symlink(program, link))
			s := prepare(t, append(tt.args, server.addr, "--report-json", file)...)
			s.cmd.Path, s.cmd.Args[0], s.cmd.Dir = link, link, dir
			s.begin()
			s.awaitStdout(2, "====\n")
			s.signal(os.Interrupt)
			e := s.wait(30*time.Second).want(t, 130)

			text := assert.Value(os.ReadFile(file))(t)
			var d document
			assert.OK(t, json.Unmarshal(text, &d))
			last := lastBlock(t, e.stdout)
			for name, want := range map[string]float64{
				"acks.count":           float64(d.Totals.Acked) / tt.batch,
				"acks.mean rate":       d.Totals.EventsPerS / tt.batch,
				"event-acks.count":     float64(d.Totals.Acked),
				"event-acks.mean rate": d.Totals.EventsPerS,
				"sends.count":          float64(d.Totals.Batches),
				"throughput.count":     float64(d.Totals.WireBytes),
				"throughput.mean rate": float64(d.Totals.WireBytes) / d.Totals.ElapsedS,
				"rtt.count":            float64(d.Service.Count),
				"rtt.max":              d.Service.MaxUS / 1e6,
				"rtt.mean":             d.Service.MeanUS / 1e6,
				"rtt.median":           d.Service.P50US / 1e6,
				"rtt.99%":              d.Service.P99US / 1e6,
				"rtt.99.9%":            d.Service.P999US / 1e6,
				"unacked.value":        0,
			} {
				got, ok := last[name]
				assert.True(t, ok && math.Abs(got-want) <= 0.006, "%s is %v, want %v", name, got, want)
			}
			assert.True(t, d.Totals.Acked != 0, "nothing was acked")
			folders, _ := filepath.Glob(filepath.Join(dir, "[0-9]*"))
			assert.Must(t, len(folders) == 1, "folders of reports: %q", folders)
			for name, want := range map[string]float64{
				"acks": float64(d.Totals.Acked) / tt.batch, "event-acks": float64(d.Totals.Acked), "sends": float64(d.Totals.Batches),
				"throughput": float64(d.Totals.WireBytes), "unacked": 0, "rtt": -1,
			} {
				rows := csvRows(t, filepath.Join(folders[0], name+".csv"))
				n := len(rows)
				assert.Must(t, n >= 2 && n <= 8, "%s.csv has %d rows, want one per second", name, n)
				for i, row := range rows {
					assert.Equal(t, row[0], float64(i+1), "%s.csv: the second of row %d", name, i+1)
				}
				got := rows[len(rows)-1][1]
				assert.True(t, want < 0 || got == want, "%s.csv ends with %v, want %v", name, got, want)
			}
			for _, name := range []string{"acks.png", "rtt.png", "throughput.png", "unacked.png", "plots.html"} {
				info, err := os.Stat(filepath.Join(folders[0], name))
				assert.True(t, err == nil && info.Size() != 0, "%s: %v", name, err)
			}
		})
	}
}

// lastBlock parses the last block of the output: the numbers by METRIC.NAME.
func lastBlock(t *testing.T, text string) map[string]float64 {
	t.Helper()
	_, block, ok := strings.Cut(text[max(strings.LastIndex(text, "====\n"), 0):], "\n")
	assert.Must(t, ok, "no block:\n%.2000s", text)
	out, metric := map[string]float64{}, ""
	for line := range strings.Lines(block) {
		line = strings.TrimRight(line, "\n")
		if name, ok := strings.CutSuffix(line, ":"); ok {
			metric = strings.TrimSpace(name)
			continue
		}
		name, value, ok := strings.Cut(line, " = ")
		if !ok {
			if name, value, ok = strings.Cut(line, " <= "); !ok {
				continue
			}
		}
		value, _, _ = strings.Cut(strings.TrimSuffix(value, "s"), " ")
		v, err := strconv.ParseFloat(value, 64)
		assert.True(t, err == nil, "%s: %v", line, err)
		out[metric+"."+strings.TrimSpace(name)] = v
	}
	return out
}

func csvRows(t *testing.T, path string) (out [][]float64) {
	t.Helper()
	for _, row := range testkit.CSV(t, path)[1:] {
		var numbers []float64
		for _, cell := range row {
			v := assert.Value(strconv.ParseFloat(cell, 64))(t, "%s", path)
			numbers = append(numbers, v)
		}
		out = append(out, numbers)
	}
	return out
}
