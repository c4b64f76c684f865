//go:build unix

package cli_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"carronade/internal/live"
	"carronade/internal/report"
	"carronade/test/testkit/assert"
	"carronade/units"
)

// The rows of the tables of times, and their cells: in a text, on its first page, and in a page.
var (
	textRow  = regexp.MustCompile(`(?m)^ +(p[\d.]+|max) +(\S.*)$`)
	briefRow = regexp.MustCompile(`(?m)^  (response|service|end to end|send delay|batching|queueing) +([<\d-].*)$`)
	pageRow  = regexp.MustCompile(`<th scope="row">(p[\d.]+|max)</th>((?:<td>[^<]*</td>)+)`)
	timeCell = regexp.MustCompile(`[<>]= ?[\d.]+(?: ?[num]?s\b)?|[\d.]+ ?[num]?s\b|(?:\d+[hm])+[\d.]+s|0|-`)
)

// timesInAllForms compares the percentiles and the maximum of each time in the text, on its first page and in the
// page with those in JSON: their numbers, and which are only bounds. It compares those of intervals in CSV and in
// frames with those in JSON.
func timesInAllForms(t *testing.T, d *report.Document, fields map[string]any, text, brief, page string, csv [][]string, frames []live.Frame) {
	t.Helper()
	bounded := map[string]bool{}
	bounds, _ := fields["trust"].(map[string]any)["bounds"].([]any)
	for _, b := range bounds {
		if b := b.(map[string]any); b["step"] == "" {
			bounded[fmt.Sprint(b["time"], b["p"])] = true
		}
	}
	near := func(cell string, us any) bool { // to three digits
		v, err := units.ParseDuration(strings.ReplaceAll(strings.TrimLeft(cell, "<>= "), " ", ""))
		want, ok := us.(float64)
		return err == nil && ok && math.Abs(float64(v.Nanoseconds())/1e3-want) <= 0.006*want
	}
	same := func(form, name, row, cell string) {
		t.Helper()
		of := fields[name].(map[string]any)
		key, sign := strings.ReplaceAll(row, ".", "")+"_us", ""
		p, _ := strconv.ParseFloat(strings.TrimPrefix(row, "p"), 64)
		from, _ := of["at_least_from_p"].(float64)
		switch {
		case row == "max":
			if from > 0 {
				sign = ">="
			}
		case from > 0 && p >= from:
			sign = ">="
		case bounded[name+fmt.Sprint(p)]:
			sign = "<="
		}
		assert.True(t, near(cell, of[key]) && strings.HasPrefix(cell, sign) && (sign != "" || cell[0] >= '0'),
			"%s: %s of %s: got %q, JSON has %s %v us", form, row, name, cell, sign, of[key])
	}
	titles := map[string]string{}
	var inText, inPage, inFigure []string
	for _, x := range d.Measured() {
		titles[x.Title] = x.Name
		inPage = append(inPage, x.Name)
		if x.Name != "failed_service" {
			inText = append(inText, x.Name)
		}
		if x.Main || x.Name == "send_delay" {
			inFigure = append(inFigure, x.Name)
		}
	}
	cells := func(form string, row *regexp.Regexp, p string) (found []string) {
		for _, m := range row.FindAllStringSubmatch(form, -1) {
			if m[1] == p {
				found = append(found, timeCell.FindAllString(m[2], -1)...)
			}
		}
		return found
	}
	all := func(form, p string, names, found []string) {
		t.Helper()
		assert.Must(t, len(found) == len(names), "%s: %s of %v: got %q", form, p, names, found)
		for i, name := range names {
			same(form, name, p, found[i])
		}
	}
	for _, p := range []string{"p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"} {
		all("text", p, inText, cells(text, textRow, p))
		got := cells(page, pageRow, p)
		if p == "p95" || len(got) < len(inPage) { // the figure of percentiles has none
			all("page", p, inPage, got)
			continue
		}
		all("page", p, inPage, got[len(got)-len(inPage):])
		if got = got[:len(got)-len(inPage)]; slices.Contains([]string{"p50", "max"}, p) && !slices.ContainsFunc(inFigure, func(name string) bool { return fields[name].(map[string]any)["censored"] != 0.0 }) {
			for i, name := range inFigure { // it has no signs
				of := fields[name].(map[string]any)
				assert.True(t, len(got) == len(inFigure) && near(got[i], of[strings.ReplaceAll(p, ".", "")+"_us"]), "figure: %s of %v: got %q, JSON has %v", p, inFigure, got, of)
			}
		}
	}
	rows := briefRow.FindAllStringSubmatch(brief, -1)
	assert.True(t, len(inText) == 0 || len(rows) > 0 || len(d.Steps) > 1, "no times on the first page:\n%s", brief)
	for _, m := range rows {
		if name, ok := titles[m[1]]; ok {
			got := timeCell.FindAllString(m[2], 5)
			for i, p := range []string{"p50", "p90", "p99", "p99.9", "max"}[:len(got)] {
				same("first page", name, p, got[i])
			}
			assert.Equal(t, len(got), 5, "times of %s in %q", name, m[0])
		}
	}
	intervals := fields["intervals"].([]any)
	assert.Equal(t, len(csv)-1, len(intervals), "rows of the CSV")
	for i, iv := range intervals {
		iv := iv.(map[string]any)
		for _, name := range []string{"response", "service", "end_to_end", "send_delay"} {
			of, _ := iv[name].(map[string]any)
			for _, p := range []string{"p50_us", "p90_us", "p99_us", "max_us"} {
				us, ok := of[p].(float64)
				cell, _ := strconv.ParseFloat(csv[i+1][slices.Index(csv[0], name+"_"+p)], 64)
				assert.True(t, !ok || cell == us, "interval %d: %s of %s: in JSON %v, in CSV %v", i, p, name, us, cell)
				within := func(iv report.Interval) bool { return iv.StartS == d.Intervals[i].StartS } // a warm-up may end in it
				k := slices.IndexFunc(frames, func(f live.Frame) bool {
					return f.From == live.Seconds(d.Intervals[i].StartS*1e9) && f.To == live.Seconds(d.Intervals[i].EndS*1e9)
				})
				if ok && k >= 0 && slices.IndexFunc(d.Intervals[i+1:], within) < 0 && slices.IndexFunc(d.Intervals[:i], within) < 0 {
					f := frames[k]
					of := map[string]live.Times{"response": f.Response, "service": f.Service, "end_to_end": f.EndToEnd, "send_delay": {P50: -1, P90: -1, P99: f.SendDelay, Max: -1}}[name]
					got := map[string]live.Micros{"p50_us": of.P50, "p90_us": of.P90, "p99_us": of.P99, "max_us": of.Max}[p]
					assert.True(t, got < 0 || math.Abs(float64(got)/1e3-us) <= 1, "frame %d: %s of %s: %v, in JSON %v us", k, p, name, got, us)
				}
			}
		}
	}
}
