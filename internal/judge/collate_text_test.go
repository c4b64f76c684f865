package judge

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/test/testkit/assert"
)

// A table that is too wide for a terminal is split into several, each of which
// identifies its rows; without a terminal it stays one table.
func TestCollateFitsItsTerminal(t *testing.T) {
	const variable = "apm-server.tracing.enabled"
	rows := append(runs(1, "a", 3, 50e3, 0.012, 0.02, fields{"flag." + variable: "false"}), runs(2, "b", 3, 60e3, 0.012, 0.02, fields{"flag." + variable: "true", "trusted": false})...)
	rows[3] = runs(2, "b", 3, 60e3, 0.012, 0.02, fields{"flag." + variable: "true"})[0]
	for _, columns := range []int{0, 40, 80, 200} {
		var b bytes.Buffer
		assert.OK(t, collated(t, rows, variable).Text(&b, layout.Style{ASCII: true}, columns))
		_, text, _ := strings.Cut(b.String(), "\n\n") // after the answer
		var heads []string
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			n := layout.Width(line)
			assert.True(t, columns <= 0 || n <= columns, "%d of %d columns: %s", n, columns, line)
			if strings.Contains(line, variable[:10]) {
				heads = append(heads, line)
			}
		}
		if narrow := columns == 40 || columns == 80; (len(heads) > 1) != narrow {
			t.Errorf("%d tables in %d columns:\n%s", len(heads), columns, text)
		} else if narrow && slices.ContainsFunc(heads, func(h string) bool { return !strings.HasPrefix(h, variable[:10]) }) {
			t.Errorf("not all tables begin with VAR: %q", heads)
		}
		assert.True(t, strings.Contains(text, "b2 !2"), "the text does not say that two of three are untrusted:\n%s", text)
	}
}

// The table of hey-apm's README, with the percentiles that it lacks.
const heyAPMTable = `DONE  4 rows of apm-server.tracing.enabled in 2 groups: no row is known to be
      the best

for 30s  events 10  spans 10  frames 10  concurrency 20  branch trace-apm-server
revision c961d664fbe5
report id  revision date         pushed    accepted  throughput  per batch  service p50     p99  index  max rss  effic  apm-server.tracing.enabled
v5yruht0   2018-05-18 10:21  7.15 MiB/s  4.58 MiB/s       435/s     185 ms       185 ms  370 ms  73.3%  413 MiB  0.669  false
958l1oly   2018-05-18 10:21  7.34 MiB/s  3.81 MiB/s       350/s     222 ms       222 ms  444 ms  70.6%  408 MiB  0.564  true

for 30s  events 10  spans 10  frames 10  concurrency 1  branch trace-apm-server
revision c961d664fbe5
report id  revision date         pushed    accepted  throughput  per batch  service p50     p99  index  max rss  effic  apm-server.tracing.enabled
xmlob0sh   2018-05-18 10:21  4.96 MiB/s  5.05 MiB/s       491/s     169 ms       169 ms  338 ms  75.7%  403 MiB  0.750  false
bcl41bfu   2018-05-18 10:21  4.86 MiB/s  4.86 MiB/s       495/s     174 ms       174 ms  348 ms  78.4%  338 MiB  0.868  true

  one repetition of each is too few to tell a difference from noise, so no row
  is marked as the best; run with --repeat 6
`

func TestCollateText(t *testing.T) {
	var b bytes.Buffer
	assert.OK(t, collated(t, heyAPMReports(tracing, false), tracing, "branch=trace-apm-server").Text(&b, layout.Style{}, 0))
	assert.Same(t, b.String(), heyAPMTable)
	both := func(style layout.Style) string {
		rows := append(runs(1, "a", 8, 50e3, 0.012, 0.02, fields{"flag.x": "1"}), runs(2, "b", 8, 60e3, 0.012, 0.02, fields{"flag.x": "2"})...)
		var b bytes.Buffer
		assert.OK(t, collated(t, rows, "x").Text(&b, style, 0))
		return b.String()
	}
	text := both(layout.Style{ASCII: true})
	assert.True(t, !strings.ContainsRune(text, '\u00b1') && strings.Contains(text, "+-") && !strings.Contains(text, "\x1b"), "in ASCII, without color:\n%s", text)
	text = both(layout.Style{})
	assert.True(t, strings.Contains(text, "k/s*") && strings.Contains(text, "* better than every other row"), "the best has no sign:\n%s", text)
	text = both(layout.Style{Color: true})
	assert.True(t, strings.Contains(text, layout.Green) && plainText(text) == both(layout.Style{}), "color moves columns, or the best has none:\n%s", text)
}

