package judge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/test/testkit/assert"
)

// verdicts are those of the primary rows.
func verdicts(c *Comparison) []string {
	var out []string
	for _, p := range c.Pairs {
		for _, r := range p.Rows {
			if r.Primary {
				out = append(out, r.Title+": "+string(r.Verdict)+" "+r.Why)
			}
		}
	}
	return out
}

// rowOf is the row of a field in the first pair.
func rowOf(c *Comparison, field string) *Judgement {
	for i := range c.Pairs[0].Rows {
		if c.Pairs[0].Rows[i].Field == field {
			return &c.Pairs[0].Rows[i]
		}
	}
	return new(Judgement)
}

func TestCompare(t *testing.T) {
	const level, p99 = 50e3, 0.012
	untrusted := fields{"trusted": false}
	for _, tt := range []struct {
		name            string
		base, candidate []store.Row
		o               CompareOptions
		want            []string
		verdict, err    string
	}{
		{
			name: "better", base: runs(1, "a", 8, level, p99, 0.01), candidate: runs(2, "b", 8, level*1.1, p99*0.9, 0.01),
			want: []string{"response p99: better "}, verdict: "better",
		},
		{
			name: "one metric decides", base: runs(1, "a", 8, level, p99, 0.01), candidate: runs(2, "b", 8, level*1.1, p99*1.3, 0.01),
			want: []string{"response p99: worse "}, verdict: "worse",
		},
		{
			name: "the requested metric decides", base: runs(1, "a", 8, level, p99, 0.01), candidate: runs(2, "b", 8, level*1.1, p99*1.3, 0.01),
			o: CompareOptions{Metric: "throughput"}, want: []string{"throughput: better "}, verdict: "better",
		},
		{
			name: "the limit of the runs decides", base: runs(1, "a", 8, level, p99, 0.01, fields{"slo": "lost=0 throughput >= 5 k/s p50 < 20 ms", "response_p50": 0.004}), candidate: runs(2, "b", 8, level, p99*1.3, 0.01, fields{"slo": "lost=0 throughput >= 5 k/s p50 < 20 ms", "response_p50": 0.003}),
			want: []string{"response p50: better "}, verdict: "mixed",
		},
		{
			name: "three repetitions, and some that fail", base: runs(1, "a", 3, level, p99, 0.01, fields{"failure_share": 0.0}), candidate: runs(2, "b", 3, level, p99/3, 0.01, fields{"failure_share": 0.1}),
			want: []string{"response p99: better "}, verdict: "mixed",
		},
		{
			name: "different limits decide nothing", base: runs(1, "a", 8, level, p99, 0.01, fields{"slo": "throughput>=5k/s"}), candidate: runs(2, "b", 8, level*1.1, p99*1.3, 0.01),
			want: []string{"response p99: worse "}, verdict: "worse",
		},
		{
			name: "better, but it answers fewer events", base: runs(1, "a", 8, level, p99, 0.01), candidate: runs(2, "b", 8, level/2, p99/2, 0.01),
			want: []string{"response p99: better "}, verdict: "mixed",
		},
		{
			name: "the same, but it refuses some", base: runs(1, "a", 8, level, p99, 0.005, fields{"failure_share": 0.0}), candidate: runs(2, "b", 8, level, p99, 0.005, fields{"failure_share": 0.2}),
			want: []string{"response p99: same "}, verdict: "cannot tell",
		},
		{
			name: "four and four, 7.5 times as long", base: runs(1, "a", 4, level, 0.00556, 0.15), candidate: runs(2, "b", 4, level, 0.0416, 0.15),
			want: []string{"response p99: worse "}, verdict: "worse",
		},
		{
			name: "equal", base: runs(1, "a", 10, level, p99, 0.005), candidate: runs(2, "b", 10, level, p99, 0.005),
			want: []string{"response p99: same "}, verdict: "same",
		},
		{
			name: "single runs", base: runs(1, "a", 1, level, p99, 0.01), candidate: runs(2, "b", 1, level*2, p99, 0.01),
			want:    []string{"response p99: cannot tell needs 6 repetitions, or 3 for a difference of 100%"},
			verdict: "cannot tell",
		},
		{
			name: "a separate effect for one row", base: runs(1, "a", 8, level, p99, 0.01), candidate: runs(2, "b", 8, level*1.1, p99*1.3, 0.01),
			o:    CompareOptions{Effects: Effects{All: 0.03, Of: map[string]float64{"response_p99": 0.5}}},
			want: []string{"response p99: same "}, verdict: "same",
		},
		{
			name: "times that are lower bounds", base: runs(1, "a", 8, level, p99, 0.01),
			candidate: bounded(runs(2, "b", 8, level, p99*0.5, 0.01)),
			want:      []string{"response p99: cannot tell some events were never answered, so this time is a lower bound"},
			verdict:   "cannot tell",
		},
		{
			name: "worse even as lower bounds", base: runs(1, "a", 8, level, p99, 0.01), candidate: bounded(runs(2, "b", 8, level, p99*2, 0.01)),
			want: []string{"response p99: worse "}, verdict: "worse",
		},
		{
			name:      "no schedule, no response time",
			base:      without(runs(1, "a", 8, level, p99, 0.01, fields{"service_p99": 0.01}), "response_p99"),
			candidate: without(runs(2, "b", 8, level, p99, 0.01, fields{"service_p99": 0.02}), "response_p99"),
			want:      []string{"throughput: same "}, verdict: "cannot tell",
		},
		{
			name:      "nothing is acknowledged",
			base:      without(runs(1, "a", 8, level, p99, 0.01), "response_p99"),
			candidate: without(runs(2, "b", 8, level, p99, 0.01), "response_p99"),
			want:      []string{"throughput: same "}, verdict: "same",
		},
		{
			name: "untrusted runs are left out", base: runs(1, "a", 8, level, p99, 0.01), candidate: append(runs(2, "b", 6, level, p99, 0.01), runs(3, "c", 6, level*2, p99, 0.01, untrusted)...),
			want: []string{"response p99: same "}, verdict: "same",
		},
		{
			name: "untrusted runs are accepted", base: runs(1, "a", 8, level, p99, 0.01), candidate: runs(3, "c", 8, level*2, p99*2, 0.01, untrusted),
			o: CompareOptions{Untrusted: true}, want: []string{"response p99: worse "}, verdict: "worse",
		},
		{
			name: "all untrusted", base: runs(1, "a", 8, level, p99, 0.01), candidate: runs(3, "c", 8, level, p99, 0.01, untrusted),
			err: "none of the candidate's 8 reports can be judged: c0 is not trustworthy: the generator was the limit",
		},
		{
			name: "one workload with another", base: runs(1, "a", 8, level, p99, 0.01), candidate: runs(3, "c", 8, level*2, p99*0.5, 0.01, fields{"acks": "1"}),
			want: []string{"response p99: better "}, verdict: "better",
		},
		{
			name: "two workloads each", base: append(runs(1, "a", 8, level, p99, 0.01), runs(2, "b", 8, level, p99, 0.01, fields{"acks": "1"})...),
			candidate: append(runs(3, "c", 8, level, p99/2, 0.005, fields{"acks": "1"}), runs(4, "d", 8, level, p99*2, 0.005)...),
			want:      []string{"response p99: worse ", "response p99: better "}, verdict: "mixed",
		},
		{
			name: "two workloads and two others", base: append(runs(1, "a", 8, level, p99, 0.01), runs(2, "b", 8, level, p99, 0.01, fields{"acks": "1"})...),
			candidate: append(runs(3, "c", 8, level, p99, 0.01, fields{"rate": "1k/s"}), runs(4, "d", 8, level, p99, 0.01, fields{"rate": "2k/s"})...),
			err:       "no workload is on both sides: the base has 2, the candidate 2, all different",
		},
		{
			name: "operations on topics with a run", base: runs(1, "a", 8, level, p99, 0.01),
			candidate: runs(2, "b", 1, level, p99, 0.01, fields{"op": "topics list", "acks": nil, "for": nil}),
			err:       "the sides are of different operations: the base's reports are of produce and the candidate's of topics list",
		},
		{
			name: "operations on topics beside runs", base: append(runs(1, "a", 8, level, p99, 0.01), runs(2, "b", 1, level, p99, 0.01, fields{"op": "topics list"})...),
			candidate: append(runs(3, "c", 8, level, p99/2, 0.005), runs(4, "d", 1, level, p99, 0.01, fields{"op": "topics create"})...),
			want:      []string{"response p99: better "}, verdict: "better",
		},
		{name: "the same report", base: runs(1, "a", 8, level, p99, 0.01), candidate: runs(1, "a", 1, level, p99, 0.01), err: "report a0 is on both sides"},
		{
			name: "one, untrusted", base: runs(1, "a", 1, level, p99, 0.01, untrusted), candidate: runs(3, "c", 8, level, p99, 0.01),
			err: "no report of the base can be judged: a0 is not trustworthy: the generator was the limit",
		},
		{name: "nothing", candidate: runs(1, "a", 8, level, p99, 0.01), err: "the base has no reports"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Compare(tt.base, tt.candidate, tt.o)
			if err != nil || tt.err != "" {
				assert.Must(t, err != nil && err.Error() == tt.err, "got %v, want %q", err, tt.err)
				return
			}
			assert.Same(t, verdicts(c), tt.want)
			assert.Equal(t, c.Verdict, tt.verdict, "verdict")
			checkPage(t, c.Text)
			checkJSON(t, c)
		})
	}
}

