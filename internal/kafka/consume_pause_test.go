package kafka

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/test/testkit/assert"
)

// A reader that is paused fetches nothing, also if it is paused before it begins. The pause is not a delay of its own:
// what it reads then cannot have arrived before.
func TestPause(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		given map[string][]string
	}{
		{"wire", map[string][]string{"engine": {cluster.EngineWire}}},
		{"client", map[string][]string{"engine": {cluster.EngineClient}}},
		{"group", map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const each = 10
			c := fakeCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "t"))
			tt.given["from"], tt.given["fetch-wait"] = []string{"earliest"}, []string{"50ms"}
			src := source(t, c, tt.given)
			pause := src.Capabilities().Pause
			pause(true)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start, resumed := time.Now(), time.Duration(0)
			var mu sync.Mutex
			got, ended := make(chan int, 100), make(chan error, 1)
			go func() {
				ended <- src.Receive(ctx, func() time.Duration { return time.Since(start) }, func(_ int, as []load.Arrival) {
					mu.Lock()
					defer mu.Unlock()
					for _, a := range as {
						assert.True(t, resumed > 0, "%d events came in the pause", a.Events)
						assert.True(t, a.Earliest == 0 || a.At < resumed || a.Earliest >= resumed, "events that arrived at %v after a pause until %v count as there at %v", a.At, resumed, a.Earliest)
						got <- int(a.Events)
					}
				})
			}()
			for round := range 3 { // what was asked for before a pause may come in it, so only the third reads nothing in its pause
				// Once another reader has all, a reader that is not paused would have some.
				put(t, c, records(each, 2, sized(10)))
				other := drain(t, source(t, c, map[string][]string{"engine": {cluster.EngineWire}, "until-end": {"true"}}), nil)
				assert.Equal(t, other.events, each*(round+1), "events for another reader")
				mu.Lock()
				resumed = time.Since(start)
				mu.Unlock()
				pause(false)
				for n := 0; n < each; {
					select {
					case k := <-got:
						n += k
					case err := <-ended:
						t.Fatalf("the reader ended: %v", err)
					}
				}
				pause(true)
			}
			cancel()
			assert.True(t, errors.Is(<-ended, context.Canceled), "the reader ended differently")
		})
	}
}

// A fetcher that is paused for long asks for nothing now and then, so that its connection stays open.
func TestPausedFetcherStaysConnected(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	put(t, c, records(10, 1, sized(10)))
	idle, asked := make(chan struct{}, 1000), false
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if len(req.(*kmsg.FetchRequest).Topics) > 0 {
			asked = true
		} else if !asked {
			idle <- struct{}{}
		}
		return nil, nil, false
	})
	s := spec(t, urlOf(c, "t"), map[string][]string{"engine": {cluster.EngineWire}, "until-end": {"true"}, "fetch-wait": {"10ms"}})
	s.Op = cluster.OpConsume
	src := assert.Value(open(t, s))(t).(*session).in.(*wireSource)
	src.pause.ping = time.Millisecond
	src.pause.set(true)
	go func() {
		for range 3 {
			<-idle
		}
		src.pause.set(false)
	}()
	assert.Equal(t, drain(t, src, nil).events, 10, "events after the pause")
	assert.Equal(t, src.lostConns.Load(), 0, "lost connections")
}
