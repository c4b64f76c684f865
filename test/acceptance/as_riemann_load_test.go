//go:build conformance

package acceptance

import (
	"encoding/json"
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

// TestAsRiemannLoad runs the command published in 2013, by a link with the script's
// name, until it is interrupted. It parses the output and the files by their format
// only: the sums are those of the report.
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

// csvRows reads a CSV file of numbers with a header line.
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
