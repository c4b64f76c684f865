//go:build conformance

package acceptance

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/browser"
)

// TestPictures opens the pages of a Kafka, a Riemann and an APM report in Chromium,
// with the screens of a desktop and of a phone, in both themes: without errors and
// without network requests. PAGE_SCREENSHOTS names a folder for the screenshots.
func TestPictures(t *testing.T) {
	t.Parallel()
	kinds := []string{"kafka", "riemann", "apm"}
	home, dir := t.TempDir(), t.TempDir()
	var runs []*session
	for _, kind := range kinds {
		s := prepare(t, "demo", kind, "--quiet", "--note", kind)
		s.home = home
		s.begin()
		runs = append(runs, s)
	}
	for _, s := range runs {
		s.wait(runTimeout).want(t, 0)
	}
	b := browser.Start(t)
	for _, kind := range append(kinds, "several") {
		t.Run(kind, func(t *testing.T) {
			path := filepath.Join(dir, kind+".html")
			args := []string{"report", "export", "note=" + kind, "--as", "html", "--out", path}
			if kind == "several" {
				args = []string{"report", "export", "last", "last~1", "last~2", "--as", "html", "--out", path}
			}
			runAt(t, home, args...).want(t, 0)
			tab := b.Open(t, path, browser.View{})
			tab.Until(`document.documentElement.dataset.drawn === "all"`)
			n := browser.Eval[int](tab, `[...document.querySelectorAll("figure .plot")].reduce((n, p) => n + (p.querySelector("canvas") ? p.chart.f.series.length + (p.chart.f.heat ? 1 : 0) : 0), 0)`)
			assert.True(t, n >= 20, "lines and maps on the page: got %d, want those of all pictures", n)
			for name, v := range map[string]browser.View{
				"1280-light": {Width: 1280},
				"1280-dark":  {Width: 1280, Dark: true},
				"360-light":  {Width: 360, Height: 800, Touch: true},
				"360-dark":   {Width: 360, Height: 800, Touch: true, Dark: true},
			} {
				tab.SetView(v)
				tab.Until(fmt.Sprintf(`document.documentElement.clientWidth === %d`, v.Width))
				tab.Until(`document.documentElement.dataset.drawn === "all" && [...document.querySelectorAll(".plot")].every((p) => Math.abs(p.clientWidth - p.querySelector("canvas").clientWidth) < 2)`)
				w := browser.Eval[int64](tab, `document.documentElement.scrollWidth`)
				assert.True(t, w <= v.Width, "%s: got a page %d pixels wide", name, w)
				screenshot := tab.Screenshot()
				m, err := png.Decode(bytes.NewReader(screenshot))
				assert.True(t, err == nil && int64(m.Bounds().Dx()) >= v.Width && m.Bounds().Dy() >= 2000,
					"%s: the screenshot does not show a page: %v", name, err)
				if folder := os.Getenv("PAGE_SCREENSHOTS"); folder != "" {
					assert.OK(t, os.WriteFile(filepath.Join(folder, kind+"-"+name+".png"), screenshot, 0o600))
				}
			}
			tab.Check()
		})
	}
	// The same pictures as files.
	for _, form := range []string{"svg", "png"} {
		folder := filepath.Join(dir, form)
		runAt(t, home, "report", "export", "note=kafka", "--as", form, "--out", folder).want(t, 0)
		files, err := filepath.Glob(filepath.Join(folder, "*."+form))
		assert.True(t, err == nil && len(files) >= 10 && strings.Contains(strings.Join(files, " "), "end-to-end-map"),
			"pictures as %s: got %v, %v, want one file each", form, files, err)
	}
}
