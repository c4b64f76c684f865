package kafka

import (
	"testing"
	"time"
)

// What the client's goroutines waited for a processor, between being handed a batch and
// writing it, is not the broker's; what they waited for an answer is.
func TestUnwritten(t *testing.T) {
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
			if at, unwritten := a.find(3, 2999, tt.due); at != tt.at || unwritten != tt.want {
				t.Errorf("got %v and %v, want %v and %v", at, unwritten, tt.at, tt.want)
			}
			if at, unwritten := a.find(3, 999, tt.due); at != 0 || unwritten != 0 {
				t.Errorf("of an offset before all: %v and %v, want 0", at, unwritten)
			}
		})
	}
}
