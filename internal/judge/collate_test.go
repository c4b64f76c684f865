package judge

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/store"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// heyAPMReports is what hey-apm's README collates: four runs of a branch with a flag off and on, at two concurrencies.
func heyAPMReports(flag string, flagless bool) (out []store.Row) {
	base := fields{"kind": "apm", "rate": nil, "response_p50": nil, "response_p99": nil, "response_p999": nil, "acks": nil, "events": 10.0, "spans": 10.0, "frames": 10.0}
	at := start
	one := func(id string, concurrency float64, more fields, measured fields) {
		out = append(out, row(id, at, base, fields{"concurrency": concurrency}, more, measured))
		at = at.Add(time.Minute)
	}
	branch := fields{"branch": "trace-apm-server", "revision": "c961d664fbe5", "revision_date": time.Date(2018, 5, 18, 10, 21, 0, 0, time.UTC)}
	numbers := func(pushed, accepted, throughput, batch, index, rss, effic float64) fields {
		return fields{"pushed": pushed, "accepted": accepted, "throughput": throughput, "per_batch": batch, "index_share": index, "max_rss": rss, "efficiency": effic, "service_p50": batch, "service_p99": 2 * batch}
	}
	with := func(value string) fields {
		f := fields{flagPrefix + flag: value}
		maps.Copy(f, branch)
		return f
	}
	one("xmlob0sh", 1, with("false"), numbers(5.2e6, 5.3e6, 491.2, 0.169, 0.757, 422.1e6, 0.750))
	one("bcl41bfu", 1, with("true"), numbers(5.1e6, 5.1e6, 494.5, 0.174, 0.784, 354.5e6, 0.868))
	one("v5yruht0", 20, with("false"), numbers(7.5e6, 4.8e6, 435.3, 0.185, 0.733, 432.9e6, 0.669))
	one("958l1oly", 20, with("true"), numbers(7.7e6, 4.0e6, 349.6, 0.222, 0.706, 428.3e6, 0.564))
	if flagless {
		master := fields{"branch": "master", "revision": "d7722eb8de3e", "revision_date": time.Date(2018, 5, 17, 9, 0, 0, 0, time.UTC)}
		one("master01", 1, master, numbers(5e6, 5e6, 500, 0.16, 0.8, 400e6, 0.8))
		one("master20", 20, master, numbers(7e6, 5e6, 450, 0.18, 0.8, 410e6, 0.7))
	}
	return out
}

// withClients sets the clients of rows by their concurrency.
func withClients(rows []store.Row, clients func(concurrency float64) float64) (out []store.Row) {
	for _, r := range rows {
		x, _ := r.Num("concurrency")
		r.Fields = append(slices.Clone(r.Fields), store.Field{Name: "clients", Value: store.Value{Kind: store.KindNumber, Num: clients(x), Independent: true}})
		slices.SortFunc(r.Fields, func(a, b store.Field) int { return strings.Compare(a.Name, b.Name) })
		out = append(out, r)
	}
	return out
}

func collated(t *testing.T, rows []store.Row, words ...string) *Collation {
	t.Helper()
	c := assert.Value(tryCollate(rows, words...))(t, "collate %s", strings.Join(words, " "))
	return c
}

// tryCollate collates as the command does: VAR, filters, and the flags --sort=, --all and -n=.
func tryCollate(rows []store.Row, words ...string) (*Collation, error) {
	now := start.Add(24 * time.Hour)
	o := CollateOptions{Now: now}
	var filters []string
	for i, w := range words {
		switch name, value, _ := strings.Cut(w, "="); {
		case i == 0:
			o.Var = w
		case name == "--sort":
			o.Sort = value
		case name == "--all":
			o.All = true
		case name == "-n":
			var err error
			if o.Last, err = store.ParseLast(value); err != nil {
				return nil, err
			}
		default:
			filters = append(filters, w)
		}
	}
	var err error
	if o.Filters, err = store.ParseFilters(filters, now); err != nil {
		return nil, err
	}
	return Collate(rows, o)
}

// shape lists the reports of each row: groups separated by " | ", rows by ", ", and the value of VAR before each row.
func shape(c *Collation) string {
	var groups []string
	for _, g := range c.Groups {
		var lines []string
		for _, l := range g.Rows {
			lines = append(lines, l.Text+": "+strings.Join(l.Reports, " "))
		}
		groups = append(groups, strings.Join(lines, ", "))
	}
	return strings.Join(groups, " | ")
}

const tracing = "apm-server.tracing.enabled"

