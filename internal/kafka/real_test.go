package kafka

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/advice"
	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/franz"
	embedded "carronade/internal/kafka/standin"
	"carronade/internal/standin"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

func TestMain(m *testing.M) {
	standin.Hook(embedded.Kind) // benchmarks start this program as their stand-in
	testkit.MostlyWaiting()
	os.Exit(kafkatest.Main(m))
}

func needsKafka(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real Kafka, which -short leaves out")
	}
}

func fillTopic(t testing.TB, c *kafkatest.Cluster, partitions int32, n uint64, given map[string][]string) string {
	t.Helper()
	topic := c.CreateTopic(t, partitions, 1)
	s := assert.Value(open(t, spec(t, "kafka://"+c.Bootstrap()+"/"+topic, given)))(t)
	res := launch(t, s, load.Plan{Measurement: load.Limits{Events: n}})
	assert.Must(t, res.Measurement.Acked == n, "got %d acked, want %d", res.Measurement.Acked, n)
	return topic
}

// TestRealRefusals checks the errors with a real broker: it closes connections in other situations than the fake one.
func TestRealRefusals(t *testing.T) {
	needsKafka(t)
	plaintext, secure := kafkatest.Shared(t), kafkatest.SharedSecure(t)
	topic := secure.CreateTopic(t, 1, 1)
	t.Setenv("KAFKA_RIGHT", kafkatest.Password(kafkatest.Alice))
	t.Setenv("KAFKA_WRONG", "canary")
	t.Setenv("KAFKA_MALLORY", kafkatest.Password(kafkatest.Mallory))
	login := func(mechanism, user, password string) map[string][]string {
		return map[string][]string{"tls-ca": {secure.CAFile()}, "sasl-mechanism": {mechanism}, "user": {user}, "password": {"env:" + password}}
	}
	for _, tt := range []struct {
		name, addr  string
		given       map[string][]string
		wrong, hint string
	}{
		{"TLS to plaintext", plaintext.Bootstrap(), map[string][]string{"tls": {"true"}}, "speaks plaintext", "leave out --tls"},
		{"plaintext to TLS", secure.Bootstrap(), nil, "speaks TLS", "add --tls"},
		{"unknown authority", secure.Bootstrap(), map[string][]string{"tls": {"true"}}, "certificate", "--tls-ca"},
		{"no login", secure.Bootstrap(), map[string][]string{"tls-ca": {secure.CAFile()}}, "requires a login", "--sasl-mechanism"},
		{"wrong password, SCRAM", secure.Bootstrap(), login(cluster.MechScram512, kafkatest.Alice, "KAFKA_WRONG"), "log in by SCRAM-SHA-512", "check --user and --password"},
		{"wrong password, PLAIN", secure.Bootstrap(), login(cluster.MechPlain, kafkatest.Alice, "KAFKA_WRONG"), "log in by PLAIN", "check --user and --password"},
		{"mechanism not offered", secure.Bootstrap(), login(cluster.MechAWS, kafkatest.Alice, "KAFKA_WRONG"), "log in by AWS_MSK_IAM", "the listener offers"},
		{
			"login to a listener without SASL", plaintext.Bootstrap(),
			map[string][]string{"sasl-mechanism": {cluster.MechPlain}, "user": {"alice"}, "password": {"env:KAFKA_WRONG"}},
			"does not support a login", "leave out --sasl-mechanism",
		},
		{"not authorised", secure.Bootstrap(), login(cluster.MechScram512, kafkatest.Mallory, "KAFKA_MALLORY"), "", kafkatest.Mallory},
		{"no client certificate", secure.Node(1).MTLSAddr(), map[string][]string{"tls-ca": {secure.CAFile()}}, "certificate", ""},
	} {
		for _, engine := range []string{cluster.EngineWire, cluster.EngineClient} {
			t.Run(tt.name+" "+engine, func(t *testing.T) {
				given := map[string][]string{"engine": {engine}}
				maps.Copy(given, tt.given)
				_, err := open(t, spec(t, "kafka://"+tt.addr+"/"+topic, given))
				assert.Must(t, err != nil, "Open succeeded, want an error")
				assert.True(t, strings.Contains(err.Error(), tt.wrong) && strings.Contains(advice.Hint(err), tt.hint),
					"got %q with hint %q, want %q with hint %q", err, advice.Hint(err), tt.wrong, tt.hint)
				assert.True(t, !strings.Contains(err.Error()+advice.Hint(err), "canary"), "the error contains the password: %v", err)
			})
		}
	}
}

