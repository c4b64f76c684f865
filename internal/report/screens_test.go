package report

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"carronade/internal/layout"
	"carronade/internal/verdict/trust"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// screens are first pages that inputs has no run for.
var screens = map[string]func(t *testing.T) *Document{
	"busy": func(*testing.T) *Document {
		return build(late(&trust.Others{Processors: 2, Programs: 0.97, Disturb: true}))
	},
	"limit-open": func(*testing.T) *Document {
		d := build(noisy())
		d.Checks = []Check{{Name: "p99 < 6 ms", CannotTell: true, Text: "5.6 to 7 ms (the generator was late)"}}
		return d
	},
	"mostly-failed": func(*testing.T) *Document {
		in := openLoop()
		c := &in.Result.Measurement.Counts
		c.Acked, c.Failed = c.Sent*29/100, c.Sent*71/100
		d := build(in)
		d.Checks = []Check{{Name: "p99 < 20 ms", OK: true, Text: "7 ms"}}
		return d
	},
	"parts": func(*testing.T) *Document {
		d := build(openLoop())
		for _, name := range []string{"orders", "audit"} {
			d.Parts = append(d.Parts, Part{Name: name, Op: d.Op, Target: d.Target, Share: 0.5, Got: 0.5, Totals: d.Totals, Times: d.Times})
		}
		return d
	},
	"faults": func(*testing.T) *Document {
		d := build(openLoop())
		d.Faults = faulty().Faults
		return d
	},
	"fleet": func(*testing.T) *Document {
		d := build(openLoop())
		d.Others = &trust.Others{Machine: "b", Processors: 4, Programs: 0.6, Disturb: true}
		d.Fleet = &Fleet{SkewUS: 420}
		for i, name := range []string{"a", "b"} {
			d.Fleet.Agents = append(d.Fleet.Agents, Agent{
				Name: name, From: 3 * i, To: 3*i + 3, State: "complete", Level: measure.Trusted, ClockBoundUS: 210,
				Counts: measure.Counts{Sent: 500_000, Acked: 500_000}, EventsPerS: 25_000, SendDelayP99: 71, CPUShare: 0.12,
			})
		}
		return d
	},
	"scenario": aScenario,
	"search":   func(*testing.T) *Document { return searched() },
}

// TestScreens: the first pages fit 80 columns, and begin with the answer.
func TestScreens(t *testing.T) {
	for name, of := range screens {
		t.Run(name, func(t *testing.T) {
			d := of(t)
			var b bytes.Buffer
			most := 30
			if name == "parts" { // all is well
				most = 22
			}
			assert.OK(t, d.Brief(&b, layout.Style{}, Condition{"report", "k3v9x2ab in reports.db"}))
			assert.True(t, strings.HasPrefix(b.String(), d.Answer().Word), "it does not begin with the answer:\n%s", b.String())
			assert.True(t, strings.Count(b.String(), "\n") <= most, "%d lines:\n%s", strings.Count(b.String(), "\n"), b.String())
			for line := range strings.Lines(b.String()) {
				assert.True(t, layout.Width(strings.TrimRight(line, "\n")) <= layout.Columns, "wider than 80 columns: %s", line)
			}
			testkit.Golden(t, filepath.Join("testdata", "screens", name+".txt"), b.String())
		})
	}
}
