package store

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"carronade/internal/report"
	"carronade/internal/verdict/fault"
	"carronade/internal/verdict/find"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

var began = time.Date(2026, 5, 28, 10, 21, 3, 123_456_789, time.UTC)

func settings(list ...string) (out []report.Setting) {
	for _, text := range list { // name:type:value; ! before the name marks a dependent setting, ~ a preset one
		name, rest, _ := strings.Cut(text, ":")
		kind, value, _ := strings.Cut(rest, ":")
		dependent := strings.HasPrefix(name, "!")
		preset := strings.HasPrefix(name, "~")
		out = append(out, report.Setting{Name: strings.TrimLeft(name, "!~"), Type: kind, Value: value, Independent: !dependent, Preset: preset})
	}
	return out
}

func times(ms ...float64) *measure.Summary {
	h := measure.NewHistogram()
	for _, x := range ms {
		h.Record(time.Duration(x * float64(time.Millisecond)))
	}
	return measure.Summarize(h, nil, nil)
}

// producedReport is a report of a run that sent events to a system that it had
// started, with everything that such a report may have.
func producedReport() *report.Document {
	unanswered := measure.NewHistogram()
	unanswered.Record(90 * time.Millisecond)
	answered := measure.NewHistogram()
	for i := range 50 {
		answered.Record(time.Duration(i+1) * time.Millisecond)
	}
	d := &report.Document{
		Schema: report.Schema, Checks: []report.Check{{Name: "p99 < 20 ms", CannotTell: true}, {Name: "dropped = 0", OK: true}}, ID: "v5yruht0", Version: "1.0", RunID: "1", Target: "apm+http://user:pw@127.0.0.1:8200/?x=y", Op: "produce", Mode: load.OpenLoop,
		Labels: map[string]string{"team": "ingest", "tries": "12"}, Note: "after lunch", Repetition: 2, Repetitions: 3,
		StartedAt: began, EndedAt: began.Add(31 * time.Second), Stopped: load.Reason("time"),
		Replaces: "abcdefgh", Trust: measure.Trust{OK: true, Level: measure.Noisy}, Steady: measure.Steady{Known: true, OK: true}, Warnings: []string{"a", "b"},
		Workload: map[string]any{"system-flag": []string{"apm-server.tracing.enabled=true", "workers=4"}, "rate": "8k/s"},
		Settings: settings("rate:rate:8k/s", "for:duration:30s", "events:text:10", "~batch-events:number:40", "linger:duration:5ms", "!seed:number:1", "size:text:1KiB",
			"system-cmd:text:./server -e", "gzip:text:none", "header:list:a=b", "verify:bool:true", "abort:share:5%", "op:text:produce", "!label:list:team=ingest", "system-flag:list:apm-server.tracing.enabled=true workers=4"),
		Totals: report.Totals{
			Counts:   measure.Counts{Offered: 100, Sent: 90, Dropped: 4, Unsent: 6, Acked: 80, Failed: 7, Unknown: 3, Retries: 2, Batches: 9, Answered: 8, Bytes: 9000, AckedBytes: 8000, WireBytes: 5000},
			Statuses: measure.Statuses{{Code: 202, Batches: 7, Events: 80}, {Code: 503, Batches: 1, Events: 10}},
			ElapsedS: 30, EventsPerS: 2.5, BytesPerS: 266, RateOf: report.RateAcked, InFlightMean: 1.25, InFlightMax: 4, InFlightPeak: 6,
		},
		Times: report.Times{
			Response: measure.Summarize(answered, unanswered, []float64{75}), Service: times(1, 2, 3.0004), SendDelay: times(0.01), Batching: times(0.5), Queueing: times(0.2), FailedService: times(7), EndToEnd: times(11, 12), AckedToRead: times(8),
			ResponseLower: measure.Summarize(answered, unanswered, nil), ServiceLower: times(1, 1.5), EndToEndLower: times(10, 11),
		},
		Faults: &report.Faults{Scores: []fault.Score{{
			Mark: fault.Mark{Kind: fault.MarkFault, Name: "x", AtS: 30}, Worst: -1,
			Whole: fault.Numbers{Blackout: &fault.Time{S: 2}, Back: &fault.Time{S: 5}},
		}}},
		Backlog: &report.ReadBacklog{State: report.BacklogDrained, BuildS: new(12.5), DrainS: new(3.5), MostEvents: 5000, EventsPerS: 2500},
		Freezes: report.Freezes{Count: 2, TotalS: 0.6, Longest: []report.Freeze{{LengthS: 0.504, Cause: "other processes used the processors"}, {LengthS: 0.096}}},
		Stall:   report.Stall{LongestS: 0.75}, Classes: map[string]uint64{"queue full": 7},
		Ledger:    &measure.Ledger{Lost: 1, Duplicated: 2, Reordered: 3, Corrupted: 4, Recovered: 5, Unread: 6, Removed: 7, Committed: 8, Aborted: 9},
		Indexed:   &report.Indexed{Docs: 70, PerS: 2.2, Share: new(0.733)},
		Generator: report.Generator{Usage: report.Usage{CPUS: 2}, Processors: 4, CPUShare: 0.1, MaxRSSBytes: 1 << 20, Busy: 0.2},
		System: &report.System{
			Facts: map[string]any{
				"branch": "trace-apm-server", "revision": "c961d664", "revision_date": "2018-05-18T10:21:00Z", "unstaged_changes": false, "command": "./server -e", "pid": 12,
				"memory_limit_bytes": 1 << 30, "image_id": "sha256:1", "flags": map[string]any{"ignored": "given by the workload"},
			},
			PeakRSSBytes: 432_900_000, CPUS: 15.5, EventsPerCPUS: new(5.0), Efficiency: new(0.669), GCPauses: 3, GCPauseS: 0.03, GCPauseMaxS: 0.02,
		},
		Host:  map[string]any{"name": "lab-1", "cpu": "a processor", "cores": 8, "memory_bytes": 1 << 34, "virtual": true, "os": "linux", "arch": "amd64", "go": "go1.26", "gomaxprocs": 8, "kernel": "6", "distribution": "d", "governor": "g", "machine": "m", "container": "docker", "cpu_limit": 2.5, "memory_limit_bytes": 1 << 33},
		Hosts: []any{map[string]any{"cpu": "another", "cores": 4}},
		Facts: map[string]any{
			"version": "8.1", "servers": []map[string]any{{"version": "8.1"}, {"version": "8.0"}}, "request": map[string]any{"kinds": map[string]any{"span": 3.0}},
			"index": map[string]any{"address": "http://es:9200", "store": "Elasticsearch 8.19.21", "version": "8.19.21", "nodes": 3, "cluster": "docs", "pattern": "apm-*"},
			"said":  map[string]any{"a text with blanks": 4}, "long": strings.Repeat("x", 500),
		},
	}
	return d
}

