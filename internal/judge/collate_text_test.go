package judge

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carronade/internal/digest"
	"carronade/internal/layout"
)

// A table that is too wide for a terminal is split into several, each of which
// identifies its rows; without a terminal it stays one table.
func TestCollateFitsItsTerminal(t *testing.T) {
	const variable = "apm-server.tracing.enabled"
	rows := append(runs(1, "a", 3, 50e3, 0.012, 0.02, fields{"flag." + variable: "false"}), runs(2, "b", 3, 60e3, 0.012, 0.02, fields{"flag." + variable: "true", "trusted": false})...)
	rows[3] = runs(2, "b", 3, 60e3, 0.012, 0.02, fields{"flag." + variable: "true"})[0]
	for _, columns := range []int{0, 40, 80, 200} {
		var b bytes.Buffer
		if err := collated(t, rows, variable).Text(&b, layout.Style{ASCII: true}, columns); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		var heads []string
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			if n := layout.Width(line); columns > 0 && n > columns {
				t.Errorf("%d of %d columns: %s", n, columns, line)
			}
			if strings.Contains(line, variable[:10]) {
				heads = append(heads, line)
			}
		}
		if narrow := columns == 40 || columns == 80; (len(heads) > 1) != narrow {
			t.Errorf("%d tables in %d columns:\n%s", len(heads), columns, text)
		} else if narrow && slices.ContainsFunc(heads, func(h string) bool { return !strings.HasPrefix(h, variable[:10]) }) {
			t.Errorf("not all tables begin with VAR: %q", heads)
		}
		if !strings.Contains(text, "b2 !2") {
			t.Errorf("the text does not say that two of three are untrusted:\n%s", text)
		}
	}
}

// The table of hey-apm's README, with the percentiles that it lacks.
const heyAPMTable = `for 30s  events 10  spans 10  frames 10  concurrency 20  branch trace-apm-server
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
	if err := collated(t, heyAPMReports(tracing, false), tracing, "branch=trace-apm-server").Text(&b, layout.Style{}, 0); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(heyAPMTable, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	both := func(style layout.Style) string {
		rows := append(runs(1, "a", 8, 50e3, 0.012, 0.02, fields{"flag.x": "1"}), runs(2, "b", 8, 60e3, 0.012, 0.02, fields{"flag.x": "2"})...)
		var b bytes.Buffer
		if err := collated(t, rows, "x").Text(&b, style, 0); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if text := both(layout.Style{ASCII: true}); strings.ContainsRune(text, '\u00b1') || !strings.Contains(text, "+-") || strings.Contains(text, "\x1b") {
		t.Errorf("in ASCII, without color:\n%s", text)
	}
	if text := both(layout.Style{}); !strings.Contains(text, "k/s*") || !strings.Contains(text, "* better than every other row") {
		t.Errorf("the best has no sign:\n%s", text)
	}
	if text := both(layout.Style{Color: true}); !strings.Contains(text, layout.Green) || plainText(text) != both(layout.Style{}) {
		t.Errorf("color moves columns, or the best has none:\n%s", text)
	}
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

// TestCollateFlags: flags that differ are in a last column, the others above
// the table.
func TestCollateFlags(t *testing.T) {
	var b bytes.Buffer
	if err := collated(t, heyAPMReports(tracing, true), "branch", "branch=trace-apm-server", "concurrency=1", "-n=1").Text(&b, layout.Style{}, 0); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	for i, want := range []string{"for 30s ", "report id ", "bcl41bfu ", "master01 "} {
		if !strings.HasPrefix(lines[i], want) {
			t.Fatalf("line %d is %q, want it to begin with %q", i+1, lines[i], want)
		}
	}
	if !strings.HasSuffix(lines[1], "branch            revision      flags") || !strings.HasSuffix(lines[2], "trace-apm-server  c961d664fbe5  "+tracing+"=true") || !strings.HasSuffix(lines[3], "master            d7722eb8de3e") {
		t.Errorf("the last columns:\n%s", b.String())
	}
	b.Reset()
	if err := collated(t, heyAPMReports(tracing, false), "concurrency", "-n=1").Text(&b, layout.Style{}, 0); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Contains(text, "flags") || !strings.Contains(text, tracing+" true") {
		t.Errorf("flags that do not differ:\n%s", text)
	}
}

func TestCollateCSV(t *testing.T) {
	var b bytes.Buffer
	if err := collated(t, heyAPMReports(tracing, true), "branch", "branch=trace-apm-server").CSV(&b); err != nil {
		t.Fatal(err)
	}
	all, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 9 { // a head, four groups of two
		t.Fatalf("%d lines, want 9", len(all))
	}
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
		if got := at(1, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := spreadsheetSafe("=cmd()"); got != "'=cmd()" {
		t.Errorf("a formula is written as %q", got)
	}
	if got := spreadsheetSafe("-1.5"); got != "-1.5" {
		t.Errorf("a number is written as %q", got)
	}
}

// Every format marks lower bounds.
func TestCollateCSVOfLowerBounds(t *testing.T) {
	var b bytes.Buffer
	rows := append(bounded(runs(1, "a", 3, 50e3, 0.012, 0.02, fields{"flag.x": "1"})), runs(2, "b", 3, 60e3, 0.012, 0.02, fields{"flag.x": "2"})...)
	if err := collated(t, rows, "x").CSV(&b); err != nil {
		t.Fatal(err)
	}
	all, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	last := len(all[0]) - 2 // after it comes the number of noisy runs
	if all[0][last] != "at_least" || all[1][last] != "response_p99" || all[2][last] != "" {
		t.Errorf("got %q, %q, %q", all[0][last], all[1][last], all[2][last])
	}
}

func TestCollateJSON(t *testing.T) {
	c := collated(t, append(runs(1, "a", 8, 50e3, 0.012, 0.02, fields{"flag.x": "1"}), runs(2, "b", 8, 60e3, 0.012, 0.02, fields{"flag.x": "2"})...), "x")
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema   string
		Variable string
		Groups   []struct {
			Equal []struct{ Name, Value string }
			Rows  []struct {
				Value    string
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
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != CollateSchema || got.Variable != "flag.x" || len(got.Groups) != 1 || len(got.Groups[0].Rows) != 2 || len(got.Groups[0].Equal) == 0 {
		t.Fatalf("got %+v", got)
	}
	cell := got.Groups[0].Rows[1].Measured["throughput"]
	if cell.N != 8 || !cell.Best || cell.Unit != "/s" || cell.Lo == nil || *cell.Lo > cell.Median || *cell.Hi < cell.Median {
		t.Errorf("the throughput of the second row is %+v", cell)
	}
}

// TestCollateFields: Collate reads only the fields that it requests from a
// store.
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
		var err error
		if o.Filters, err = digest.ParseFilters(filters, start); err != nil {
			t.Fatal(err)
		}
		d := digest.NewDecoder(CollateFields(o))
		first := CollateFilters(o) // which a store may apply before Collate
		var few []digest.Row
		for i := range rows {
			b, err := rows[i].MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			r, err := d.Row(b)
			if err != nil {
				t.Fatal(err)
			}
			if first.Match(&r) {
				few = append(few, r)
			}
		}
		if len(first) > 0 && len(few) == len(rows) {
			t.Errorf("%v: the store could apply no filter", words)
		}
		text := func(rows []digest.Row) string {
			var b bytes.Buffer
			if err := collated(t, rows, words...).Text(&b, layout.Style{}, 0); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		if diff := cmp.Diff(text(rows), text(few)); diff != "" {
			t.Errorf("%v (-all fields +requested fields):\n%s", words, diff)
		}
	}
}
