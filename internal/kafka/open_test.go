package kafka

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"carronade/internal/advice"
	"carronade/internal/kafka/cluster"
	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

func fakeCluster(t testing.TB, opts ...kfake.Opt) *kfake.Cluster { return kafkatest.Fake(t, opts...) }

func urlOf(c *kfake.Cluster, topic string) string {
	return "kafka://" + strings.Join(c.ListenAddrs(), ",") + "/" + topic
}

// TestFakeCluster: bytes that are not a Kafka request end their connection, and the cluster still works.
func TestFakeCluster(t *testing.T) {
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\x00\x00\x00\x08\x7f\xff\x00\x00", "\x00\x00\x00\x01\x00\x03\x00\x00"} {
		nc := assert.Value(net.Dial("tcp", c.ListenAddrs()[0]))(t)
		defer nc.Close()
		assert.Value(io.WriteString(nc, text))(t)
		n, err := io.Copy(io.Discard, nc)
		assert.True(t, n == 0, "%q: got %d bytes, %v", text, n, err)
	}
	assert.Value(open(t, spec(t, urlOf(c, "t"), nil)))(t)
}

// authority makes a self-signed certificate for 127.0.0.1 and writes it as PEM.
func authority(t *testing.T) (server *tls.Config, caFile string) {
	t.Helper()
	own := testkit.NewAuthority("test")
	caFile, _ = own.Files(t)
	return &tls.Config{Certificates: []tls.Certificate{own.Pair()}}, caFile
}

func open(t testing.TB, s protocol.Spec) (protocol.Session, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sess, err := Kind{}.Open(ctx, s)
	if err == nil {
		t.Cleanup(func() { assert.OK(t, sess.Close(), "close") })
	}
	return sess, err
}

func TestOpenExplainsErrors(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	server, ca := authority(t)
	plaintext := fakeCluster(t, kfake.SeedTopics(1, "t"))
	secured := fakeCluster(t, kfake.SeedTopics(1, "t"), kfake.TLS(server))
	login := fakeCluster(t, kfake.SeedTopics(1, "t"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "alice", "right"))
	closed := testkit.Listen(t, func(c *net.TCPConn) { bufio.NewReader(c).ReadByte() })
	http := testkit.Listen(t, func(c *net.TCPConn) {
		bufio.NewReader(c).ReadByte()
		c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	})
	const notListening = testkit.ClosedPort
	// A listener that reads everything and never answers.
	silent := testkit.Listen(t, func(c *net.TCPConn) { io.Copy(io.Discard, c) })
	secret := t.TempDir() + "/password"
	writeFile(t, secret, "canary\n")
	for _, tt := range []struct {
		name, url   string
		given       map[string][]string
		wrong, hint string
	}{
		{name: "nothing listens", url: "kafka://" + notListening + "/t", wrong: "refused", hint: "nothing listens there"},
		{name: "it closes the connection", url: "kafka://" + closed + "/t", wrong: "closed without an answer", hint: "another protocol"},
		{name: "it speaks HTTP", url: "kafka://" + http + "/t", wrong: "HTTP", hint: "another protocol"},
		{name: "it is silent", url: "kafka://" + silent + "/t", wrong: "no answer came in time", hint: "another protocol"},
		{name: "it is silent, among others", url: "kafka://" + silent + "," + notListening + "/t", wrong: "any of", hint: "nothing listens"},
		{name: "no such host", url: "kafka://no.such.host.invalid:1/t", wrong: "no.such.host.invalid", hint: "name"},
		{name: "TLS to plaintext", url: urlOf(plaintext, "t"), given: map[string][]string{"tls": {"true"}}, wrong: "speaks plaintext", hint: "leave out --tls"},
		{name: "plaintext to TLS", url: urlOf(secured, "t"), wrong: "speaks TLS", hint: "add --tls"},
		{name: "unknown authority", url: urlOf(secured, "t"), given: map[string][]string{"tls": {"true"}}, wrong: "certificate", hint: "--tls-ca"},
		{name: "certificate for another name", url: urlOf(secured, "t"), given: map[string][]string{"tls-ca": {ca}, "tls-server-name": {"other.test"}}, wrong: "other.test", hint: "--tls-server-name"},
		{name: "no login", url: urlOf(login, "t"), wrong: "requires a login", hint: "--sasl-mechanism"},
		{
			name: "wrong password", url: urlOf(login, "t"),
			given: map[string][]string{"sasl-mechanism": {"PLAIN"}, "user": {"alice"}, "password": {"file:" + secret}},
			wrong: "log in by PLAIN", hint: "check --user and --password",
		},
		{
			name: "wrong password, client engine", url: urlOf(login, "t"),
			given: map[string][]string{"engine": {"client"}, "sasl-mechanism": {"SCRAM-SHA-256"}, "user": {"alice"}, "password": {"file:" + secret}},
			wrong: "log in by SCRAM-SHA-256", hint: "check --user and --password",
		},
		{
			name: "login to a listener without SASL", url: urlOf(plaintext, "t"),
			given: map[string][]string{"sasl-mechanism": {"PLAIN"}, "user": {"alice"}, "password": {"file:" + secret}},
			wrong: "log in by PLAIN", hint: "check --user",
		},
		{name: "topic missing", url: urlOf(plaintext, "missing"), wrong: "does not exist", hint: "--create-topic"},
		{name: "partition does not exist", url: urlOf(plaintext, "t"), given: map[string][]string{"partitioner": {"fixed(7)"}}, wrong: "no partition 7", hint: "fixed(N)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // some take nearly openTimeout
			_, err := open(t, spec(t, tt.url, tt.given))
			assert.Must(t, err != nil, "Open succeeded, want an error")
			protocoltest.Explained(t, err, tt.wrong, tt.hint)
			assert.True(t, !strings.Contains(err.Error()+advice.Hint(err), "canary"), "the error contains the password: %v", err)
		})
	}
}

