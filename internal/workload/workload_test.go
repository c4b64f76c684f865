package workload

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/internal/advice"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// cannon is a kind with an option of each sort, and gun a kind with only one option.
type cannon struct{}

func (c cannon) Capabilities() protocol.KindCapabilities {
	return protocol.KindCapabilities{Presets: c.presets}
}

func (cannon) Name() string      { return "cannon" }
func (cannon) Schemes() []string { return []string{"cannon", "cannon+tls"} }
func (cannon) Ops() []string     { return []string{Produce, Consume, RoundTrip} }
func (cannon) Open(context.Context, protocol.Spec) (protocol.Session, error) {
	return nil, errors.New("a kind of tests opens nothing")
}

func (cannon) Options() []protocol.Option {
	return []protocol.Option{
		{Name: "acks", Default: "1", Choices: []string{"0", "1", "all"}, Ops: []string{Produce, RoundTrip}, Independent: true},
		{Name: "header", Type: protocol.List},
		{Name: "password", Secret: true},
		{Name: "property", Type: protocol.List, Show: func(text string) string { return text[:1] + "..." }},
		{Name: "idempotent", Type: protocol.Bool, Ops: []string{Produce}},
		{Name: "max-in-flight", Type: protocol.Int, Default: "7"},
		{Name: "group", Ops: []string{Consume}},
		{Name: "clients", Type: protocol.Int, Default: "1"},
	}
}

// presets returns for the password "env:JAVA" what a client's file would set.
func (cannon) presets(_ *url.URL, v protocol.Values, _ map[string]bool) (map[string]string, []string, error) {
	if v.String("password") != "env:JAVA" {
		return nil, nil, nil
	}
	return map[string]string{"linger": "1ms", "acks": "all", "group": "g"}, []string{"a warning"}, nil
}

type gun struct{ cannon }

func (gun) Name() string      { return "gun" }
func (gun) Schemes() []string { return []string{"gun"} }
func (gun) Ops() []string     { return []string{Produce} }
func (gun) Options() []protocol.Option {
	return []protocol.Option{{Name: "calibre"}, {Name: "size", Default: "100"}}
}

func (g gun) Capabilities() protocol.KindCapabilities {
	return protocol.KindCapabilities{Presets: g.presets, DefaultPort: func(string) string { return "1415" }}
}

var kinds = []protocol.Kind{cannon{}, gun{}}

// flags returns "name=value" pairs as a document of a command line.
func flags(pairs ...string) *Document {
	var d Document
	for _, p := range pairs {
		name, v, _ := strings.Cut(p, "=")
		d.Add(name, "--"+name, v)
	}
	return &d
}

func TestResolvePriorities(t *testing.T) {
	file := assert.Value(ParseDocument("load.yaml", []byte("target: cannon://a:1/t\nrate: 10k/s\nfor: 20s\nlinger: 1ms\nheader: {a: 1}\n")))(t)
	w := assert.Value(Resolve(kinds, flags("rate=20k/s", "header=b=2", "header=c=3"), file))(t)
	type row struct {
		Text string
		From Origin
	}
	got := map[string]row{}
	for _, r := range w.Settings() {
		got[r.Name] = row{r.Text(), r.From}
	}
	want := map[string]row{
		"op": {"produce", FromDefault}, "seed": {"1", FromDefault}, "repeat": {"1", FromDefault},
		"rate": {"20k/s", FromFlag}, "for": {"20s", FromFile}, "linger": {"1ms", FromFile},
		"drain": {"10s", FromDefault}, "interval": {"1s", FromDefault}, "max-in-flight": {"7", FromDefault},
		"overload": {"queue", FromDefault}, "retry": {"0", FromDefault},
		"acks": {"1", FromDefault}, "header": {"b=2 c=3", FromFlag}, "clients": {"1", FromDefault},
	}
	assert.Same(t, got, want, "settings")
	spec := assert.Value(w.Spec())(t)
	assert.True(t, spec.Given["header"] && !spec.Given["acks"], "given: got %v, want header and not acks", spec.Given)
}

