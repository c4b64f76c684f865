package run

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/test/testkit/assert"
)

// What is wrong with the machine is a warning of the report, once, and the report that was
// stored prints the same. It decides neither the exit code nor the trust.
func TestMachineWarnings(t *testing.T) {
	for _, tt := range []struct {
		name string
		host any
		want string // the beginning of the warning; "": none
	}{
		{"a good machine", host.Host{OS: "linux", Cores: 4, Clock: "tsc", Governor: "performance"}, ""},
		{"a slow clock", host.Host{OS: "linux", Cores: 4, Clock: "hpet"}, "the clock source is hpet: "},
		{"no description", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, err := Execute(t.Context(), Job{Portable: true, Workload: resolve(t, &fakeKind{}, "count=10"), Host: tt.host})
				assert.OK(t, err)
				n := 0
				for _, text := range d.Warnings {
					if strings.HasPrefix(text, "the clock source") {
						n++
						assert.True(t, tt.want != "" && strings.HasPrefix(text, tt.want) && strings.Contains(text, "; "), "got %q", text)
					}
				}
				if n > 1 || n == 0 && tt.want != "" || d.ExitCode() != host.ExitOK {
					t.Errorf("%d warnings, exit code %d: %q; trust: %q", n, d.ExitCode(), d.Warnings, d.Trust.Reasons)
				}
				var stored bytes.Buffer
				assert.OK(t, d.WriteJSON(&stored))
				read, err := report.Read(&stored)
				assert.True(t, err == nil && slices.Equal(read.Warnings, d.Warnings) && read.ExitCode() == d.ExitCode(),
					"the stored report differs (%v): got %q", err, read.Warnings)
			})
		})
	}
}