func TestOpenRefusesOldBrokers(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	c.ControlKey(int16(kmsg.ApiVersions), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
		for _, k := range []int16{0, 1, 2, 3, 18} {
			key := kmsg.NewApiVersionsResponseApiKey()
			key.ApiKey, key.MaxVersion = k, 2
			resp.ApiKeys = append(resp.ApiKeys, key)
		}
		return resp, nil, true
	})
	_, err := open(t, spec(t, urlOf(c, "t"), nil))
	assert.Must(t, errors.Is(err, cluster.ErrTooOld) && strings.Contains(advice.Hint(err), "--engine client"),
		"got %v with hint %q, want a hint at the client engine", err, advice.Hint(err))
}

func TestOpenSecurely(t *testing.T) {
	server, ca := authority(t)
	t.Setenv("KAFKA_TEST_PASSWORD", "canary")
	for _, mechanism := range []string{cluster.MechPlain, cluster.MechScram256, cluster.MechScram512} {
		c := fakeCluster(t, kfake.SeedTopics(2, "t"), kfake.TLS(server), kfake.EnableSASL(), kfake.Superuser(mechanism, "alice", "canary"))
		for _, engine := range []string{cluster.EngineWire, cluster.EngineClient} {
			t.Run(mechanism+" "+engine, func(t *testing.T) {
				s := assert.Value(open(t, spec(t, urlOf(c, "t"), map[string][]string{
					"engine": {engine}, "tls-ca": {ca}, "sasl-mechanism": {mechanism}, "user": {"alice"}, "password": {"env:KAFKA_TEST_PASSWORD"},
				})))(t)
				got, want := s.Facts()["security"], "SASL_SSL, "+mechanism+" as alice"
				assert.True(t, got == want, "got security %q, want %q", got, want)
			})
		}
	}
	t.Run("a Java client's properties", func(t *testing.T) {
		c := fakeCluster(t, kfake.SeedTopics(2, "t"), kfake.TLS(server), kfake.EnableSASL(), kfake.Superuser(cluster.MechScram512, "alice", "canary"))
		file := t.TempDir() + "/client.properties"
		writeFile(t, file, "bootstrap.servers="+c.ListenAddrs()[0]+"\nsecurity.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"+
			"sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n  username=\"alice\" password=\"canary\";\n"+
			"ssl.truststore.type=PEM\nssl.truststore.location="+ca+"\n")
		s := assert.Value(open(t, spec(t, "kafka:///t", map[string][]string{"client-config": {file}})))(t)
		got, want := s.Facts()["security"], "SASL_SSL, SCRAM-SHA-512 as alice"
		assert.True(t, got == want, "got security %q, want %q", got, want)
	})
	t.Run("any certificate", func(t *testing.T) {
		c := fakeCluster(t, kfake.SeedTopics(2, "t"), kfake.TLS(server))
		s := assert.Value(open(t, spec(t, urlOf(c, "t"), map[string][]string{"tls-insecure-skip-verify": {"true"}})))(t)
		assert.True(t, s.Facts()["tls_verified"] == false, "the facts do not say that the certificate was not verified: %v", s.Facts())
	})
}