func plainText(s string) string {
	for _, code := range []string{layout.Bold, layout.Dim, layout.Red, layout.Green, layout.Yellow, layout.Plain} {
		s = strings.ReplaceAll(s, code, "")
	}
	var lines []string
	for l := range strings.SplitSeq(s, "\n") {
		lines = append(lines, strings.TrimRight(l, " "))
	}
	return strings.Join(lines, "\n")
}

// Flags that differ are in a last column, the others above the table.
func TestCollateFlags(t *testing.T) {
	var b bytes.Buffer
	assert.OK(t, collated(t, heyAPMReports(tracing, true),
		"branch", "branch=trace-apm-server", "concurrency=1", "-n=1").Text(&b, layout.Style{}, 0))
	lines := strings.Split(b.String(), "\n")[2:] // after the answer
	for i, want := range []string{"for 30s ", "report id ", "bcl41bfu ", "master01 "} {
		assert.Must(t, strings.HasPrefix(lines[i], want), "line %d is %q, want it to begin with %q", i+1, lines[i], want)
	}
	if !strings.HasSuffix(lines[1], "branch            revision      flags") || !strings.HasSuffix(lines[2], "trace-apm-server  c961d664fbe5  "+tracing+"=true") || !strings.HasSuffix(lines[3], "master            d7722eb8de3e") {
		t.Errorf("the last columns:\n%s", b.String())
	}
	b.Reset()
	assert.OK(t, collated(t, heyAPMReports(tracing, false), "concurrency", "-n=1").Text(&b, layout.Style{}, 0))
	text := b.String()
	assert.True(t, !strings.Contains(text, "flags") && strings.Contains(text, tracing+" true"), "flags that do not differ:\n%s", text)
}

// topicFacts are what a broker says about a topic.
func topicFacts(settings string) fields {
	f := fields{"target.topic.partitions": 3.0}
	for _, name := range []string{"cleanup.policy", "compression.type", "retention.ms", "segment.bytes"} {
		f["target.topic.settings."+name] = store.Value{Text: settings, Independent: true}
	}
	return f
}

// If no two reports can be compared, one sentence says why and what to do, however many reports there are.
func TestCollateNothingToCompare(t *testing.T) {
	var rows []store.Row
	for i := range 40 {
		rows = append(rows, row(fmt.Sprintf("r%02d", i), start.Add(time.Duration(i)*time.Minute), topicFacts(fmt.Sprint(i)), fields{
			"for": fmt.Sprintf("%ds", 30+i), "target": fmt.Sprintf("kafka://h:9092/t%d", i), "acks": []string{"all", "1"}[i%2],
		}))
	}
	rows = append(rows, row("near", start, topicFacts("39"), fields{"for": "69s", "rate": "10k/s", "target": "kafka://h:9092/t39", "acks": "0"}))
	const want = "no two of 41 reports differ only in acks: the closest, r39 and near, also differ in rate; repeat one of them with another acks, or --all shows each alone"
	for form, write := range map[string]func(*Collation, *bytes.Buffer) error{
		"text":     func(c *Collation, b *bytes.Buffer) error { return c.Text(b, layout.Style{}, 80) },
		"markdown": func(c *Collation, b *bytes.Buffer) error { return c.Markdown(b) },
	} {
		var b bytes.Buffer
		assert.OK(t, write(collated(t, rows, "acks"), &b))
		assert.True(t, strings.HasSuffix(strings.Join(strings.Fields(b.String()), " "), want) && strings.Count(b.String(), "\n") <= 4,
			"%s: got\n%s\nwant only: %s", form, b.String(), want)
	}
}

