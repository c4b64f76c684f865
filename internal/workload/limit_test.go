package workload

import (
	"errors"
	"os"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

func TestParseLimit(t *testing.T) {
	for _, c := range []struct {
		text, name, shown, time string
		kind                    LimitKind
		value                   float64
	}{
		{"p99<20ms", "p99", "p99 < 20 ms", "", DurationKind, 0.02},
		{" p99.9 <= 1s ", "p99.9", "p99.9 <= 1 s", "", DurationKind, 1},
		{"max<2s", "max", "max < 2 s", "", DurationKind, 2},
		{"mean<2ms", "mean", "mean < 2 ms", "", DurationKind, 0.002},
		{"service.p50<5ms", "service.p50", "service.p50 < 5 ms", "service", DurationKind, 0.005},
		{"response_p99<50ms", "response.p99", "response.p99 < 50 ms", "response", DurationKind, 0.05},
		{"end_to_end_p99<50ms", "end-to-end.p99", "end-to-end.p99 < 50 ms", "end_to_end", DurationKind, 0.05},
		{"end-to-end.p99.99<50ms", "end-to-end.p99.99", "end-to-end.p99.99 < 50 ms", "end_to_end", DurationKind, 0.05},
		{"throughput>=50k/s", "throughput", "throughput >= 50 k/s", "", RateKind, 50e3},
		{"failure_rate<0.1%", "failure-rate", "failure-rate < 0.1 %", "", ShareKind, 0.001},
		{"error-rate=0", "failure-rate", "failure-rate = 0 %", "", ShareKind, 0},
		{"avg<2ms", "mean", "mean < 2 ms", "", DurationKind, 0.002},
		{"response_p999<2ms", "response.p99.9", "response.p99.9 < 2 ms", "response", DurationKind, 0.002},
		{"drops=0", "dropped", "dropped = 0", "", CountKind, 0},
		{"lost==0", "lost", "lost = 0", "", CountKind, 0},
		{"rss<2GiB", "rss", "rss < 2GiB", "", SizeKind, 2 << 30},
		{"target-share>95%", "target-share", "target-share > 95 %", "", ShareKind, 0.95},
		{"server.Heap_used<=0.5", "server.Heap_used", "server.Heap_used <= 0.5", "", NumberKind, 0.5},
		{"system.open files<100", "system.open files", "system.open files < 100", "", NumberKind, 100},
		{"server.heap<64MiB", "server.heap", "server.heap < 64MiB", "", NumberKind, 64 << 20},
		{"host.steal<1%", "host.steal", "host.steal < 1%", "", NumberKind, 1},
		{"server.pause<50ms", "server.pause", "server.pause < 50ms", "", NumberKind, 0.05},
		{"steady", "steady", "steady", "", VerdictKind, 0},
		{"keeps_up", "keeps-up", "keeps-up", "", VerdictKind, 0},
	} {
		l, err := ParseLimit(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if shown := strings.ReplaceAll(l.String(), "\u00a0", " "); l.Name != c.name || shown != c.shown && strings.ReplaceAll(shown, " ", "") != strings.ReplaceAll(c.shown, " ", "") || l.Time != c.time || l.Kind != c.kind || l.Value != c.value {
			t.Errorf("%q: got %+v, shown %q; want name %q, shown %q, time %q, kind %d, value %v", c.text, l, shown, c.name, c.shown, c.time, c.kind, c.value)
		}
	}
}

func TestParseLimitErrors(t *testing.T) {
	for _, c := range []struct{ text, fault, hint string }{
		{"", "names no result", "NAME<VALUE"},
		{"<20ms", "names no result", "NAME<VALUE"},
		{"p99", "no comparison", "NAME<VALUE"},
		{"p99<", "value is missing", "NAME<VALUE"},
		{"p99<20", "unit", "p99<=20ms"},
		{"p99>20ms", "upper limit", "p99<=20ms"},
		{"p99=20ms", "never exactly", "p99<=20ms"},
		{"p99<20ms,p50<5ms", "more than one", "once for each"},
		{"failure-rate<1", "may mean 1% or 100%", "failure-rate<1%"},
		{"target-share>=x", "", "target-share>=1%"},
		{"lost<0", "below 0", "lost<=0"},
		{"p99.<20ms", "unknown result", ""},
		{"p1e1<20ms", "unknown result", ""},
		{"p100<1s", "largest value", "max"},
		{"p0<1s", "unknown result", ""},
		{"throughput<5k/s", "lower limit", "throughput>=5k/s"},
		{"steady=1", "takes no value", "--slo steady"},
		{"latency<5ms", "unknown result", ""},
		{"server.<1", "names no metric", "server.NAME"},
		{"server.x<64K", "may mean 64KiB", "server.x"},
		{"server.x<one", "must be a number", "server.x"},
		{"lost=none", "", "lost<=0"},
	} {
		_, err := ParseLimit(c.text)
		var e *Error
		assert.True(t, errors.As(err, &e) && strings.Contains(e.Error(), c.fault) && strings.Contains(e.Hint, c.hint),
			"%q: got %v (%+v), want %q, with hint %q", c.text, err, e, c.fault, c.hint)
	}
}

// TestLimitNames: every name that is suggested parses.
func TestLimitNames(t *testing.T) {
	for _, name := range limitNames() {
		ok := false
		for _, rest := range []string{"", "<1s", ">=1/s", "<=1%", ">=1%", "=0", "<1MiB"} {
			if _, err := ParseLimit(name + rest); err == nil {
				ok = true
			}
		}
		assert.True(t, ok, "%s cannot be used", name)
	}
}

func FuzzParseLimit(f *testing.F) {
	for _, s := range []string{"p99<20ms", "service.p99.9>=1s", "throughput>50k/s", "lost=0", "steady", "server.a.b<1e3", "p<", "=", "p1e-300<1s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseLimit(s)
		if err != nil {
			return
		}
		again, err := ParseLimit(l.Text)
		assert.True(t, err == nil && again == l, "%q: parsed again: %+v, %v; want %+v", l.Text, again, err, l)
		_ = l.String()
	})
}

// TestDocumented: docs/workload.md has a row for each result.
func TestDocumented(t *testing.T) {
	page := assert.Value(os.ReadFile("../../docs/workload.md"))(t)
	kinds := map[LimitKind]string{RateKind: "rate", ShareKind: "share", CountKind: "count", DurationKind: "time", SizeKind: "size"}
	for _, r := range LimitResults() {
		row := "| `" + r.Name + "` | " + kinds[r.Kind] + " | " + r.Help + " |\n"
		assert.True(t, strings.Contains(string(page), row), "docs/workload.md lacks the row %q", row)
	}
}