func TestOpenCreatesTopics(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.NumBrokers(3), kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(5))
	for _, tt := range []struct {
		name, create string
		partitions   int
		createdBy    any
	}{{"asked", "partitions=3,replicas=2,retention.ms=60000", 3, "carronade"}, {"auto", "", 5, "the broker"}} {
		t.Run(tt.name, func(t *testing.T) {
			given := map[string][]string{}
			if tt.create != "" {
				given["create-topic"] = []string{tt.create}
			}
			for _, want := range []any{tt.createdBy, nil} { // the topic exists the second time
				s := assert.Value(open(t, spec(t, urlOf(c, tt.name), given)))(t)
				topic := s.Facts()["topic"].(map[string]any)
				assert.True(t, topic["partitions"] == tt.partitions, "got %v partitions, want %d", topic["partitions"], tt.partitions)
				assert.Equal(t, topic["created_by"], want, "created by")
				// Only a topic that was created without a request is worth a notice.
				notice, warning := "", ""
				if want == "the broker" {
					notice = "the topic auto did not exist, and the broker created it"
					warning = "the broker created the topic auto with 5 partitions: check the name, or use --create-topic to choose them"
				}
				assert.Equal(t, s.Capabilities().Notice(), notice, "notice")
				assert.Equal(t, strings.Join(s.Warnings(), "\n"), warning, "warnings")
				assert.True(t, tt.create == "" || topic["settings"].(map[string]string)["retention.ms"] == "60000",
					"got settings %v, want retention.ms=60000", topic["settings"])
			}
		})
	}
}

// A run does not change topics that exist: it warns of those that have another number of partitions than it asks for.
func TestOtherPartitions(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(2, "a", "b"), kfake.SeedTopics(3, "c"))
	for _, tt := range []struct{ topics, partitions, warning string }{
		{"a", "2", ""},
		{"a", "1", "the topic a existed with 2 partitions, not 1"},
		{"c,a,b", "3", "2 topics existed with another number of partitions: the topic a existed with 2 partitions, not 3"},
		{"a,new", "4", "the topic a existed with 2 partitions, not 4"},
	} {
		s := assert.Value(open(t, spec(t, urlOf(c, tt.topics), map[string][]string{"partitions": {tt.partitions}})))(t)
		assert.Equal(t, strings.Join(s.Warnings(), "\n"), tt.warning, tt.topics)
	}
}

