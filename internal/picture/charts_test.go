package picture_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"carronade/internal/export"
	"carronade/internal/live"
	"carronade/internal/picture"
	"carronade/internal/report"
)

// Both pages run the same scripts and have the same style sheets, to the byte. The page in one file
// has the license of uPlot too.
func TestBothPagesHaveThem(t *testing.T) {
	var b strings.Builder
	if err := export.Write(&b, "html", export.Of(&report.Document{}), export.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(append([]string{}, picture.ChartScripts...), picture.ChartSheets...) {
		want := picture.ChartFile(name)
		if len(want) < 1000 {
			t.Errorf("%s has only %d bytes", name, len(want))
		}
		w := httptest.NewRecorder()
		live.Assets().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/"+name, nil))
		if w.Body.String() != want {
			t.Errorf("the live page has another %s", name)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page of a report has another %s", name)
		}
	}
	w := httptest.NewRecorder()
	live.Assets().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	for _, name := range picture.ChartScripts {
		if !strings.Contains(w.Body.String(), `<script src="`+name+`" defer>`) {
			t.Errorf("the live page does not run %s", name)
		}
	}
	for _, want := range []string{"The MIT License", "Leon Sorokin", "THE SOFTWARE IS PROVIDED"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page of a report lacks the license: %q", want)
		}
	}
}