// Findings count the runs of a side, unless it has one.
func TestFindingsCountRuns(t *testing.T) {
	noise, bound := fields{"trust_level": "noisy"}, fields{"trusted": false}
	candidate := runs(9, "z", 6, 1, 1, 0.01)
	for _, tt := range []struct {
		base []store.Row
		want string
	}{
		{runs(1, "a", 1, 1, 1, 0.01, noise), "the base's only run is noisy: intervals and verdicts allow for what its generator added"},
		{append(runs(1, "a", 1, 1, 1, 0.01, noise), runs(2, "b", 5, 1, 1, 0.01)...), "1 of the base's 6 runs is noisy: intervals and verdicts allow for what its generator added"},
		{runs(1, "a", 1, 1, 1, 0.01, bound), "the generator was the limit of the base's only run"},
		{runs(1, "a", 2, 1, 1, 0.01, bound), "the generator was the limit of 2 of the base's 2 runs"},
	} {
		var got []string
		for _, f := range findings(tt.base, candidate) {
			got = append(got, f.Text)
		}
		assert.True(t, len(got) == 1 && got[0] == tt.want, "got %q, want %q", got, tt.want)
	}
}

// bounded turns the p99 of rows into lower bounds.
func bounded(rows []store.Row) []store.Row {
	for i := range rows {
		for j, f := range rows[i].Fields {
			if f.Name == "response_p99" {
				rows[i].Fields[j].Value.Text = ">= 1 s"
			}
		}
	}
	return rows
}