func TestCollate(t *testing.T) {
	plain := heyAPMReports(tracing, false)
	both := heyAPMReports(tracing, true)
	repeated := append(slices.Clone(plain), row("again001", start.Add(time.Hour), fields{
		"kind": "apm", "rate": nil, "response_p50": nil, "response_p99": nil, "response_p999": nil, "acks": nil, "events": 10.0, "spans": 10.0, "frames": 10.0,
		"concurrency": 1.0, "branch": "trace-apm-server", "revision": "c961d664fbe5", flagPrefix + tracing: "true",
	}))
	for _, tt := range []struct {
		name  string
		rows  []store.Row
		words []string
		want  string
	}{
		{
			"hey-apm's first example", plain,
			[]string{tracing, "branch=trace-apm-server"},
			"false: v5yruht0, true: 958l1oly | false: xmlob0sh, true: bcl41bfu",
		},
		{
			"a flag by its whole name", plain,
			[]string{"flag." + tracing},
			"false: v5yruht0, true: 958l1oly | false: xmlob0sh, true: bcl41bfu",
		},
		{
			"hey-apm's last example: two rows, whatever the flags", both,
			[]string{"branch", "branch=trace-apm-server"},
			"trace-apm-server: 958l1oly, master: master20 | trace-apm-server: v5yruht0, master: master20 | " +
				"trace-apm-server: bcl41bfu, master: master01 | trace-apm-server: xmlob0sh, master: master01",
		},
		{
			"from the other side, all flags of the branch", both,
			[]string{"branch", "branch=master"},
			"master: master20, trace-apm-server: 958l1oly, trace-apm-server: v5yruht0 | master: master01, trace-apm-server: bcl41bfu, trace-apm-server: xmlob0sh",
		},
		{
			"a flag that some reports lack leaves those out", both,
			[]string{tracing},
			"false: v5yruht0, true: 958l1oly | false: xmlob0sh, true: bcl41bfu",
		},
		{
			"a setting of the workload, by hey-apm's name", plain,
			[]string{"concurrency"},
			"1: bcl41bfu, 20: 958l1oly | 1: xmlob0sh, 20: v5yruht0",
		},
		{
			"callers with a connection each: clients follow from the concurrency", withClients(plain, func(concurrency float64) float64 { return concurrency }),
			[]string{"concurrency"},
			"1: bcl41bfu, 20: 958l1oly | 1: xmlob0sh, 20: v5yruht0",
		},
		{
			"clients that do not follow from the concurrency", withClients(plain, func(concurrency float64) float64 { return concurrency + 1 }),
			[]string{"concurrency", "--all"},
			"20: 958l1oly | 20: v5yruht0 | 1: bcl41bfu | 1: xmlob0sh",
		},
		{
			"a filter on VAR chooses where to start", plain,
			[]string{"concurrency", "concurrency=20"},
			"20: 958l1oly, 1: bcl41bfu | 20: v5yruht0, 1: xmlob0sh",
		},
		{"another filter holds for all rows", plain, []string{"concurrency", tracing + "=true"}, "1: bcl41bfu, 20: 958l1oly"},
		{
			"repetitions are one row, the newest first", repeated,
			[]string{tracing, "concurrency=1"},
			"false: xmlob0sh, true: again001 bcl41bfu",
		},
		{
			"sorted by a time: the shortest first, groups too", plain,
			[]string{tracing, "--sort=latency"},
			"false: xmlob0sh, true: bcl41bfu | false: v5yruht0, true: 958l1oly",
		},
		{
			"sorted by throughput: the highest first", plain,
			[]string{tracing, "--sort=throughput"},
			"true: bcl41bfu, false: xmlob0sh | false: v5yruht0, true: 958l1oly",
		},
		{
			"and the other way round", plain,
			[]string{tracing, "--sort=-throughput"},
			"true: 958l1oly, false: v5yruht0 | false: xmlob0sh, true: bcl41bfu",
		},
		{"one group", plain, []string{tracing, "-n=1"}, "false: v5yruht0, true: 958l1oly"},
		{
			"young enough to start from", plain,
			[]string{tracing, "-n=" + (24*time.Hour - 3*time.Minute).String()},
			"true: 958l1oly, false: v5yruht0",
		},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, shape(collated(t, tt.rows, tt.words...)), tt.want) })
	}
}

