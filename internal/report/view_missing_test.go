package report

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// first returns the labels and sentences of the verdicts before the one on trust.
func first(d *Document) string {
	var out []string
	for _, v := range d.Verdicts() {
		if v.On == OnTrust {
			break
		}
		out = append(out, v.Label+" "+strings.Join(v.Sentences(), " "))
	}
	return strings.Join(out, "\n")
}

// TestNeverStored: with acks, events that were neither acked nor found are not lost, and the
// report says that an application loses them.
func TestNeverStored(t *testing.T) {
	for _, c := range []struct {
		name                     string
		recovered, retries, lost uint64
		want                     string
	}{
		{"all found", 40, 0, 0, ""},
		{"some missing", 5, 0, 0, "MISSING 35 of 40,000 events were never acked and never stored: without retries an application loses them"},
		{"despite retries", 5, 7, 0, "MISSING 35 of 40,000 events were never acked and never stored: an application that retries as often loses them"},
		{"lost", 40, 0, 3, "BROKEN verify: 3 events lost, 40 recovered"},
	} {
		in := openLoop()
		r := in.Result
		counts := measure.Counts{Offered: 40_000, Sent: 40_000, Acked: 39_960, Failed: 30, Unknown: 10, Retries: c.retries}
		r.Warmup, r.Drain = measure.Tally{}, measure.Tally{}
		r.Measurement.Counts = counts
		in.Ledger = &measure.Ledger{Acked: 39_960, Read: 39_960 + c.recovered, Recovered: c.recovered, Lost: c.lost, Complete: true}
		d := build(in)
		assert.Equal(t, first(d), c.want, "%s", c.name)
		code := host.ExitOK
		if c.lost > 0 {
			code = host.ExitBroken
		}
		d.Trust.OK = c.lost == 0 // a loss goes before what the generator did
		assert.Equal(t, d.ExitCode(), code, "%s: exit", c.name)
	}
}

// TestMostlyFailed: if most events failed, the report says so, and why, before anything else.
func TestMostlyFailed(t *testing.T) {
	for _, c := range []struct {
		failed uint64
		want   string
	}{{8, "failed 8 of 10 events were not accepted: too-large (MESSAGE_TOO_LARGE: The message is too large.)"}, {5, ""}} {
		in := openLoop()
		r := in.Result
		r.Intervals = r.Intervals[:1]
		r.Measurement.Counts = measure.Counts{Offered: 10, Sent: 10, Acked: 10 - c.failed, Failed: c.failed}
		r.Classes = map[string]uint64{"too-large": c.failed, "timeout": 1}
		r.Failures = []measure.Failure{{Class: "timeout", Text: "late"}, {Class: "too-large", Text: "MESSAGE_TOO_LARGE: The message is too large."}}
		in.Trust = measure.Trust{Reasons: []string{"the generator was late"}}
		assert.Equal(t, first(build(in)), c.want, "%d failed", c.failed)
	}
}

// TestNoLimit: a run without a limit whose events failed, or that had an outage, says why its exit code
// is 0, and which limit changes that.
func TestNoLimit(t *testing.T) {
	failing := func(failed uint64, change func(in *Input)) *Document {
		in := openLoop()
		in.Trust = measure.Trust{OK: true, Level: measure.Trusted}
		in.Result.Measurement.Counts = measure.Counts{Offered: 1000, Sent: 1000, Acked: 1000 - failed, Failed: failed}
		if change != nil {
			change(&in)
		}
		return build(in)
	}
	const failures, steady = "0: no limit was set; --slo 'failure-rate<1%' makes it 1", "0: no limit was set; --slo steady makes it 1"
	died := diedMidway()
	died.Trust = measure.Trust{OK: true, Level: measure.Trusted}
	limit := func(text string) func(in *Input) { return func(in *Input) { in.Limits = limitsOf(t, text) } }
	onTopics := failing(100, nil)
	onTopics.Op = TopicsOp + "list"
	for _, c := range []struct {
		name string
		d    *Document
		want string
		code int
	}{
		{"a tenth", failing(100, nil), failures, host.ExitOK},
		{"less", failing(99, nil), "", host.ExitOK},
		{"an outage", build(died), steady, host.ExitOK},
		{"a limit that holds", failing(100, limit("failure-rate<20%")), "", host.ExitOK},
		{"the limit that it names", failing(100, limit("failure-rate<1%")), "", host.ExitBroken},
		{"not trusted", failing(100, func(in *Input) { in.Trust.OK = false }), "", host.ExitUntrusted},
		{"a trial of a search", failing(100, func(in *Input) { in.Labels = map[string]string{SearchLabel: "s1"} }), "", host.ExitOK},
		{"a load on topics", onTopics, "", host.ExitOK},
	} {
		got := ""
		for _, v := range c.d.Verdicts() {
			if v.Label == "exit code" {
				got = strings.Join(v.Texts, "; ")
			}
		}
		assert.True(t, got == c.want && c.d.ExitCode() == c.code, "%s: got %q and exit code %d, want %q and %d", c.name, got, c.d.ExitCode(), c.want, c.code)
	}
}

