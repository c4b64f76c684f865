package judge

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"carronade/internal/digest"
	"carronade/internal/layout"
	"carronade/internal/stats"
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

func TestCompare(t *testing.T) {
	const level, p99 = 50e3, 0.012
	untrusted := fields{"trusted": false}
	for _, tt := range []struct {
		name            string
		base, candidate []digest.Row
		o               CompareOptions
		want            []string
		verdict         string
		err             string
	}{
		{
			name: "better", base: runs(1, "a", 8, level, p99, 0.01), candidate: runs(2, "b", 8, level*1.1, p99*0.9, 0.01),
			want: []string{"throughput: better ", "response p99: better "}, verdict: "better",
		},
		{
			name: "mixed", base: runs(1, "a", 8, level, p99, 0.01), candidate: runs(2, "b", 8, level*1.1, p99*1.3, 0.01),
			want: []string{"throughput: better ", "response p99: worse "}, verdict: "mixed",
		},
		{
			name: "equal", base: runs(1, "a", 10, level, p99, 0.005), candidate: runs(2, "b", 10, level, p99, 0.005),
			want: []string{"throughput: same ", "response p99: same "}, verdict: "same",
		},
		{
			name: "single runs", base: runs(1, "a", 1, level, p99, 0.01), candidate: runs(2, "b", 1, level*2, p99, 0.01),
			want:    []string{"throughput: cannot tell needs 6 repetitions", "response p99: cannot tell needs 6 repetitions"},
			verdict: "cannot tell",
		},
		{
			name: "a separate effect for one row", base: runs(1, "a", 8, level, p99, 0.01), candidate: runs(2, "b", 8, level*1.1, p99*1.3, 0.01),
			o:    CompareOptions{Effects: Effects{All: 0.03, Of: map[string]float64{"response_p99": 0.5}}},
			want: []string{"throughput: better ", "response p99: same "}, verdict: "better",
		},
		{
			name:      "times that are lower bounds",
			base:      runs(1, "a", 8, level, p99, 0.01),
			candidate: bounded(runs(2, "b", 8, level, p99*0.5, 0.01)),
			want:      []string{"throughput: same ", "response p99: cannot tell some events were never answered, so this time is a lower bound"},
			verdict:   "cannot tell",
		},
		{
			name: "worse even as lower bounds", base: runs(1, "a", 8, level, p99, 0.01), candidate: bounded(runs(2, "b", 8, level, p99*2, 0.01)),
			want: []string{"throughput: same ", "response p99: worse "}, verdict: "worse",
		},
		{
			name:      "no schedule, no response time",
			base:      without(runs(1, "a", 8, level, p99, 0.01, fields{"service_p99": 0.01}), "response_p99"),
			candidate: without(runs(2, "b", 8, level, p99, 0.01, fields{"service_p99": 0.02}), "response_p99"),
			want:      []string{"throughput: same ", "service p99: worse "}, verdict: "worse",
		},
		{
			name:      "nothing is acknowledged",
			base:      without(runs(1, "a", 8, level, p99, 0.01), "response_p99"),
			candidate: without(runs(2, "b", 8, level, p99, 0.01), "response_p99"),
			want:      []string{"throughput: same "}, verdict: "same",
		},
		{
			name: "untrusted runs are left out", base: runs(1, "a", 8, level, p99, 0.01), candidate: append(runs(2, "b", 6, level, p99, 0.01), runs(3, "c", 6, level*2, p99, 0.01, untrusted)...),
			want: []string{"throughput: same ", "response p99: same "}, verdict: "same",
		},
		{
			name: "untrusted runs are accepted", base: runs(1, "a", 8, level, p99, 0.01), candidate: runs(3, "c", 8, level*2, p99*2, 0.01, untrusted),
			o: CompareOptions{Untrusted: true}, want: []string{"throughput: better ", "response p99: worse "}, verdict: "mixed",
		},
		{
			name: "all untrusted", base: runs(1, "a", 8, level, p99, 0.01), candidate: runs(3, "c", 8, level, p99, 0.01, untrusted),
			err: "none of the candidate's 8 reports can be judged: c0 is not trustworthy: the generator was the limit",
		},
		{
			name: "one workload with another", base: runs(1, "a", 8, level, p99, 0.01), candidate: runs(3, "c", 8, level*2, p99*0.5, 0.01, fields{"acks": "1"}),
			want: []string{"throughput: better ", "response p99: better "}, verdict: "better",
		},
		{
			name: "two workloads each", base: append(runs(1, "a", 8, level, p99, 0.01), runs(2, "b", 8, level, p99, 0.01, fields{"acks": "1"})...),
			candidate: append(runs(3, "c", 8, level*2, p99, 0.005, fields{"acks": "1"}), runs(4, "d", 8, level/2, p99, 0.005)...),
			want:      []string{"throughput: worse ", "response p99: same ", "throughput: better ", "response p99: same "}, verdict: "mixed",
		},
		{
			name: "two workloads and two others", base: append(runs(1, "a", 8, level, p99, 0.01), runs(2, "b", 8, level, p99, 0.01, fields{"acks": "1"})...),
			candidate: append(runs(3, "c", 8, level, p99, 0.01, fields{"rate": "1k/s"}), runs(4, "d", 8, level, p99, 0.01, fields{"rate": "2k/s"})...),
			err:       "no workload is on both sides: the base has 2, the candidate 2, all different",
		},
		{name: "the same report", base: runs(1, "a", 8, level, p99, 0.01), candidate: runs(1, "a", 1, level, p99, 0.01), err: "report a0 is on both sides"},
		{name: "nothing", candidate: runs(1, "a", 8, level, p99, 0.01), err: "the base has no reports"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Compare(tt.base, tt.candidate, tt.o)
			if err != nil || tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Fatalf("got %v, want %q", err, tt.err)
				}
				return
			}
			if diff := cmp.Diff(tt.want, verdicts(c)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if c.Verdict != tt.verdict {
				t.Errorf("verdict: got %q, want %q", c.Verdict, tt.verdict)
			}
			checkPage(t, c.Text)
			checkJSON(t, c)
		})
	}
}