// without removes the field.
func without(rows []store.Row, name string) []store.Row {
	for i := range rows {
		var keep []store.Field
		for _, f := range rows[i].Fields {
			if !strings.HasPrefix(f.Name, strings.TrimSuffix(name, "99")) {
				keep = append(keep, f)
			}
		}
		rows[i].Fields = keep
	}
	return rows
}

// between are the findings of a comparison of one workload.
func between(base, candidate []store.Row) []Finding {
	p, _ := pair(bundle{rows: base}, bundle{rows: candidate}, CompareOptions{})
	return p.Findings
}

// Every difference between the sides is reported, and whether it makes them incomparable.
func TestFindings(t *testing.T) {
	late := func(rows []store.Row, by time.Duration) []store.Row {
		for i := range rows {
			rows[i].At = rows[i].At.Add(by)
		}
		return rows
	}
	for _, tt := range []struct {
		name  string
		given fields
		late  time.Duration
		want  []string // ! severe
	}{
		{"equal", nil, 0, nil},
		{"client", fields{"version": "2.0.0"}, 0, []string{"!client: version was 1.0.0 and is 2.0.0"}},
		{"brokers", fields{"target.topic.settings.min.insync.replicas": "2"}, 0, []string{"servers: topic settings min insync replicas was unknown and is 2"}},
		{"broker version", fields{"target.brokers.version": "4.4.0"}, 0, []string{"servers: brokers version was unknown and is 4.4.0"}},
		{"a broker's setting", fields{"target.broker_settings.num.io.threads": "64"}, 0, []string{"servers: the base does not know its brokers' settings"}},
		{"an attachment of one side", fields{"attachment.server.properties": "#1"}, 0, []string{"servers: server.properties is not attached to all reports"}},
		{"leaders", fields{"target.topic.leaders": "1: 0 1, 2: 2"}, 0, []string{"leaders: topic leaders was unknown and is 1: 0 1, 2: 2"}},
		{"host", fields{"host.cpu": "another cpu", "host.name": "another"}, 0, []string{"!host: the generator's cpu was one cpu and is another cpu"}},
		{"the system's host", fields{"system.host.cores": 64.0}, 0, []string{"host: the system's cores was unknown and is 64"}},
		{"noise of the generator", fields{"trust_level": "noisy"}, 0, []string{"trust: 6 of the candidate's 6 runs are noisy: intervals and verdicts allow for what their generators added"}},
		{"address", fields{"target": "kafka://elsewhere:9092/t"}, 0, []string{"target: target was kafka://127.0.0.1:9092/t and is kafka://elsewhere:9092/t (give --same-system if both are one system)"}},
		{"another port", fields{"target": "kafka://127.0.0.1:4711/t"}, 0, []string{"target: target was kafka://127.0.0.1:9092/t and is kafka://127.0.0.1:4711/t (give --same-system if both are one system)"}},
		{"another port and another setting", fields{"target": "kafka://127.0.0.1:4711/t", "acks": "1"}, 0, []string{"!target: target was kafka://127.0.0.1:9092/t and is kafka://127.0.0.1:4711/t (give --same-system if both are one system)"}},
		{"another topic", fields{"target": "kafka://127.0.0.1:9092/u"}, 0, []string{"target: target was kafka://127.0.0.1:9092/t and is kafka://127.0.0.1:9092/u"}},
		{"one side after the other", nil, 3 * 24 * time.Hour, []string{"time: all runs of one side were before all runs of the other, 2 days apart: drift is part of the difference (compare --run interleaves)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, f := range between(runs(1, "a", 6, 1, 1, 0.01), late(runs(2, "b", 6, 1, 1, 0.01, tt.given), tt.late)) {
				s := f.About + ": " + f.Text
				if f.Severe {
					s = "!" + s
				}
				got = append(got, s)
			}
			assert.Same(t, got, tt.want)
		})
	}
}

