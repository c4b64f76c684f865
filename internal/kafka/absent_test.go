package kafka

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/kafka/cluster"
	"carronade/protocol"
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
			n := session.(protocol.Noticer).Notice()
			assert.True(t, n != "" && strings.HasPrefix(tt.want, n), "the notice is %q", n)
			assert.True(t, !exists(t, c, "late"), "the topic was created")
			src := session.Source()
			assert.Equal(t, len(src.Logs()), 0, "logs")
			assert.OK(t, src.Receive(t.Context(), func() time.Duration { return 0 }, nil))
			assert.True(t, session.Facts()["absent"] == true, "facts %v", session.Facts())
			assert.OK(t, session.(protocol.Surveyor).Survey(t.Context()))
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
			tt.given["wait-topic"] = []string{"30s"}
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
			if e := <-created; e != nil || err != nil {
				t.Fatal(e, err)
			}
			got := session.Source().Logs()
			assert.True(t, len(got) == 3 && got[0] == tt.created+"-0", "logs %q", got)
			_, absent := session.Facts()["absent"]
			assert.True(t, !absent, "the facts say that the topic is absent")
		})
	}
}