// Each row names its rate and acks; the heads of groups do not repeat them. What
// a target says about itself is listed once, and only what differs.
func TestCollateNamesRowsAndFacts(t *testing.T) {
	var rows []store.Row
	at := start
	for _, target := range []string{"kafka://h:9092/a", "kafka://h:9092/b"} {
		for _, linger := range []string{"0s", "5ms"} {
			for _, x := range []string{"1", "2"} {
				at = at.Add(time.Minute)
				f := topicFacts("same")
				f["target.topic.settings.retention.ms"] = store.Value{Text: "of-" + target[len(target)-1:], Independent: true}
				rows = append(rows, row(fmt.Sprintf("r%02d", len(rows)), at, f, fields{"flag.x": x, "target": target, "for": linger, "rate": "7k/s", "acks": "1"}))
			}
		}
	}
	for _, x := range []string{"1", "2"} { // of another kind
		rows = append(rows, row("n"+x, at.Add(time.Minute), fields{"flag.x": x, "kind": "null", "target": "null://", "acks": nil, "rate": nil}))
	}
	var b bytes.Buffer
	assert.OK(t, collated(t, rows, "x").Text(&b, layout.Style{}, 0))
	text := b.String()
	for part, n := range map[string]int{
		"retention.ms of-a": 1, "retention.ms of-b": 1, "target kafka://h:9092/a": 2, "cleanup.policy": 0, "partitions": 0,
		"started           rate  acks  throughput": 4, "  7k/s     1 ": 8, "rate 7k/s": 0, "started           throughput": 1,
	} {
		assert.Equal(t, strings.Count(text, part), n, "%q is there times:\n%s", part, text)
	}
	b.Reset()
	assert.OK(t, collated(t, rows, "x").CSV(&b))
	head, _, _ := strings.Cut(b.String(), "\n")
	assert.True(t, strings.HasPrefix(head, "group,acks,for,rate,target,target.topic.settings.retention.ms,x,reports,report_id"), "the CSV begins with %s", head)
}

func TestCollateMarkdown(t *testing.T) {
	rows := append(runs(1, "a", 8, 50e3, 0.012, 0.0001, fields{"flag.x": "a|b"}), runs(2, "b", 8, 60e3, 0.012, 0.0001, fields{"flag.x": "c"})...)
	var b bytes.Buffer
	cut := runs(3, "cut", 1, 50e3, 0.012, 0.0001, fields{"flag.x": "c", "partial": true, "stopped": "interrupted"})
	assert.OK(t, collated(t, append(rows, cut...), "x").Markdown(&b))
	const want = "### collate x\n\nfor `30s`\n\n" + `| report id | started | runs | rate | acks | throughput | response p50 | p99 | p99.9 | max rss | cpu | effic | x |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
| a7 | 2026-10-01 02:07 | 8 | 50k/s | all | 50 k/s `
	text := b.String()
	assert.True(t, strings.HasPrefix(text, want), "got\n%s\nwant it to begin with\n%s", text, want)
	assert.Has(t, b.String(), ` | **a\|b** |`+"\n", " | **60 k/s\\* ±", "- \\* better than every other row of its group", "- left out: cut0: ")
}

func TestCollateCSV(t *testing.T) {
	var b bytes.Buffer
	assert.OK(t, collated(t, heyAPMReports(tracing, true), "branch", "branch=trace-apm-server").CSV(&b))
	all := assert.Value(csv.NewReader(&b).ReadAll())(t)
	assert.Must(t, len(all) == 9, "%d lines, want 9", len(all)) // a head, four groups of two
	at := func(line int, name string) string {
		i := slices.Index(all[0], name)
		if i < 0 {
			t.Fatalf("no column %s in %v", name, all[0])
		}
		return all[line][i]
	}
	for name, want := range map[string]string{
		"group": "1", "concurrency": "20", "branch": "trace-apm-server", "reports": "1", "report_id": "958l1oly", "revision": "c961d664fbe5",
		"revision_date": "2018-05-18T10:21:00Z", "flags": tracing + "=true", "throughput": "349.6", "throughput_spread": "", "efficiency": "0.564", "best": "",
	} {
		assert.Equal(t, at(1, name), want, "%s", name)
	}
}

// Every format marks lower bounds.
func TestCollateCSVOfLowerBounds(t *testing.T) {
	var b bytes.Buffer
	rows := append(bounded(runs(1, "a", 3, 50e3, 0.012, 0.02, fields{"flag.x": "1"})), runs(2, "b", 3, 60e3, 0.012, 0.02, fields{"flag.x": "2"})...)
	assert.OK(t, collated(t, rows, "x").CSV(&b))
	all := assert.Value(csv.NewReader(&b).ReadAll())(t)
	last := len(all[0]) - 3 // after it come the number of noisy runs, and what is ahead
	if all[0][last] != "at_least" || all[1][last] != "response_p99" || all[2][last] != "" {
		t.Errorf("got %q, %q, %q", all[0][last], all[1][last], all[2][last])
	}
}

