package heyapm

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"carronade/internal/dropin"
	"carronade/internal/dropin/dropintest"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/test/testkit/assert"
)

// Bodies are as large as those of the tool of 2018, whose sizes these are, since its volumes are compared.
func TestHeyBodySizes(t *testing.T) {
	for _, c := range []struct{ events, spans, frames, bytes int }{
		{1, 1, 1, 2761}, {1, 2, 1, 3807}, {1, 2, 3, 7259}, {5, 5, 5, 119213}, {10, 10, 10, 894373}, {1, 0, 1, 2547}, {1, 0, 3, 4273}, {10, 0, 10, 99027},
	} {
		file := filepath.Join(t.TempDir(), "body.json")
		got := runHeyTool(t, false, "dump", file, strconv.Itoa(c.events), strconv.Itoa(c.spans), strconv.Itoa(c.frames))
		assert.Must(t, got.Code == 0 && got.Err == nil, "%+v", got)
		size := len(assert.Value(os.ReadFile(file))(t))
		assert.True(t, math.Abs(float64(size)/float64(c.bytes)-1) < 0.05, "%+v has %d bytes", c, size)
	}
	got := runHeyTool(t, false, "test", "1s", "1", "2", "3", "4")
	assert.True(t, got.Last()["frame-size"] == "863B" && got.Last()["event-size"] == "1240B", "%+v", got.Last())
	got = runHeyTool(t, false, "-profile", "tiny")
	assert.Equal(t, got.Last()["frame-size"], "", "profiles have their own numbers of frames")
}

// The server's version decides the intake; the URL and the size that are printed are those that were used.
func TestHeyTestIntake(t *testing.T) {
	facts := map[string]any{"request": map[string]any{"path": "/prefix/intake/v2/events", "bytes": 7300.}}
	got := dropintest.Run(t.Context(), t, &Tool, dropin.Program{Args: []string{"-base-url", "http://h:1/prefix/", "test", "1s", "1", "2", "3", "4"}}, func(_ *workload.Document, o dropin.Observer) (*report.Document, error) {
		o.Found(facts)
		d := heyAnswered()
		d.Facts = facts
		return d, nil
	})
	assert.Equal(t, got.Last()["intake"], "auto", "intake")
	assert.Equal(t, got.Last()["request-timeout"], "30s", "as in the tool's test; profiles have 3 s")
	assert.Has(t, got.Out, "started new work, payload size is 7.3kb...\non branch", "\nhttp://h:1/prefix/intake/v2/events 0\n")
}

// A test without one accepted request says that its report counts for nothing.
func TestHeyTestRefused(t *testing.T) {
	got := dropintest.Run(t.Context(), t, &Tool, dropin.Program{Args: []string{"test", "1s", "1", "2", "3", "4"}}, func(_ *workload.Document, o dropin.Observer) (*report.Document, error) {
		o.Kept(dropin.Kept{ID: "k3v9x2ab", Place: "a.db"})
		d := heyAnswered()
		d.Totals.Statuses = d.Totals.Statuses[1:]
		return d, nil
	})
	assert.True(t, strings.HasSuffix(got.Out, "\nnot saving this report: no accepted requests\n"), "%s", got.Out)
}