// consumedReport is a report of a run that consumed.
func consumedReport() *report.Document {
	return &report.Document{
		Schema: report.Schema, ID: "00000001", Target: "kafka://h:9092/t", Op: "consume", StartedAt: began, EndedAt: began.Add(time.Second), Repetition: 1, Repetitions: 1,
		Settings: settings("until-end:bool:true"), Checks: []report.Check{{Name: "keeps-up", OK: true}},
		Totals: report.Totals{Counts: measure.Counts{Consumed: 500, Bytes: 1000}, ElapsedS: 2, EventsPerS: 250, RateOf: report.RateConsumed, RebalanceS: 0.5, FetchS: 1.5, Missing: 2},
		Groups: []report.Group{{Name: "g-1", Consumed: 70, EventsPerS: 2, BacklogMost: 5, UnassignedS: 1}},
		Facts:  map[string]any{"topic": map[string]any{"name": "t", "partitions": 3, "replicas": 1, "settings": map[string]any{"min.insync.replicas": "1"}}, "brokers": []any{map[string]any{"version": "4.1"}}},
	}
}

// TestRowOf checks the fields of a report, and how they are shown.
func TestRowOf(t *testing.T) {
	r := RowOf(producedReport())
	assert.True(t, slices.IsSortedFunc(r.Fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) }), "fields are not sorted")
	for _, tt := range []struct {
		name string
		want Value
		show string
	}{
		{"id", Value{Text: "v5yruht0"}, "v5yruht0"},
		{"target", Value{Text: "apm+http://127.0.0.1:8200/", Independent: true}, "apm+http://127.0.0.1:8200/"},
		{"kind", Value{Text: "apm"}, "apm"},
		{"started", Value{Kind: KindTime, Num: 1779963663.123}, "2026-05-28 10:21:03"},
		{"rate", Value{Kind: KindRate, Num: 8000, Text: "8k/s", Independent: true}, "8k/s"},
		{"for", Value{Kind: KindDuration, Num: 30, Text: "30s", Independent: true}, "30s"},
		{"events", Value{Kind: KindNumber, Num: 10, Text: "10", Independent: true}, "10"},
		{"batch-events", Value{Kind: KindNumber, Num: 40, Text: "40", Independent: true, Derived: true}, "40"},
		{"size", Value{Kind: KindSize, Num: 1024, Text: "1KiB", Independent: true}, "1KiB"},
		{"abort", Value{Kind: KindShare, Num: 0.05, Text: "5%", Independent: true}, "5%"},
		{"verify", Value{Kind: KindBool, Num: 1, Text: "true", Independent: true}, "true"},
		{"seed", Value{Kind: KindNumber, Num: 1, Text: "1"}, "1"},
		{"system-mem", Value{Kind: KindSize, Num: -1, Text: "none", Independent: true}, "none"},
		{"flag.apm-server.tracing.enabled", Value{Kind: KindBool, Num: 1, Text: "true", Independent: true}, "true"},
		{"flag.workers", Value{Kind: KindNumber, Num: 4, Text: "4", Independent: true}, "4"},
		{"label.team", Value{Text: "ingest"}, "ingest"},
		{"label.tries", Value{Kind: KindNumber, Num: 12, Text: "12"}, "12"},
		{"branch", Value{Text: "trace-apm-server", Independent: true}, "trace-apm-server"},
		{"revision_date", Value{Kind: KindTime, Num: 1526638860}, "2018-05-18 10:21:00"},
		{"unstaged_changes", Value{Kind: KindBool, Independent: true}, "false"},
		{"target.index.address", Value{Text: "http://es:9200", Independent: true}, "http://es:9200"},
		{"target.index.store", Value{Text: "Elasticsearch 8.19.21", Independent: true}, "Elasticsearch 8.19.21"},
		{"target.index.nodes", Value{Kind: KindNumber, Num: 3, Independent: true}, "3"},
		{"target.index.pattern", Value{Text: "apm-*"}, "apm-*"},
		{"throughput", Value{Kind: KindRate, Num: 2.5}, "2.5/s"},
		{"pushed", Value{Kind: KindSpeed, Num: 300}, "300 B/s"},
		{"accepted", Value{Kind: KindSpeed, Num: 266}, "266 B/s"},
		{"per_batch", Value{Kind: KindDuration, Num: 30.0 / 7}, "4.29 s"}, // over the 7 accepted ones
		{"failure_share", Value{Kind: KindShare, Num: 7.0 / 90}, "7.78%"},
		{"unknown_share", Value{Kind: KindShare, Num: 3.0 / 90}, "3.33%"},
		{"status.202", Value{Kind: KindCount, Num: 7}, "7"},
		{"failed.queue full", Value{Kind: KindCount, Num: 7}, "7"},
		{"index_share", Value{Kind: KindShare, Num: 0.733}, "73.3%"},
		{"response_p50", Value{Kind: KindDuration, Num: 0.026015}, "26 ms"},
		{"response_p75", Value{Kind: KindDuration, Num: 0.039007}, "39 ms"},
		{"response_p999", Value{Kind: KindDuration, Num: 0.09, Text: ">= 90 ms"}, ">= 90 ms"},
		{"response_mean", Value{Kind: KindDuration, Num: 0.026764706, Text: ">= 26.8 ms"}, ">= 26.8 ms"},
		{"response_max", Value{Kind: KindDuration, Num: 0.09, Text: ">= 90 ms"}, ">= 90 ms"},
		{"response_lower_p50", Value{Kind: KindDuration, Num: 0.026015}, "26 ms"},
		{"response_lower_p999", Value{Kind: KindDuration, Num: 0.09, Text: ">= 90 ms"}, ">= 90 ms"},
		{"service_lower_p99", Value{Kind: KindDuration, Num: 0.0015}, "1.5 ms"},
		{"end_to_end_lower_p50", Value{Kind: KindDuration, Num: 0.010007}, "10 ms"},
		{"trust_level", Value{Text: "noisy"}, "noisy"},
		{"freezes", Value{Kind: KindCount, Num: 2}, "2"},
		{"freeze_total", Value{Kind: KindDuration, Num: 0.6}, "600 ms"},
		{"freeze_longest", Value{Kind: KindDuration, Num: 0.504}, "504 ms"},
		{"service_mean", Value{Kind: KindDuration, Num: 0.002000133}, "2 ms"},
		{"max_rss", Value{Kind: KindSize, Num: 432_900_000}, "413 MiB"},
		{"system_cores", Value{Kind: KindNumber, Num: 0.5}, "0.5"},
		{"efficiency", Value{Kind: KindNumber, Num: 0.669}, "0.669"},
		{"host.cpu", Value{Text: "a processor", Independent: true}, "a processor"},
		{"system.host.cores", Value{Kind: KindCount, Num: 4, Independent: true}, "4"},
		{"system.memory_limit_bytes", Value{Kind: KindNumber, Num: 1 << 30}, "1.074e+09"},
		{"system.image_id", Value{Text: "sha256:1", Independent: true}, "sha256:1"},
		{"target.servers", Value{Kind: KindCount, Num: 2, Independent: true}, "2"},
		{"target.servers.version", Value{Text: "8.0 8.1", Independent: true}, "8.0 8.1"},
		{"target.request.kinds.span", Value{Kind: KindNumber, Num: 3}, "3"},
	} {
		got, ok := r.Get(tt.name)
		if !ok {
			t.Errorf("%s is absent", tt.name)
			continue
		}
		assert.Same(t, got, tt.want, "%s", tt.name)
		assert.Equal(t, got.String(), tt.show, "%s is shown as %q", tt.name, got)
	}
	for _, absent := range []string{"label", "system-flag", "flag.ignored", "system.pid", "target.said", "consumed", "read", "target.said.a text with blanks"} {
		v, ok := r.Get(absent)
		assert.True(t, !ok, "%s is %v, want it absent", absent, v)
	}
}