// A limiter keeps to the in-flight limit itself.
type limiter struct{ gun }

func (limiter) Capabilities() protocol.KindCapabilities {
	return protocol.KindCapabilities{LimitsInFlight: func(protocol.Values) bool { return true }}
}

// A given in-flight limit that a closed loop does not keep to is named.
func TestResolveInFlightWithoutEffect(t *testing.T) {
	const to = "target=gun://h:1"
	for _, tt := range []struct {
		name  string
		flags *Document
		warns bool
	}{
		{"a higher concurrency", flags(to, "concurrency=500", "max-in-flight=5"), true},
		{"the same", flags(to, "concurrency=5", "max-in-flight=5"), false},
		{"only the concurrency", flags(to, "concurrency=500"), false},
		{"only the limit", flags(to, "max-in-flight=5"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := assert.Value(Resolve(kinds, tt.flags, nil))(t)
			limiting, err := Resolve([]protocol.Kind{limiter{}}, tt.flags, nil)
			assert.True(t, err == nil && len(limiting.Warnings) == 0,
				"of a kind with its own limit: warnings %q, %v", limiting.Warnings, err)
			// The workload of a report is a file with all defaults.
			replayed, err := Resolve(kinds, nil, tt.flags)
			assert.True(t, err == nil && len(replayed.Warnings) <= 0, "from a file, the default: warnings %q, %v", replayed.Warnings, err)
			assert.True(t, strings.Contains(strings.Join(w.Warnings, "\n"), "--max-in-flight 5 has no effect: --concurrency 500 is the limit") == tt.warns,
				"warnings %q, want one of the limit: %v", w.Warnings, tt.warns)
		})
	}
}

func TestResolvePriorityOfPresets(t *testing.T) {
	w := assert.Value(Resolve(kinds, flags("target=cannon://h:1", "password=env:JAVA", "acks=0"), nil))(t)
	got := w.Duration("linger")
	assert.True(t, got == time.Millisecond && w.values["linger"].from == FromPreset, "linger: got %v, want the preset 1ms", got)
	assert.Equal(t, w.String("acks"), "0", "acks")
	assert.True(t, !w.Has("group"), "got a preset that does not apply to the operation")
	assert.Same(t, w.Warnings, []string{"a warning"}, "warnings")
	spec := assert.Value(w.Spec())(t)
	assert.True(t, !spec.Given["linger"] && spec.Given["acks"], "given: got %v, want acks and not linger", spec.Given)
}