// Each of these differs from the other row in more than VAR, and makes a separate group.
func TestCollateKeepsApart(t *testing.T) {
	for _, tt := range []struct {
		name   string
		differ fields
	}{
		{"a setting", fields{"linger-like": 1.0, "for": "60s"}},
		{"a target", fields{"target": "kafka://elsewhere:9092/t"}},
		{"another processor", fields{"host.cpu": "another"}},
		{"a flag of the system", fields{"flag.other": "1"}},
		{"a revision", fields{"revision": "bb"}},
		{"a fact of the target", fields{"target.topic.partitions": 12.0}},
	} {
		rows := []store.Row{
			row("a", start, fields{"flag.x": "1", "revision": "aa", "target.topic.partitions": 3.0}),
			row("b", start.Add(time.Minute), fields{"flag.x": "2", "revision": "aa", "target.topic.partitions": 3.0}, tt.differ),
		}
		assert.Equal(t, shape(collated(t, rows, "x", "--all")), "2: b | 1: a", "%s", tt.name)
		if got := collated(t, rows, "x"); len(got.Groups) != 0 || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "no two of 2 reports differ only in x: the closest, b and a, also differ in ") {
			t.Errorf("%s: got %d groups and the notes %q", tt.name, len(got.Groups), got.Notes)
		}
	}
	// A label does not count as a difference.
	rows := []store.Row{
		row("a", start, fields{"flag.x": "1", "label.who": "me"}),
		row("b", start.Add(time.Minute), fields{"flag.x": "2", "label.who": "you"}),
	}
	assert.Equal(t, shape(collated(t, rows, "x")), "1: a, 2: b", "another label")
	assert.Equal(t, shape(collated(t, rows, "who", "x=1", "--all")), "me: a", "by a label")
}

// Settings that follow from VAR may differ within a group, others may not.
func TestCollateFollows(t *testing.T) {
	derived := func(r store.Row, batch float64) store.Row {
		r.Fields = append(r.Fields, store.Field{Name: "zz-batch-events", Value: store.Value{Kind: store.KindNumber, Num: batch, Independent: true, Derived: true}})
		return r
	}
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Minute) }
	one := derived(row("one", at(0), fields{"spans": 1.0, "flag.n": "1"}), 20)
	ten := derived(row("ten", at(1), fields{"spans": 1.0, "flag.n": "10"}), 110)
	c := collated(t, []store.Row{one, ten}, "n")
	got := shape(c)
	assert.Must(t, got == "1: one, 10: ten", "got %s, want one group: the events of a batch follow", got)
	assert.True(t, len(c.Groups[0].Follows) == 1 && c.Groups[0].Follows[0].Name == "zz-batch-events",
		"what follows is %+v", c.Groups[0].Follows)
	// One value of VAR has two of them: the setting follows from something else.
	other := derived(row("other", at(2), fields{"spans": 1.0, "flag.n": "1"}), 40)
	assert.Equal(t, shape(collated(t, []store.Row{one, ten, other}, "n", "--all")), "1: other | 10: ten | 1: one")
	// The way a topic is created decides its partitions.
	topics := []store.Row{
		row("three", at(0), fields{"target.topic.partitions": 3.0, "target": "kafka://h:1/three"}),
		row("many", at(1), fields{"target.topic.partitions": 15.0, "target": "kafka://h:1/many"}),
	}
	assert.Equal(t, shape(collated(t, topics, "target.topic.partitions")), "3: three, 15: many", "by partitions")
}

func TestCollateRevisions(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC) }
	rows := []store.Row{
		row("main-old", start, fields{"branch": "main", "revision": "aa", "revision_date": day(1)}),
		row("main-new", start.Add(time.Minute), fields{"branch": "main", "revision": "bb", "revision_date": day(2)}),
		row("pr-new", start.Add(2*time.Minute), fields{"branch": "pr", "revision": "cc", "revision_date": day(4)}),
		row("pr-old", start.Add(3*time.Minute), fields{"branch": "pr", "revision": "dd", "revision_date": day(3)}),
	}
	for _, tt := range []struct {
		name  string
		words []string
		want  string
	}{
		{"branches by their newest revisions", []string{"branch"}, "main: main-new, pr: pr-new"},
		{"an older one if a filter selects it", []string{"branch", "revision=dd"}, "pr: pr-old, main: main-new"},
		{"revisions of one branch, the newest first", []string{"revision", "branch=pr"}, "cc: pr-new, dd: pr-old"},
		{"revisions stay on their branches", []string{"revision", "--sort=revision_date"}, "cc: pr-new, dd: pr-old | bb: main-new, aa: main-old"},
	} {
		assert.Equal(t, shape(collated(t, rows, tt.words...)), tt.want, "%s", tt.name)
	}
	c := collated(t, rows, "branch")
	assert.True(t, c.Groups[0].Rows[0].Older == 1, "%d reports of older revisions, want 1", c.Groups[0].Rows[0].Older)
}

