package export

import (
	"bytes"
	"encoding/xml"
	"html"
	"slices"
	"strings"
	"testing"

	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// fullReport is a report that has every kind of verdict.
func fullReport(t *testing.T, level measure.Level) *report.Document {
	d := document(t, func(in *report.Input) {
		in.Trust = measure.Trust{OK: level != measure.NotTrusted, Level: level, Notes: []string{"a note"}}
		switch level {
		case measure.NotTrusted:
			in.Trust.Reasons = []string{"the first reason", "the second reason"}
		case measure.Noisy:
			in.Trust.Doubts = []string{"a doubt"}
		}
		in.Problems, in.Warnings = []string{"a full disk"}, []string{"a strange topic"}
		in.Checks = append(in.Checks, report.Check{Name: "steady", CannotTell: true, Text: "too short to tell"})
		in.Result.Stopped = load.Interrupted
		in.Result.Steady = measure.Steady{Known: true, Text: "it climbed"}
		in.Result.Stall.Add(4e9, 5e9)
		in.Result.Stall.Share = 0.25
		in.Result.Freezes = measure.Freezes{Count: 1, Total: 2e7}
		in.Encoding = &measure.Encoding{Events: measure.Pooled, Distinct: 7000}
		in.Encoding.Compressed("zstd", 0)
	})
	d.Generates = &report.Generates{EventsPerS: 5000}
	return d
}

// plainText is a report in a format as a reader sees it: without markup, in one line.
func plainText(t *testing.T, format string, d *report.Document) string {
	t.Helper()
	var text string
	if format == "brief" {
		var b bytes.Buffer
		assert.OK(t, d.Brief(&b, layout.Style{}))
		text = b.String()
	} else {
		text = written(t, format, Options{}, d)
	}
	switch format {
	case "html", "junit":
		text = html.UnescapeString(text)
	case "markdown":
		text = html.UnescapeString(strings.ReplaceAll(text, "\\", ""))
	}
	return strings.Join(strings.Fields(text), " ")
}

// TestOneView: every format says everything about a run, in the same words; the first page is a selection.
func TestOneView(t *testing.T) {
	for _, level := range []measure.Level{measure.Trusted, measure.Noisy, measure.NotTrusted} {
		t.Run(string(level), func(t *testing.T) {
			d := fullReport(t, level)
			all := d.Verdicts()
			for _, s := range []report.Subject{report.OnSystem, report.OnEnd, report.OnOutput, report.OnTrust, report.OnGenerator, report.OnLimit, report.OnWarning} {
				assert.True(t, slices.ContainsFunc(all, func(v report.Verdict) bool { return v.On == s }), "no verdict on subject %d", s)
			}
			for _, format := range []string{"text", "markdown", "html"} {
				text := plainText(t, format, d)
				for _, v := range all {
					for _, s := range v.Sentences() {
						assert.True(t, strings.Contains(text, s), "%s does not say %q", format, s)
					}
				}
				assert.True(t, strings.Contains(text, d.Headline()), "%s does not say %q", format, d.Headline())
			}
			for _, format := range []string{"text", "markdown", "html"} {
				text := plainText(t, format, d)
				for _, r := range slices.Concat(d.Counts(), d.Figures()) {
					assert.True(t, !r.Always || strings.Contains(text, r.Label) || r.Name == "throughput" || r.Name == "bytes_per_s",
						"%s has no %q", format, r.Label)
				}
			}
			for _, format := range []string{"text", "markdown", "html"} {
				text := plainText(t, format, d)
				for _, s := range []string{"pooled: 7,000 different ones", "0% of the work of zstd"} {
					assert.True(t, strings.Contains(text, s), "%s does not say %q", format, s)
				}
			}
			// A limit that is not decided has one word everywhere.
			for format, want := range map[string]string{
				"brief": "cannot tell steady: too short to tell", "text": "cannot tell steady: too short to tell", "html": "cannot tell steady: too short to tell",
				"markdown": "cannot tell: steady: too short to tell", "junit": "cannot tell: too short to tell",
			} {
				assert.True(t, strings.Contains(plainText(t, format, d), want), "%s does not say %q", format, want)
			}
			assert.True(t, slices.Contains(d.Against(), "cannot tell: steady: too short to tell"),
				"against it is only %q", d.Against())
			var suites xmlSuites
			assert.OK(t, xml.Unmarshal([]byte(written(t, "junit", Options{}, d)), &suites))
			failed, errs := 1, 1 // the limit, and the disk with the interruption
			if level == measure.NotTrusted {
				errs++
			}
			assert.True(t, suites.Failures == failed && suites.Errors == errs && suites.Skipped == 1,
				"%d failures, %d errors, %d skipped; want %d, %d, 1", suites.Failures, suites.Errors, suites.Skipped, failed, errs)
		})
	}
}