// TestOutageText: an outage has a beginning, a length, a cost, and an end of its consequences.
func TestOutageText(t *testing.T) {
	row := func(i int, p99 time.Duration, c measure.Counts) Interval {
		iv := Interval{Phase: measure.Measurement, StartS: float64(i), EndS: float64(i + 1), Counts: c}
		if p99 > 0 {
			iv.Response = measure.Summarize(histogram(100, p99, p99, 0), nil, nil)
		}
		return iv
	}
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		p99  []time.Duration // of each second; the outage is from second 3 to 5
		want string
	}{
		{"back", []time.Duration{5 * ms, 6 * ms, 5 * ms, 0, 0, 900 * ms, 300 * ms, 9 * ms, 5 * ms}, "it began at 3 s and lasted 2 s; in it 20 failed, 8 without an answer; p99 was back at 7 s, 2 s after its end (before it 5 ms)"},
		{"never back", []time.Duration{5 * ms, 6 * ms, 5 * ms, 0, 0, 900 * ms, 300 * ms}, "it began at 3 s and lasted 2 s; in it 20 failed, 8 without an answer; p99 was not back to its value before (5 ms) when the run ended"},
	} {
		d := &Document{Steady: measure.Steady{Outage: "x", OutageAt: 3, OutageLength: 2}}
		for i, p := range c.p99 {
			counts := measure.Counts{Acked: 100}
			if p == 0 {
				counts = measure.Counts{Failed: 10, Unknown: 4}
			}
			d.Intervals = append(d.Intervals, row(i, p, counts))
		}
		assert.Equal(t, d.outageText(), c.want, "%s", c.name)
	}
	if got := (&Document{Steady: measure.Steady{Outage: "x"}}).outageText(); got != "" { // an older report
		t.Errorf("got %q without a time", got)
	}
}

// server describes a machine of a cluster.
func server(name string, free uint64, firmware string) host.Host {
	h := host.Host{Name: name, OS: "linux", Arch: "amd64", Cores: 48, Memory: 64 << 30}
	h.Hardware = host.Hardware{
		MemoryModules: []host.Module{{Bytes: 32 << 30, Type: "DDR4", Speed: 2134, Maker: "Samsung", Part: "M393A4K40CB1-CRC", Locator: "DIMM_A1"}},
		Disks:         []host.Disk{{Name: "sda", Model: "Samsung SSD 850 EVO 1TB", Firmware: firmware, Bytes: 1000204886016}},
		RAID:          []host.Array{{Name: "md0", Level: "raid1", Disks: []string{"sda1", "sdb1"}}},
		FileSystems:   []host.FileSystem{{Mount: "/", Type: "ext4", Bytes: 100 << 30, Free: free << 30}},
	}
	return h
}

// described are descriptions in the form that they have after a report was read.
func described(t *testing.T, hs ...host.Host) (out []any) {
	t.Helper()
	for i := range hs {
		data := assert.Value(json.Marshal(&hs[i]))(t)
		var v any
		assert.OK(t, json.Unmarshal(data, &v))
		out = append(out, v)
	}
	return out
}

// titles are the titles of machines, their names and their free space.
func titles(ms []Machines) (out []string) {
	for _, m := range ms {
		text := m.Title
		for _, r := range m.Rows {
			if strings.HasPrefix(r.Name, "name") || strings.HasPrefix(r.Name, "files") {
				text += "; " + r.Name + ": " + r.Text
			}
		}
		out = append(out, text)
	}
	return out
}