// A row is marked as the best only if enough repetitions support it.
func TestCollateBest(t *testing.T) {
	sides := func(n int, gap float64) []store.Row {
		return append(runs(1, "a", n, 50e3, 0.012, 0.02, fields{"flag.x": "1"}), runs(2, "b", n, 50e3*gap, 0.012, 0.02, fields{"flag.x": "2"})...)
	}
	best := func(rows []store.Row) (out []string) {
		for _, l := range collated(t, rows, "x").Groups[0].Rows {
			for name, cell := range l.Cells {
				if cell.Best {
					out = append(out, l.Text+" "+name)
				}
			}
		}
		slices.Sort(out)
		return out
	}
	for _, tt := range []struct {
		name string
		rows []store.Row
		want []string
	}{
		{"a fifth more, ten times", sides(10, 1.2), []string{"2 throughput"}},
		{"a fifth less", sides(10, 0.8), []string{"1 throughput"}},
		{"the same", sides(10, 1), nil},
		{"a fifth more, five times", sides(5, 1.2), nil},
		{"once", sides(1, 2), nil},
	} {
		assert.Same(t, best(tt.rows), tt.want, "%s", tt.name)
	}
	// Lower bounds do not keep a time from being the best unless they might decide it.
	for bounds, want := range map[int][]string{0: {"2 response_p99"}, 1: {"2 response_p99"}, 4: nil, 8: nil} {
		sides := append(runs(1, "a", 10, 50e3, 0.012, 0.02, fields{"flag.x": "1"}), runs(2, "b", 10, 50e3, 0.006, 0.02, fields{"flag.x": "2"})...)
		bounded(sides[10 : 10+bounds])
		got := best(sides)
		assert.True(t, slices.Equal(got, want), "%d bounds of 10: got %v, want %v", bounds, got, want)
	}
	// Noisy runs may be the best unless their generators may have decided that.
	for lower, want := range map[float64][]string{0.010: {"2 response_p99"}, 0.004: nil} {
		sides := append(runs(1, "a", 10, 50e3, 0.012, 0.02, fields{"flag.x": "1", "response_lower_p99": lower, "trust_level": "noisy"}), runs(2, "b", 10, 50e3, 0.006, 0.02, fields{"flag.x": "2"})...)
		got := best(sides)
		assert.True(t, slices.Equal(got, want), "lower values of %v: got %v, want %v", lower, got, want)
		l := collated(t, sides, "x").Groups[0].Rows[0]
		assert.True(t, l.Noisy == 10 && l.Untrusted == 0 && strings.HasSuffix(l.id(), " ~10"), "%d noisy, %d untrusted, shown as %q", l.Noisy, l.Untrusted, l.id())
	}
	// Runs whose generator was the limit are shown but decide nothing.
	rows := sides(10, 1.2)
	for i := range 6 {
		untrust(&rows[10+i])
	}
	got := best(rows)
	assert.True(t, got == nil, "with six of ten not trustworthy: got %v", got)
	c := collated(t, rows, "x")
	if l := c.Groups[0].Rows[1]; l.Untrusted != 6 || len(l.Reports) != 10 || l.Cells["throughput"].N != 10 {
		t.Errorf("%d untrusted of %d reports, %d values", l.Untrusted, len(l.Reports), l.Cells["throughput"].N)
	}
}

func untrust(r *store.Row) {
	for i := range r.Fields {
		if r.Fields[i].Name == "trusted" {
			r.Fields[i].Value.Num = 0
		}
	}
}

// Among groups whose rows are truly equal, at most one in twenty has a best row.
func TestCollateChance(t *testing.T) {
	const trials = 400
	wrong := 0
	for i := range trials {
		var rows []store.Row
		for v := range 3 {
			rows = append(rows, runs(uint64(1000*i+v), fmt.Sprintf("r%d-", v), 6, 50e3, 0.012, 0.02, fields{"flag.x": fmt.Sprint(v)})...)
		}
		for _, l := range collated(t, rows, "x").Groups[0].Rows {
			if slices.ContainsFunc([]string{"throughput", "response_p99", "efficiency"}, func(f string) bool { return l.Cells[f].Best }) {
				wrong++
				break
			}
		}
	}
	most := trials / 20
	assert.True(t, wrong <= most, "%d of %d groups of equals have a best row, want at most %d", wrong, trials, most)
}

