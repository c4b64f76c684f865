package kafkatest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// produce sends records with franz-go, which is independent of our own engine.
func produce(t *testing.T, c *Cluster, topic string, records []*kgo.Record, opts ...kgo.Opt) {
	t.Helper()
	cl, err := kgo.NewClient(append(append(c.ClientOpts(), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner())), opts...)...)
	assert.OK(t, err)
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	assert.OK(t, cl.ProduceSync(ctx, records...).FirstErr())
}

func values(n int) (records []*kgo.Record) {
	for range n {
		records = append(records, &kgo.Record{Value: []byte("some value")})
	}
	return records
}

func TestTools(t *testing.T) {
	c := Shared(t)
	topic := c.CreateTopic(t, 2, 1)
	out := c.Tool(t, "ProducerPerformance", "--topic", topic, "--num-records", "1000", "--record-size", "100", "--throughput", "-1")
	assert.True(t, strings.Contains(out, "1000 records sent"), "the perf tool printed %q", out)
	assert.Equal(t, c.EndSum(t, topic), 1000, "the end offsets add up to")
	assert.Equal(t, len(c.EndOffsets(t, topic)), 2, "partitions with end offsets")
}

func TestDump(t *testing.T) {
	c := Shared(t)
	topic := c.CreateTopic(t, 2, 1)
	headers := []kgo.RecordHeader{{Key: "a", Value: []byte("b")}, {Key: "c", Value: []byte("d")}}
	produce(t, c, topic, []*kgo.Record{
		{Key: []byte("k1"), Value: []byte("v1"), Headers: headers},
		{Value: []byte("payload: v2")},
	}, kgo.ProducerBatchCompression(kgo.NoCompression()))
	produce(t, c, topic, []*kgo.Record{{Partition: 1, Value: []byte(strings.Repeat("z", 1000))}}, kgo.ProducerBatchCompression(kgo.GzipCompression()))

	got := c.Node(1).Dump(t, topic)
	for i := range got {
		assert.True(t, got[i].Valid && got[i].CRC != 0 && got[i].Size != 0 && got[i].ProducerID >= 0,
			"batch %d: %+v", i, got[i])
		assert.Equal(t, got[i].Topic, topic, "batch %d is of the topic", i)
		got[i].Topic, got[i].CRC, got[i].Size, got[i].ProducerID = "", 0, 0, 0
	}
	want := []Batch{
		{Partition: 0, Base: 0, Last: 1, Count: 2, Codec: "none", Valid: true, Records: []BatchRecord{
			{Offset: 0, KeySize: 2, ValueSize: 2, Sequence: 0, HeaderKeys: "a,c"},
			{Offset: 1, KeySize: -1, ValueSize: 11, Sequence: 1},
		}},
		{Partition: 1, Base: 0, Last: 0, Count: 1, Codec: "gzip", Valid: true, Records: []BatchRecord{
			{Offset: 0, KeySize: -1, ValueSize: 1000},
		}},
	}
	assert.Same(t, got, want, "batches")
	records := c.Consume(t, 3, topic)
	assert.Must(t, len(records) == 3, "consumed %d records, want 3", len(records))
	for _, r := range records {
		if r.Partition == 0 && r.Offset == 0 {
			assert.Same(t, r, Record{0, 0, "a:b,c:d", "k1", "v1"}, "record")
		}
	}

	// The tool must detect a flipped bit, or a dump proves nothing.
	name := filepath.Join(c.Node(1).DataDir(), topic+"-0", "00000000000000000000.log")
	data := assert.Value(os.ReadFile(name))(t)
	i := strings.Index(string(data), "payload: v2")
	assert.Must(t, i >= 0, "the value is not in the log")
	data[i] ^= 1
	flipped := filepath.Join(t.TempDir(), topic+"-0", filepath.Base(name))
	assert.OK(t, os.MkdirAll(filepath.Dir(flipped), 0o755))
	assert.OK(t, os.WriteFile(flipped, data, 0o644))
	bad, err := parseDump(Tool(t, "DumpLogSegments", "--deep-iteration", "--files", flipped))
	assert.True(t, err == nil && len(bad) == 1 && !bad[0].Valid, "a flipped bit is not detected: %+v, %v", bad, err)
}

