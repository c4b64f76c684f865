//go:build conformance

package export

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/browser"
)

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