func TestRealSecurity(t *testing.T) {
	needsKafka(t)
	c := kafkatest.SharedSecure(t)
	topic := c.CreateTopic(t, 2, 1)
	c.Grant(t, kafkatest.Alice, topic, "ALL")
	c.Grant(t, kafkatest.CertUser, topic, "ALL")
	t.Setenv("KAFKA_RIGHT", kafkatest.Password(kafkatest.Alice))
	t.Setenv("KAFKA_TOKEN", kafkatest.OAuthToken(kafkatest.Alice))
	cert, key := c.ClientCert()
	base := map[string][]string{"tls-ca": {c.CAFile()}, "user": {kafkatest.Alice}, "password": {"env:KAFKA_RIGHT"}}
	with := func(k string, v string, more ...string) map[string][]string {
		m := maps.Clone(base)
		m[k] = []string{v}
		for i := 0; i+1 < len(more); i += 2 {
			m[more[i]] = []string{more[i+1]}
		}
		return m
	}
	sent := uint64(0)
	for _, tt := range []struct {
		name, addr string
		given      map[string][]string
	}{
		{"PLAIN", c.Bootstrap(), with("sasl-mechanism", cluster.MechPlain)},
		{"SCRAM-SHA-256", c.Bootstrap(), with("sasl-mechanism", cluster.MechScram256)},
		{"SCRAM-SHA-512", c.Bootstrap(), with("sasl-mechanism", cluster.MechScram512)},
		{"OAUTHBEARER", c.Bootstrap(), with("sasl-mechanism", cluster.MechOAuth, "password", "env:KAFKA_TOKEN")},
		{"mTLS", c.Node(1).MTLSAddr(), map[string][]string{"tls-ca": {c.CAFile()}, "tls-cert": {cert}, "tls-key": {key}}},
		{"a Java client's properties", c.Bootstrap(), map[string][]string{"client-config": {c.ClientProperties(t, kafkatest.Alice, kafkatest.ScramSHA256)}}},
		{"a Java client's properties, mTLS", c.Node(1).MTLSAddr(), map[string][]string{"client-config": {c.MTLSProperties(t)}}},
	} {
		for _, engine := range []string{cluster.EngineWire, cluster.EngineClient} {
			t.Run(tt.name+" "+engine, func(t *testing.T) {
				given := maps.Clone(tt.given)
				given["engine"] = []string{engine}
				s, err := open(t, spec(t, "kafka://"+tt.addr+"/"+topic, given))
				assert.Must(t, err == nil, "%v (%s)", err, advice.Hint(err))
				res := launch(t, s, load.Plan{Measurement: load.Limits{Events: 1000}})
				assert.Must(t, res.Measurement.Acked == 1000, "got %d acked, want 1000", res.Measurement.Acked)
				sent += 1000
				given["until-end"] = []string{"true"}
				sp := spec(t, "kafka://"+tt.addr+"/"+topic, given)
				sp.Op = cluster.OpConsume
				in := assert.Value(open(t, sp))(t)
				got := drain(t, in.Source(), nil)
				assert.True(t, uint64(got.events) == sent, "got %d events, want %d", got.events, sent)
			})
		}
	}
}

func TestRealConsume(t *testing.T) {
	t.Parallel()
	needsKafka(t)
	c := kafkatest.Shared(t)
	const n = 20_000
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(codec, func(t *testing.T) {
			topic := fillTopic(t, c, 3, n, map[string][]string{"compression": {codec}, "size": {"10-300"}, "key": {"uniform(100)"}, "header": {"a=b"}, "batch-size": {"16KiB"}})
			bytes := map[string]int64{}
			for _, reader := range []map[string][]string{
				{"engine": {cluster.EngineWire}},
				{"engine": {cluster.EngineWire}, "decode": {"true"}},
				{"engine": {cluster.EngineClient}},
				{"engine": {cluster.EngineClient}, "group": {topic}, "clients": {"2"}},
				{"engine": {cluster.EngineClient}, "group": {topic + "-new"}, "clients": {"2"}, "group-protocol": {"consumer"}},
			} {
				name := strings.Join(slices.Concat(reader["engine"], reader["group"], reader["decode"]), " ")
				reader["until-end"] = []string{"true"}
				s := spec(t, "kafka://"+c.Bootstrap()+"/"+topic, reader)
				s.Op = cluster.OpConsume
				sess := assert.Value(open(t, s))(t)
				got := drain(t, sess.Source(), nil)
				assert.True(t, got.events == n && got.corrupt <= 0,
					"%s: got %d events, %d corrupt arrivals, want %d and none", name, got.events, got.corrupt, n)
				if got.unsized == 0 {
					bytes[name] = got.bytes
				}
				if reader["group-protocol"] != nil { // an error of a classic group: GROUP_ID_NOT_FOUND
					req := kmsg.NewPtrConsumerGroupDescribeRequest()
					req.Groups = reader["group"]
					resp := assert.Value(req.RequestWith(t.Context(), sess.(*session).cl.Control))(t)
					assert.OK(t, kerr.ErrorForCode(resp.Groups[0].ErrorCode), "the group has the new protocol")
				}
			}
			for name, b := range bytes {
				assert.Equal(t, b, bytes[cluster.EngineClient], "%s: bytes as franz-go decodes them", name)
			}
		})
	}
}

