package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"carronade/protocol"
	"carronade/test/testkit/assert"
)

func findingOf(fs []protocol.Finding, check string) protocol.Finding {
	i := slices.IndexFunc(fs, func(f protocol.Finding) bool { return f.Check == check })
	if i < 0 {
		return protocol.Finding{Found: "no such finding"}
	}
	return fs[i]
}

func TestTopicFindings(t *testing.T) {
	same := func(n, copies, inSync int) (ps []partitionFacts) {
		for i := range n {
			ps = append(ps, partitionFacts{int32(i), copies, inSync})
		}
		return ps
	}
	settings := func(over ...string) map[string]string {
		m := map[string]string{
			"min.insync.replicas": "1", "retention.ms": "604800000", "retention.bytes": "-1", "compression.type": "producer",
			"max.message.bytes": "1048588", "message.timestamp.type": "CreateTime", "cleanup.policy": "delete", "flush.messages": "9223372036854775807",
		}
		for i := 0; i < len(over); i += 2 {
			m[over[i]] = over[i+1]
		}
		return m
	}
	even := topicFacts{name: "t", brokers: 3, leaders: []int32{1, 2, 3}, partitions: same(3, 3, 3), settings: settings()}
	with := func(f func(t *topicFacts)) topicFacts { t := even; f(&t); return t }
	const ok, unknown, note, warning, fault = protocol.LevelOK, protocol.LevelUnknown, protocol.LevelNote, protocol.LevelWarning, protocol.LevelError
	for _, tt := range []struct {
		name  string
		facts topicFacts
		given map[string][]string
		check string
		level protocol.Level
		want  string
	}{
		{"few partitions", with(func(t *topicFacts) { t.partitions, t.leaders = same(2, 3, 3), []int32{1, 2} }), nil, "topic", note, "2 partitions on 3 brokers"},
		{"no leader", with(func(t *topicFacts) { t.leaders, t.leaderless = []int32{1, -1, 3}, []int32{1} }), nil, "topic", fault, "1 of the 3 partitions of t have no leader, such as partition 1"},
		{"all in sync", even, nil, "replication", ok, "3 replicas, all in sync"},
		{"behind", with(func(t *topicFacts) { t.partitions = same(3, 3, 2) }), nil, "replication", warning, "3 of 3 partitions are under-replicated"},
		{"no replicas", with(func(t *topicFacts) { t.partitions = same(3, 1, 1) }), nil, "replication", note, "1 replica, on 3 brokers"},
		{"no replicas of one broker", with(func(t *topicFacts) { t.brokers, t.partitions, t.leaders = 1, same(1, 1, 1), []int32{1} }), nil, "replication", ok, "1 replica"},
		{"even leaders", even, nil, "leaders", ok, "more than 1 partition"},
		{"one leader", with(func(t *topicFacts) { t.leaders = []int32{2, 2, 2} }), nil, "leaders", warning, "broker 2 leads 3 of 3 partitions; an even share is 1"},
		{"a broker alone", with(func(t *topicFacts) { t.brokers, t.leaders = 1, []int32{2, 2, 2} }), nil, "leaders", ok, "3 partitions"},
		{"too few in sync", with(func(t *topicFacts) { t.partitions, t.settings = same(3, 3, 1), settings("min.insync.replicas", "2") }), map[string][]string{"acks": {"all"}}, "min.insync.replicas", fault, "1 replica in sync, and min.insync.replicas is 2"},
		{"too few in sync, with acks=1", with(func(t *topicFacts) { t.partitions, t.settings = same(3, 3, 1), settings("min.insync.replicas", "2") }), nil, "min.insync.replicas", ok, "matters with acks=all only"},
		{"fewer replicas than must be in sync", with(func(t *topicFacts) { t.partitions, t.settings = same(3, 1, 1), settings("min.insync.replicas", "2") }), map[string][]string{"acks": {"all"}}, "min.insync.replicas", warning, "1 replica, all in sync, and min.insync.replicas is 2"},
		{"all must be in sync", with(func(t *topicFacts) { t.settings = settings("min.insync.replicas", "3") }), map[string][]string{"acks": {"all"}}, "min.insync.replicas", note, "as many as there are replicas"},
		{"not reported", with(func(t *topicFacts) { t.settings = settings("min.insync.replicas", "") }), nil, "min.insync.replicas", unknown, ""},
		{"a short retention", with(func(t *topicFacts) { t.settings = settings("retention.ms", "60000") }), nil, "retention", note, "for 1m00s"},
		{"a small retention", with(func(t *topicFacts) { t.settings = settings("retention.bytes", "1048576") }), nil, "retention", note, "at most 1 MiB in a partition"},
		{"no retention", with(func(t *topicFacts) { t.settings = settings("retention.ms", "-1") }), nil, "retention", ok, "without a limit"},
		{"another codec", with(func(t *topicFacts) { t.settings = settings("compression.type", "zstd") }), map[string][]string{"compression": {"lz4"}}, "compression.type", warning, "is zstd, and the run sends lz4"},
		{"the same codec", with(func(t *topicFacts) { t.settings = settings("compression.type", "lz4") }), map[string][]string{"compression": {"lz4"}}, "compression.type", ok, "as they were sent"},
		{"large batches", with(func(t *topicFacts) { t.settings = settings("max.message.bytes", "1000") }), nil, "max.message.bytes", warning, "brokers accept 1000 B"},
		{"the brokers' time", with(func(t *topicFacts) { t.settings = settings("message.timestamp.type", "LogAppendTime") }), nil, "message.timestamp.type", note, "LogAppendTime"},
		{"compacted", with(func(t *topicFacts) { t.settings = settings("cleanup.policy", "compact,delete") }), nil, "cleanup.policy", note, "compact,delete"},
		{"flushed", with(func(t *topicFacts) { t.settings = settings("flush.messages", "1") }), nil, "flush.messages", note, "flush.messages is 1"},
		{"settings that may not be read", with(func(t *topicFacts) { t.settings = nil }), nil, "topic settings", unknown, "may not read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := assert.Value(ParseConfig(spec(t, "kafka://127.0.0.1/t", tt.given)))(t)
			f := findingOf(tt.facts.findings(c), tt.check)
			assert.True(t, f.Check == tt.check && f.Level == tt.level && strings.Contains(f.Found, tt.want),
				"got %s %v: %s, want %v: %s", f.Check, f.Level, f.Found, tt.level, tt.want)
			assert.True(t, f.Level < note || f.Effect != "" && f.Fix != "", "%+v lacks its effect or what changes it", f)
		})
	}
	c := assert.Value(ParseConfig(spec(t, "kafka://127.0.0.1/t", nil)))(t)
	for _, f := range even.findings(c) {
		assert.Equal(t, f.Level, ok, "got %+v of a topic with which nothing is wrong", f)
	}
}

