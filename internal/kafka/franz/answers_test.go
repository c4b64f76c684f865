package franz

import (
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// What the client's goroutines waited for a processor, between being handed a batch and
// writing it, is not the broker's; what they waited for an answer is.
func TestUnwritten(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, tt := range []struct {
		name                   string
		due, written, room, at time.Duration
		want                   time.Duration
	}{
		{"written at once", 100 * ms, 100 * ms, 0, 105 * ms, 0},
		{"written late", 100 * ms, 108 * ms, 0, 113 * ms, 8 * ms},
		{"written when there was room", 100 * ms, 120 * ms, 120 * ms, 125 * ms, 0},
		{"later than that", 100 * ms, 122 * ms, 120 * ms, 127 * ms, 2 * ms},
		{"room before it was handed over", 100 * ms, 103 * ms, 90 * ms, 108 * ms, 3 * ms},
		{"not known when", 100 * ms, 0, 0, 113 * ms, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var a answerTimes
			a.start(func() time.Duration { return 0 })
			a.add(3, answerAt{1000, tt.at - ms, tt.written, tt.room})
			a.add(3, answerAt{2000, tt.at, tt.written, tt.room})
			a.add(3, answerAt{3000, tt.at + ms, tt.written, tt.room})
			at, unwritten := a.find(3, 2999, tt.due)
			assert.True(t, at == tt.at && unwritten == tt.want, "got %v and %v, want %v and %v", at, unwritten, tt.at, tt.want)
			at, unwritten = a.find(3, 999, tt.due)
			assert.True(t, at == 0 && unwritten == 0, "of an offset before all: %v and %v, want 0", at, unwritten)
		})
	}
}

// The first of several answers can have arrived earlier than the reader woke by as much
// as the reader was late recently, but not while the socket was still empty.
func TestReaderWakesLate(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	r := readTimes{emptyAt: 10 * ms}
	steps := []struct {
		name            string
		at, arrived     time.Duration
		want, wantDelay time.Duration
	}{
		{"the kernel's time is not known", 20 * ms, 0, 20 * ms, 0},
		{"at once", 20 * ms, 20 * ms, 20 * ms, 0},
		{"the clocks differ a little", 20 * ms, 20*ms + 1000, 20 * ms, 0},
		{"late", 36 * ms, 20 * ms, 10 * ms, 16 * ms},
		{"at once, after one that was late", 40 * ms, 40 * ms, 25 * ms, 15 * ms},
		{"not known, after one that was late", 60 * ms, 0, 60*ms - (15*ms - 15*ms/16), 15*ms - 15*ms/16},
	}
	for _, tt := range steps {
		if r.woken(tt.at, tt.arrived); r.wokenAt != tt.want || r.delay != tt.wantDelay {
			t.Errorf("%s: got %v with a delay of %v, want %v with %v", tt.name, r.wokenAt, r.delay, tt.want, tt.wantDelay)
		}
	}
}