func TestRealTransactions(t *testing.T) {
	t.Parallel()
	needsKafka(t)
	c := kafkatest.Shared(t)
	topic := c.CreateTopic(t, 2, 1)
	s := assert.Value(open(t, spec(t, "kafka://"+c.Bootstrap()+"/"+topic, map[string][]string{
		"engine": {cluster.EngineClient}, "transactions": {"true"}, "transaction-interval": {"50ms"}, "transaction-abort": {"30%"}, "transactional-id": {topic},
	})))(t)
	res := launch(t, s, load.Plan{Schedule: load.Constant(4000), Measurement: load.Limits{Events: 6000}})
	assert.Equal(t, res.Measurement.Acked, 6000, "acked")
	assert.OK(t, s.Target().(*franz.Producer).Close())
	f := s.Facts()["transactions"].(map[string]any)
	committed, aborted := f["committed_events"].(uint64), f["aborted_events"].(uint64)
	assert.True(t, committed+aborted == 6000 && aborted != 0, "got %v, want 6000 events, some of them aborted", f)
	for _, engine := range []string{cluster.EngineWire, cluster.EngineClient} {
		for isolation, want := range map[string]uint64{"committed": committed, "uncommitted": 6000} {
			sp := spec(t, "kafka://"+c.Bootstrap()+"/"+topic, map[string][]string{"engine": {engine}, "isolation": {isolation}, "until-end": {"true"}})
			sp.Op = cluster.OpConsume
			sess := assert.Value(open(t, sp))(t)
			got := drain(t, sess.Source(), nil)
			assert.True(t, uint64(got.events) == want, "%s %s: got %d events, want %d", engine, isolation, got.events, want)
		}
	}
}

func TestRealTopics(t *testing.T) {
	t.Parallel()
	needsKafka(t)
	c := kafkatest.Shared(t)
	names := cluster.NumberedNames(kafkatest.TopicName(t)+"-", 30)
	do := func(w cluster.TopicLoad) *cluster.TopicResult {
		t.Helper()
		s := spec(t, "kafka://"+c.Bootstrap()+"/x", nil)
		w.URL, w.Options, w.Given = s.URL, s.Options, s.Given
		w.Names, w.PerRequest, w.Concurrency = names, 5, 3
		res := assert.Value(Topics(t.Context(), w))(t)
		return res
	}
	res := do(cluster.TopicLoad{Op: cluster.OpCreateTopics, Spec: cluster.TopicSpec{Partitions: 2, Replicas: 1}})
	assert.True(t, res.Done == 30, "create: got %d done: %v", res.Done, res.Failures)
	res = do(cluster.TopicLoad{Op: cluster.OpCreateTopics})
	assert.True(t, res.Failed == 30, "create again: got %d failed, want 30", res.Failed)
	// A broker answers before it knows the new topics.
	testkit.Until(t, "the broker knows the new topics", func() bool { return do(cluster.TopicLoad{Op: cluster.OpDescribeTopics}).Done == 30 })
	for _, op := range []string{cluster.OpDescribeTopics, cluster.OpReadTopics, cluster.OpDeleteRecords, cluster.OpDeleteTopics} {
		res := do(cluster.TopicLoad{Op: op, Upto: -1})
		assert.True(t, res.Done == 30, "%s: got %d done: %v", op, res.Done, res.Failures)
	}
	// A broker may still know deleted topics for a while.
	res = do(cluster.TopicLoad{Op: cluster.OpDeleteTopics})
	assert.True(t, res.Failed == 30, "delete again: got %d failed, want 30", res.Failed)
}