func TestQuotaFinding(t *testing.T) {
	t.Parallel()
	name := func(s string) *string { return &s }
	of := func(key string, value float64, entity ...kadm.ClientQuotaEntityComponent) kadm.DescribedClientQuota {
		return kadm.DescribedClientQuota{Entity: entity, Values: kadm.ClientQuotaValues{{Key: key, Value: value}}}
	}
	user := func(s *string) kadm.ClientQuotaEntityComponent {
		return kadm.ClientQuotaEntityComponent{Type: "user", Name: s}
	}
	client := func(s *string) kadm.ClientQuotaEntityComponent {
		return kadm.ClientQuotaEntityComponent{Type: "client-id", Name: s}
	}
	const rate = "producer_byte_rate"
	for _, tt := range []struct {
		name string
		all  kadm.DescribedClientQuotas
		want string // "": no quota
	}{
		{"none", nil, ""},
		{"of the client", kadm.DescribedClientQuotas{of(rate, 1<<20, client(name("carronade")))}, "producer_byte_rate of client-id carronade is 1 MiB/s for each broker"},
		{"of another client", kadm.DescribedClientQuotas{of(rate, 1<<20, client(name("other")))}, ""},
		{"of every client", kadm.DescribedClientQuotas{of(rate, 1<<20, client(nil))}, "of every client-id is 1 MiB/s"},
		{"of the anonymous user", kadm.DescribedClientQuotas{of(rate, 1<<20, user(name("ANONYMOUS")))}, "of user ANONYMOUS"},
		{"the user before the client", kadm.DescribedClientQuotas{of(rate, 1<<20, client(name("carronade"))), of(rate, 2<<20, user(nil))}, "of every user is 2 MiB/s"},
		{"the pair before the user", kadm.DescribedClientQuotas{of(rate, 2<<20, user(name("ANONYMOUS"))), of(rate, 3<<20, user(name("ANONYMOUS")), client(nil))}, "with every client-id is 3 MiB/s"},
		{"a pair with another client", kadm.DescribedClientQuotas{of(rate, 3<<20, user(name("ANONYMOUS")), client(name("other")))}, ""},
		{"lifted for the client", kadm.DescribedClientQuotas{of(rate, 1<<20, client(nil)), of(rate, 1<<60, client(name("carronade")))}, ""},
		{"of reading", kadm.DescribedClientQuotas{of("consumer_byte_rate", 1<<20, client(nil))}, ""},
		{"of requests", kadm.DescribedClientQuotas{of("request_percentage", 50, client(nil))}, "request_percentage of every client-id is 50 %"},
		{"of an address", kadm.DescribedClientQuotas{of(rate, 1<<20, kadm.ClientQuotaEntityComponent{Type: "ip"})}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := assert.Value(ParseConfig(spec(t, "kafka://127.0.0.1/t", nil)))(t)
			f := quotaFinding(tt.all, c)
			limits := f.Level == protocol.LevelWarning
			assert.True(t, limits == (tt.want != "") && strings.Contains(f.Found, tt.want), "got %v: %s, want %q", f.Level, f.Found, tt.want)
		})
	}
	// With a client's certificate the brokers conclude a user, which may be its subject.
	c := assert.Value(ParseConfig(spec(t, "kafka://127.0.0.1/t", nil)))(t)
	c.Security.TLS = &tls.Config{Certificates: []tls.Certificate{{}}}
	for _, all := range []kadm.DescribedClientQuotas{nil, {of(rate, 1<<20, user(name("CN=client")))}} {
		want := protocol.LevelOK
		if len(all) > 0 {
			want = protocol.LevelUnknown
		}
		f := quotaFinding(all, c)
		assert.True(t, f.Level == want, "got %v: %s, want %v", f.Level, f.Found, want)
	}
	c.Security.TLS.Certificates[0].Leaf = &x509.Certificate{Subject: pkix.Name{CommonName: "client"}}
	for who, want := range map[string]string{"CN=client": "of user CN=client is 1 MiB/s", "other": "none limits CN=client, the subject of the certificate"} {
		f := quotaFinding(kadm.DescribedClientQuotas{of(rate, 1<<20, user(name(who)))}, c)
		assert.True(t, strings.Contains(f.Found, want), "got %s, want %s", f.Found, want)
	}
}

