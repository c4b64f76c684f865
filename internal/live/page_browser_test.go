//go:build conformance

package live

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/browser"
)

// TestInABrowser: the page needs the token, shows the run from its beginning, follows it
// and the next one, and ends with the result.
func TestInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	hub := NewHub()
	s := assert.Value(OpenPage("127.0.0.1:0", hub))(t)
	defer s.Close()
	r := example(t, hub, "abc", 0, 90)
	text := func(tab *browser.Tab, id string) string {
		return browser.Eval[string](tab, `document.getElementById("`+id+`").textContent`)
	}
	address, _, _ := strings.Cut(s.URL(), "#")

	stranger := b.OpenServer(t, address, browser.View{})
	stranger.Until(`document.documentElement.dataset.state === "refused"`)
	got := text(stranger, "state")
	assert.True(t, strings.Contains(got, "needs its token"), "without the token: got %q", got)
	without := b.OpenServer(t, address, browser.View{NoScript: true})
	got = browser.Eval[string](without, `document.querySelector("noscript").textContent`)
	assert.True(t, strings.Contains(got, "terminal"), "without scripts: got %q", got)

	tab := b.OpenServer(t, s.URL(), browser.View{})
	tab.Until(`document.documentElement.dataset.frames === "90"`)
	assert.Equal(t, browser.Eval[string](tab, `location.hash + document.cookie`), "", "what the script sees of the token")
	tab.Until(`document.documentElement.dataset.state === "live"`)
	seconds(r, 90, 91)
	tab.Until(`document.documentElement.dataset.frames === "91"`)
	got, want := text(tab, "sum"), "offered91,000"
	assert.True(t, strings.Contains(got, want), "since start: got %q, want %q in it", got, want)
	assert.Equal(t, browser.Eval[int](tab, `document.querySelectorAll(".plot canvas").length`), 10, "charts")

	// The keyboard reads values, the same moment in all charts.
	tab.Do(chromedp.Focus(chromedp.CSS("#c-response .plot")), chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.ArrowRight))
	got, want = text(tab, "said"), "at 2 s: p50 6 ms, p90 9 ms, p99 9 ms, max 9 ms"
	assert.True(t, got == want, "the keyboard says %q, want %q", got, want)
	tab.Until(`document.getElementById("at").textContent === "at 2 s"`)
	got = browser.Eval[string](tab, `document.querySelector("#c-cores .legend").textContent`)
	assert.True(t, strings.Contains(got, "system0.55"), "the values at the cursor: got %q, want those of the second second", got)
	tab.Do(chromedp.KeyEvent(kb.Tab))
	// A line is hidden and shown.
	press := `(() => { const b = document.querySelector("#c-rates .legend button"); b.click(); return b.getAttribute("aria-pressed") })()`
	assert.Equal(t, browser.Eval[string](tab, press)+browser.Eval[string](tab, press), "falsetrue", "pressed twice")

	whole := func(name string) {
		for _, v := range []browser.View{{Width: 1280, Height: 800}, {Width: 1280, Height: 800, Dark: true}, {Width: 400, Height: 800, Touch: true, Dark: true}, {Width: 400, Height: 800, Touch: true}} {
			tab.Shown(v)
			tab.Fits()
			if v.Touch == v.Dark { // the other screens have the same parts
				tab.Accessible()
			}
			tab.Keep(fmt.Sprintf("%s-%d-%s", name, v.Width, map[bool]string{true: "dark", false: "light"}[v.Dark]))
		}
		tab.SetView(browser.View{})
	}
	whole("live")

	// A reload, as another tab, sees everything with the cookie alone.
	again := b.OpenServer(t, address, browser.View{})
	again.Until(`document.documentElement.dataset.frames === "91"`)

	// It ends with the report's verdicts.
	var totals Counts
	for _, f := range hub.run("abc").series.After(0) {
		totals.Add(f.Counts)
	}
	answer := report.Band{Word: "PASS", Mark: "good", Text: "p99 < 20 ms: 12 ms", Facts: []report.Fact{{Name: "acked", Value: "1 k/s", Note: "100% of 1 k/s", Mark: "good"}}, More: 2}
	r.End(Done{Report: "abc", Totals: totals, Headline: "1 k/s of 1 k/s acked", Band: answer, Verdicts: []Verdict{{Mark: "good", Label: "trusted", Text: "the generator kept up"}}})
	const done = `document.documentElement.dataset.state === "done"`
	tab.Until(done)
	assert.Equal(t, browser.Eval[string](tab, `document.querySelector(".result").className + " " + [...document.querySelectorAll(".result .word,.result .why,.result dl>:not([hidden]),.result .more")].map((e) => e.textContent).join("; ").replaceAll("\u00a0", " ")`),
		"result good PASS; p99 < 20 ms: 12 ms; acked1 k/s100% of 1 k/s; 2 more below", "the band")
	assert.Has(t, strings.ReplaceAll(text(tab, "verdicts"), "\u00a0", " ")+text(tab, "report"), "1 k/s of 1 k/s acked", "trusted the generator kept up", "carronade report open abc")
	whole("live-done")

	// It follows the next run, and can go back.
	next := example(t, hub, "def", 0, 12)
	tab.Until(`document.getElementById("about").textContent.includes("def") && document.documentElement.dataset.frames === "12"`)
	tab.Do(chromedp.Evaluate[chromedp.Void](`(() => { const s = document.getElementById("runs"); s.value = "abc"; s.dispatchEvent(new Event("change")); })()`))
	tab.Until(`document.getElementById("about").textContent.includes("abc") && ` + done)
	tab.Do(chromedp.Evaluate[chromedp.Void](`(() => { const s = document.getElementById("runs"); s.value = "def"; s.dispatchEvent(new Event("change")); })()`))
	tab.Until(`document.getElementById("about").textContent.includes("def") && document.documentElement.dataset.state === "live"`)

	// An address can name a run.
	one := b.OpenServer(t, address+"?run=abc", browser.View{})
	one.Until(`document.documentElement.dataset.frames === "91" && ` + done)
	one.Check()

	// The program ends in the middle of a run.
	_ = next
	s.Close()
	tab.Until(`document.documentElement.dataset.state === "end"`)
	tab.Check()
}

