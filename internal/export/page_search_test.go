package export

import (
	"strings"
	"testing"
	"time"

	"carronade/internal/find"
	"carronade/internal/report"
	"carronade/internal/testkit"
	"carronade/measure"
)

// pageSearched is the report of a search with a text that must be escaped.
func pageSearched() *report.Document {
	trial := func(rate float64, result find.Result, p99 time.Duration) find.Tried {
		return find.Tried{
			Trial: find.Trial{Role: find.Search, Rate: rate, Measure: time.Minute}, Report: "abcd2345", Achieved: rate,
			Verdict: &find.Verdict{Result: result, Why: "<script>late</script>"},
			Times:   []find.Quantile{{Of: "response", P: 50, At: p99 / 9, Least: p99 / 10, Most: p99 / 8}, {Of: "response", P: 99, At: p99, Least: p99 / 2, Most: 2 * p99}},
		}
	}
	return &report.Document{
		Schema: report.SearchSchema, ID: "f1234567", Target: "kafka://127.0.0.1:9092/orders", Op: "produce", Mode: report.Searching,
		Labels: map[string]string{"find": "f1234567"}, Trust: measure.Trust{OK: true, Level: measure.Trusted},
		Search: &report.Search{
			Limits: []string{"p99 < 50 ms"}, Within: []report.SearchLimit{{Name: "p99 < 50 ms", Of: "response", P: 99, Within: 50 * time.Millisecond}},
			Answer: &find.Answer{
				Ending: find.Found, Holds: 948, HoldsConfirmed: true, Fails: 997, FailsConfirmed: true, Why: "the backlog grows",
				Trials: []find.Tried{trial(500, find.Pass, 5*time.Millisecond), trial(948, find.Pass, 20*time.Millisecond), trial(997, find.Fail, 200*time.Millisecond), trial(1100, find.Undecided, 300*time.Millisecond)},
			},
		},
	}
}

// The page of a search has the answer, the curve and the trials, and no numbers of a run.
func TestSearch(t *testing.T) {
	got := pageWritten(t, pageSearched())
	for _, want := range []string{"Ceiling of kafka://127.0.0.1:9092/orders", "ceiling 948 to 997/s", "f-load-latency-response", "label.find=f1234567", "&lt;script&gt;late", "limit p99 &lt; 50 ms"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, not := range []string{"Numbers of the measurement", "<script>late"} {
		if strings.Contains(got, not) {
			t.Errorf("it has %s", not)
		}
	}
	both := pageWritten(t, pageSearched(), measured("b", 8, 1))
	for _, want := range []string{"Numbers of the measurement", "Trials of f1234567", "f-throughput"} {
		if !strings.Contains(both, want) {
			t.Errorf("beside a run: no %s", want)
		}
	}
}

// A browser draws each trial as its symbol on its interval, as the still picture does.
func TestSearchInABrowser(t *testing.T) {
	path := file(t, pageSearched())
	tab := testkit.StartBrowser(t).Open(t, path, testkit.View{Width: 1280, Height: 900})
	tab.Until(`document.documentElement.dataset.drawn === "all"`)
	// Pixels around the middle of a trial's symbol, by color.
	const at = `((k, i) => {
		const { f, plot: u } = document.querySelector("#f-load-latency-response .plot").chart, s = f.series.filter((s) => s.symbol)[k];
		const [x, y] = [u.valToPos(s.xs[i], "x", true), u.valToPos(s.y[i], "y", true)], color = ` + colors + `(u);
		const want = getComputedStyle(document.documentElement).getPropertyValue("--t" + s.tone).trim();
		let n = 0;
		for (let p = 0; p < 100; p++) if (color(x - 5 + p % 10, y - 5 + Math.floor(p / 10)) === want) n++;
		return s.name + " " + (n > 25 ? "filled" : n > 5 ? "line" : "none");
	})`
	for _, tt := range []struct{ of, want string }{
		{"(0, 0)", "p99 holds filled"}, {"(0, 1)", "p99 holds filled"}, {"(1, 0)", "p99 fails line"}, {"(2, 0)", "p99 undecided or not judged line"},
	} {
		if got := testkit.Eval[string](tab, at+tt.of); got != tt.want {
			t.Errorf("trial %s: got %q, want %q", tt.of, got, tt.want)
		}
	}
	tab.Check()
}