// What changes a finding is a command line that can be run as it is, with a login too.
func TestMendIsACommand(t *testing.T) {
	t.Parallel()
	login := filepath.Join(t.TempDir(), "the login.properties")
	assert.OK(t, os.WriteFile(login, []byte("security.protocol=SSL\n"), 0o600))
	flushed := topicFacts{name: "t", brokers: 2, leaders: []int32{1, 1}, settings: map[string]string{"flush.messages": "1"}}
	alice := "alice's"
	quotas := kadm.DescribedClientQuotas{
		{Entity: kadm.ClientQuotaEntity{{Type: "user"}, {Type: "client-id", Name: &alice}}, Values: kadm.ClientQuotaValues{{Key: "producer_byte_rate", Value: 1}}},
		{Entity: kadm.ClientQuotaEntity{{Type: "user"}}, Values: kadm.ClientQuotaValues{{Key: "request_percentage", Value: 50}}},
	}
	for _, tt := range []struct {
		name, url    string
		given        map[string][]string
		flush, elect string
	}{
		{"no login", "kafka://127.0.0.1,localhost:9093/t", nil, "kafka-configs --bootstrap-server 127.0.0.1:9092,localhost:9093 --alter --topic t --delete-config flush.messages", "--bootstrap-server 127.0.0.1:9092,localhost:9093 --election-type"},
		{"a login", "kafka://127.0.0.1/t", map[string][]string{"tls": {"true"}}, "kafka-configs --bootstrap-server 127.0.0.1:9092 --command-config FILE --alter", "--admin.config FILE"},
		{"a login in a file", "kafka://127.0.0.1/t", map[string][]string{"client-config": {login}}, "--command-config '" + login + "' --alter", "--admin.config '" + login + "'"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := assert.Value(ParseConfig(spec(t, tt.url, tt.given)))(t)
			if f := flushed.flush(c); !strings.Contains(f.Fix, tt.flush) {
				t.Errorf("got %q, want %q", f.Fix, tt.flush)
			}
			if f := flushed.leadership(c); !strings.Contains(f.Fix, tt.elect) {
				t.Errorf("got %q, want %q", f.Fix, tt.elect)
			}
			c.ClientID = alice
			f := quotaFinding(quotas, c)
			for _, want := range []string{
				`--alter --entity-type users --entity-default --entity-type clients --entity-name 'alice'\''s' --delete-config producer_byte_rate; kafka-configs `,
				" --alter --entity-type users --entity-default --delete-config request_percentage",
			} {
				assert.True(t, c.Security.Protocol() != Plaintext || strings.Contains(f.Fix, want), "got %q, want %q", f.Fix, want)
			}
		})
	}
}