// TestRowOfConsumer: a field that does not exist for a run is absent, not 0.
func TestRowOfConsumer(t *testing.T) {
	r := RowOf(consumedReport())
	for name, want := range map[string]float64{"consumed": 500, "read": 500, "rebalance": 0.5, "fetch": 1.5, "missing": 2, "target.topic.partitions": 3, "target.brokers": 1} {
		got, ok := r.Num(name)
		assert.True(t, ok && got == want, "%s is %v (%v), want %v", name, got, ok, want)
	}
	v, ok := r.Get("target.topic.settings.min.insync.replicas")
	assert.True(t, ok && v.Independent, "a topic's setting is %+v, want an independent variable", v)
	for _, absent := range []string{"acked", "sent", "pushed", "response_p50", "failure_share", "steady", "branch", "died", "freezes", "freeze_longest", "response_lower_p99"} {
		v, ok := r.Get(absent)
		assert.True(t, !ok, "%s is %v, want it absent", absent, v)
	}
	begun := consumedReport()
	begun.Totals = report.Totals{}
	if r := RowOf(begun); slices.ContainsFunc(r.Fields, func(f Field) bool { return f.Name == "throughput" || f.Name == "generator_cpu" }) {
		t.Error("a run that has measured nothing has measured fields")
	}
}

