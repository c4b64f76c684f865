//go:build conformance

package serve

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"carronade/internal/live"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/browser"
)

// TestPage: the page shows the run in progress, the queue and the stored reports, cancels a job,
// filters reports, and overlays two of them.
func TestPage(t *testing.T) {
	b := browser.Start(t)
	s := newTestSite(t)
	s.outcome = func(args []string, stdout, stderr io.Writer) int {
		if args[1] == "export" {
			fmt.Fprintf(stdout, "<!doctype html><title>%q</title><p id=ids>%q</p>", args[4:], args[4:])
			return 0
		}
		if args[len(args)-1] == "bad=1" {
			fmt.Fprint(stderr, "error: no report has a field bad\nhint: did you mean rate?\n")
			return 2
		}
		fmt.Fprint(stdout, `{"reports": [
			{"id": "aaaa1111", "started_at": "2026-01-02T03:04:05Z", "running": false, "fields": {"op": "produce", "target": "kafka://127.0.0.1:9092/t", "branch": "main", "throughput": 20000, "response_p99": 0.0123, "limits": "broken", "exit": 1, "trust_level": "trusted"}},
			{"id": "bbbb2222", "started_at": "2026-01-02T03:05:05Z", "running": false, "fields": {"op": "produce", "target": "<b>x</b>", "throughput": 19000, "service_p99": 0.001, "exit": 0, "trust_level": "noisy"}}]}`)
		return 0
	}
	first := s.submit("run", "kafka://127.0.0.1:9092/t", "--label", "text=<b>bold</b>", "wait")
	second := s.submit("run", "kafka://127.0.0.1:9092/t", "--for", "3s")
	awaitOutput(t, s.queue, first)
	r := live.NewRecorder("run1", live.Run{Target: "kafka://127.0.0.1:9092/t", Op: "produce", Version: "test", StartedAt: "2026-01-02T03:04:05Z", Interval: live.Seconds(time.Second), Schedule: true, Processors: 2},
		func(e live.Event) { err := s.hub.Take(e); assert.True(t, err == nil, "%v", err) })
	for i := range 30 {
		h := measure.NewHistogram()
		h.Record(time.Duration(5+i%7) * time.Millisecond)
		iv := measure.Interval{
			Phase: measure.Measurement, Start: time.Duration(i) * time.Second, End: time.Duration(i+1) * time.Second,
			Counts: measure.Counts{Offered: 1000, Sent: 1000, Acked: 1000}, Set: measure.Set{Response: h, Service: h}, LagEvents: -1,
		}
		r.Show(load.Snapshot{At: iv.End, Phase: iv.Phase, Interval: iv, Rows: []measure.Interval{iv}})
	}
	tab := b.OpenServer(t, s.url+"/#token="+s.secret, browser.View{Width: 1280, Height: 900})
	tab.Until(`document.querySelectorAll('#queue tbody tr').length === 2 && document.querySelectorAll('#reports tbody tr').length === 2 && Boolean(document.documentElement.dataset.frames)`)
	for expression, want := range map[string]string{
		`document.querySelector('#queue tbody tr').cells[0].textContent`:                        fmt.Sprint(second), // the newest first
		`document.querySelectorAll('#queue tbody tr')[1].cells[2].firstChild.data`:              "run kafka://127.0.0.1:9092/t --label text=<b>bold</b> wait",
		`document.querySelectorAll('#reports tbody tr')[1].cells[3].textContent`:                "produce <b>x</b>",
		`document.querySelectorAll('#reports tbody tr')[1].cells[5].textContent`:                "1 msservice",
		`String(document.querySelectorAll('#team b:not(.said)').length)`:                        "0",
		`document.querySelector('#reports tbody').innerText.match(/FAIL|DONE\s+noisy/g).join()`: "FAIL,DONE\nnoisy",
		`document.getElementById('which-run').textContent`:                                      "produce kafka://127.0.0.1:9092/t",
		`document.querySelector('h2').textContent`:                                              "Queue",
	} {
		assert.Equal(t, browser.Eval[string](tab, expression), want, "%s", expression)
	}
	for _, v := range []browser.View{{Width: 1280, Height: 800}, {Width: 1280, Height: 800, Dark: true}, {Width: 400, Height: 800, Dark: true}, {Width: 400, Height: 800}} {
		tab.Shown(v)
		tab.Fits()
		tab.Accessible()
		tab.Keep(fmt.Sprintf("team-%d-%s", v.Width, map[bool]string{true: "dark", false: "light"}[v.Dark]))
	}
	tab.SetView(browser.View{Width: 1280, Height: 800})
	press := func(button string) string {
		return fmt.Sprintf(`[...document.querySelectorAll("button")].find((b) => b.textContent === %q).click()`, button)
	}
	tab.Do(chromedp.Evaluate[chromedp.Void](press(fmt.Sprintf("Cancel job %d", second))))
	tab.Until(fmt.Sprintf(`[...document.querySelectorAll('#queue tbody tr')].some((r) => r.cells[0].textContent === '%d' && r.cells[1].textContent.includes('cancelled'))`, second))

	tab.Do(chromedp.SetValue(chromedp.CSS("#filter"), "bad=1"), chromedp.Click(chromedp.CSS("#find button[type=submit]")))
	tab.Until(`document.getElementById('found').textContent === 'no report has a field bad - did you mean rate?'`)
	tab.Do(chromedp.SetValue(chromedp.CSS("#filter"), "branch=main"), chromedp.Click(chromedp.CSS("#find button[type=submit]")))
	tab.Until(`document.getElementById('found').textContent === ''`)

	tab.Do(chromedp.Click(chromedp.CSS(`input[aria-label="Choose report aaaa1111"]`)), chromedp.Click(chromedp.CSS(`input[aria-label="Choose report bbbb2222"]`)))
	tab.Until(`!document.getElementById('overlay').disabled && document.getElementById('overlay').textContent === 'Compare 2 reports'`)
	if got := tab.Problems(); len(got) != 1 || !strings.Contains(got[0], "400 (Bad Request)") { // of the wrong filter
		t.Errorf("the browser says %q", got)
	}
	s.want(202, "POST", fmt.Sprintf("/api/v1/jobs/%d/cancel", first), "")
}
