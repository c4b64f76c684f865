package kafka

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"carronade/internal/kafka/cluster"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit/assert"
)

// A broker before Kafka 2.4 answers the newest request for its versions in version 0, with the code 35 alone.
func TestVersionsOfOldBrokers(t *testing.T) {
	t.Parallel()
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version = 3
	for name, body := range map[string][]byte{"without keys": {0, 35, 0, 0, 0, 0}, "with a key": {0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 2}} {
		resp, err := cluster.ReadAnswer(req, body)
		assert.OK(t, err, "%s", name)
		answer := resp.(*kmsg.ApiVersionsResponse)
		assert.Equal(t, kerr.ErrorForCode(answer.ErrorCode), error(kerr.UnsupportedVersion), "%s", name)
		assert.Equal(t, answer.Version, 0, "%s: version of the answer", name)
	}
}

// Brokers before Kafka 2.4 have no default for a new topic's partitions and replicas: those of the brokers'
// configuration are asked for and sent.
func TestCreateTopicOnOldBrokers(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.MaxVersions(kversion.V1_1_0()), kfake.BrokerConfigs(map[string]string{"default.replication.factor": "1"}), kfake.DefaultNumPartitions(3))
	c.ControlKey(int16(kmsg.CreateTopics), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		topic := req.(*kmsg.CreateTopicsRequest).Topics[0]
		if topic.NumPartitions > 0 && topic.ReplicationFactor > 0 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
		answer := kmsg.NewCreateTopicsResponseTopic()
		answer.Topic, answer.ErrorCode = topic.Topic, kerr.InvalidReplicationFactor.Code
		resp.Topics = append(resp.Topics, answer)
		return resp, nil, true
	})
	for topic, create := range map[string]string{"some": "partitions=2", "defaults": "auto"} {
		sess, err := open(t, spec(t, urlOf(c, topic), map[string][]string{"create-topic": {create}}))
		assert.OK(t, err)
		want := map[string]int{"some": 2, "defaults": 1}[topic]
		assert.Equal(t, sess.(*session).cl.Partitions(), want, "partitions of %s", topic)
	}
}

// Brokers before Kafka 2.1 do not know zstd, and answer its batches with an error that says nothing.
func TestZstdOnOldBrokers(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"), kfake.MaxVersions(kversion.V2_0_0()))
	for _, engine := range []string{cluster.EngineWire, cluster.EngineClient} {
		_, err := open(t, spec(t, urlOf(c, "t"), map[string][]string{"compression": {"zstd"}, "engine": {engine}}))
		assert.ErrorHas(t, err, "older than Kafka 2.1")
		assert.True(t, strings.Contains(protocoltest.HintOf(err), "--compression lz4"), "hint %q", protocoltest.HintOf(err))
	}
}

// A run in a group works if one address of the list answers, whichever it is.
func TestGroupWithDeadSeeds(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.OK(t, err)
	dead := l.Addr().String()
	assert.OK(t, l.Close())
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	live := c.ListenAddrs()[0]
	for _, list := range []string{live + "," + dead, dead + "," + live} {
		s := spec(t, "kafka://"+list+"/t", map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}})
		s.Op = cluster.OpConsume
		sess, err := open(t, s)
		assert.OK(t, err, "%s", list)
		for i := range 6 { // franz-go asks a seed now and then
			_, err := sess.(*session).cl.Admin.FetchOffsets(t.Context(), fmt.Sprint("g", i))
			assert.True(t, err == nil || errors.Is(err, kerr.GroupIDNotFound), "%s: %v", list, err)
		}
	}
}
