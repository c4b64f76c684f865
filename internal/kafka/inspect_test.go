package kafka

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// inspect looks at a target until a time is over.
func inspect(t *testing.T, s protocol.Spec, within time.Duration) (protocol.Inspection, error) {
	t.Helper()
	return protocoltest.Inspect(t, Kind{}, s, within)
}

func TestInspect(t *testing.T) {
	t.Parallel()
	server, ca := authority(t)
	plaintext := fakeCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(6, "t"))
	secured := fakeCluster(t, kfake.SeedTopics(1, "t"), kfake.TLS(server))
	login := fakeCluster(t, kfake.SeedTopics(1, "t"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "alice", "right"))
	secret := t.TempDir() + "/password"
	writeFile(t, secret, "right")
	unused := testkit.Listen(t, func(*net.TCPConn) {})
	missing := func(op string) protocol.Spec {
		s := spec(t, urlOf(plaintext, "none"), nil)
		s.Op = op
		return s
	}
	inspects := protocoltest.Inspector(t, Kind{})
	inspects("brokers", spec(t, urlOf(plaintext, "t"), nil), "brokers", protocol.LevelOK, "3 brokers answer at the addresses that they advertise")
	inspects("a topic", spec(t, urlOf(plaintext, "t"), nil), "topic", protocol.LevelOK, "the topic t has 6 partitions", "advertised")
	inspects("a missing topic", missing(""), "topic", protocol.LevelWarning, "the topic none does not exist", "replication")
	inspects("a missing topic that is only read", missing("consume"), "topic", protocol.LevelError, "does not exist")
	inspects("a missing topic that is created", spec(t, urlOf(plaintext, "none"), map[string][]string{"create-topic": {"partitions=2"}}), "topic", protocol.LevelOK, "the run creates it")
	inspects("one seed is closed", spec(t, "kafka://"+plaintext.ListenAddrs()[0]+","+testkit.ClosedPort+"/t", nil), "address "+testkit.ClosedPort, protocol.LevelWarning, "does not answer as a broker")
	inspects("the clock", spec(t, urlOf(plaintext, "t"), nil), "clock", protocol.LevelOK, "run on this machine")
	inspects("no login", spec(t, urlOf(plaintext, "t"), nil), "login", protocol.LevelOK, "without TLS and without a login")
	inspects("TLS", spec(t, urlOf(secured, "t"), map[string][]string{"tls": {"true"}, "tls-ca": {ca}}), "certificate", protocol.LevelWarning, "expires in")
	inspects("any certificate", spec(t, urlOf(secured, "t"), map[string][]string{"tls": {"true"}, "tls-insecure-skip-verify": {"true"}}), "login", protocol.LevelNote, "any certificate is accepted")
	inspects("SASL", spec(t, urlOf(login, "t"), map[string][]string{"sasl-mechanism": {"PLAIN"}, "user": {"alice"}, "password": {"file:" + secret}}), "login", protocol.LevelOK, "PLAIN as alice")
	in, err := inspect(t, spec(t, urlOf(plaintext, "t"), map[string][]string{"clients": {"4"}}), time.Minute)
	assert.True(t, err == nil && in.Connections == 12 && len(in.Addresses) == 3, "%d connections to %v, %v", in.Connections, in.Addresses, err)
	wrong := t.TempDir() + "/wrong"
	writeFile(t, wrong, "wrong")
	_, otherCA := authority(t)
	for _, tt := range []struct {
		name string
		spec protocol.Spec
		want string
		hint string
	}{
		{"a closed port", spec(t, "kafka://"+testkit.ClosedPort+"/t", nil), "refused", "carronade standin kafka"},
		{"another authority", spec(t, urlOf(secured, "t"), map[string][]string{"tls": {"true"}, "tls-ca": {otherCA}}), "unknown authority", "--tls-ca"},
		{"without TLS", spec(t, urlOf(secured, "t"), nil), "speaks TLS", "--tls"},
		{"another protocol", spec(t, "kafka://"+unused+"/t", nil), "", "another protocol"},
		{"a wrong password", spec(t, urlOf(login, "t"), map[string][]string{"sasl-mechanism": {"PLAIN"}, "user": {"alice"}, "password": {"file:" + wrong}}), "log in by PLAIN", ""},
		{"without a login", spec(t, urlOf(login, "t"), nil), "requires a login", "--sasl-mechanism"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, err := inspect(t, tt.spec, time.Minute)
			protocoltest.Explained(t, err, tt.want, tt.hint)
			assert.True(t, len(in.Addresses) > 0, "no addresses")
		})
	}
}

