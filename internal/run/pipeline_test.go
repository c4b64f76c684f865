package run

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/host"
	"carronade/internal/null"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// TestPipelines: the report of a pipeline has both stages, and a check that everything was
// read. An interruption ends the waiting, and what was not read by then breaks the check.
func TestPipelines(t *testing.T) {
	for _, tt := range []struct {
		name      string
		interrupt time.Duration // 0: none
		read      uint64
		check     string
		code      int
	}{
		{"to its end", 0, 2000, "every acked event was read", host.ExitOK},
		{"interrupted", 15 * time.Second, 0, "2,000 acked events not read when the run ended", host.ExitInterrupted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var doc workload.Document
				for _, p := range []string{"target=null://here", "op=pipeline", "rate=1k/s", "for=2s", "read-delay=20s"} {
					name, v, _ := strings.Cut(p, "=")
					doc.Add(name, "--"+name, v)
				}
				w := assert.Value(workload.Resolve([]protocol.Kind{null.Kind{}}, &doc, nil))(t)
				ctx, abort := context.Background(), make(chan struct{})
				if tt.interrupt > 0 {
					var stop context.CancelFunc
					ctx, stop = context.WithCancel(ctx)
					time.AfterFunc(tt.interrupt, func() { stop(); close(abort) })
				}
				d := assert.Value(Execute(ctx, Job{Workload: w, Version: "test", Portable: true, Abort: abort}))(t)
				assert.Must(t, len(d.Parts) == 2 && d.Parts[0].Name == "send" && d.Parts[1].Name == "read", "parts %+v", d.Parts)
				if got := d.Parts[1].Totals; got.Offered != 2000 || got.Acked != tt.read || got.Unsent != 2000-tt.read {
					t.Errorf("read %d of %d, %d not begun", got.Acked, got.Offered, got.Unsent)
				}
				s := d.Parts[1].SendDelay
				assert.True(t, tt.read == 0 || s != nil && s.Max == 0, "reads began late: %+v", s)
				if e := d.EndToEnd; tt.read > 0 && (e == nil || e.Count != 2000 || e.Min < 19.9e6 || e.Max > 20.3e6) {
					t.Errorf("end to end %+v", e)
				}
				var text string
				for _, c := range d.Checks {
					if c.Name == "read" {
						text = c.Text
						assert.Equal(t, c.OK, (tt.read == 2000), "the check: %+v", c)
					}
				}
				if text != tt.check || d.ExitCode() != tt.code {
					t.Errorf("check %q, exit %d; want %q, %d", text, d.ExitCode(), tt.check, tt.code)
				}
			})
		})
	}
}