func TestFaults(t *testing.T) {
	c := Start(t, Config{Heap: "512m"})
	n := c.Node(1)
	topic := c.CreateTopic(t, 1, 1)
	produce(t, c, topic, values(10))

	n.Freeze(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := c.Admin(t).ListEndOffsets(ctx, topic)
	assert.True(t, errors.Is(err, context.DeadlineExceeded), "a frozen node answers: %v", err)
	n.Thaw(t)
	assert.Equal(t, c.EndSum(t, topic), 10, "after thawing there records")

	n.Stop(t)
	n.Start(t)
	assert.Equal(t, c.EndSum(t, topic), 10, "after a restart there records")

	n.Kill()
	n.WipeRecords(t)
	n.Start(t)
	assert.Equal(t, c.EndSum(t, topic), 0, "after wiping the records there")
	produce(t, c, topic, values(5))
	assert.Equal(t, c.EndSum(t, topic), 5, "after wiping and producing there records")

	n.Kill()
	n.Wipe(t)
	n.Start(t)
	all := assert.Value(c.Admin(t).ListTopics(t.Context(), topic))(t)
	if got := all[topic].Err; !errors.Is(got, kerr.UnknownTopicOrPartition) {
		t.Errorf("after wiping everything, the topic's error is %v, want %v", got, kerr.UnknownTopicOrPartition)
	}
}

func TestThreeNodes(t *testing.T) {
	c := SharedThree(t)
	topic := c.CreateTopic(t, 3, 3)
	produce(t, c, topic, values(10))
	c.AwaitInSync(t, topic)
	from := c.LeaderOf(t, topic, 0)
	to := c.Node(from.ID()%3 + 1)
	c.MoveLeader(t, topic, 0, to)
	if got := c.LeaderOf(t, topic, 0); got != to {
		t.Fatalf("the leader is node %v, want %d", got.ID(), to.ID())
	}
	to.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := poll(ctx, 100*time.Millisecond, func() error {
		if n := c.LeaderOf(t, topic, 0); n == nil || n == to {
			return errors.New("the killed node is still the leader")
		}
		return nil
	})
	assert.OK(t, err)
	produce(t, c, topic, values(10))
	to.Start(t)
	c.AwaitInSync(t, topic)
	assert.Equal(t, c.EndSum(t, topic), 20, "there records")
}

func TestSecure(t *testing.T) {
	c := SharedSecure(t)
	topic := c.CreateTopic(t, 1, 1)
	c.Grant(t, Alice, topic, "write", "read", "describe")
	c.Grant(t, CertUser, topic, "write", "describe")
	ca := assert.Value(os.ReadFile(c.CAFile()))(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	certificate := assert.Value(tls.LoadX509KeyPair(c.ClientCert()))(t)
	withPassword := func(user, password string) scram.Auth { return scram.Auth{User: user, Pass: password} }
	tests := []struct {
		name string
		addr string
		auth sasl.Mechanism
		cert []tls.Certificate
		ok   bool
	}{
		{"PLAIN", c.Bootstrap(), plain.Auth{User: Alice, Pass: Password(Alice)}.AsMechanism(), nil, true},
		{"SCRAM-SHA-256", c.Bootstrap(), withPassword(Alice, Password(Alice)).AsSha256Mechanism(), nil, true},
		{"SCRAM-SHA-512", c.Bootstrap(), withPassword(Alice, Password(Alice)).AsSha512Mechanism(), nil, true},
		{"OAUTHBEARER", c.Bootstrap(), oauth.Auth{Token: OAuthToken(Alice)}.AsMechanism(), nil, true},
		{"certificate", c.Node(1).MTLSAddr(), nil, []tls.Certificate{certificate}, true},
		{"no certificate", c.Node(1).MTLSAddr(), nil, nil, false},
		{"wrong password", c.Bootstrap(), withPassword(Alice, "guess").AsSha256Mechanism(), nil, false},
		{"no rights", c.Bootstrap(), withPassword(Mallory, Password(Mallory)).AsSha512Mechanism(), nil, false},
	}
	var want int64
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := []kgo.Opt{
				kgo.SeedBrokers(tt.addr), kgo.DefaultProduceTopic(topic), kgo.DisableClientMetrics(),
				kgo.DialTLSConfig(&tls.Config{RootCAs: pool, Certificates: tt.cert}),
				kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()),
			}
			if tt.auth != nil {
				opts = append(opts, kgo.SASL(tt.auth))
			}
			cl := assert.Value(kgo.NewClient(opts...))(t)
			defer cl.Close()
			within := 5 * time.Second // what is refused is tried again until then
			if tt.ok {
				within = time.Minute
			}
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			err := cl.ProduceSync(ctx, values(1)...).FirstErr()
			assert.True(t, (err == nil) == tt.ok, "producing: %v", err)
			if tt.ok {
				want++
			}
		})
	}
	// Check the properties file with one of Java's clients, for which it is.
	c.Tool(t, "ProducerPerformance", "--topic", topic, "--num-records", "3", "--record-size", "10", "--throughput", "-1")
	want += 3
	assert.Equal(t, c.EndSum(t, topic), want, "records arrived")
}
