package kafka

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// A run that read nothing says why.
func TestWhyNothing(t *testing.T) {
	t.Parallel()
	client := map[string][]string{"engine": {cluster.EngineClient}}
	with := func(name, value string) map[string][]string {
		return map[string][]string{"engine": {cluster.EngineClient}, name: {value}}
	}
	for _, tt := range []struct {
		name   string
		given  map[string][]string
		events int
		refuse int16 // error of the coordinator; 0: none
		want   string
	}{
		{"empty", nil, 0, 0, "nothing was ever written to t"},
		{"empty, client engine", client, 0, 0, "nothing was ever written to t"},
		{"at the end", map[string][]string{"from": {"latest"}}, 10, 0, "it began at the end of the logs (latest), and nothing was written since"},
		{"at the end, client engine", map[string][]string{"engine": {cluster.EngineClient}, "from": {"latest"}}, 10, 0, "it began at the end of the logs (latest), and nothing was written since"},
		{"a refused group", with("group", "g"), 10, kerr.GroupAuthorizationFailed.Code, "no partition was assigned to a member of the group g: "},
		{"a share group", with("share-group", "s"), 10, 0, "a new share group begins where the logs end, unless its setting share.auto.offset.reset is earliest"},
		{"a refused share group", with("share-group", "s"), 10, kerr.GroupAuthorizationFailed.Code, "the share group s: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := fakeCluster(t, kfake.SeedTopics(1, "t"))
			if tt.events > 0 {
				put(t, c, records(tt.events, 1, sized(20)))
			}
			asked := make(chan struct{}, 1)
			for _, key := range []kmsg.Key{kmsg.JoinGroup, kmsg.ConsumerGroupHeartbeat, kmsg.ShareGroupHeartbeat} {
				if tt.refuse == 0 {
					continue
				}
				c.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
					c.KeepControl()
					resp := req.ResponseKind()
					switch r := resp.(type) {
					case *kmsg.JoinGroupResponse:
						r.ErrorCode = tt.refuse
					case *kmsg.ConsumerGroupHeartbeatResponse:
						r.ErrorCode = tt.refuse
					case *kmsg.ShareGroupHeartbeatResponse:
						r.ErrorCode = tt.refuse
					}
					select {
					case asked <- struct{}{}:
					default:
					}
					return resp, nil, true
				})
			}
			src := source(t, c, tt.given)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			start := time.Now()
			go func() {
				ended <- src.Receive(ctx, func() time.Duration { return time.Since(start) }, func(int, []load.Arrival) { t.Error("something was read") })
			}()
			if tt.refuse != 0 {
				<-asked
				select { // an error that is permanent ends it
				case <-ended:
					ended <- nil
				case <-time.After(time.Minute):
				}
			}
			cancel()
			<-ended
			why := src.(protocol.NothingRead).WhyNothing(t.Context())
			assert.True(t, strings.HasPrefix(why, tt.want), "got %q, want it to begin with %q", why, tt.want)
		})
	}
}

// Only the wire engine counts records without decoding them.
func TestUndecoded(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	for _, tt := range []struct {
		given     map[string][]string
		undecoded bool
	}{
		{nil, true},
		{map[string][]string{"decode": {"true"}}, false},
		{map[string][]string{"engine": {cluster.EngineClient}}, false},
	} {
		x, ok := source(t, c, tt.given).(protocol.Undecoded)
		assert.Equal(t, ok && x.Undecoded() != "", tt.undecoded, "%v: undecoded", tt.given)
	}
}