// A server that takes everything and never answers, and a broker that advertises such an
// address, end with the deadline.
func TestInspectBlackHole(t *testing.T) {
	t.Parallel()
	testkit.Need(t, "some seconds")
	silent := testkit.Listen(t, func(c *net.TCPConn) { io.Copy(io.Discard, c) })
	if _, err := inspect(t, spec(t, "kafka://"+silent+"/t", nil), 300*time.Millisecond); err == nil {
		t.Error("a server that does not answer is fine")
	}
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	host, port, _ := net.SplitHostPort(silent)
	n, _ := strconv.Atoi(port)
	c.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		m := req.(*kmsg.MetadataRequest)
		res := m.ResponseKind().(*kmsg.MetadataResponse)
		b := kmsg.NewMetadataResponseBroker()
		b.NodeID, b.Host, b.Port = 7, host, int32(n)
		res.Brokers = append(res.Brokers, b)
		for range m.Topics {
			p := kmsg.NewMetadataResponseTopicPartition()
			p.Leader, p.Replicas, p.ISR = 7, []int32{7}, []int32{7}
			rt := kmsg.NewMetadataResponseTopic()
			rt.Topic, rt.Partitions = new("t"), append(rt.Partitions, p)
			res.Topics = append(res.Topics, rt)
		}
		return res, nil, true
	})
	// A busy machine may need more than a second to find out about the brokers.
	in, err := inspect(t, spec(t, urlOf(c, "t"), nil), time.Second)
	for within := 2 * time.Second; err != nil && within < time.Minute; within *= 2 {
		in, err = inspect(t, spec(t, urlOf(c, "t"), nil), within)
	}
	assert.OK(t, err)
	f := protocoltest.FindingOf(in.Findings, "advertised address")
	protocoltest.Found(t, f, protocol.LevelError, "broker 7 advertises "+silent)
	assert.True(t, strings.Contains(f.Effect, "leads 1 of the 1 partitions"), "the effect is %q", f.Effect)
}

// TestInspectReal looks at a real cluster: its version, its settings and its quotas are known,
// and a topic that does not exist is not created by looking.
func TestInspectReal(t *testing.T) {
	t.Parallel()
	c := kafkatest.Shared(t)
	topic := fillTopic(t, c, 3, 10, nil)
	in, err := inspect(t, spec(t, "kafka://"+c.Bootstrap()+"/"+topic, map[string][]string{"acks": {"all"}}), time.Minute)
	assert.OK(t, err)
	var text strings.Builder
	for _, f := range in.Findings {
		fmt.Fprintf(&text, "%s: %v: %s\n", f.Check, f.Level, f.Found)
		assert.True(t, f.Level < protocol.LevelWarning, "got %+v", f)
	}
	assert.Has(t, text.String(),
		"by their API versions Kafka ", "topic: ok: the topic "+topic+" has 3 partitions", "min.insync.replicas is 1", "quotas: ok: ", "retention: ok: ", "cleanup.policy is delete")
	absent := kafkatest.TopicName(t) + "-absent"
	for range 2 {
		in := assert.Value(inspect(t, spec(t, "kafka://"+c.Bootstrap()+"/"+absent, nil), time.Minute))(t)
		protocoltest.Found(t, protocoltest.FindingOf(in.Findings, "topic"), protocol.LevelWarning, "does not exist")
	}
}

// identifying are settings that identify a broker.
var identifying = []string{"broker.id", "node.id", "listeners", "advertised.listeners", "log.dirs", "controller.quorum.voters"}

func TestOpenAsksBrokersForTheirSettings(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(2, "t"), kfake.NumBrokers(2), kfake.BrokerConfigs(map[string]string{"message.max.bytes": "123456"}))
	s := assert.Value(open(t, spec(t, urlOf(c, "t"), nil)))(t)
	got, _ := s.Facts()["broker_settings"].(map[string]string)
	assert.True(t, got["message.max.bytes"] == "123456" && s.Facts()["brokers_described"] == 2,
		"got %v of %v brokers", got, s.Facts()["brokers_described"])
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
