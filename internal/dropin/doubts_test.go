package dropin

import (
	"strings"
	"testing"

	"carronade/internal/report"
	"carronade/measure"
)

func TestWriteWarnings(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    report.Document
		want string
	}{
		{"none", report.Document{Trust: measure.Trust{OK: true}, Checks: []report.Check{{Name: "failures", OK: true, Text: "0"}}}, ""},
		{"noisy", report.Document{Trust: measure.Trust{OK: true, Level: measure.Noisy, Doubts: []string{"a little late"}}}, "warning: noisy: a little late\n"},
		{"all", report.Document{
			Problems: []string{"nothing was acked"}, Trust: measure.Trust{Reasons: []string{"it was late", "it froze"}},
			Checks: []report.Check{{Name: "failures", Text: "at most 0, and there were 3"}},
		}, "warning: nothing was acked\nwarning: not to be trusted: it was late; it froze\nwarning: failures: at most 0, and there were 3\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			if WriteWarnings(&b, &tt.d); b.String() != tt.want {
				t.Errorf("got %q, want %q", b.String(), tt.want)
			}
		})
	}
}