// A broker that creates topics does not create the one that a run wants to read, unless the run asks for it.
func TestConsumingCreatesNoTopic(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "orders"), kfake.AllowAutoTopicCreation())
	for _, tt := range []struct {
		name  string
		given map[string][]string
	}{
		{"wire", map[string][]string{}},
		{"client", map[string][]string{"engine": {cluster.EngineClient}}},
		{"group", map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := spec(t, urlOf(c, "ordrs-"+tt.name), tt.given)
			s.Op = cluster.OpConsume
			_, err := open(t, s)
			assert.Must(t, err != nil && strings.Contains(err.Error(), "it does not exist, so nothing can be read"),
				"got %v, want an error", err)
			hint := advice.Hint(err)
			assert.True(t, strings.Contains(hint, "check the name") && strings.Contains(hint, "--create-topic auto"), "got the hint %q", hint)
			assert.True(t, !exists(t, c, s.URL.Path[1:]), "the topic was created")
			tt.given["create-topic"] = []string{"auto"}
			s = spec(t, urlOf(c, "ordrs-"+tt.name), tt.given)
			s.Op = cluster.OpConsume
			assert.Value(open(t, s))(t)
			assert.True(t, exists(t, c, s.URL.Path[1:]), "the topic was not created, but requested")
		})
	}
}

func exists(t *testing.T, c *kfake.Cluster, topic string) bool {
	t.Helper()
	cl := assert.Value(kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...)))(t)
	defer cl.Close()
	listed := assert.Value(kadm.NewClient(cl).ListTopics(t.Context()))(t)
	return listed.Has(topic)
}

func TestOpenNotAuthorised(t *testing.T) {
	t.Setenv("KAFKA_TEST_PASSWORD", "secret")
	c := fakeCluster(t, kfake.SeedTopics(1, "t"), kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.User("PLAIN", "reader", "secret",
			kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "t", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationRead, Allow: true},
			kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "t", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationDescribe, Allow: true}),
		kfake.User("PLAIN", "eve", "secret"))
	for _, tt := range []struct{ user, op, hint string }{{"reader", cluster.OpProduce, "WRITE"}, {"eve", cluster.OpConsume, "DESCRIBE"}} {
		t.Run(tt.user+" "+tt.op, func(t *testing.T) {
			s := spec(t, urlOf(c, "t"), map[string][]string{"sasl-mechanism": {"PLAIN"}, "user": {tt.user}, "password": {"env:KAFKA_TEST_PASSWORD"}})
			s.Op = tt.op
			_, err := open(t, s)
			assert.True(t, err != nil && strings.Contains(advice.Hint(err), tt.hint) && strings.Contains(advice.Hint(err), tt.user),
				"got %v with hint %q, want a hint with %s and %s", err, advice.Hint(err), tt.user, tt.hint)
		})
	}
}

// A broker before Kafka 2.4 answers the newest request for its versions in version 0, with the code 35 alone.
func TestVersionsOfOldBrokers(t *testing.T) {
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version = 3
	for name, body := range map[string][]byte{"without keys": {0, 35, 0, 0, 0, 0}, "with a key": {0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 2}} {
		resp := assert.Value(cluster.ReadAnswer(req, body))(t, "%s", name)
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
		sess := assert.Value(open(t, spec(t, urlOf(c, topic), map[string][]string{"create-topic": {create}})))(t)
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
		assert.True(t, strings.Contains(advice.Hint(err), "--compression lz4"), "hint %q", advice.Hint(err))
	}
}

// A run in a group works if one address of the list answers, whichever it is.
func TestGroupWithDeadSeeds(t *testing.T) {
	t.Parallel()
	l := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	dead := l.Addr().String()
	assert.OK(t, l.Close())
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	live := c.ListenAddrs()[0]
	for _, list := range []string{live + "," + dead, dead + "," + live} {
		s := spec(t, "kafka://"+list+"/t", map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}})
		s.Op = cluster.OpConsume
		sess := assert.Value(open(t, s))(t, "%s", list)
		for i := range 6 { // franz-go asks a seed now and then
			_, err := sess.(*session).cl.Admin.FetchOffsets(t.Context(), fmt.Sprint("g", i))
			assert.True(t, err == nil || errors.Is(err, kerr.GroupIDNotFound), "%s: %v", list, err)
		}
	}
}