func TestResolveFaults(t *testing.T) {
	const to = "target=cannon://h:1/t"
	for _, tt := range []struct {
		name  string
		flags *Document
		file  string
		want  string // of the error
		hint  string // part of the hint; "": no hint
	}{
		{name: "no target", flags: flags("rate=1/s"), want: "no target", hint: "cannon://"},
		{name: "no scheme", flags: flags("target=127.0.0.1:9092"), want: "no scheme", hint: "did you mean cannon://127.0.0.1:9092?"},
		{name: "words for a target", flags: flags("target=orders"), want: "no scheme", hint: "targets look like"},
		{name: "unknown scheme", flags: flags("target=canon://h:1"), want: "cannon, cannon+tls, gun", hint: "did you mean cannon://h:1?"},
		{name: "user in the URL", flags: flags("target=cannon://me:canary@h:1"), want: "must not contain", hint: "env:NAME"},
		{name: "user without a scheme", flags: flags("target=me:canary@h:1"), want: "no scheme", hint: "targets look like"},
		{name: "user and an unknown scheme", flags: flags("target=canon://me:canary@h:1"), want: "unknown scheme", hint: "cannon://h:1"},
		{name: "bad port", flags: flags("target=cannon://h:99999"), want: "1 to 65535", hint: "targets look like"},
		{name: "empty host between commas", flags: flags("target=cannon://a:1,,b:2"), want: "a host is empty", hint: "targets"},
		{name: "space in a host", flags: flags("target=cannon://a b:1"), want: "not a host name", hint: "targets"},

		{name: "unknown flag", flags: flags(to, "rat=1"), want: "--rat: unknown setting", hint: "--rate"},
		{name: "unknown key", file: "target: cannon://h:1\nlingr: 1ms\n", want: "load.yaml:2: lingr: unknown setting", hint: "did you mean linger?"},
		{name: "another tool's key", file: "target: cannon://h:1\nduration: 5s\n", want: "load.yaml:2: duration: unknown setting", hint: "did you mean for?"},
		{name: "another tool's flag", flags: flags(to, "rps=5"), want: "--rps: unknown setting", hint: "did you mean --rate?"},
		{name: "nothing near", flags: flags(to, "zzzzzz=1"), want: "unknown setting", hint: "--help"},
		{name: "another kind's option", flags: flags(to, "calibre=9"), want: "no meaning for a cannon target", hint: "gun"},
		{name: "unknown operation", flags: flags(to, "op=consum"), want: "must be one of produce", hint: `did you mean "consume"?`},
		{name: "option of another operation", flags: flags(to, "group=g"), want: "no meaning for the operation produce", hint: "--op consume"},
		{name: "pace of a consumer", flags: flags(to, "op=consume", "rate=1/s"), want: "no meaning for the operation consume", hint: "--op produce"},

		{name: "rate of 0", flags: flags(to, "rate=0"), want: "--rate: must be above 0", hint: "leave --rate out"},
		{name: "negative rate", flags: flags(to, "rate=-1/s"), want: "--rate: "},
		{name: "absurd rate", flags: flags(to, "rate=1e13/s"), want: "1e12"},
		{name: "rate of words", flags: flags(to, "rate=fast"), want: "--rate: "},
		{name: "ambiguous size", flags: flags("target=gun://h", "size=64k"), want: `--size: size "64k" may mean 64KiB`},
		{name: "ambiguous size in a file", file: "target: gun://h\nsize: 64k\n", want: `load.yaml:2: size: size "64k" may mean 64KiB`},
		{name: "duration without unit", flags: flags(to, "for=20"), want: "--for: "},
		{name: "no time", flags: flags(to, "for=0"), want: "--for: must be above 0"},
		{name: "count of 0", flags: flags(to, "count=0"), want: "at least 1"},
		{name: "share above one", flags: flags(to, "failure-rate=200%"), want: "--failure-rate: "},
		{name: "share of 0", flags: flags(to, "failure-rate=0"), want: "is not a valid share"},
		{name: "ambiguous warm-up", flags: flags(to, "warmup=10m"), want: "both a time and a number", hint: "600s"},
		{name: "invalid warm-up", flags: flags(to, "warmup=soon"), want: "a time such as 2s"},
		{name: "percentile out of range", flags: flags(to, "percentiles=50,101"), want: "not a percentile"},
		{name: "label without a name", flags: flags(to, "label==x"), want: "NAME=VALUE"},
		{name: "unknown result", flags: flags(to, "slo=steedy"), want: `--slo: "steedy": unknown result`, hint: "did you mean steady?"},
		{name: "unknown percentile", flags: flags(to, "slo=latency<5ms"), want: "unknown result", hint: "carronade help slo"},
		{name: "limit without a unit", flags: flags(to, "slo=p99<5"), want: `"p99<5": `, hint: "'p99<=20ms'"},
		{name: "limit on what is not due", flags: flags(to, "slo=response.p99<5ms"), want: "without a schedule nothing is due", hint: "add --rate or --shape, or limit service.p99"},
		{name: "limit on what does not come back", flags: flags(to, "rate=5/s", "slo=end-to-end.p99<5ms"), want: "only sends has no end-to-end times", hint: "--op roundtrip"},
		{name: "limit on reading of a run that only sends", flags: flags(to, "slo=keeps-up"), want: "does not read", hint: "--op roundtrip"},
		{name: "limit on a delivery that is not checked", flags: flags(to, "verify=false", "slo=lost=0"), want: "only if they are read back", hint: "--verify"},
		{name: "limit on a system that is not watched", flags: flags(to, "slo=rss<1GiB"), want: "not watched", hint: "--system-pid"},
		{name: "limit on an index that is not counted", flags: flags(to, "slo=index-share>=99%"), want: "not counted", hint: "--index"},
		{name: "limit on a time of a run that reads", flags: flags(to, "op=consume", "slo=p99<1s"), want: "only reads", hint: "--op roundtrip"},
		{name: "nothing to end on", flags: flags(to, "abort-on-fail=5s"), want: "no limit was given", hint: "add --slo LIMIT"},
		{name: "invalid shape", flags: flags(to, "shape=triangle(1,2)"), want: "--shape: "},
		{name: "value not among the choices", flags: flags(to, "acks=2"), want: `must be one of 0, 1, all, not "2"`},
		{name: "invalid switch", file: "target: cannon://h:1\nidempotent: maybe\n", want: "true or false"},
		{name: "plain secret", flags: flags(to, "password=canary"), want: "a reference", hint: "env:NAME"},

		{name: "rate and concurrency", flags: flags(to, "rate=1/s", "concurrency=2"), want: "--concurrency: cannot be combined with rate", hint: "open loop"},
		{name: "rate and shape", flags: flags(to, "rate=1/s", "shape=constant(1/s)"), want: "--shape: cannot be combined with rate", hint: "give only one"},
		{name: "drop without schedule", flags: flags(to, "overload=drop"), want: "needs a schedule", hint: "--rate"},
		{name: "verify what cannot be read", flags: flags("target=gun://h", "verify=true"), want: "--verify: a gun target cannot be read back", hint: "leave it out"},
		{name: "too many in flight", flags: flags(to, "concurrency=1m", "batch-events=10m"), want: "more than memory holds", hint: "lower"},

		{name: "two values for one", file: "target: cannon://h:1\nrate: [1/s, 2/s]\n", want: "takes one value, not 2"},
		{name: "output in a file", file: "target: cannon://h:1\njson: true\n", want: "not part of a workload", hint: "--json"},
		{name: "two targets", file: "target: [cannon://h:1, cannon://h:2]\n", want: "must be one URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var file *Document
			if tt.file != "" {
				file = assert.Value(ParseDocument("load.yaml", []byte(tt.file)))(t)
			}
			_, err := Resolve(kinds, tt.flags, file)
			assert.Must(t, err != nil, "got no error")
			got := err.Error()
			assert.True(t, strings.Contains(got, tt.want), "error: got %q, want %q in it", got, tt.want)
			assert.True(t, !strings.Contains(err.Error(), "canary"), "the error repeats a secret: %q", err)
			var e *protocol.Error
			assert.Must(t, errors.As(err, &e), "got a %T, want an *Error", err)
			assert.True(t, strings.Contains(e.Hint, tt.hint) && !strings.Contains(e.Hint, "canary"),
				"hint: got %q, want %q in it", e.Hint, tt.hint)
		})
	}
}

