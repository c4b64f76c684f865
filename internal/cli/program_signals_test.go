package cli

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit/assert"
)

// The first signal stops the run, and the second exits at once. What one Ctrl-C, or one end of the program that started
// this one, sends twice is one signal: otherwise the report would be lost.
func TestSecondSignal(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name    string
		signals []os.Signal
		at      []time.Duration // since the one before
		exits   int
	}{
		{"one", []os.Signal{os.Interrupt}, []time.Duration{0}, 0},
		{"timeout signals the process and its group", []os.Signal{os.Interrupt, os.Interrupt}, []time.Duration{0, ms}, 0},
		{"within a second", []os.Signal{os.Interrupt, os.Interrupt}, []time.Duration{0, 900 * ms}, 0},
		{"TERM for each thread", []os.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGTERM}, []time.Duration{0, 0, 0}, 0},
		{"again", []os.Signal{os.Interrupt, os.Interrupt}, []time.Duration{0, 1100 * ms}, 1},
		{"twice, and again", []os.Signal{os.Interrupt, os.Interrupt, os.Interrupt}, []time.Duration{0, ms, 1100 * ms}, 1},
		{"another signal", []os.Signal{os.Interrupt, syscall.SIGTERM}, []time.Duration{0, ms}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals := make(chan os.Signal)
				var codes []int
				stopped := 0
				s := &session{Program: &Program{Signals: signals, Exit: func(code int) { codes = append(codes, code) }}, interrupt: func(error) { stopped++ }}
				end := s.watchSignals()
				for i, sig := range tt.signals {
					time.Sleep(tt.at[i])
					signals <- sig
					synctest.Wait()
				}
				end()
				assert.Equal(t, stopped, 1, "stops of the run")
				assert.True(t, slices.Equal(codes, slices.Repeat([]int{130}, tt.exits)), "exits with %v, want %d", codes, tt.exits)
			})
		})
	}
}
