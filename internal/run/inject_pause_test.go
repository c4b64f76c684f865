package run

import (
	"errors"
	"strings"
	"testing"
	"time"

	"carronade/internal/verdict/fault"
	"carronade/test/testkit/assert"
)

// TestPauseEndsLater: a pause that could not be ended stays known, is tried again, and the report says what
// became of it, with the command that does it by hand. It has a heal if it has the fault.
func TestPauseEndsLater(t *testing.T) {
	failure := errors.New("no lock")
	for _, tt := range []struct {
		name     string
		failures int
		marked   bool // the fault was made
		exit     bool // the program exits without waiting
		left     bool
		heals    int
		want     string
	}{
		{"at the end", 1, true, false, false, 1, "--fault stop system was undone only when the run had ended: no lock"},
		{"at the end, made in part", 1, false, false, false, 0, "--fault stop system was undone only when the run had ended: no lock"},
		{"never", 9, true, false, true, 0, "--fault stop system was not undone: no lock; by hand: docker unpause b"},
		{"at an exit", 2, true, true, false, 0, ""},
		{"not at an exit", 9, true, true, true, 0, "--fault stop system was not undone: no lock; by hand: docker unpause b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			printed := ""
			e := &execution{Job: Job{
				Workload: resolve(t, &fakeKind{}, "rate=100/s", "for=1h"),
				Logf:     func(_ string, args ...any) { printed, _ = args[0].(string) },
			}}
			rec := fault.NewRecorder(time.Second, 1, 1, func(int32) int { return 0 })
			left := tt.failures
			p := &pause{fault: "stop system", marked: tt.marked, byHand: "docker unpause b", end: func() error {
				if left == 0 {
					return nil
				}
				left--
				return failure
			}}
			j := &injector{e: e, mark: &Marker{e: e, rec: rec, began: time.Now()}, pauses: map[*pause]bool{p: true}}
			err := j.endPause(p)
			assert.Must(t, errors.Is(err, failure) && j.pauses[p], "got %v, and it is known: %v", err, j.pauses[p])
			if tt.exit {
				j.release()
			} else {
				j.endPauses()
				printed = strings.Join(j.problems, "; ")
			}
			assert.Equal(t, printed, tt.want)
			assert.Equal(t, j.pauses[p], tt.left, "whether it is among those that have not ended")
			marks := rec.Marks()
			assert.True(t, len(marks) == tt.heals, "the marks are %+v, want %d", marks, tt.heals)
		})
	}
}