// bounded turns the p99 of rows into lower bounds.
func bounded(rows []digest.Row) []digest.Row {
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
func without(rows []digest.Row, name string) []digest.Row {
	for i := range rows {
		var keep []digest.Field
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
func between(base, candidate []digest.Row) []Finding {
	return pair(bundle{rows: base}, bundle{rows: candidate}, CompareOptions{}).Findings
}

// Every difference between the sides is reported, and whether it makes them
// incomparable.
func TestFindings(t *testing.T) {
	late := func(rows []digest.Row, by time.Duration) []digest.Row {
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
		{"brokers", fields{"target.topic.settings.min.insync.replicas": "2"}, 0, []string{"!servers: topic settings min insync replicas was nothing and is 2"}},
		{"broker version", fields{"target.brokers.version": "4.4.0"}, 0, []string{"servers: brokers version was nothing and is 4.4.0"}},
		{"a broker's setting", fields{"target.broker_settings.num.io.threads": "64"}, 0, []string{"servers: the base does not know its brokers' settings"}},
		{"an attachment of one side", fields{"attachment.server.properties": "#1"}, 0, []string{"servers: server.properties is not attached to all reports"}},
		{"leaders", fields{"target.topic.leaders": "1: 0 1, 2: 2"}, 0, []string{"!leaders: topic leaders was nothing and is 1: 0 1, 2: 2"}},
		{"host", fields{"host.cpu": "another cpu", "host.name": "another"}, 0, []string{"!host: the generator's cpu was one cpu and is another cpu"}},
		{"the system's host", fields{"system.host.cores": 64.0}, 0, []string{"!host: the system's cores was nothing and is 64"}},
		{"noise of the generator", fields{"trust_level": "noisy"}, 0, []string{"trust: 6 of the candidate's 6 runs are noisy: intervals and verdicts allow for what their generators added"}},
		{"address", fields{"target": "kafka://elsewhere:9092/t"}, 0, []string{"target: target was kafka://127.0.0.1/t and is kafka://elsewhere:9092/t"}},
		{"another port of this machine", fields{"target": "kafka://127.0.0.1:4711/t"}, 0, nil},
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
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The port of a server on this machine does not count as a difference.
func TestTargetsOfThisMachine(t *testing.T) {
	for typed, want := range map[string]string{
		"kafka://127.0.0.1:4711/t": "kafka://127.0.0.1/t", "riemann://[::1]:5555": "riemann://[::1]", "kafka://localhost/t": "kafka://localhost/t",
		"kafka://h:9092/t": "kafka://h:9092/t", "null://": "null://",
	} {
		if got := settingText(digest.Field{Name: "target", Value: digest.Value{Text: typed}}); got != want {
			t.Errorf("%s: got %q, want %q", typed, got, want)
		}
	}
}

// A different file of the same name is a different configuration.
func TestAttachmentsDiffer(t *testing.T) {
	one, other := fields{"attachment.server.properties": "#1"}, fields{"attachment.server.properties": "#2"}
	got := between(runs(1, "a", 6, 1, 1, 0.01, one), runs(2, "b", 6, 1, 1, 0.01, other))
	want := []Finding{{true, "servers", "the attached server.properties differs (report show --json has both)"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := between(runs(1, "a", 6, 1, 1, 0.01, one), runs(2, "b", 6, 1, 1, 0.01, one)); len(got) != 0 {
		t.Errorf("got %+v for equal files", got)
	}
}

// Findings that make the sides incomparable come first.
func TestSevereFindingsComeFirst(t *testing.T) {
	got := between(runs(1, "a", 6, 1, 1, 0.01), runs(2, "b", 6, 1, 1, 0.01, fields{"seed": 2.0, "target": "kafka://x:1/t", "version": "2", "target.topic.leaders": "1: 0"}))
	severe := true
	for _, f := range got {
		if f.Severe && !severe {
			t.Errorf("%+v comes after one that is not severe", f)
		}
		severe = f.Severe
	}
	if len(got) != 4 || got[0].About != "client" || !got[1].Severe {
		t.Errorf("got %+v", got)
	}
}

func TestComparisonText(t *testing.T) {
	c, err := Compare(
		runs(1, "a", 8, 50e3, 0.012, 0.02, fields{"branch": "main", "revision": "aa"}),
		append(runs(2, "b", 8, 46e3, 0.0125, 0.02, fields{"branch": "pr", "revision": "bb", "version": "1.1.0"}), runs(3, "u", 2, 1, 1, 0.1, fields{"trusted": false})...),
		CompareOptions{BaseName: "branch=main", CandidateName: "branch=pr"})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "compare.txt", c.Text)
	var b bytes.Buffer
	if err := c.Text(&b, layout.Style{Color: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), layout.Red+"worse") {
		t.Errorf("the verdict worse is not red:\n%s", b.String())
	}
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
	c, err := Compare(base, candidate, CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range c.Pairs[0].Rows {
		if r.Field == "max_rss" && (r.Verdict != stats.Worse || r.Primary) {
			t.Errorf("memory: %v, primary %v", r.Verdict, r.Primary)
		}
	}
	if c.Verdict != "same" {
		t.Errorf("got %q, want same", c.Verdict)
	}
}

// checkPage checks that a text fits its columns and has no color unless
// requested.
func checkPage(t *testing.T, text func(io.Writer, layout.Style) error) {
	t.Helper()
	var b bytes.Buffer
	if err := text(&b, layout.Style{}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSuffix(line, "\n")
		if utf8.RuneCountInString(line) > layout.Columns || strings.Contains(line, "\x1b") || strings.HasSuffix(line, " ") {
			t.Errorf("%d columns: %q", utf8.RuneCountInString(line), line)
		}
	}
}

// checkJSON checks that a document is JSON, and has no null in place of a list.
func checkJSON(t *testing.T, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"reports", "left_out", "findings", "differs", "workload", "rows", "distribution", "unpaired", "pairs", "revisions", "steps", "groups"} {
		if bytes.Contains(b, []byte(`"`+list+`":null`)) {
			t.Errorf("%s is null", list)
		}
	}
}