func TestCollateJSON(t *testing.T) {
	c := collated(t, append(runs(1, "a", 8, 50e3, 0.012, 0.02, fields{"flag.x": "1"}), runs(2, "b", 8, 60e3, 0.012, 0.02, fields{"flag.x": "2"})...), "x")
	text := assert.Value(json.Marshal(c))(t)
	var got struct {
		Schema, Variable string
		Groups           []struct {
			Equal []struct{ Name, Value string }
			Rows  []struct {
				Value    any
				Reports  []string
				Measured map[string]struct {
					N      int
					Median float64
					Lo, Hi *float64
					Best   bool
					Unit   string
				}
			}
		}
	}
	assert.OK(t, json.Unmarshal(text, &got))
	assert.Must(t, got.Schema == CollateSchema && got.Variable == "flag.x" && len(got.Groups) == 1 &&
		len(got.Groups[0].Rows) == 2 && len(got.Groups[0].Equal) != 0, "got %+v", got)
	cell := got.Groups[0].Rows[1].Measured["throughput"]
	assert.True(t, cell.N == 8 && cell.Best && cell.Unit == "/s" && cell.Lo != nil && *cell.Lo <= cell.Median &&
		*cell.Hi >= cell.Median, "the throughput of the second row is %+v", cell)
}

// TestCollateJSONValues: VAR is a number with all its digits, a bool or a text, whatever a table shows.
func TestCollateJSONValues(t *testing.T) {
	rate := store.TypedValue("rate", "150.000000037/s")
	rate.Independent = true
	for _, tt := range []struct {
		field      string
		value      any
		want, text string
	}{
		{"rate", rate, "150.000000037", "150/s"},
		{"branch", "main", `"main"`, "main"},
		{"flag.x", store.Value{Kind: store.KindBool, Num: 1, Text: "true", Independent: true}, "true", "true"},
	} {
		l := collated(t, runs(1, "a", 1, 50e3, 0.012, 0.02, fields{tt.field: tt.value}), tt.field, "--all").Groups[0].Rows[0]
		got, err := json.Marshal(l.Value)
		assert.True(t, err == nil && string(got) == tt.want && l.Text == tt.text,
			"%s is %s (%v) in JSON and %s in text, want %s and %s", tt.field, got, err, l.Text, tt.want, tt.text)
	}
}

// Collate reads only the fields that it requests from a store.
func TestCollateFields(t *testing.T) {
	rows := append(heyAPMReports(tracing, true), runs(1, "a", 8, 50e3, 0.012, 0.02, fields{"label.who": "me", "gc_pauses": 3.0})...)
	for _, words := range [][]string{{tracing, "branch=trace-apm-server"}, {"branch", "branch=trace-apm-server"}, {"concurrency", "--sort=efficiency"}, {"who", "--sort=gc_pauses", "gc_pauses>1"}, {"revision", "revision=c961d664fbe5"}, {"concurrency", "branch=master"}} {
		o := CollateOptions{Var: words[0]}
		var filters []string
		for _, w := range words[1:] {
			if text, ok := strings.CutPrefix(w, "--sort="); ok {
				o.Sort = text
			} else {
				filters = append(filters, w)
			}
		}
		o.Filters = assert.Value(store.ParseFilters(filters, start))(t)
		d := store.NewRowDecoder(CollateFields(o))
		first := CollateFilters(o) // which a store may apply before Collate
		var few []store.Row
		for i := range rows {
			b := assert.Value(rows[i].MarshalBinary())(t)
			r := assert.Value(d.Row(b))(t)
			if first.Match(&r) {
				few = append(few, r)
			}
		}
		assert.True(t, len(first) == 0 || len(few) != len(rows), "%v: the store could apply no filter", words)
		text := func(rows []store.Row) string {
			var b bytes.Buffer
			assert.OK(t, collated(t, rows, words...).Text(&b, layout.Style{}, 0))
			return b.String()
		}
		assert.Same(t, text(few), text(rows), "%v, of all fields and of requested ones", words)
	}
}