// A different file of the same name is a different configuration.
func TestAttachmentsDiffer(t *testing.T) {
	one, other := fields{"attachment.server.properties": "#1"}, fields{"attachment.server.properties": "#2"}
	got := between(runs(1, "a", 6, 1, 1, 0.01, one), runs(2, "b", 6, 1, 1, 0.01, other))
	want := []Finding{{true, "servers", "the attached server.properties differs (report show --json has both)"}}
	assert.Same(t, got, want)
	got = between(runs(1, "a", 6, 1, 1, 0.01, one), runs(2, "b", 6, 1, 1, 0.01, one))
	assert.True(t, len(got) == 0, "got %+v for equal files", got)
}

// Attached files are compared by the hashes of their original bytes, if those are all
// known and have one key; otherwise by what the reports show.
func TestAttachmentsAreComparedByOriginals(t *testing.T) {
	attached := func(shown, original string) fields {
		f := fields{"attachment.a.yml": shown}
		if original != "" {
			f["original.a.yml"] = original
		}
		return f
	}
	differs := []Finding{{true, "servers", "the attached a.yml differs (report show --json has both)"}}
	hidden := []Finding{{false, "servers", "the attached a.yml differs in what reports hide, such as a password"}}
	for _, tt := range []struct {
		name            string
		base, candidate fields
		want            []Finding
	}{
		{"equal, other masks", attached("#1", "k:1"), attached("#2", "k:1"), []Finding{}},
		{"equal", attached("#1", "k:1"), attached("#1", "k:1"), []Finding{}},
		{"different", attached("#1", "k:1"), attached("#2", "k:2"), differs},
		{"different where it is hidden", attached("#1", "k:1"), attached("#1", "k:2"), hidden},
		{"two keys, equal", attached("#1", "k:1"), attached("#1", "l:2"), []Finding{}},
		{"two keys, different", attached("#1", "k:1"), attached("#2", "l:1"), differs},
		{"an old report, equal", attached("#1", "k:1"), attached("#1", ""), []Finding{}},
		{"an old report, different", attached("#1", ""), attached("#2", "k:1"), differs},
		{"one side", attached("#1", "k:1"), fields{}, []Finding{{false, "servers", "a.yml is not attached to all reports"}}},
	} {
		got := between(runs(1, "a", 6, 1, 1, 0.01, tt.base), runs(2, "b", 6, 1, 1, 0.01, tt.candidate))
		assert.Same(t, got, tt.want, tt.name)
	}
}

