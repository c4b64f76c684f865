package page_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"carronade/internal/live"
	"carronade/internal/page"
	"carronade/internal/report"
	"carronade/internal/report/export"
	"carronade/test/testkit/assert"
)

// Both pages have the same style sheet and scripts, to the byte, and no other sheet. The page in one file has
// the license of uPlot too.
func TestBothPagesHaveThem(t *testing.T) {
	var b strings.Builder
	assert.OK(t, export.Write(&b, "html", export.Of(&report.Document{}), export.Options{}))
	get := func(name string) string {
		w := httptest.NewRecorder()
		live.Assets().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/"+name, nil))
		return w.Body.String()
	}
	for _, name := range page.Scripts {
		want := page.File(name)
		assert.True(t, len(want) >= 1000, "%s has only %d bytes", name, len(want))
		assert.Equal(t, get(name), want, "%s of the live page", name)
		assert.True(t, strings.Contains(b.String(), want), "the page of a report has another %s", name)
		assert.Has(t, get(""), `<script src="`+name+`" defer>`)
	}
	assert.Equal(t, get("style.css"), page.Style(), "the style sheet of the live page")
	assert.Equal(t, strings.Count(get(""), "<style")+strings.Count(get(""), "stylesheet"), 1, "style sheets of the live page")
	assert.Equal(t, strings.Count(b.String(), "<style>"), 1, "style sheets of the page of a report")
	assert.Has(t, b.String(), "<style>"+page.Style()+"</style>", "The MIT License", "Leon Sorokin", "THE SOFTWARE IS PROVIDED")
	for _, p := range []string{get(""), b.String()} {
		assert.Has(t, p, `<section class="result `, `<dl class="facts">`, `id="key"`)
	}
}

// No line ends between a number and its unit; the script has the same expression.
func TestUnbroken(t *testing.T) {
	for text, want := range map[string]string{
		"p99 < 20 ms: 12.3 ms": "p99 <_20_ms: 12.3_ms", "382 k/s, 1.2 GiB": "382_k/s, 1.2_GiB", "1 M events in 30 s": "1_M events in 30_s", "10 seconds": "10 seconds", "1.4 % of 3": "1.4_% of 3",
	} {
		assert.Equal(t, strings.ReplaceAll(page.Unbroken(text), "\u00a0", "_"), want)
	}
	expression := assert.Value(os.ReadFile("page.go"))(t)
	_, rest, _ := strings.Cut(string(expression), "regexp.MustCompile(`")
	rest, _, _ = strings.Cut(rest, "`)")
	assert.Has(t, page.File("format.js"), "text.replace(/"+strings.ReplaceAll(rest, "/", `\/`)+"/g, ")
}
