package kafka

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/test/testkit/assert"
)

// A run waits for a topic that does not appear, and then reads nothing.
func TestWaitTopicInVain(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"), kfake.AllowAutoTopicCreation())
	for _, tt := range []struct {
		name, topic string
		given       map[string][]string
		want        string
	}{
		{"a name", "late", map[string][]string{}, "the topic late did not appear within 300ms"},
		{"an expression", "t", map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}, "topics": {"late.*"}}, "a topic whose name matches ^(?:late.*)$ did not appear within 300ms"},
		{"a share group", "late", map[string][]string{"engine": {cluster.EngineClient}, "share-group": {"g"}}, "the topic late did not appear within 300ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.given["wait-topic"] = []string{"300ms"}
			s := spec(t, urlOf(c, tt.topic), tt.given)
			s.Op = cluster.OpConsume
			began := time.Now()
			session := assert.Value(open(t, s))(t)
			took := time.Since(began)
			assert.True(t, took >= 300*time.Millisecond, "waited for %v, want 300ms or more", took)
			w := strings.Join(session.Warnings(), "\n")
			assert.True(t, strings.Contains(w, tt.want), "warnings %q, want %q", w, tt.want)
			n := session.Capabilities().Notice()
			assert.True(t, n != "" && strings.HasPrefix(tt.want, n), "the notice is %q", n)
			assert.True(t, !exists(t, c, "late"), "the topic was created")
			src := session.Source()
			assert.Equal(t, len(src.Logs()), 0, "logs")
			assert.OK(t, src.Receive(t.Context(), func() time.Duration { return 0 }, nil))
			assert.True(t, session.Facts()["absent"] == true, "facts %v", session.Facts())
			assert.OK(t, session.Capabilities().Survey(t.Context()))
		})
	}
}

// A topic that appears in time is read.
func TestWaitTopic(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	for _, tt := range []struct {
		name, topic, created string
		given                map[string][]string
	}{
		{"a name", "one", "one", map[string][]string{}},
		{"an expression", "t", "two", map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}, "topics": {"two.*"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.given["wait-topic"] = []string{"5m"}
			s := spec(t, urlOf(c, tt.topic), tt.given)
			s.Op = cluster.OpConsume
			created := make(chan error, 1)
			time.AfterFunc(200*time.Millisecond, func() {
				cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
				if err == nil {
					defer cl.Close()
					_, err = kadm.NewClient(cl).CreateTopic(t.Context(), 3, 1, nil, tt.created)
				}
				created <- err
			})
			session, err := open(t, s)
			e := <-created
			assert.Must(t, e == nil && err == nil, "%v %v", e, err)
			got := session.Source().Logs()
			assert.True(t, len(got) == 3 && got[0] == tt.created+"-0", "logs %q", got)
			_, absent := session.Facts()["absent"]
			assert.True(t, !absent, "the facts say that the topic is absent")
		})
	}
}

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
			why := src.Capabilities().WhyNothing(t.Context())
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
		undecoded := source(t, c, tt.given).Capabilities().Undecoded
		assert.Equal(t, undecoded != nil && undecoded() != "", tt.undecoded, "%v: undecoded", tt.given)
	}
}