func TestMachines(t *testing.T) {
	a := &Document{Host: host.Host{OS: "linux", Cores: 2}, Hosts: described(t, server("k1", 10, "1"), server("k2", 20, "1"), server("k3", 20, "2"))}
	b := &Document{Host: map[string]any{"os": "linux", "cores": 2.0, "gomaxprocs": 2}, Hosts: described(t, server("k1", 5, "1"), server("", 5, "1"))}
	old := &Document{Host: map[string]any{"cores": "many"}, Hosts: []any{nil, "text"}}
	want := []string{
		"Machine of the generator", "Machines of the system; names: k1, k2 (3 alike); files /: ext4, 100 GiB",
		"Machine of the system; name: k3; files /: ext4, 20 GiB free of 100 GiB",
	}
	assert.Same(t, titles(MachinesOf(a, b, b, old)), want)
	got := old.Machines()
	assert.True(t, got == nil, "of a report without a description: got %v", got)
}

// TestMachinesInText checks that the whole report has them, in 80 columns and without
// control characters, and the first page does not.
func TestMachinesInText(t *testing.T) {
	in := openLoop()
	bad := server("k\x1b[31m3", 1, "2")
	bad.Disks[0].Model = "a\x1b]0;model\a" + strings.Repeat(" and a long name", 10)
	in.Host, in.Hosts = server("lab", 1, "EMT02B6Q"), described(t, server("k1", 1, "1"), server("k2", 2, "1"), bad)
	d := build(in)
	var text, brief bytes.Buffer
	assert.OK(t, d.Text(&text, layout.Style{}))
	assert.OK(t, d.Brief(&brief, layout.Style{}))
	assert.Has(t, text.String(),
		"Machine of the generator\n  name          lab\n", "  module        DIMM_A1, 32 GiB, DDR4, 2134 MT/s, Samsung, M393A4K40CB1-CRC\n",
		"  disk sda      932 GiB, Samsung SSD 850 EVO 1TB, firmware EMT02B6Q\n", "  raid md0      raid1, of sda1 and sdb1\n",
		"Machines of the system\n  names         k1, k2 (2 alike)\n")
	assert.True(t, !strings.ContainsAny(text.String(), "\x1b\a"), "a control character of a description is in the text")
	for l := range strings.Lines(text.String()) {
		assert.True(t, layout.Width(strings.TrimSuffix(l, "\n")) <= layout.Columns, "too wide: %q", l)
	}
	assert.True(t, !strings.Contains(brief.String(), "DIMM_A1"), "the first page has the machines")
}

// A report says whether events were pooled or fresh, and what share of a codec's work was measured.
func TestEncoding(t *testing.T) {
	for _, tt := range []struct {
		name          string
		e             *measure.Encoding
		events, codec string
	}{
		{"not known", nil, "", ""},
		{"fresh", &measure.Encoding{Events: measure.Fresh}, "fresh: each was encoded as it was sent", ""},
		{"pooled", &measure.Encoding{Events: measure.Pooled, Distinct: 12_345}, "pooled: 12,345 different ones were encoded before the run, and repeat", ""},
		{"pooled, of unknown number", &measure.Encoding{Events: measure.Pooled}, "pooled: encoded before the run, and sent again and again", ""},
		{
			"pooled, with ids", &measure.Encoding{Events: measure.Pooled, Distinct: 40, Except: "ids and times"},
			"pooled: 40 different ones were encoded before the run, and repeat except for their ids and times", "",
		},
		{
			"compressed before", encoded(measure.Pooled, "zstd", 0),
			"pooled: encoded before the run, and sent again and again", "0% of the work of zstd was measured: the events were compressed before the run",
		},
		{
			"partly", encoded(measure.Pooled, "zstd", 0.0512),
			"pooled: encoded before the run, and sent again and again", "5.12% of the work of zstd was measured: the other events were compressed before the run",
		},
		{
			"compressed as sent", encoded(measure.Fresh, "gzip", 1),
			"fresh: each was encoded as it was sent", "100% of the work of gzip was measured: the events were compressed as they were sent",
		},
		{"share unknown", &measure.Encoding{Events: measure.Fresh, Codec: "gzip"}, "fresh: each was encoded as it was sent", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := openLoop()
			in.Encoding = tt.e
			d := build(in)
			events, codec := "", ""
			for _, c := range d.Conditions() {
				if c.Name == "events" {
					events = c.Text
				}
			}
			for _, v := range d.Verdicts() {
				if v.Label == "codec" {
					codec = strings.Join(v.Sentences(), " ")
				}
			}
			assert.True(t, events == tt.events && codec == tt.codec, "got %q and %q, want %q and %q", events, codec, tt.events, tt.codec)
			assert.True(t, !slices.Contains(d.Against(), codec) || codec == "", "the share counts against the run")
		})
	}
}

func encoded(events, codec string, measured float64) *measure.Encoding {
	e := &measure.Encoding{Events: events}
	e.Compressed(codec, measured)
	return e
}
