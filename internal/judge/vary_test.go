package judge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/test/testkit/assert"
)

// experiment returns the rows of a series without a schedule whose cells have the numbers of of, with noise.
func experiment(d *stats.Design, rounds int, of func(cell []int) fields) []store.Row {
	rnd := rand.New(rand.NewPCG(7, 7))
	var out []store.Row
	for c, cell := range d.Cells {
		for r := range rounds {
			f := of(cell)
			for _, name := range slices.Sorted(maps.Keys(f)) {
				if x, ok := f[name].(float64); ok {
					f[name] = x * math.Exp(0.01*rnd.NormFloat64())
				}
			}
			out = append(out, row(fmt.Sprintf("c%dr%d", c+1, r+1), start.Add(time.Duration(r)*time.Minute), fields{
				"rate": nil, "response_p50": nil, "response_p99": nil, "response_p999": nil,
				"repetition": float64(r + 1), "repetitions": float64(rounds),
				"label.vary": "abc", "label.vary-cell": strconv.Itoa(c + 1),
			}, f))
		}
	}
	return out
}

func twoByTwo(t *testing.T) *stats.Design {
	t.Helper()
	d, err := stats.NewDesign([]stats.Factor{{Name: "acks", Values: []string{"1", "all"}}, {Name: "compression", Values: []string{"none", "zstd"}}})
	assert.OK(t, err)
	return d
}

// slower is a system that is 31 % slower with acks=all.
func slower(cell []int) fields {
	v := 50e3 * math.Pow(0.69, float64(cell[0]))
	return fields{"throughput": v, "service_p99": 600 / v, "generator_cpu_share": 0.2, "system_cores": 1.5}
}

// The answer ranks what settings change, names the best cell, and says what it found nothing
// of; throughput decides without a schedule.
func TestVary(t *testing.T) {
	d := twoByTwo(t)
	v := assert.Value(Vary(experiment(d, 3, slower), VaryOptions{Series: "abc", Design: d, Rounds: 3}))(t)
	var text bytes.Buffer
	assert.OK(t, v.Text(&text, layout.Style{}))
	assert.Has(t, text.String(),
		"throughput (decides), more is better; noise ±",
		"  acks 1 → all             -31% ± ",
		"  compression none → zstd  no effect found, within ±",
		"service p99, less is better",
		"system CPU, less is better",
		"DONE  throughput, acks 1 → all: -31% ±", "best: acks=1 compression=", " may be as")
	for line := range strings.Lines(text.String()) {
		assert.True(t, layout.Width(strings.TrimRight(line, "\n")) <= layout.Columns,
			"wider than %d columns: %s", layout.Columns, line)
	}
	golden(t, "vary.txt", v.Text)
	var fields []string
	for _, n := range v.Numbers {
		fields = append(fields, n.Field)
	}
	assert.Equal(t, strings.Join(fields, " "), "throughput service_p99 generator_cpu_share system_cores", "numbers")
	text.Reset()
	if err := v.Text(&text, layout.Style{ASCII: true}); err != nil || strings.ContainsFunc(text.String(), func(r rune) bool { return r > 127 }) {
		t.Errorf("%v, or not only ASCII:\n%s", err, text.String())
	}
	data, err := json.Marshal(v)
	assert.True(t, err == nil && bytes.Contains(data, []byte(`"schema":"carronade.variation/1"`)), "%s, %v", data, err)
	var csv, markdown bytes.Buffer
	assert.OK(t, errors.Join(v.CSV(&csv), v.Markdown(&markdown)))
	if lines := strings.Count(csv.String(), "\n"); lines != 1+4*3 || !strings.Contains(csv.String(), "abc,throughput,true,main,acks 1 -> all,-0.3") {
		t.Errorf("%d lines of CSV:\n%s", lines, csv.String())
	}
	assert.True(t, strings.Contains(markdown.String(), "| acks 1 → all | -31% ±"), "Markdown:\n%s", markdown.String())
}

// Under a schedule the rate is given, and the response p99 decides.
func TestVaryUnderASchedule(t *testing.T) {
	d := twoByTwo(t)
	rows := experiment(d, 3, func(cell []int) fields {
		return fields{"rate": "50k/s", "throughput": 50e3, "response_p99": 0.010 * (1 + float64(cell[1]))}
	})
	v := assert.Value(Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 3}))(t)
	n := v.Numbers[0]
	if e := n.Effects[0]; n.Field != "response_p99" || math.Abs(e.Effect-1) > 0.1 || e.Verdict != stats.EffectFound || e.Of[0].Name != "compression" {
		t.Errorf("%s: %+v", n.Field, e)
	}
	assert.True(t, v.Cells[v.Best.Cell-1].Settings[1].Value == "none", "best %+v", v.Best)
}

// Runs that are not trusted do not count. A cell without any leaves no effects, and the reason.
func TestVaryIncomplete(t *testing.T) {
	d := twoByTwo(t)
	rows := experiment(d, 3, slower)
	untrust(&rows[0])
	v, err := Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 3})
	assert.Must(t, err == nil && len(v.LeftOut) == 1 && len(v.Cells[0].Reports) == 2 && v.Best != nil, "%v, %+v", err, v)
	untrust(&rows[1])
	untrust(&rows[2])
	v, err = Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 3})
	if err != nil || len(v.Numbers) == 0 || len(v.Numbers[0].Effects) != 0 || v.Best != nil || !strings.Contains(strings.Join(v.Notes, ";"), "no effects, since cell 1 (acks=1 compression=none) has no run that counts") {
		t.Errorf("%v, %+v", err, v)
	}
	var text bytes.Buffer
	err = v.Text(&text, layout.Style{})
	assert.True(t, err == nil && strings.Contains(text.String(), "no effects"), "%v:\n%s", err, text.String())
	for i := range rows {
		untrust(&rows[i])
	}
	_, err = Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 3})
	assert.True(t, errors.Is(err, ErrNoRuns), "without any: %v", err)
}