// The row of a report equals the row of the same report read back, to the last digit.
func TestRowOfStoredReport(t *testing.T) {
	for name, d := range map[string]*report.Document{"produced": producedReport(), "consumed": consumedReport(), "searched": searchedReport()} {
		want := RowOf(d)
		var b bytes.Buffer
		assert.OK(t, d.WriteJSON(&b))
		assert.Same(t, RowOf(assert.Value(report.Read(&b))(t)), want, "%s, made and read", name)
	}
}

// prefixes begin the names chosen by users, targets and systems.
var prefixes = []string{"flag.", "label.", "status.", "failed.", "target.", "system."}

// searchedReport is the report of a search.
func searchedReport() *report.Document {
	return &report.Document{
		Schema: report.SearchSchema, ID: "f1234567", Mode: report.Searching, Target: "null://", Op: "produce", Trust: measure.Trust{OK: true, Level: measure.Trusted},
		StartedAt: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC),
		Settings:  []report.Setting{{Name: "slo", Type: "list", Value: "p99 < 50 ms", Independent: true}},
		Search:    &report.Search{Answer: &find.Answer{Ending: find.Found, Holds: 948, HoldsConfirmed: true, Fails: 997, FailsConfirmed: true}},
	}
}

// The ceiling is the confirmed part of an answer, and no number of a run is made of a search.
func TestCeiling(t *testing.T) {
	for _, tt := range []struct {
		name           string
		alter          func(*find.Answer)
		ceiling, exit  string
		atLeast, upper bool
	}{
		{"both ends", func(*find.Answer) {}, "948 to 997/s", "0", false, true},
		{"a lower end", func(a *find.Answer) { a.Ending, a.FailsConfirmed = find.AtLeast, false }, ">= 948/s", "3", true, false},
		{"nothing confirmed", func(a *find.Answer) { a.Ending, a.HoldsConfirmed = find.Stopped, false }, "", "4", false, false},
	} {
		d := searchedReport()
		tt.alter(d.Search.Answer)
		r := RowOf(d)
		v, _ := r.Get("ceiling")
		_, upper := r.Num("ceiling_upper")
		if v.String() != tt.ceiling || v.AtLeast() != tt.atLeast || upper != tt.upper || r.Text("exit") != tt.exit {
			t.Errorf("%s: got %+v, upper %v, exit %s", tt.name, v, upper, r.Text("exit"))
		}
		n, _ := r.Num("ceiling")
		assert.True(t, tt.ceiling == "" || n == 948, "%s: %v", tt.name, n)
		slo, _ := r.Get("slo")
		assert.True(t, slo.Independent, "%s: ceilings of other limits would be compared", tt.name)
		for _, name := range []string{"throughput", "offered", "elapsed"} {
			_, ok := r.Get(name)
			assert.True(t, !ok, "%s: a search has %s", tt.name, name)
		}
	}
}