func TestResolveJoinsFaults(t *testing.T) {
	_, err := Resolve(kinds, flags("target=cannon://h:1", "rate=0", "count=0"), nil)
	assert.Must(t, err != nil, "got no error")
	assert.Has(t, err.Error(), "--rate", "--count")
}

func TestParseTargetHosts(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
		path string
	}{
		{"cannon://a:1,b:2/t", []string{"a:1", "b:2"}, "/t"},
		{"cannon://a:1,b/t", []string{"a:1", "b"}, "/t"},
		{"cannon://[::1]:9092,b:1/x", []string{"[::1]:9092", "b:1"}, "/x"},
		{"cannon+tls://a", []string{"a"}, ""},
		{"cannon://", nil, ""},
		{"gun://h/a/b?x=1", []string{"h"}, "/a/b"},
	} {
		_, u, err := ParseTarget(kinds, tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		assert.Same(t, Hosts(u), tt.want, "%s: hosts", tt.text)
		assert.Equal(t, u.Path, tt.path, "%s: path", tt.text)
	}
}

func TestPlan(t *testing.T) {
	const to = "target=cannon://h:1/t"
	for _, tt := range []struct {
		name  string
		flags *Document
		check func(t *testing.T, p load.Plan)
	}{
		{"no flags", flags(to), func(t *testing.T, p load.Plan) {
			want := load.Plan{MaxInFlight: 7, Linger: 5 * time.Millisecond, Drain: 10 * time.Second, Interval: time.Second}
			d := cmp.Diff(want, p, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Observe" }, cmp.Ignore()))
			assert.True(t, d == "", "(-want +got):\n%s", d)
		}},
		{"a rate", flags(to, "rate=50k/s", "for=20s", "warmup=2s", "overload=drop"), func(t *testing.T, p load.Plan) {
			assert.True(t, p.Schedule.Count(time.Second) == 50_000 && p.WarmupTime == 2*time.Second &&
				p.Measurement.Time == 20*time.Second && p.Overload == load.Drop, "got %+v", p)
		}},
		{"a warm-up by events, with a rate", flags(to, "rate=1k/s", "warmup=500"), func(t *testing.T, p load.Plan) {
			assert.True(t, p.WarmupTime == 500*time.Millisecond && p.WarmupEvents == 0 && p.Schedule.Count(p.WarmupTime) == 500,
				"got %v and %d", p.WarmupTime, p.WarmupEvents)
		}},
		{"a warm-up by events, without", flags(to, "warmup=500"), func(t *testing.T, p load.Plan) {
			assert.True(t, p.WarmupTime == 0 && p.WarmupEvents == 500, "got %v and %d", p.WarmupTime, p.WarmupEvents)
		}},
		{"steps after a warm-up", flags(to, "shape=steps(1k/s:1s,2k/s:1s)", "warmup=2s"), func(t *testing.T, p load.Plan) {
			assert.True(t, len(p.Steps) == 2 && p.Steps[1].Start == time.Second, "steps: got %+v", p.Steps)
			assert.Equal(t, p.Schedule.Count(4*time.Second), 2000+1000+2000, "events")
		}},
		{"concurrency above the in-flight limit", flags(to, "concurrency=500"), func(t *testing.T, p load.Plan) {
			assert.True(t, p.Concurrency == 500 && p.MaxInFlight == 500, "got concurrency %d, %d in flight", p.Concurrency, p.MaxInFlight)
		}},
		{"concurrency and an in-flight limit", flags(to, "concurrency=500", "max-in-flight=5"), func(t *testing.T, p load.Plan) {
			assert.Equal(t, p.MaxInFlight, 5, "in flight")
		}},
		{"a closed round trip sends single events", flags(to, "op=roundtrip", "concurrency=1"), func(t *testing.T, p load.Plan) {
			assert.Equal(t, p.BatchEvents, 1, "events a batch")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := assert.Value(Resolve(kinds, tt.flags, nil))(t)
			p := assert.Value(w.Plan())(t)
			tt.check(t, p)
		})
	}
}

// The workload of a report can be run again.
func TestMarshalJSONIsAWorkloadFile(t *testing.T) {
	w := assert.Value(Resolve(kinds, flags("target=cannon://a:1,b:2/t", "rate=5k/s", "header=k=v", "header=x=y", "password=env:P", "idempotent=true"), nil))(t)
	first := assert.Value(json.Marshal(w))(t)
	file := assert.Value(ParseDocument("report.json", first))(t)
	again := assert.Value(Resolve(kinds, nil, file))(t)
	assert.Same(t, string(assert.Value(json.Marshal(again))(t)), string(first), "first and second")
}

// A value may contain a secret that only its option knows.
func TestSettingsAreShownByTheirOption(t *testing.T) {
	w := assert.Value(Resolve(kinds, flags("target=cannon://a:1", "property=a=hidden", "property=b=hidden"), nil))(t)
	document := assert.Value(json.Marshal(w))(t)
	texts := string(document)
	for _, r := range w.Settings() {
		texts += r.Text()
	}
	assert.True(t, !strings.Contains(texts, "hidden") && strings.Contains(texts, `["a...","b..."]`),
		"got %s, want a... and b... instead of the hidden parts", texts)
	spec := assert.Value(w.Spec())(t)
	assert.Same(t, spec.Options.List("property"), []string{"a=hidden", "b=hidden"}, "for the target")
}

// A limit that unknown events reached says so.
func TestChecksCountUnknownEvents(t *testing.T) {
	w := assert.Value(Resolve(kinds, flags("target=cannon://h:1/t", "failure-rate=1%", "failures=20"), nil))(t)
	for _, tt := range []struct {
		stopped load.Reason
		want    []string
	}{
		{load.ByFailureRate, []string{"0 events failed, 20 allowed", "30% of 100 events failed or have no certain answer, 1% allowed"}},
		{load.ByFailures, []string{"0 events failed and 30 have no certain answer, 20 allowed", "0% of the answered events failed, 1% allowed"}},
	} {
		r := &load.Result{Stopped: tt.stopped}
		r.Measurement.Counts = measure.Counts{Acked: 70, Unknown: 30}
		var got []string
		for _, c := range w.Checks(r) {
			got = append(got, c.Text)
		}
		assert.Same(t, got, tt.want, "ended by %s", tt.stopped)
	}
}

func TestChecksOnlyLimitsThatWereSet(t *testing.T) {
	const to = "target=cannon://h:1/t"
	bad := &load.Result{Stopped: load.ByFailures, Missing: 3}
	bad.Measurement.Counts = measure.Counts{Dropped: 5, Unsent: 6, Acked: 90, Failed: 10}
	type verdict struct {
		Name string
		OK   bool
	}
	for _, tt := range []struct {
		name  string
		flags *Document
		want  []verdict
	}{
		{"no limit", flags(to), nil},
		{"failures", flags(to, "failures=10"), []verdict{{"failures", false}}},
		{"share within", flags(to, "failure-rate=10%"), []verdict{{"failure-rate", true}}},
		{"share beyond", flags(to, "failure-rate=9%"), []verdict{{"failure-rate", false}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := assert.Value(Resolve(kinds, tt.flags, nil))(t)
			var got []verdict
			for _, c := range w.Checks(bad) {
				got = append(got, verdict{c.Name, c.OK})
				assert.True(t, c.Text != "", "%s has no text", c.Name)
			}
			assert.Same(t, got, tt.want)
		})
	}
}

func TestTableIsConsistent(t *testing.T) {
	for _, k := range []protocol.Kind{nil, cannon{}, gun{}} {
		seen := map[string]bool{}
		for _, s := range Table(k) {
			assert.True(t, !seen[s.Name], "%s is in the table twice", s.Name)
			seen[s.Name] = true
			assert.True(t, s.Kind != "" || s.Help != "", "%s has no help", s.Name)
			if s.Default != "" {
				assert.OK(t, s.Check(s.Default), "%s: its default", s.Name)
			}
		}
	}
}

func TestSchemaIsJSON(t *testing.T) {
	var schema struct {
		AnyOf []map[string]any `json:"anyOf"`
		Defs  struct {
			Workload struct {
				Properties map[string]any `json:"properties"`
			} `json:"workload"`
		} `json:"$defs"`
	}
	assert.OK(t, json.Unmarshal(Schema(kinds), &schema))
	assert.True(t, len(schema.AnyOf) == 2 && schema.AnyOf[1]["type"] == "array",
		"the schema accepts %v, want a workload and a list of them", schema.AnyOf)
	v := schema.Defs.Workload
	for _, name := range []string{"target", "rate", "acks", "calibre"} {
		assert.True(t, v.Properties[name] != nil, "the schema lacks %s", name)
	}
	assert.True(t, v.Properties["json"] == nil, "the schema accepts --json in a file")
}

func TestMinorSettings(t *testing.T) {
	w := assert.Value(Resolve(kinds, flags("target=cannon://h:1", "label=a=b", "retry=0", "rate=1/s"), nil))(t)
	got := map[string]bool{}
	for _, r := range w.Settings() {
		got[r.Name] = !r.Minor
	}
	want := map[string]bool{
		"rate": true, "retry": true, "seed": true, "acks": true, "linger": true, "max-in-flight": true, "overload": true,
		"op": false, "label": false, "repeat": false, "drain": false, "interval": false, "clients": false,
	}
	assert.Same(t, got, want, "shown")
}

// Whatever is typed for a target, no error repeats the text before an @.
func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"cannon://h:1/t", "cannon://a,b:2", "h:1", "cannon://[::1]:1", "cannon://%zz", "gun:///x?y#z", "://", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		kind, u, err := ParseTarget(kinds, text)
		assert.Must(t, (err == nil) == (kind != nil && u != nil), "got %v, %v and %v", kind, u, err)
		if strings.ContainsAny(text, "/?#@") {
			return
		}
		for _, scheme := range []string{"", "cannon://", "canon://"} {
			_, _, err := ParseTarget(kinds, scheme+"u:s3cr3t@"+text)
			assert.Must(t, err != nil && !strings.Contains(err.Error(), "s3cr3t"), "%su:...@%s: got %v", scheme, text, err)
		}
	})
}