// TestCollateAhead: with too few repetitions for a test, a row is marked as ahead if it is more than twice as good as every other
// one and no doubt about its values explains that.
func TestCollateAhead(t *testing.T) {
	x := func(v string, more ...fields) fields {
		f := fields{"flag.x": v}
		for _, m := range more {
			maps.Copy(f, m)
		}
		return f
	}
	sides := func(n int, gap, p99 float64, first, second fields) []store.Row {
		return append(runs(1, "a", n, 50e3, 0.012, 0.01, x("1", first)), runs(2, "b", n, 50e3*gap, p99, 0.01, x("2", second))...)
	}
	even := func(gap float64) []store.Row { return sides(1, gap, 0.012, nil, nil) }
	closely := append(even(2.5), runs(3, "c", 1, 50e3*2.4, 0.012, 0.01, x("3"))...)
	overlapping := sides(3, 2.5, 0.012, nil, nil)
	overlapping[3] = runs(2, "b", 1, 40e3, 0.012, 0.01, x("2"))[0]
	unjudged := even(2.5)
	untrust(&unjudged[0])
	follower := append(even(2.5), runs(3, "c", 1, 10e3, 0.012, 0.01, x("3"))...)
	for _, tt := range []struct {
		name string
		rows []store.Row
		want []string
	}{
		{"two and a half times, once", even(2.5), []string{"2 throughput"}},
		{"less", even(0.4), []string{"1 throughput"}},
		{"nearly twice", even(1.9), nil},
		{"less than half the time", sides(1, 1, 0.005, nil, nil), []string{"2 response_p99"}},
		{"of three, two are close", closely, nil},
		{"of three, two are far behind", follower, []string{"2 throughput"}},
		{"four times", sides(4, 2.5, 0.012, nil, nil), []string{"2 throughput"}},
		{"three times, once behind", overlapping, nil},
		{"often enough for a test", sides(10, 2.5, 0.012, nil, nil), nil},
		{"one row is not trusted", unjudged, nil},
		{"a lower bound", append(even(1)[:1], bounded(runs(2, "b", 1, 50e3, 0.005, 0.01, x("2")))...), nil},
		{"the generator may have decided it", sides(1, 1, 0.005, fields{"response_lower_p99": 0.005, "trust_level": "noisy"}, nil), nil},
	} {
		c := collated(t, tt.rows, "x")
		var got []string
		for _, l := range c.Groups[0].Rows {
			for name, cell := range l.Cells {
				if cell.Ahead {
					got = append(got, l.Text+" "+name)
				}
			}
		}
		if slices.Sort(got); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		assert.True(t, strings.Contains(strings.Join(c.Notes, "\n"), "^ ahead, unproven: ") == (tt.want != nil),
			"%s: the notes are %q", tt.name, c.Notes)
	}
}

// A rate that was asked for does not count as a lead; the times at that rate may be one.
func TestCollateAheadOfRates(t *testing.T) {
	rows := append(runs(1, "a", 1, 50e3, 0.012, 0.01, fields{"rate": "50k/s"}), runs(2, "b", 1, 125e3, 0.005, 0.01, fields{"rate": "125k/s"})...)
	l := collated(t, rows, "rate").Groups[0].Rows[0]
	assert.True(t, l.Text == "125k/s" && !l.Cells["throughput"].Ahead && l.Cells["response_p99"].Ahead,
		"%s: throughput %+v, p99 %+v", l.Text, l.Cells["throughput"], l.Cells["response_p99"])
}

// Computed rates are shown rounded, but not if they would then look equal.
func TestCollateComputedRates(t *testing.T) {
	rate := func(text string) store.Value {
		v := store.TypedValue("rate", text)
		v.Independent = true
		return v
	}
	for _, tt := range []struct{ a, b, wantA, wantB string }{
		{"150.000000037/s", "1200.0000003/s", "150/s", "1200/s"},
		{"150.000000037/s", "150.4/s", "150/s", "150.4/s"},
		{"150.000000037/s", "150/s", "150.000000037/s", "150/s"},
		{"150.000000037/s", "150.000000041/s", "150.000000037/s", "150.000000041/s"},
	} {
		rows := append(runs(1, "a", 1, 50e3, 0.012, 0.01, fields{"rate": rate(tt.a)}), runs(2, "b", 1, 75e3, 0.006, 0.01, fields{"rate": rate(tt.b)})...)
		var got []string
		for _, l := range collated(t, rows, "rate").Groups[0].Rows {
			got = append(got, l.Text)
		}
		want := []string{tt.wantA, tt.wantB}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s and %s: got %q, want %q", tt.a, tt.b, got, want)
		}
	}
}

