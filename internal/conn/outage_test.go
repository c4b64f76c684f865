package conn

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit/assert"
)

// An outage that ends is kept with its whole length. A connection that is made again at once is none.
func TestOutageIsKept(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		length time.Duration
		kept   int
	}{{"none", -1, 0}, {"short", 50 * time.Millisecond, 0}, {"long", 29 * time.Second, 1}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var o Outage
				if tt.length >= 0 {
					o.Note(0, errors.New("lost"))
					o.Note(tt.length/2, errors.New("refused"))
					time.Sleep(tt.length)
				}
				kept := 0
				happened := func(name string, began time.Time, length time.Duration) {
					kept++
					assert.Equal(t, name, "no connection", "name")
					assert.True(t, began.Equal(start) && length == tt.length, "it began %v after the start and lasted %v", began.Sub(start), length)
				}
				o.Over(time.Since(start), happened)
				o.Over(time.Since(start), happened) // it is over
				assert.Equal(t, kept, tt.kept, "outages that are kept")
			})
		})
	}
}