// A mirror verifies its events in its own way.
type mirror struct{ gun }

func (mirror) Name() string      { return "mirror" }
func (mirror) Schemes() []string { return []string{"mirror"} }
func (mirror) Capabilities() protocol.KindCapabilities {
	return protocol.KindCapabilities{Verifies: true}
}

// A kind that does not consume may still verify, if it says so.
func TestVerifier(t *testing.T) {
	w, err := Resolve([]protocol.Kind{mirror{}}, flags("target=mirror://h", "verify=true"), nil)
	assert.True(t, err == nil && w.Verify(), "got %v, want a workload that verifies", err)
}

func TestParseBacklog(t *testing.T) {
	for text, want := range map[string]Backlog{
		"20GiB": {Bytes: 20 << 30}, "1kB": {Bytes: 1000}, "10M": {Events: 10e6}, "500": {Events: 500}, "90s": {Time: 90 * time.Second}, "1h": {Time: time.Hour},
	} {
		got, err := parseBacklog(text)
		assert.True(t, err == nil && got == want, "%s: got %+v and %v", text, got, err)
	}
	for text, want := range map[string]string{
		"10m": "both a time and a number", "5B": "both a size and a number", "0": "above 0", "0s": "above 0", "lots": "such as 20GiB", "-3": "such as 20GiB", "20XB": "such as 20GiB",
	} {
		_, err := parseBacklog(text)
		assert.ErrorHas(t, err, want, text)
		assert.True(t, !strings.Contains(advice.Hint(err), text), "the hint %q for %s repeats it", advice.Hint(err), text)
	}
}

