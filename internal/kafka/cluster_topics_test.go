package kafka

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/kafka/cluster"
	"carronade/test/testkit/assert"
)

// One group reads the topics whose whole name matches, each from its committed offset,
// and counts them by partition.
func TestConsumeTopics(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(2, "orders-b", "orders-a"), kfake.SeedTopics(1, "orders", "my-orders-a"))
	putInto := func(topic string, n int) {
		put(t, c, records(n, 2, sized(10)), kgo.DefaultProduceTopic(topic))
	}
	putInto("orders-a", 300)
	putInto("orders-b", 500)
	put(t, c, records(70, 1, sized(10)), kgo.DefaultProduceTopic("orders"))
	put(t, c, records(70, 1, sized(10)), kgo.DefaultProduceTopic("my-orders-a"))
	given := map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}, "topics": {"orders-[ab]"}, "until-end": {"true"}, "clients": {"2"}}
	src := source(t, c, given)
	if got, want := src.Logs(), []string{"orders-a-0", "orders-a-1", "orders-b-0", "orders-b-1"}; !slices.Equal(got, want) {
		t.Fatalf("logs %q, want %q", got, want)
	}
	got := drain(t, src, nil)
	assert.True(t, got.events == 800 && got.per[0]+got.per[1] == 300 && got.per[2]+got.per[3] == 500,
		"got %d events, by partition %v", got.events, got.per)
	for log, n := range src.Lag() {
		if n != 0 {
			t.Errorf("%s is %d behind", src.Logs()[log], n)
		}
	}
	putInto("orders-b", 20)
	if got := drain(t, source(t, c, given), nil); got.events != 20 || got.per[2]+got.per[3] != 20 {
		t.Errorf("the group's second run got %d events, by partition %v", got.events, got.per)
	}
}

func TestConsumeTopicsRefused(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	for _, tt := range []struct {
		name  string
		given map[string][]string
		want  string
	}{
		{"none matches", map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}, "topics": {"orders.*"}}, "no name of the 1 topics matches"},
		{"no group", map[string][]string{"engine": {cluster.EngineClient}, "topics": {"t"}}, "only be consumed in a group"},
		{"no expression", map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}, "topics": {"["}}, "missing closing ]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := spec(t, urlOf(c, "t"), tt.given)
			s.Op = cluster.OpConsume
			_, err := open(t, s)
			assert.ErrorHas(t, err, tt.want)
		})
	}
}