// TestFieldsAreListed: Fields lists exactly the fields that RowOf makes besides
// settings and names chosen by others, each with its kind.
func TestFieldsAreListed(t *testing.T) {
	listed := map[string]ValueKind{}
	for _, f := range Fields() {
		_, twice := listed[f.Name]
		assert.True(t, !twice, "%s is listed twice", f.Name)
		listed[f.Name] = f.Kind
	}
	made := map[string]bool{}
	for _, d := range []*report.Document{producedReport(), consumedReport(), searchedReport()} {
		set := map[string]bool{"response_p75": true, "system-mem": true}
		for _, s := range d.Settings {
			set[s.Name] = true
		}
		for _, f := range RowOf(d).Fields {
			made[f.Name] = true
			kind, ok := listed[f.Name]
			given := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(f.Name, p) })
			switch {
			case !ok && !set[f.Name] && !given:
				t.Errorf("%s is not listed", f.Name)
			case ok && kind != f.Value.Kind:
				t.Errorf("%s is a %s, and listed as a %s", f.Name, f.Value.Kind, kind)
			}
		}
	}
	for name := range listed {
		assert.True(t, made[name] || strings.HasPrefix(name, "system.host."), "%s is listed and never made", name)
	}
}

// No setting of any target has the name of a measured field or of an alias, which would hide it.
func TestSettingsDoNotHideFields(t *testing.T) {
	taken := map[string]bool{}
	for _, f := range Fields() {
		taken[f.Name] = f.Name != "op" && f.Name != "note" && f.Name != "revision" // these are settings too
	}
	for alias := range aliases {
		taken[alias] = true
	}
	for _, k := range programKinds {
		for _, s := range workload.Table(k) {
			if taken[s.Name] {
				t.Errorf("%s: the setting %s has the name of a field", k.Name(), s.Name)
			}
		}
	}
}