// The addresses of a workload may be those of another user, and they are pasted into a shell.
func TestToolsQuoteAddresses(t *testing.T) {
	t.Parallel()
	c := assert.Value(ParseConfig(spec(t, "kafka://127.0.0.1/t", nil)))(t)
	c.Seeds = []string{"a:9092", "$(reboot);b:9092"}
	const want = " --bootstrap-server 'a:9092,$(reboot);b:9092' --"
	got := tool(c, "kafka-configs", "--alter")
	assert.True(t, strings.Contains(got, want), "got %s, want it to contain %s", got, want)
}

func TestLateness(t *testing.T) {
	const ms = time.Millisecond
	type cycle struct {
		before, after, arrived, at, throttle time.Duration
		more                                 bool
		want                                 time.Duration // of Earliest
	}
	for _, tt := range []struct {
		name   string
		cycles []cycle
	}{
		{"never late", []cycle{
			{before: 1 * ms, after: 1 * ms, arrived: 50 * ms, at: 50 * ms, want: 50 * ms},
			{before: 50 * ms, after: 50 * ms, arrived: 90 * ms, at: 90 * ms, want: 90 * ms},
		}},
		{"the first request is not late", []cycle{{before: 500 * ms, after: 501 * ms, arrived: 550 * ms, at: 550 * ms, want: 550 * ms}}},
		{"an answer waits to be read", []cycle{{before: 1 * ms, after: 1 * ms, arrived: 50 * ms, at: 80 * ms, want: 50 * ms}}},
		{"then the next request waits for the answer", []cycle{
			{before: 1 * ms, after: 1 * ms, arrived: 50 * ms, at: 80 * ms, want: 50 * ms},
			{before: 81 * ms, after: 82 * ms, arrived: 90 * ms, at: 91 * ms, want: 58 * ms}, // 32 ms and 1 ms
			{before: 91 * ms, after: 91 * ms, arrived: 99 * ms, at: 99 * ms, want: 98 * ms}, // over, except for 1 ms
		}},
		{"the rest of the log inherits the delay", []cycle{
			{before: 1 * ms, after: 1 * ms, arrived: 10 * ms, at: 10 * ms, want: 10 * ms},
			{before: 110 * ms, after: 110 * ms, arrived: 120 * ms, at: 120 * ms, more: true, want: 20 * ms},
			{before: 125 * ms, after: 125 * ms, arrived: 130 * ms, at: 130 * ms, more: true, want: 25 * ms},
			{before: 130 * ms, after: 130 * ms, arrived: 140 * ms, at: 140 * ms, want: 35 * ms},
			{before: 140 * ms, after: 140 * ms, arrived: 150 * ms, at: 150 * ms, want: 150 * ms},
		}},
		{"unknown when it arrived", []cycle{
			{before: 1 * ms, after: 1 * ms, at: 50 * ms, want: 50 * ms},
			{before: 60 * ms, after: 60 * ms, at: 70 * ms, want: 60 * ms},
		}},
		{"the broker throttles", []cycle{
			{before: 1 * ms, after: 1 * ms, arrived: 50 * ms, at: 50 * ms, throttle: 100 * ms, want: 50 * ms},
			{before: 152 * ms, after: 152 * ms, arrived: 170 * ms, at: 170 * ms, want: 168 * ms},
		}},
		{"never 0, which means unknown", []cycle{
			{before: 1 * ms, after: 1 * ms, arrived: 2 * ms, at: 2 * ms, want: 2 * ms},
			{before: 9 * ms, after: 9 * ms, arrived: 2 * ms, at: 9 * ms, want: 1},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l Lateness
			own := time.Duration(0)
			for i, c := range tt.cycles {
				l.Asked(c.before, c.after)
				l.Answered(c.arrived, c.at)
				assert.Equal(t, l.Earliest(&own, c.at, c.more), c.want, "answer %d", i)
				if c.throttle > 0 {
					l.Throttled(c.throttle)
				}
			}
		})
	}
}

