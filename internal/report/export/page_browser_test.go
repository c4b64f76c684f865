//go:build conformance

package export

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"carronade/internal/report"
	"carronade/internal/report/picture"
	"carronade/internal/verdict/fault"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/browser"
)

// colors makes a function of a chart that returns the color of a pixel as #rrggbb, or none.
const colors = `((u) => {
	const { canvas } = u.ctx, { width, height } = canvas, copy = new OffscreenCanvas(width, height).getContext("2d");
	copy.drawImage(canvas, 0, 0);
	const all = copy.getImageData(0, 0, width, height).data;
	return (x, y) => {
		const p = 4 * (Math.round(y) * width + Math.round(x));
		return all[p + 3] ? "#" + [...all.slice(p, p + 3)].map((v) => v.toString(16).padStart(2, "0")).join("") : "none";
	};
})`

// labels are the texts of the marks of time in a picture.
const labels = `document.querySelector("#f-response .plot").chart.plot.axes[0]._values`

// values are the position that the page shows, and the values in the legend of a picture.
func values(figure string) string {
	return fmt.Sprintf(`document.getElementById("at").textContent + " " + document.querySelector("#f-%s .legend").textContent`, figure)
}

const ready = `document.documentElement.dataset.ready !== undefined`

func TestInABrowser(t *testing.T) {
	b := browser.Start(t)
	// Opening a page is slow on a busy machine, so the subtests share one page.
	shared := b.Open(t, file(t, measured("a", 60, 1)), browser.View{})
	shared.Until(`document.documentElement.dataset.drawn === "all"`)
	desktop := func(t *testing.T) *browser.Tab {
		tab := shared.For(t)
		tab.Do(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll(".tools button")].find((b) => b.textContent === "Whole run").click()`))
		return tab
	}
	eval := func(tab *browser.Tab, js string) string { return browser.Eval[string](tab, js) }

	t.Run("the pointer reads values", func(t *testing.T) {
		tab := desktop(t)
		hover(tab, "throughput", 0.51)
		assert.Has(t, eval(tab, values("throughput")), "around 30.5 s", "offered1 k/s", "sent1 k/s", "acked9")
		at := func(figure string) string {
			return eval(tab, fmt.Sprintf(`(() => { const u = document.querySelector("#f-%s .plot").chart.plot; return format(u.posToVal(u.cursor.left, "x"), "s") })()`, figure))
		}
		if other := at("response"); other != at("throughput") || !strings.Contains(eval(tab, values("response")), " ms") {
			t.Errorf("the other picture: at %q, with %q; want the same moment and its values", other, eval(tab, values("response")))
		}
		tab.Check()
	})

	t.Run("the pointer reads a map's cells", func(t *testing.T) {
		tab := desktop(t)
		hover(tab, "end-to-end-map", 0.51)
		got := eval(tab, `document.querySelector("#f-end-to-end-map .cell").textContent`)
		assert.True(t, strings.Contains(got, "30 s to 31 s") && strings.HasSuffix(got, "in the whole column: 100"),
			"values in the map: got %q, want the interval of a second and its count of 100", got)
		tab.Check()
	})

	t.Run("freezes and stalls are drawn differently", func(t *testing.T) {
		d := measured("f", 60, 1)
		d.Stall = report.Stall{LongestS: 6, LongestAtS: 20}
		d.Freezes = report.Freezes{Count: 2, Longest: []report.Freeze{{AtS: 21, LengthS: 3}, {AtS: 50, LengthS: 0.02}}}
		tab := b.Open(t, file(t, d), browser.View{})
		tab.Until(`document.documentElement.dataset.drawn === "all"`)
		// The edge of the stall is at the top, and those of the freezes are at the bottom.
		got := eval(tab, `(() => {
			const u = document.querySelector("#f-throughput .plot").chart.plot, b = u.bbox, color = `+colors+`(u);
			const at = (x, y) => color(u.valToPos(x, "x", true), y);
			return [20.3, 21.3, 50.01, 40.3].map((x) => [at(x, b.top + 2), at(x, b.top + b.height * 0.7), at(x, b.top + b.height - 3)].join(" ")).join(", ");
		})()`)
		c := picture.ColorsOf(picture.Light)
		blue, orange := c.Tones[picture.Blue], c.Tones[picture.Orange]
		want := strings.ReplaceAll(strings.Join([]string{
			blue + " " + c.Stall + " " + c.Stall, blue + " " + c.Freeze + " " + orange, c.Background + " " + c.Freeze + " " + orange, c.Background + " " + c.Background + " " + c.Background,
		}, ", "), c.Background, "none")
		assert.Equal(t, got, want, "colors of a stall, a freeze within it, a short freeze, and between them")
		const key = `document.getElementById("key").textContent`
		assert.Equal(t, strings.Count(eval(tab, key), "generator froze"), 1, "explanations of freezes")
		assert.Equal(t, strings.Count(eval(tab, `document.querySelector(".figures").textContent`), "generator froze"), 0, "more of them")
		tab.Keep("freezes")
		tab.Check()
	})

	t.Run("the map has cells of all levels, and gaps are gaps", func(t *testing.T) {
		d := measured("g", 60, 1)
		for i := 20; i < 40; i++ { // nothing was answered
			iv := &d.Intervals[i]
			iv.Histograms, iv.Response, iv.Service, iv.EndToEnd = nil, nil, nil, nil
		}
		tab := b.Open(t, file(t, d), browser.View{})
		tab.Until(`document.documentElement.dataset.drawn === "all"`)
		// The cells of a stretch of time, and the pixels of lines in it.
		const count = `((figure, from, to, names) => {
			const u = document.querySelector("#f-" + figure + " .plot").chart.plot, b = u.bbox, color = ` + colors + `(u);
			const wanted = new Set(names.map((n) => getComputedStyle(document.documentElement).getPropertyValue("--" + n).trim()));
			const found = {};
			for (let x = u.valToPos(from, "x", true); x < u.valToPos(to, "x", true); x++) {
				for (let y = b.top; y < b.top + b.height; y++) if (wanted.has(color(x, y))) found[color(x, y)] = true;
			}
			return Object.keys(found).length;
		})`
		const cells, lines = `["h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9"]`, `["t0", "t1", "t2", "t3", "t4"]`
		for _, tt := range []struct {
			what, got string
			some      bool
		}{
			{"cells", `("end-to-end-map", 1, 19, ` + cells + `)`, true},
			{"cells in a gap", `("end-to-end-map", 21, 39, ` + cells + `)`, false},
			{"lines", `("service", 1, 19, ` + lines + `)`, true},
			{"lines in a gap", `("service", 21, 39, ` + lines + `)`, false},
			{"lines after it", `("service", 41, 59, ` + lines + `)`, true},
		} {
			n := browser.Eval[int](tab, count+tt.got)
			assert.True(t, (n >= 4) == tt.some && (tt.some || n <= 0), "%s: %d colors", tt.what, n)
		}
		tab.Check() // which includes that nothing was requested
	})

	t.Run("series are hidden and shown", func(t *testing.T) {
		tab := desktop(t)
		show(tab, "throughput")
		count := `document.querySelector("#f-throughput .plot").chart.plot.series.filter((s) => s.show).length`
		before := browser.Eval[int](tab, count)
		press := `(() => { const b = document.querySelector("#f-throughput .legend button"); b.click(); return b.getAttribute("aria-pressed") })()`
		assert.Equal(t, eval(tab, press), "false", "pressed")
		tab.Until(fmt.Sprintf("%s === %d", count, before-1))
		assert.Equal(t, eval(tab, press), "true", "pressed again")
		tab.Until(fmt.Sprintf("%s === %d", count, before))
		tab.Check()
	})

	t.Run("zoom is shared", func(t *testing.T) {
		tab := desktop(t)
		drag(tab, "throughput", 0.25, 0.5)
		tab.Until(`/^(14.9|15|15.1) s to (29.9|30|30.1) s$/.test(document.getElementById("shown").textContent)`) // whole pixels
		show(tab, "response")
		last := labels + `.join(" ")`
		// The marks of the whole run are ten seconds apart.
		tab.Until(last + `.includes("20 s") && !` + last + `.includes("40 s")`)
		tab.Do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#f-response .u-over").dispatchEvent(new MouseEvent("dblclick"))`))
		tab.Until(`document.getElementById("shown").textContent === "the whole run"`)
		tab.Check()
	})

	t.Run("the keyboard", func(t *testing.T) {
		tab := desktop(t)
		// It is redrawn after the click on "Whole run".
		tab.Until(labels + `.includes("40 s")`)
		tab.Do(chromedp.Focus(chromedp.CSS("#f-response .plot")), chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.ArrowRight)) // start from Home: the pointer may have selected a position
		said := `document.getElementById("said").textContent`
		if got := eval(tab, said); !strings.HasPrefix(got, "around 1.5 s: p50 ") || !strings.Contains(got, "max ") {
			t.Errorf("announced: got %q, want the values around 1.5 s", got)
		}
		tab.Do(chromedp.KeyEvent(kb.End))
		got := eval(tab, said)
		assert.True(t, strings.HasPrefix(got, "around 59.5 s"), "announced at the end: got %q", got)
		tab.Do(chromedp.KeyEvent("+"))
		tab.Until(`document.getElementById("shown").textContent !== "the whole run"`)
		tab.Do(chromedp.KeyEvent("0"))
		tab.Until(`document.getElementById("shown").textContent === "the whole run"`)
		// Every control can be reached and has a name.
		nameless := browser.Eval[int](tab, `[...document.querySelectorAll("button,[tabindex],a")].filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim())).length`)
		assert.Equal(t, nameless, 0, "controls without a name")
		tab.Check()
	})

	t.Run("themes", func(t *testing.T) {
		background := `getComputedStyle(document.documentElement).backgroundColor`
		for _, dark := range []bool{false, true} {
			tab := desktop(t)
			tab.SetView(browser.View{Dark: dark})
			want := map[bool]string{false: "rgb(255, 255, 255)", true: "rgb(18, 22, 27)"}
			assert.Equal(t, eval(tab, background), want[dark], "the screen's theme, dark %v", dark)
			choose := `((value) => { const s = document.querySelector("#options select"); s.value = value; s.dispatchEvent(new Event("change")); return s.labels[0].textContent.split(" ")[0] })`
			for _, next := range []struct {
				value string
				dark  bool
			}{{"light", false}, {"dark", true}, {"auto", dark}} {
				assert.Equal(t, eval(tab, choose+`("`+next.value+`")`), "Colors", "the label")
				assert.Equal(t, eval(tab, background), want[next.dark], "%s", next.value)
			}
			tab.Check()
		}
	})

	t.Run("everything fits", func(t *testing.T) {
		marked, limited := measured("m", 90, 1), measured("l", 60, 1)
		bound := 0.02
		for i, name := range []string{"p99 < 20 ms", "p99.9 < 20 ms", "max < 20 ms", "throughput >= 0.02/s"} {
			limited.Checks = append(limited.Checks, report.Check{Name: name, OK: i > 0, Text: "7 ms", Bound: &bound})
		}
		marked.Faults = &report.Faults{}
		for i := range 25 {
			marked.Faults.Marks = append(marked.Faults.Marks, fault.Mark{Kind: "note", Name: "a text that is longer than its room", AtS: float64(i * i % 89)})
		}
		for name, ds := range map[string][]*report.Document{
			"marks": {marked}, "limits": {limited}, "nasty": {hostileReport()}, "several": {measured("first", 60, 1), measured("second", 40, 2)}, "search": {pageSearched()},
		} {
			tab := b.Open(t, file(t, ds...), browser.View{Width: 1280, Height: 800})
			tab.Until(`document.documentElement.dataset.drawn === "all"`)
			for _, v := range []browser.View{{Width: 1280, Height: 800}, {Width: 400, Height: 800, Touch: true, Dark: true}} {
				tab.Shown(v)
				tab.Fits()
				if name == "limits" || name == "search" { // the others have the same parts
					tab.Accessible()
				}
				tab.Keep(fmt.Sprintf("report-%s-%d", name, v.Width))
			}
		}
	})

	t.Run("the keyboard reads a map's cells", func(t *testing.T) {
		tab := desktop(t)
		show(tab, "end-to-end-map")
		tab.Do(chromedp.Focus(chromedp.CSS("#f-end-to-end-map .plot")), chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.ArrowRight))
		row := `document.querySelector("#f-end-to-end-map .plot").chart.row`
		before := browser.Eval[int](tab, row)
		tab.Do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowUp))
		if got := eval(tab, `document.getElementById("said").textContent`); !strings.HasPrefix(got, "1 s to 2 s: ") || !strings.HasSuffix(got, "in the whole column 100") {
			t.Errorf("announced: got %q, want a cell of the second second", got)
		}
		got, want := browser.Eval[int](tab, row), max(before-2, 0)+1
		assert.True(t, got == want, "row: got %d after %d, want %d", got, before, want)
		tab.Check()
	})

	t.Run("the scale changes", func(t *testing.T) {
		tab := desktop(t)
		show(tab, "response")
		press := `(() => { const b = document.querySelector("#f-response .how"), text = b.firstChild.data; b.click(); return text + ": " + document.querySelector("#f-response .plot").chart.plot.scales.y.distr })()`
		assert.Equal(t, eval(tab, press)+", "+eval(tab, press), "Use a linear scale: 1, Use a log scale: 3", "pressed twice")
		tab.Check()
	})

	t.Run("on paper", func(t *testing.T) {
		tab := desktop(t)
		tab.SetView(browser.View{Dark: true, Print: true})
		got := eval(tab, `getComputedStyle(document.documentElement).backgroundColor + getComputedStyle(document.getElementById("tools")).display`)
		assert.True(t, got == "rgb(255, 255, 255)none", "on paper: got %s, want white and without buttons", got)
		// The charts are drawn again in the colors of paper.
		tab.Until(`(() => {
			const u = document.querySelector("#f-throughput .plot").chart.plot, color = ` + colors + `(u), { bbox: b } = u;
			for (let y = b.top; y < b.top + b.height; y++) if (color(b.left + b.width / 2, y) === "` + picture.ColorsOf(picture.Light).Tones[picture.Blue] + `") return true;
			return false;
		})()`)
		tab.SetView(browser.View{})
		tab.Check()
	})

	t.Run("the script and the program format numbers alike", func(t *testing.T) {
		tab := desktop(t)
		units := []picture.Unit{
			picture.Plain, picture.Seconds, picture.Micros, picture.PerSecond, picture.Events, picture.Bytes,
			picture.BytesPerS, picture.Cores, picture.Share, picture.Percentile,
		}
		values := []float64{0, 0.00123, 0.5, 1, 1.5, 9.996, 12.34, 99.96, 999.4, 1000, 1023, 1024, 1500, 59_999, 61_000, 123_456, 3.6e6, 1e9, 7.7e9}
		for _, u := range units {
			in, _ := json.Marshal(values)
			got := browser.Eval[[]string](tab, fmt.Sprintf(`%s.map((v) => format(v, %q))`, in, string(u)))
			for i, v := range values {
				want := picture.Format(v, u)
				assert.True(t, got[i] == want, "%v %s: the page prints %q, the program %q", v, u, got[i], want)
			}
		}
	})

	t.Run("without script", func(t *testing.T) {
		tab := b.Open(t, file(t, measured("a", 20, 1)), browser.View{NoScript: true})
		got := browser.Eval[int](tab, `document.querySelectorAll(".plot svg .line").length`)
		assert.True(t, got >= 20, "lines in the static pictures: got %d, want those of all", got)
		tab.Check()
	})

	t.Run("external text is never executed", func(t *testing.T) {
		for _, n := range []int{1, 2} {
			tab := b.Open(t, file(t, hostileReports(n)...), browser.View{})
			tab.Until(`document.documentElement.dataset.drawn === "all"`)
			for _, f := range []string{"throughput", "classes"} {
				hover(tab, f, 0.51)
			}
			assert.True(t, browser.Eval[bool](tab, `globalThis.harmed === undefined && document.querySelectorAll("img").length === 0`),
				"external text became markup")
			tab.Check()
		}
	})

	t.Run("several reports overlay", func(t *testing.T) {
		tab := b.Open(t, file(t, measured("first", 60, 1), measured("second", 40, 2)), browser.View{})
		tab.Until(ready)
		hover(tab, "throughput", 0.25)
		got := eval(tab, values("throughput"))
		assert.True(t, regexp.MustCompile(`first: acked9\d+/s.*second: acked9\d+/s`).MatchString(got),
			"values of several reports: got %q, want both", got)
		tab.Check()
	})

	t.Run("an hour opens", func(t *testing.T) {
		tab := b.Open(t, file(t, measured("a", 3600, 1)), browser.View{})
		t.Logf("an hour of 3,600 intervals is usable after %.0f ms", opened(tab))
		tab.Check()
	})
}