// A cell whose system died in a run is not best without a word: its other runs are the good ones.
func TestVaryDeaths(t *testing.T) {
	d := twoByTwo(t)
	rows := experiment(d, 3, slower)
	v, err := Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 3})
	assert.OK(t, err)
	best := strconv.Itoa(v.Best.Cell)
	dead := row("dead", start, fields{"partial": true, "stopped": "system ended", "repetition": 1.0, "label.vary-cell": best})
	v, err = Vary(append(rows, dead), VaryOptions{Series: "abc", Design: d, Rounds: 3})
	assert.OK(t, err)
	var text bytes.Buffer
	assert.OK(t, v.Text(&text, layout.Style{}))
	said := strings.Join(strings.Fields(text.String()), " ")
	assert.Has(t, said, "but the system ended in 1 run of it; ", "the system ended in 1 run of cell "+best+": its numbers are of the others")
}

// Each repetition of a series of searches has the middle of its interval as the ceiling, which
// decides; next to it is what the trial at its lower end measured. The noise is at least that of
// the intervals.
func TestVarySearches(t *testing.T) {
	d := twoByTwo(t)
	var (
		rows     []store.Row
		searches []VariedSearch
	)
	for c, cell := range d.Cells {
		for r := range 3 {
			id := fmt.Sprintf("c%dr%d", c+1, r+1)
			holds := 10_000 * math.Pow(0.7, float64(cell[0]))
			searches = append(searches, VariedSearch{ID: "s-" + id, Report: id, Holds: holds, Fails: holds * 1.1, Cell: c, Round: r})
			rows = append(rows, row(id, start, fields{
				"rate": holds, "throughput": holds, "response_p99": 0.010 + 0.001*float64(r), "generator_cpu_share": 0.2 + 0.01*float64(r), "label.find-role": "confirm",
			}), row(id+"probe", start, fields{"throughput": 3 * holds, "label.find-role": "probe"}))
		}
	}
	v, err := Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 3, Searches: searches})
	assert.OK(t, err)
	n := &v.Numbers[0]
	assert.True(t, n.Field == "ceiling" && n.Decides && math.Abs(n.Noise-math.Log(1.1)/math.Sqrt(12)) <= 1e-9,
		"%s decides with a noise of %g, want the ceiling with that of the intervals", n.Field, n.Noise)
	if e := &n.Effects[0]; math.Abs(e.Effect+0.3) > 1e-9 || e.Of[0].Name != "acks" || e.Verdict != stats.EffectFound || e.Hi-e.Lo < 0.02 {
		t.Errorf("got %+v", e)
	}
	var titles []string
	for i := range v.Numbers {
		titles = append(titles, v.Numbers[i].Title)
	}
	assert.Equal(t, strings.Join(titles, ", "), "ceiling, response p99 at the lower end, generator CPU at the lower end",
		"numbers")
	var text bytes.Buffer
	assert.OK(t, v.Text(&text, layout.Style{}))
	assert.Has(t, text.String(), "3 searches each", "ceiling (decides), more is better; noise ± 2.8%", "  acks 1 → all             -30% ± ", "(ceiling 10.5 k/s)")
	if data, err := json.Marshal(v); err != nil || !bytes.Contains(data, []byte(`"searches":[{"id":"s-c1r1","report":"c1r1","holds":10000,"fails":11000}`)) {
		t.Errorf("%s, %v", data, err)
	}

	searches[0].Why, searches[0].Died = "the system died", true
	searches[4].Report = "gone"
	v, err = Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 3, Searches: searches})
	assert.OK(t, err)
	assert.True(t, len(v.LeftOut) == 2 && v.Cells[0].Died == 1 && len(v.Cells[0].Reports) == 2 &&
		len(v.Cells[1].Searches) == 2 && v.Best != nil, "got %+v", v)
	_, err = Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 3, Searches: []VariedSearch{}})
	assert.True(t, errors.Is(err, ErrNoRuns), "without a search: %v", err)
}

// Cells that exist are shown, whatever cells are missing, in all forms; and those that are missing are named.
func TestVaryShowsWhatExists(t *testing.T) {
	d := twoByTwo(t)
	rows := experiment(d, 2, slower)
	for i := range rows {
		if cell, _, _ := CellOf(&rows[i]); cell == 1 || cell == 2 {
			untrust(&rows[i])
		}
	}
	v := assert.Value(Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 2}))(t)
	assert.True(t, v.Best == nil && len(v.Numbers) >= 2, "got %+v", v)
	for i := range v.Cells {
		c := &v.Cells[i]
		missing := i == 1 || i == 2
		for _, n := range v.Numbers {
			_, ok := c.Means[n.Field]
			assert.True(t, ok != missing, "cell %d: %s is there: %t", c.Cell, n.Field, ok)
		}
	}
	var text, markdown, csv bytes.Buffer
	assert.OK(t, v.Text(&text, layout.Style{}))
	assert.OK(t, v.Markdown(&markdown))
	assert.OK(t, v.CSV(&csv)) // has a line for each effect
	full := v.Numbers[0].value(&v.Cells[0])
	for form, got := range map[string]string{"text": text.String(), "markdown": markdown.String()} {
		words := strings.Join(strings.Fields(got), " ")
		if !strings.Contains(words, full) || !strings.Contains(words, "have no run that counts") || strings.Contains(words, "noise") || !strings.Contains(words, "4 repetitions without a run that counts") {
			t.Errorf("%s:\n%s", form, got)
		}
	}
	assert.Equal(t, strings.Count(csv.String(), "\n"), 1, "lines of CSV")
}