// The lag of a log is what a broker reported less what was delivered, and unknown before a report.
func TestProgress(t *testing.T) {
	t.Parallel()
	p := NewProgress(nil, []int64{5, 7, 9})
	p.Begin(1, 70) // such as a committed offset
	p.Deliver(0, 8)
	p.Reported(0, 20, 15)
	p.Reported(2, 3, 3) // an old answer: the log is not behind
	for _, tt := range []struct {
		name      string
		got, want []int64
	}{
		{"starts", p.Starts(), []int64{5, 70, 9}},
		{"positions", p.Positions(), []int64{8, 70, 9}},
		{"lag", p.Lag(), []int64{12, -1, 0}},
		{"what may be read", []int64{p.Behind(0), p.Behind(1), p.Behind(2)}, []int64{7, -1, 0}},
	} {
		assert.True(t, slices.Equal(tt.got, tt.want), "%s: got %v, want %v", tt.name, tt.got, tt.want)
	}
}

// The command that grants a right has all names in it.
func TestGrant(t *testing.T) {
	t.Parallel()
	login := plain.Auth{}.AsMechanism()
	cert := &tls.Config{Certificates: []tls.Certificate{{Leaf: &x509.Certificate{Subject: pkix.Name{CommonName: "load", Organization: []string{"Example"}}}}}}
	for _, tt := range []struct {
		name  string
		given map[string][]string
		sec   *Security
		err   error
		want  string
	}{
		{
			"an anonymous client", nil, nil, kerr.TopicAuthorizationFailed,
			"kafka-acls --bootstrap-server 127.0.0.1:9092 --add --allow-principal User:ANONYMOUS --operation Write --operation Describe --topic t",
		},
		{
			"a user",
			map[string][]string{"op": {"consume"}},
			&Security{Mechanism: login, User: "o'hara"}, kerr.TopicAuthorizationFailed,
			`kafka-acls --bootstrap-server 127.0.0.1:9092 --command-config FILE --add --allow-principal 'User:o'\''hara' --operation Read --operation Describe --topic t`,
		},
		{
			"a token",
			map[string][]string{"op": {"roundtrip"}},
			&Security{Mechanism: login}, kerr.TopicAuthorizationFailed,
			"kafka-acls --bootstrap-server 127.0.0.1:9092 --command-config FILE --add --allow-principal User:NAME --operation Write --operation Read --operation Describe --topic t",
		},
		{
			"a certificate",
			map[string][]string{"op": {"consume"}, "group": {"g"}, "engine": {"client"}},
			&Security{TLS: cert}, kerr.GroupAuthorizationFailed,
			"kafka-acls --bootstrap-server 127.0.0.1:9092 --command-config FILE --add --allow-principal User:CN=load,O=Example --operation Read --group g",
		},
		{
			"idempotent",
			map[string][]string{"idempotent": {"true"}, "acks": {"all"}},
			nil, kerr.ClusterAuthorizationFailed,
			"kafka-acls --bootstrap-server 127.0.0.1:9092 --add --allow-principal User:ANONYMOUS --operation IdempotentWrite --cluster",
		},
		{
			"transactions",
			map[string][]string{"transactional-id": {"x"}, "acks": {"all"}, "engine": {"client"}},
			nil, kerr.TransactionalIDAuthorizationFailed,
			"kafka-acls --bootstrap-server 127.0.0.1:9092 --add --allow-principal User:ANONYMOUS --operation Write --operation Describe --transactional-id x- --resource-pattern-type prefixed",
		},
		{"a group that stands for all", map[string][]string{"op": {"consume"}, "group": {"*"}, "engine": {"client"}}, nil, kerr.GroupAuthorizationFailed, ""},
		{"a user that stands for all", nil, &Security{Mechanism: login, User: "*"}, kerr.TopicAuthorizationFailed, ""},
		{"another error", nil, nil, kerr.NotLeaderForPartition, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			op, given := "", map[string][]string{}
			for k, v := range tt.given {
				if k == "op" {
					op = v[0]
					continue
				}
				given[k] = v
			}
			s := spec(t, "kafka://127.0.0.1/t", given)
			if op != "" {
				s.Op = op
			}
			c := assert.Value(ParseConfig(s))(t)
			if tt.sec != nil {
				c.Security = tt.sec
			}
			assert.Equal(t, c.grantFor(tt.err), tt.want)
		})
	}
}

