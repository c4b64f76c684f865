package live

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestDayOfThePage: a day of frames, one run after the other, with viewers that come and go, leaves a page with the
// memory that it had after as many runs as it keeps.
func TestDayOfThePage(t *testing.T) {
	testkit.OnlyConformance(t, "minutes: 86,400 frames, each with three histograms")
	synctest.Test(t, func(t *testing.T) {
		hub := NewHub()
		var before int64
		const hours, runs = 24, 10 // an hour has ten runs of six minutes
		for hour := range hours {
			for i := range runs {
				id := time.Duration(hour*runs + i).String()
				r := example(t, hub, id, 0, 1)
				v := newViewer(-1)
				ctx, cancel := context.WithCancel(t.Context())
				ended := v.view(ctx, hub, "/runs/"+id+"/events", "")
				for second := 1; second < 360; second++ {
					seconds(r, second, second+1)
					time.Sleep(time.Second)
					v.text()
				}
				if i%2 == 0 {
					r.End(Done{})
				} else {
					r.End(Done{Error: "broken"})
				}
				synctest.Wait()
				cancel()
				<-ended
			}
			if hour == 5 { // 60 runs: it keeps 50
				before = testkit.Heap()
			}
		}
		grown := testkit.Heap() - before
		assert.True(t, grown < 2<<20, "the page has grown by %d KiB in 18 hours", grown>>10)
		hub.Close()
		synctest.Wait()
	})
}

// TestLongRunOfThePage: a run of a day keeps no more of its frames than one of some hours.
func TestLongRunOfThePage(t *testing.T) {
	testkit.OnlyConformance(t, "minutes: 86,400 frames, each with three histograms")
	hub := NewHub()
	r := example(t, hub, "day", 0, 1)
	var before int64
	for second := 1; second < 86_400; second++ {
		seconds(r, second, second+1)
		if second == 6*3600 {
			before = testkit.Heap()
		}
	}
	grown := testkit.Heap() - before
	assert.True(t, grown < 2<<20, "a run's frames have grown by %d KiB in 18 hours", grown>>10)
	r.End(Done{})
}