func TestCollateFaults(t *testing.T) {
	rows := heyAPMReports(tracing, true)
	cut := row("cut", start, fields{"flag.only": "1", "partial": true})
	for _, tt := range []struct {
		name       string
		rows       []store.Row
		words      []string
		says, hint string
	}{
		{"VAR left out", rows, []string{"branch=master"}, "not the name of a field", "filters follow"},
		{"VAR empty", rows, []string{""}, "not the name of a field", ""},
		{"VAR that nothing has", rows, []string{"brnch"}, `no report has the field "brnch"`, "did you mean branch?"},
		{"a flag mistyped", rows, []string{"apm-server.tracing.enable"}, "no report has the field ", "did you mean apm-server.tracing.enabled?"},
		{"a filter on what nothing has", rows, []string{"branch", "concurency=1"}, "no report has the field ", "did you mean concurrency?"},
		{"filters that nothing meets", rows, []string{"branch", "concurrency=1", "id=v5yruht0"}, "no report of 6 matches all filters", "concurrency=1 alone matches 3, id=v5yruht0 alone matches 1"},
		{"a filter on VAR that nothing meets", rows, []string{"branch", "branch=mater"}, "no report of 6 matches all filters", "branch=mater alone matches 0"},
		{"too old", rows, []string{"branch", "-n=1h"}, "none of 6 reports is recent enough", "-n takes an age"},
		{"sorted by what nothing has", rows, []string{"branch", "--sort=throughputt"}, "no report has the field ", "did you mean throughput?"},
		{"no reports", nil, []string{"branch"}, "there are no reports", "carronade run"},
		{"VAR only where it cannot be used", []store.Row{cut, rows[0]}, []string{"only", "id=cut"}, "cut short", ""},
		{"VAR not where the filters look", rows, []string{tracing, "id=master01"}, "none of 1 report has", ""},
	} {
		_, err := tryCollate(tt.rows, tt.words...)
		if err == nil {
			t.Errorf("%s: no error", tt.name)
			continue
		}
		var e *protocol.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v has no hint", tt.name, err)
			continue
		}
		assert.True(t, strings.Contains(err.Error(), tt.says) && strings.Contains(e.Hint, tt.hint),
			"%s: got %q with %q, want %q with %q", tt.name, err, e.Hint, tt.says, tt.hint)
	}
}

func TestCollateNotes(t *testing.T) {
	rows := heyAPMReports(tracing, false)
	lone := append(slices.Clone(rows), row("lone", start, fields{"flag." + tracing: "true"}))
	many := slices.Clone(rows)
	for i := range 25 {
		for _, x := range []string{"1", "2"} {
			many = append(many, row(fmt.Sprintf("m%d-%s", i, x), start.Add(time.Hour), fields{"for": fmt.Sprintf("%ds", i+40), "flag.x": x}))
		}
	}
	for _, tt := range []struct {
		name  string
		rows  []store.Row
		words []string
		says  string
	}{
		{"VAR does not vary", rows, []string{"branch"}, "branch does not vary: it is trace-apm-server"},
		{"VAR does not vary, all of it", rows, []string{"branch", "--all"}, "branch does not vary: it is trace-apm-server"},
		{"one repetition", rows, []string{tracing}, "one repetition of each is too few to tell a difference from noise"},
		{"a few repetitions", append(runs(1, "a", 3, 1, 1, 0.1, fields{"flag.x": "1"}), runs(2, "b", 3, 1, 1, 0.1, fields{"flag.x": "2"})...), []string{"x"}, "only among rows of at least 6 repetitions"},
		{"groups of one row", lone, []string{tracing}, "1 more group in which " + tracing + " has one value: --all shows them"},
		{"reports without VAR", many, []string{"x"}, "4 reports without x"},
		{"more groups", many, []string{"x"}, "5 more groups: -n shows more"},
	} {
		c := collated(t, tt.rows, tt.words...)
		assert.True(t, slices.ContainsFunc(c.Notes, func(n string) bool { return strings.Contains(n, tt.says) }),
			"%s: the notes are %q, want %q", tt.name, c.Notes, tt.says)
	}
	c := collated(t, lone, tracing, "--all")
	assert.True(t, c.Alone == 0 && len(c.Groups) == 3, "with --all %d groups and %d left out", len(c.Groups), c.Alone)
	c = collated(t, many, "x", "-n=30")
	assert.True(t, c.More == 0 && len(c.Groups) == 25, "with -n 30 %d groups and %d more", len(c.Groups), c.More)
}