// The target is shown as it was typed, without secrets and what belongs to one run.
func TestTargetIsShownAsTyped(t *testing.T) {
	for typed, want := range map[string]string{
		"null://": "null://", "null://?size=1": "null://", "kafka://h:9092/t": "kafka://h:9092/t", "kafka://h/t-{0..9}": "kafka://h/t-{0..9}", "apm+http://user:pw@h:8200/?x=y": "apm+http://h:8200/", "riemann://h:5555": "riemann://h:5555",
	} {
		d := consumedReport()
		d.Target = typed
		r := RowOf(d)
		assert.Equal(t, r.Text("target"), want, "%s", typed)
		f := assert.Value(ParseFilters([]string{"target=" + want}, began))(t)
		assert.True(t, f.Match(&r), "%s does not meet target=%s", typed, want)
	}
}

// Facts beyond the limits have a checksum, which differs if they differ.
func TestFactsBeyondTheLimitsHaveAChecksum(t *testing.T) {
	settings := func(n int, last string) *report.Document {
		d := consumedReport()
		own := map[string]any{}
		for i := range n {
			own[fmt.Sprintf("setting.%03d", i)] = "x"
		}
		own[fmt.Sprintf("setting.%03d", n-1)] = last
		d.Facts = map[string]any{"broker_settings": own, "topic": map[string]any{"settings": own}}
		return d
	}
	for _, tt := range []struct {
		name string
		n    int
		want bool // a checksum
	}{{"as many as fit", mostOwn, false}, {"one more", mostOwn + 1, true}, {"many", mostOwn + 120, true}} {
		t.Run(tt.name, func(t *testing.T) {
			for _, object := range []string{"target.broker_settings.", "target.topic.settings."} {
				sum := func(last string) Value {
					r := RowOf(settings(tt.n, last))
					v, ok := r.Get(object + RestName)
					assert.Equal(t, ok, tt.want, "checksum of %s", object)
					return v
				}
				a, again, b := sum("1"), sum("1"), sum("2")
				assert.True(t, a.Equal(again) && a.Equal(b) != tt.want,
					"%s: got %q, %q of the same, and %q", object, a.Text, again.Text, b.Text)
				assert.True(t, !tt.want || a.Independent == isIndependentFact(object+"x"),
					"%s: the checksum is independent: %v", object, a.Independent)
			}
		})
	}
}

// Long texts are still distinguished, and a large object of facts does not displace others.
func TestLongFactsAreDistinguished(t *testing.T) {
	facts := func(last string) *report.Document {
		d := consumedReport()
		own := map[string]any{}
		for i := range 200 {
			own[fmt.Sprintf("setting.%03d", i)] = "x"
		}
		d.Facts = map[string]any{"broker_settings": own, "topic": map[string]any{
			"leaders": strings.Repeat("1: 0, ", 200) + last, "settings": map[string]any{"follower.replication.throttled.replicas": strings.Repeat("0:1,", 100) + last},
		}}
		d.Attachments = []report.Attachment{{Name: "server=1 .properties", Text: "num.io.threads=" + last, Original: "k:" + last}}
		return d
	}
	a, b := RowOf(facts("1")), RowOf(facts("2"))
	for _, name := range []string{"target.topic.leaders", "target.topic.settings.follower.replication.throttled.replicas", "attachment.server_1_.properties", "original.server_1_.properties"} {
		x, ok := a.Get(name)
		y, _ := b.Get(name)
		assert.True(t, ok && !x.Equal(y) && len(x.Text) <= mostText, "%s: got %v %q and %q", name, ok, x.Text, y.Text)
		same := RowOf(facts("1"))
		again, _ := same.Get(name)
		assert.True(t, again.Equal(x), "%s: got %q of the same", name, again.Text)
	}
	x, _ := a.Get("target.topic.settings.follower.replication.throttled.replicas")
	assert.True(t, x.Independent, "a long setting of a topic is not independent")
	assert.Equal(t, len(a.Under("target.broker_settings.")), mostOwn+1, "settings of brokers")
	got := shortened(strings.Repeat("\u00e9", 200))
	assert.True(t, len(got) <= mostText && utf8.ValidString(got), "got %q", got)
}