func TestBacklogSettings(t *testing.T) {
	rt := []string{"target=cannon://x", "op=roundtrip"}
	w := assert.Value(Resolve(kinds, flags(append(rt, "rate=1k/s", "backlog=5k", "slo=drain<5m")...), nil))(t)
	assert.Equal(t, *w.Backlog(), Backlog{Events: 5000, Drained: 0.99}, "defaults")
	assert.True(t, !w.OpenEnded(), "a run that a backlog ends is open-ended")
	for _, tt := range []struct {
		set  []string
		want string
	}{
		{[]string{"target=cannon://x", "backlog=5k"}, "no meaning for the operation produce"},
		{append(rt, "backlog=5k", "concurrency=3"), "closed loop"},
		{append(rt, "drain-timeout=3s"), "builds none"},
		{append(rt, "slo=drain<5m"), "builds no backlog"},
		{append(rt, "backlog=5k", "count=5k"), "cannot wait in a run of 5,000 events"},
		{append(rt, "backlog=1GiB", "bytes=1GB"), "cannot wait in a run of 1GB"},
		{append(rt, "backlog=60s", "for=1m"), "cannot wait in a run of 1m"},
		{append(rt, "backlog=5k", "backlog-drained=0%"), "not a valid share"},
	} {
		_, err := Resolve(kinds, flags(tt.set...), nil)
		assert.ErrorHas(t, err, tt.want, strings.Join(tt.set, " "))
	}
}