// The addresses of a workload may be those of another user, and they are pasted into a shell.
func TestAddressesAreQuoted(t *testing.T) {
	c := assert.Value(ParseConfig(spec(t, "kafka://127.0.0.1/t", nil)))(t)
	c.Seeds = []string{"a:9092", "$(reboot);b:9092"}
	const want = " --bootstrap-server 'a:9092,$(reboot);b:9092' --"
	got := c.Grant(ACLTopic("t"), aclRead)
	assert.True(t, strings.Contains(got, want), "got %s, want it to contain %s", got, want)
}

// A sentence names the user that its command names, as far as it is known.
func TestUserInWords(t *testing.T) {
	login := plain.Auth{}.AsMechanism()
	cert := func(leaf *x509.Certificate) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{{Leaf: leaf}}}
	}
	for _, tt := range []struct {
		name string
		sec  Security
		want string
	}{
		{"without a login", Security{}, "an anonymous client"},
		{"a user", Security{Mechanism: login, User: "load"}, "load"},
		{"a token", Security{Mechanism: login}, "the user of the token"},
		{"a certificate", Security{TLS: cert(&x509.Certificate{Subject: pkix.Name{CommonName: "load"}})}, "the user of the certificate CN=load"},
		{"a certificate that is not known yet", Security{TLS: cert(nil)}, "the user of the certificate"},
		{"TLS without a certificate", Security{TLS: &tls.Config{}}, "an anonymous client"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &Config{Security: &tt.sec, Seeds: []string{"a:9092"}}
			assert.Equal(t, c.UserInWords(), tt.want)
			var e *protocol.Error
			err := c.forbidden("find the topic t", "t", kerr.TopicAuthorizationFailed, aclRead)
			assert.True(t, errors.As(err, &e) && strings.HasPrefix(e.Hint, tt.want+" lacks"), "got %v, want that %s lacks a permission", err, tt.want)
		})
	}
}

// What the broker lists decides which right is missing: a bit for each operation.
func TestMissingRight(t *testing.T) {
	const read, write, describe = 1 << 3, 1 << 4, 1 << 8
	for _, tt := range []struct {
		name string
		c    Config
		ops  int32
		want string
	}{
		{"not listed", Config{Op: OpProduce}, -1 << 31, ""},
		{"none listed", Config{Op: OpProduce}, 0, ""},
		{"may write", Config{Op: OpProduce}, write | describe, ""},
		{"may not write", Config{Op: OpProduce}, read | describe, aclWrite},
		{"may not read back", Config{Op: OpProduce, Verify: true}, write | describe, aclRead},
		{"may not read", Config{Op: OpConsume}, write | describe, aclRead},
		{"may read", Config{Op: OpConsume}, read | describe, ""},
	} {
		assert.Equal(t, tt.c.MissingRight(tt.ops), tt.want, tt.name)
	}
}
