package kafka

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// identifying are settings that identify a broker.
var identifying = []string{"broker.id", "node.id", "listeners", "advertised.listeners", "log.dirs", "controller.quorum.voters"}

func TestOpenAsksBrokersForTheirSettings(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(2, "t"), kfake.NumBrokers(2), kfake.BrokerConfigs(map[string]string{"message.max.bytes": "123456"}))
	s := assert.Value(open(t, spec(t, urlOf(c, "t"), nil)))(t)
	got, _ := s.Facts()["broker_settings"].(map[string]string)
	if got["message.max.bytes"] != "123456" || s.Facts()["brokers_described"] != 2 {
		t.Errorf("got %v of %v brokers", got, s.Facts()["brokers_described"])
	}
	for _, name := range identifying {
		assert.Equal(t, got[name], "", "the fact %s", name)
	}
}

// The version and rack of our stand-ins mean nothing, so reports leave them out.
func TestStandInsHaveNoRack(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{"carronade-standin": false, "carronade-discard": false, "another-s": true} {
		c := fakeCluster(t, kfake.SeedTopics(1, "t"), kfake.NumBrokers(1), kfake.ClusterID(id))
		s := assert.Value(open(t, spec(t, urlOf(c, "t"), nil)))(t)
		brokers, _ := s.Facts()["brokers"].([]map[string]any)
		if len(brokers) != 1 {
			t.Fatalf("got %v, want one broker", s.Facts()["brokers"])
		}
		_, rack := brokers[0]["rack"]
		_, version := brokers[0]["version"]
		assert.True(t, rack == want && version == want, "%s: got %v, want a rack and a version: %v", id, brokers[0], want)
	}
}

// TestRealBrokersDescribeTheirSettings checks that the settings of a real broker contain
// those of its properties file, without those that identify the broker.
func TestRealBrokersDescribeTheirSettings(t *testing.T) {
	t.Parallel()
	needsKafka(t)
	c := kafkatest.Shared(t)
	s := assert.Value(open(t, spec(t, "kafka://"+c.Bootstrap()+"/"+kafkatest.TopicName(t), nil)))(t)
	got, _ := s.Facts()["broker_settings"].(map[string]string)
	t.Log(got)
	assert.True(t, got["process.roles"] != "", "got %v, want the settings of a broker", got)
	for name, value := range got {
		assert.True(t, !slices.Contains(identifying, name) && !strings.Contains(value, c.Bootstrap()),
			"%s=%s identifies this broker", name, value)
	}
}