// Every form of a collation marks the row that is ahead.
func TestCollateAheadForms(t *testing.T) {
	c := collated(t, append(runs(1, "a", 1, 50e3, 0.012, 0, fields{"flag.x": "1"}), runs(2, "b", 1, 125e3, 0.012, 0, fields{"flag.x": "2"})...), "x")
	write := func(form func(*bytes.Buffer) error) string {
		t.Helper()
		var b bytes.Buffer
		assert.OK(t, form(&b))
		return b.String()
	}
	if text := write(func(b *bytes.Buffer) error { return c.Text(b, layout.Style{}, 0) }); !strings.Contains(text, " 125 k/s^ ") || !strings.Contains(text, "  ^ ahead, unproven: ") {
		t.Errorf("as text:\n%s", text)
	}
	if text := write(func(b *bytes.Buffer) error { return c.Text(b, layout.Style{Color: true}, 0) }); !strings.Contains(text, layout.Yellow) || strings.Contains(text, layout.Green) {
		t.Errorf("in color:\n%q", text)
	}
	if text := write(func(b *bytes.Buffer) error { return c.Markdown(b) }); !strings.Contains(text, "**125 k/s^**") || !strings.Contains(text, "ahead, unproven") {
		t.Errorf("as Markdown:\n%s", text)
	}
	all := assert.Value(csv.NewReader(strings.NewReader(write(func(b *bytes.Buffer) error { return c.CSV(b) }))).ReadAll())(t)
	i := slices.Index(all[0], "ahead")
	assert.True(t, i == len(all[0])-1 && all[1][i] == "" && all[2][i] == "throughput", "as CSV: %q", all)
	text := assert.Value(json.Marshal(c))(t)
	var got struct {
		Groups []struct {
			Rows []struct {
				Measured map[string]struct{ Best, Ahead *bool }
			}
		}
	}
	assert.OK(t, json.Unmarshal(text, &got))
	m := got.Groups[0].Rows[1].Measured["throughput"]
	assert.True(t, m.Ahead != nil && *m.Ahead && m.Best != nil && !*m.Best, "as JSON: %s", text)
}

// With FilterStarts a filter on any field keeps the other rows of the group, as in hey-apm. Reports of which
// nothing was accepted are left out.
func TestCollateFilterStarts(t *testing.T) {
	rows := heyAPMReports("", true)
	one := Collation{}
	for _, starts := range []bool{false, true} {
		filters := assert.Value(store.ParseFilters([]string{"report_id=" + rows[0].ID}, time.Now()))(t)
		c, err := Collate(rows, CollateOptions{Var: "concurrency", Filters: filters, All: true, FilterStarts: starts, Now: time.Now()})
		assert.Must(t, err == nil && len(c.Groups) == 1, "%v %+v", err, c)
		if starts {
			assert.True(t, len(c.Groups[0].Rows) > len(one.Groups[0].Rows), "rows %+v", c.Groups[0].Rows)
		}
		one = *c
	}
	assert.Equal(t, len(CollateFilters(CollateOptions{Var: "concurrency", FilterStarts: true, Filters: store.Filters{{Name: "id"}}})), 0, "filters of the store")
}

func TestUnfitRefused(t *testing.T) {
	row := func(acked, failed float64) *store.Row {
		r := &store.Row{}
		for _, f := range []struct {
			name string
			num  float64
		}{{"acked", acked}, {"failed", failed}, {"throughput", 0}} {
			r.Fields = append(r.Fields, store.Field{Name: f.name, Value: store.Value{Kind: store.KindNumber, Num: f.num}})
		}
		return r
	}
	for _, field := range []string{"acked", "failed"} {
		assert.True(t, slices.Contains(CollateFields(CollateOptions{Var: "rate"}), field), "%s is not asked for", field)
	}
	assert.Equal(t, unfit(row(0, 7), true), "no event was accepted", "all refused")
	assert.Equal(t, unfit(row(1, 7), true), "", "one accepted")
	assert.Equal(t, unfit(row(0, 0), true), "", "nothing is acknowledged")
}

// The JSON of a collation has the mean service time, which the shell's table shows; the table of collate has percentiles.
func TestCollateMeanServiceTime(t *testing.T) {
	rows := append(runs(1, "a", 2, 50e3, 0.012, 0.02, fields{"flag.x": "1", "service_mean": 0.08554}), runs(2, "b", 2, 50e3, 0.012, 0.02, fields{"flag.x": "2", "service_mean": 0.1})...)
	c := collated(t, rows, "x")
	assert.Equal(t, c.Groups[0].Rows[0].Cells["service_mean"].Median, 0.08554, "mean service time")
	var b bytes.Buffer
	assert.OK(t, c.Text(&b, layout.Style{}, 0))
	assert.True(t, !bytes.Contains(b.Bytes(), []byte("85.5")), "the table has it:\n%s", b.String())
}