// opened is the time in ms from the start of loading a page to reading a value in a picture.
func opened(tab *browser.Tab) float64 {
	tab.Until(ready)
	return browser.Eval[float64](tab, `(() => {
		const p = document.querySelector("#f-throughput .u-over"), begin = performance.now();
		p.closest(".plot").chart.plot.setCursor({left: p.clientWidth / 2, top: 20});
		if (!document.querySelector("#f-throughput .legend b").textContent) return 1e6;
		return Number(document.documentElement.dataset.ready) + performance.now() - begin;
	})()`)
}

// A page of an hour of intervals must be usable within a second.
func BenchmarkAnHourOpens(bench *testing.B) {
	const within = 1000 // ms
	b := browser.Start(bench)
	path := file(bench, measured("a", 3600, 1))
	best := 1e9
	for bench.Loop() {
		best = min(best, opened(b.Open(bench, path, browser.View{})))
	}
	bench.ReportMetric(best, "ms/page")
	assert.True(bench, best <= within, "opened after %.0f ms, want at most %d", best, within)
}

// hover moves the pointer to a fraction of the width of a picture's plot.
func hover(tab *browser.Tab, figure string, at float64) {
	show(tab, figure)
	x, y := place(tab, figure, at)
	// A chart ignores a pointer that did not move, and it may be here already, in another tab.
	tab.Do(chromedp.MouseEvent(chromedp.MouseMoved, x-9, y), chromedp.MouseEvent(chromedp.MouseMoved, x, y))
}