// Findings that make the sides incomparable come first.
func TestSevereFindingsComeFirst(t *testing.T) {
	got := between(runs(1, "a", 6, 1, 1, 0.01), runs(2, "b", 6, 1, 1, 0.01, fields{"seed": 2.0, "target": "kafka://x:1/t", "version": "2", "host.cpu": "other"}))
	severe := true
	for _, f := range got {
		assert.True(t, !f.Severe || severe, "%+v comes after one that is not severe", f)
		severe = f.Severe
	}
	assert.True(t, len(got) == 4 && got[0].About == "client" && got[1].Severe, "got %+v", got)
}

func TestComparisonText(t *testing.T) {
	c := assert.Value(Compare(
		runs(1, "a", 8, 50e3, 0.012, 0.02, fields{"branch": "main", "revision": "aa"}),
		append(runs(2, "b", 8, 46e3, 0.0125, 0.02, fields{"branch": "pr", "revision": "bb", "version": "1.1.0"}), runs(3, "u", 2, 1, 1, 0.1, fields{"trusted": false})...),
		CompareOptions{BaseName: "branch=main", CandidateName: "branch=pr"}))(t)
	golden(t, "compare.txt", c.Text)
	golden(t, "compare-full.txt", c.FullText)
	var b bytes.Buffer
	assert.OK(t, c.Text(&b, layout.Style{Color: true}))
	assert.True(t, strings.Contains(b.String(), layout.Red+"worse"), "the verdict worse is not red:\n%s", b.String())
}

// Only the primary rows decide the verdict of a comparison, so that equal runs
// are called better or worse as rarely as their samples are.
func TestOnlyPrimaryRowsDecide(t *testing.T) {
	base, candidate := runs(1, "a", 8, 50e3, 0.012, 0.005), runs(2, "b", 8, 50e3, 0.012, 0.005)
	for i := range candidate {
		for j, f := range candidate[i].Fields {
			if f.Name == "max_rss" {
				candidate[i].Fields[j].Value.Num *= 2
			}
		}
	}
	c := assert.Value(Compare(base, candidate, CompareOptions{}))(t)
	for _, r := range c.Pairs[0].Rows {
		assert.True(t, r.Field != "max_rss" || r.Verdict == stats.Worse && !r.Primary, "memory: %v, primary %v", r.Verdict, r.Primary)
	}
	assert.Equal(t, c.Verdict, "same")
}

// checkPage checks that a text fits its columns and has no color unless requested.
func checkPage(t *testing.T, text func(io.Writer, layout.Style) error) {
	t.Helper()
	var b bytes.Buffer
	assert.OK(t, text(&b, layout.Style{}))
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSuffix(line, "\n")
		assert.True(t, utf8.RuneCountInString(line) <= layout.Columns && !strings.Contains(line, "\x1b") && !strings.HasSuffix(line, " "),
			"%d columns: %q", utf8.RuneCountInString(line), line)
	}
}

// checkJSON checks that a document is JSON, and has no null in place of a list.
func checkJSON(t *testing.T, v any) {
	t.Helper()
	b := assert.Value(json.Marshal(v))(t)
	for _, list := range []string{"reports", "left_out", "findings", "differs", "workload", "rows", "distribution", "unpaired", "pairs", "revisions", "steps", "groups"} {
		assert.True(t, !bytes.Contains(b, []byte(`"`+list+`":null`)), "%s is null", list)
	}
}

// Sides of which one needed many more replacements are not alike, so no row has a verdict.
func TestReplacedRuns(t *testing.T) {
	// side is n runs of which the first are not trusted and replaced by the last.
	side := func(seed uint64, prefix string, n, replaced int, p99 float64) []store.Row {
		rows := runs(seed, prefix, n+replaced, 50e3, p99, 0.01)
		for i := range rows {
			p99, _ := rows[i].Num("response_p99")
			switch f := (fields{"response_p99": p99}); {
			case i < replaced:
				f["trusted"] = false
				rows[i] = row(rows[i].ID, rows[i].At, f)
			case i >= n:
				f["replaces"] = rows[i-n].ID
				rows[i] = row(rows[i].ID, rows[i].At, f)
			}
		}
		return rows
	}
	for _, tt := range []struct {
		n, base, candidate int
		want               string
	}{{8, 0, 2, "worse"}, {8, 0, 3, "cannot tell"}, {8, 3, 1, "worse"}, {8, 4, 1, "cannot tell"}, {8, 4, 4, "worse"}, {40, 4, 0, "worse"}} {
		base, candidate := side(1, "a", tt.n, tt.base, 0.012), side(2, "b", 8, tt.candidate, 0.024)
		c := assert.Value(Compare(base, candidate, CompareOptions{}))(t)
		if c.Verdict != tt.want {
			t.Errorf("%d and %d replaced: got %q (%s), want %q", tt.base, tt.candidate, c.Verdict, c.Pairs[0].Reason, tt.want)
		}
		if tt.want == "cannot tell" {
			for _, r := range c.Pairs[0].Rows {
				assert.True(t, r.Verdict == stats.Unknown && strings.Contains(r.Why, "were replaced"),
					"%s: got %q (%s)", r.Title, r.Verdict, r.Why)
			}
		}
		checkPage(t, c.Text)
	}
}

