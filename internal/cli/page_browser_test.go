//go:build conformance

package cli_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/browser"
)

// TestLivePageInABrowser: the page of a real run against a server that is watched.
func TestLivePageInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	c := child(t, "kafka", "--in-memory")
	p := startTrusted(t, "run", "kafka://"+c.Addr()+"/t", "--rate", "2k/s", "--warmup", "1s", "--slo", "p99<50ms", "--slo", "service.p99<20ms",
		"--system-pid", strconv.Itoa(c.Pid()), "--web", "--quiet", "--no-calibrate")
	p.until(t, "live page")
	m := page.FindStringSubmatch(p.said.String())
	tab := b.OpenServer(t, m[1]+"#token="+m[2], browser.View{})
	tab.Until(`Number(document.documentElement.dataset.frames) >= 5`)
	tab.Until(`document.querySelector("#c-cores .legend")?.textContent.includes("system") && document.querySelector("#c-memory .legend").textContent.includes("system")`)
	assert.Has(t, browser.Eval[string](tab, `document.querySelector(".result").textContent`), "RUNNING", "measurement, ", "response p99", "limit 50 ms")
	got := browser.Eval[string](tab, `[...document.querySelectorAll("#now dt")].map((e) => e.textContent).join()`)
	assert.True(t, strings.HasPrefix(got, "offered,sent,acked,failed,response p50,response p99"), "the numbers of the last second: got %q", got)
	p.interrupt(t)
	tab.Until(`document.documentElement.dataset.state === "done"`)
	p.end(t)
	assert.Has(t, browser.Eval[string](tab, `document.querySelector("main").textContent`), "acked", "p99 < 50 ms")
	if file := os.Getenv("LIVE_SCREENSHOT"); file != "" {
		assert.OK(t, os.WriteFile(file, tab.Screenshot(), 0o600))
	}
	tab.Check()
}
