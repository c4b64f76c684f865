//go:build conformance

package export

import (
	"testing"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/browser"
)

// A browser draws each trial as its symbol on its interval, as the still picture does.
func TestSearchInABrowser(t *testing.T) {
	path := file(t, pageSearched())
	tab := browser.Start(t).Open(t, path, browser.View{Width: 1280, Height: 900})
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
		assert.Equal(t, browser.Eval[string](tab, at+tt.of), tt.want, "trial %s", tt.of)
	}
	tab.Check()
}