// A percentile differs by the same amount wherever the comparison shows it, even if runs are of two kinds.
func TestOneDifference(t *testing.T) {
	two := func(seed uint64, prefix string, slow ...int) []store.Row {
		rows := runs(seed, prefix, 7, 50e3, 0.010, 0.02)
		for _, i := range slow {
			rows[i] = row(rows[i].ID, rows[i].At, fields{"response_p99": 0.0185})
		}
		return rows
	}
	c := assert.Value(Compare(two(1, "a", 0, 1, 2), two(2, "b", 0, 1, 2, 3), CompareOptions{}))(t)
	r := c.Pairs[0].Rows[0]
	for _, d := range c.Pairs[0].Distribution {
		if d.Time == "response" && d.At == "p99" {
			got, want := r.Difference.Center, *d.Candidate / *d.Base - 1
			assert.True(t, math.Abs(got-want) <= 1e-12, "the row says %v, and the distribution %v", got, want)
			if *d.Base != *r.Base.Median || *d.Candidate != *r.Candidate.Median {
				t.Errorf("the row has %v and %v, and the distribution %v and %v", *r.Base.Median, *r.Candidate.Median, *d.Base, *d.Candidate)
			}
		}
	}
	var b bytes.Buffer
	assert.OK(t, c.Text(&b, layout.Style{}))
	difference, interval := r.change()
	for _, want := range []string{difference, interval} {
		n := strings.Count(strings.Join(strings.Fields(b.String()), " "), want)
		assert.True(t, n >= 2, "%q is there %d times:\n%s", want, n, b.String())
	}
}

// The deciding rows of several workloads are judged together: a difference that counts alone may be chance among several.
func TestWorkloadsAreJudgedTogether(t *testing.T) {
	side := func(prefix, rate string, p99 ...float64) (out []store.Row) {
		for i, v := range p99 {
			out = append(out, row(fmt.Sprint(prefix, i), start.Add(time.Duration(i)*time.Minute), fields{"rate": rate, "response_p99": v / 1000}))
		}
		return out
	}
	base, candidate := side("a", "1k/s", 100, 101, 102, 103, 104, 105), side("b", "1k/s", 104.5, 106, 107, 108, 109, 102.5) // the U-test says 0.026
	c, err := Compare(base, candidate, CompareOptions{Effects: Effects{All: 0.03}})
	assert.Must(t, err == nil && c.Verdict == Worse, "alone: got %+v, %v", c, err)
	base = append(base, side("c", "2k/s", 100, 100.1, 100.2, 100.3, 100.4, 100.5)...)
	candidate = append(candidate, side("d", "2k/s", 100.05, 100.15, 100.25, 100.35, 100.45, 100.55)...)
	c, err = Compare(base, candidate, CompareOptions{Effects: Effects{All: 0.03}})
	assert.Must(t, err == nil && c.Verdict == CannotTell, "one of two: got %+v, %v", c, err)
	if r := c.Pairs[0].Rows[0]; r.Verdict != stats.Unknown || *r.Adjusted <= *r.P || !strings.Contains(r.Why, "may be chance") {
		t.Errorf("got %s (%s), p %v, adjusted %v", r.Verdict, r.Why, *r.P, *r.Adjusted)
	}
}

// TestComparisonWhy: the first line says how many workloads have the verdict, or that they contradict each other.
func TestComparisonWhy(t *testing.T) {
	for want, verdicts := range map[string][]string{
		"1 of 2 workloads": {"worse", "same"}, "2 workloads, which contradict each other": {"better", "worse"}, "1 of 3 workloads": {"better", "worse", Mixed},
	} {
		c := &Comparison{}
		for _, v := range verdicts {
			c.Pairs = append(c.Pairs, Pair{Verdict: v})
		}
		c.Verdict = c.verdict()
		assert.Equal(t, c.why(), want, "%s", verdicts)
	}
}