// show scrolls to a picture, which is then drawn.
func show(tab *browser.Tab, figure string) {
	tab.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector("#f-%s .plot").scrollIntoView({block: "center", behavior: "instant"})`, figure)))
	tab.Until(fmt.Sprintf(`document.querySelector("#f-%s .plot canvas") !== null`, figure))
}

// drag selects a stretch of time.
func drag(tab *browser.Tab, figure string, from, to float64) {
	hover(tab, figure, from)
	x, y := place(tab, figure, from)
	end, _ := place(tab, figure, to)
	tab.Do(
		chromedp.MouseEvent(chromedp.MousePressed, x, y, chromedp.ButtonLeft),
		chromedp.MouseEvent(chromedp.MouseMoved, (x+end)/2, y, chromedp.ButtonLeft),
		chromedp.MouseEvent(chromedp.MouseMoved, end, y, chromedp.ButtonLeft),
		chromedp.MouseEvent(chromedp.MouseReleased, end, y, chromedp.ButtonLeft),
	)
}

func place(tab *browser.Tab, figure string, at float64) (x, y float64) {
	p := browser.Eval[[]float64](tab, fmt.Sprintf(`(() => {
		const r = document.querySelector("#f-%s .u-over").getBoundingClientRect();
		return [r.left + %v * r.width, r.top + 60];
	})()`, figure, at))
	return p[0], p[1]
}

// Screenshots of any page for inspection: PAGE_SCREENSHOTS=FOLDER PAGE_FILES=GLOB.
func TestScreenshots(t *testing.T) {
	dir, glob := os.Getenv("PAGE_SCREENSHOTS"), os.Getenv("PAGE_FILES")
	if dir == "" || glob == "" {
		t.Skip("PAGE_FILES selects the pages for screenshots, and PAGE_SCREENSHOTS the folder")
	}
	files, err := filepath.Glob(glob)
	assert.Must(t, err == nil && len(files) != 0, "files like %s: %v, %v", glob, files, err)
	b := browser.Start(t)
	for _, file := range files {
		for _, v := range []browser.View{
			{Width: 1280, Height: 900},
			{Width: 1280, Height: 900, Dark: true},
			{Width: 360, Height: 800, Touch: true},
			{Width: 360, Height: 800, Touch: true, Dark: true},
		} {
			theme := "light"
			if v.Dark {
				theme = "dark"
			}
			name := fmt.Sprintf("%s-%d-%s.png", filepath.Base(file[:len(file)-len(filepath.Ext(file))]), v.Width, theme)
			tab := b.Open(t, file, v)
			tab.Until(`document.documentElement.dataset.drawn === "all"`)
			assert.OK(t, os.WriteFile(filepath.Join(dir, name), tab.Screenshot(), 0o600))
			tab.Check()
		}
	}
}

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
