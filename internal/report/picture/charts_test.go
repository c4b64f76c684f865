package picture_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"carronade/internal/live"
	"carronade/internal/report"
	"carronade/internal/report/export"
	"carronade/internal/report/picture"
	"carronade/test/testkit/assert"
)

// Both pages run the same scripts and have the same style sheets, to the byte. The page in one file
// has the license of uPlot too.
func TestBothPagesHaveThem(t *testing.T) {
	var b strings.Builder
	assert.OK(t, export.Write(&b, "html", export.Of(&report.Document{}), export.Options{}))
	for _, name := range append(append([]string{}, picture.ChartScripts...), picture.ChartSheets...) {
		want := picture.ChartFile(name)
		assert.True(t, len(want) >= 1000, "%s has only %d bytes", name, len(want))
		w := httptest.NewRecorder()
		live.Assets().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/"+name, nil))
		assert.Equal(t, w.Body.String(), want, "%s of the live page", name)
		assert.True(t, strings.Contains(b.String(), want), "the page of a report has another %s", name)
	}
	w := httptest.NewRecorder()
	live.Assets().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	for _, name := range picture.ChartScripts {
		assert.True(t, strings.Contains(w.Body.String(), `<script src="`+name+`" defer>`), "the live page does not run %s", name)
	}
	assert.Has(t, b.String(), "The MIT License", "Leon Sorokin", "THE SOFTWARE IS PROVIDED")
}