// TestTrialOfASearch: the charts of a trial have its limit, what is known of the ceiling, and remarks as lines with texts.
func TestTrialOfASearch(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	hub := NewHub()
	s := assert.Value(OpenPage("127.0.0.1:0", hub))(t)
	defer s.Close()
	r := NewRecorder("abc", Run{
		Target: "null://example", Op: "produce", Interval: Seconds(time.Second), Schedule: true,
		Limits: []report.LimitLine{{Text: "p99 < 20 ms", Time: "response", Percentile: 99, Name: "p99", Upper: true, Value: 0.02}},
		Search: &Search{Trial: 3, Role: "search", Load: "1 k/s", Holds: 900, Fails: 1200},
	}, func(e Event) { err := hub.Take(e); assert.True(t, err == nil, "%v", err) })
	r.Plan(Mark{Text: "trial 3, search: 1 k/s"}, Mark{At: Seconds(12 * time.Second), Text: "a step"})
	seconds(r, 0, 20)
	tab := b.OpenServer(t, s.URL(), browser.View{})
	tab.Until(`document.documentElement.dataset.frames === "20"`)
	tab.Keep("live-find")
	lines := browser.Eval[string](tab, `["rates", "response"].map((id) => document.querySelector("#c-" + id + " .plot").chart.f.limits.map((l) => l.text).join(", ")).join("; ")`)
	assert.Equal(t, lines, "holds 900/s, fails 1.2 k/s; p99 < 20 ms", "lines")
	// The colors at places of a chart: above, within and below the band, on the line of the limit, and at the line of a remark.
	got := browser.Eval[string](tab, `(() => {
		const names = new Map(["background", "band", "ink", "muted", "freeze"].map((n) => [getComputedStyle(document.documentElement).getPropertyValue("--" + n).trim(), n]));
		const at = (id, x, y, high) => {
			const u = document.querySelector("#c-" + id + " .plot").chart.plot, { canvas } = u.ctx, copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
			copy.drawImage(canvas, 0, 0);
			const d = copy.getImageData(Math.round(u.valToPos(x, "x", true)) - 8, Math.round(u.valToPos(y, "y", true)), 16, high).data, found = new Set();
			for (let p = 0; p < d.length; p += 4) found.add(d[p + 3] ? names.get("#" + [d[p], d[p + 1], d[p + 2]].map((v) => v.toString(16).padStart(2, "0")).join("")) : "none");
			return [...found].filter((n) => n).sort().join(" ");
		};
		return [at("rates", 15, 1350, 4), at("rates", 15, 1100, 4), at("rates", 15, 700, 4), at("response", 15, 20e3, 2), at("in-flight", 12, 3, 12)].join(", ");
	})()`)
	want := "none, band, none, ink, muted none"
	assert.True(t, strings.HasPrefix(got, "none, band, none, ink") && strings.HasSuffix(got, "muted none"), "colors: got %q, want %q", got, want)
	assert.Has(t, browser.Eval[string](tab, `document.getElementById("key").innerText.replace(/\s+/g, " ")`), "1 0 s trial 3, search: 1 k/s", "2 5 s measurement begins", "3 12 s a step", "warm-up or drain not measured")
	assert.Equal(t, browser.Eval[string](tab, `[...document.querySelectorAll(".shades li:not([hidden])")].map((e) => e.className).join()`), "band", "shades")
	drain := measure.Interval{Phase: measure.Drain, Start: 20 * time.Second, End: 21 * time.Second, LagEvents: -1}
	r.Show(load.Snapshot{At: drain.End, Phase: drain.Phase, Interval: drain, Rows: []measure.Interval{drain}})
	tab.Until(`document.documentElement.dataset.frames === "21"`)
	bands := browser.Eval[string](tab, `document.querySelector("#c-rates .plot").chart.f.marks.filter((m) => m[1] > m[0]).map((m) => m[0] + " to " + m[1]).join()`)
	assert.Equal(t, bands, "0 to 1,1 to 2,2 to 3,3 to 4,4 to 5,20 to 21", "shades of warm-up and drain")
	// The last minute of a stall has no times, and then others than before.
	tab.Do(chromedp.Click(`[data-window="60"]`))
	late := measure.Interval{Phase: measure.Drain, Start: 90 * time.Second, End: 91 * time.Second, LagEvents: -1}
	for i := range 2 {
		r.Show(load.Snapshot{At: late.End, Phase: late.Phase, Interval: late, Rows: []measure.Interval{late}})
		tab.Until(fmt.Sprintf(`document.documentElement.dataset.frames === "%d"`, 22+i))
		n := browser.Eval[int](tab, `(() => { const of = (id) => document.querySelector("#c-" + id + " .plot").chart.f; return of("map").heat.columns.length + of("distribution").series[0].y.reduce((p, n) => p + n, 0) })()`)
		assert.Equal(t, n, 0, "values of other times, and columns of them")
		late.Start, late.End, late.EndToEnd = late.End, late.End+time.Second, measure.NewHistogram()
		late.EndToEnd.Record(time.Second)
	}
	tab.Check()
}

// TestFromTheBeginning: a page that was opened before anything was sent shows what comes.
func TestFromTheBeginning(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	hub := NewHub()
	s := assert.Value(OpenPage("127.0.0.1:0", hub))(t)
	defer s.Close()
	tab := b.OpenServer(t, s.URL(), browser.View{})
	tab.Until(`document.getElementById("state").textContent === "waiting for a run"`)
	r := example(t, hub, "abc", 0, 0)
	tab.Until(`document.documentElement.dataset.state === "live"`)
	for i := range 3 {
		seconds(r, i, i+1)
		tab.Until(fmt.Sprintf(`document.documentElement.dataset.frames === "%d"`, i+1))
	}
	tab.Check()
}
