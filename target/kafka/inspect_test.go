package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/testkit"
	"carronade/internal/testkit/assert"
	"carronade/internal/testkit/kafkatest"
	"carronade/target"
)

// inspect looks at a target, and fails if that takes much longer than its deadline.
func inspect(t *testing.T, s target.Spec, within time.Duration) (target.Inspection, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	began := time.Now()
	in, err := Kind{}.Inspect(ctx, s)
	if took := time.Since(began); took > within+10*time.Second {
		t.Errorf("it took %v", took)
	}
	for _, f := range in.Findings {
		assert.True(t, f.Level < target.LevelNote || f.Effect != "" && f.Mend != "", "%+v lacks its effect or what changes it", f)
	}
	return in, err
}

func findingOf(fs []target.Finding, check string) target.Finding {
	i := slices.IndexFunc(fs, func(f target.Finding) bool { return strings.HasPrefix(f.Check, check) })
	if i < 0 {
		return target.Finding{Found: "no such finding"}
	}
	return fs[i]
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.OK(t, err)
	closed := l.Addr().String()
	l.Close()

	for _, tt := range []struct {
		name   string
		spec   target.Spec
		check  string
		level  target.Level
		want   string
		absent string // a check without a finding
	}{
		{"brokers", spec(t, urlOf(plaintext, "t"), nil), "brokers", target.LevelOK, "3 brokers answer at the addresses that they advertise", ""},
		{"a topic", spec(t, urlOf(plaintext, "t"), nil), "topic", target.LevelOK, "the topic t has 6 partitions", "advertised"},
		{"a missing topic", spec(t, urlOf(plaintext, "none"), nil), "topic", target.LevelWarning, "the topic none does not exist", "replication"},
		{"a missing topic that is only read", spec(t, urlOf(plaintext, "none"), map[string][]string{"op": {"consume"}}), "topic", target.LevelError, "does not exist", ""},
		{"a missing topic that is created", spec(t, urlOf(plaintext, "none"), map[string][]string{"create-topic": {"partitions=2"}}), "topic", target.LevelOK, "the run creates it", ""},
		{"one seed is closed", spec(t, "kafka://"+plaintext.ListenAddrs()[0]+","+closed+"/t", nil), "address " + closed, target.LevelWarning, "does not answer as a broker", ""},
		{"the clock", spec(t, urlOf(plaintext, "t"), nil), "clock", target.LevelOK, "run on this machine", ""},
		{"no login", spec(t, urlOf(plaintext, "t"), nil), "login", target.LevelOK, "without TLS and without a login", ""},
		{"TLS", spec(t, urlOf(secured, "t"), map[string][]string{"tls": {"true"}, "tls-ca": {ca}}), "certificate", target.LevelWarning, "expires in", ""},
		{"any certificate", spec(t, urlOf(secured, "t"), map[string][]string{"tls": {"true"}, "tls-insecure-skip-verify": {"true"}}), "login", target.LevelNote, "any certificate is accepted", ""},
		{"SASL", spec(t, urlOf(login, "t"), map[string][]string{"sasl-mechanism": {"PLAIN"}, "user": {"alice"}, "password": {"file:" + secret}}), "login", target.LevelOK, "PLAIN as alice", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if op := tt.spec.Options.String("op"); op != "" {
				tt.spec.Op = op
				delete(tt.spec.Options, "op")
			}
			in, err := inspect(t, tt.spec, 20*time.Second)
			assert.OK(t, err)
			f := findingOf(in.Findings, tt.check)
			if f.Level != tt.level || !strings.Contains(f.Found, tt.want) {
				t.Errorf("got %v: %s, want %v: %s", f.Level, f.Found, tt.level, tt.want)
			}
			assert.True(t, tt.absent == "" || findingOf(in.Findings, tt.absent).Check == "", "got a finding %s", tt.absent)
		})
	}
	if in, err := inspect(t, spec(t, urlOf(plaintext, "t"), map[string][]string{"clients": {"4"}}), 20*time.Second); err != nil || in.Connections != 12 || len(in.Addresses) != 3 {
		t.Errorf("got %d connections to %v and %v", in.Connections, in.Addresses, err)
	}
	wrong := t.TempDir() + "/wrong"
	writeFile(t, wrong, "wrong")
	_, otherCA := authority(t)
	for _, tt := range []struct {
		name string
		spec target.Spec
		want string
		hint string
	}{
		{"a closed port", spec(t, "kafka://"+closed+"/t", nil), "refused", "carronade standin kafka"},
		{"another authority", spec(t, urlOf(secured, "t"), map[string][]string{"tls": {"true"}, "tls-ca": {otherCA}}), "unknown authority", "--tls-ca"},
		{"without TLS", spec(t, urlOf(secured, "t"), nil), "speaks TLS", "--tls"},
		{"another protocol", spec(t, "kafka://"+unused+"/t", nil), "", "another protocol"},
		{"a wrong password", spec(t, urlOf(login, "t"), map[string][]string{"sasl-mechanism": {"PLAIN"}, "user": {"alice"}, "password": {"file:" + wrong}}), "log in by PLAIN", ""},
		{"without a login", spec(t, urlOf(login, "t"), nil), "requires a login", "--sasl-mechanism"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, err := inspect(t, tt.spec, 10*time.Second)
			var e *target.Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(e.Hint, tt.hint) || len(in.Addresses) == 0 {
				t.Errorf("got %v, want %q and the hint %q", err, tt.want, tt.hint)
			}
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
	in, err := inspect(t, spec(t, urlOf(c, "t"), nil), time.Second)
	assert.OK(t, err)
	f := findingOf(in.Findings, "advertised address")
	if f.Level != target.LevelError || !strings.Contains(f.Found, "broker 7 advertises "+silent) || !strings.Contains(f.Effect, "leads 1 of the 1 partitions") {
		t.Errorf("got %+v", f)
	}
}

// TestInspectReal looks at a real cluster: its version, its settings and its quotas are known,
// and a topic that does not exist is not created by looking.
func TestInspectReal(t *testing.T) {
	t.Parallel()
	c := kafkatest.Shared(t)
	topic := fillTopic(t, c, 3, 10, nil)
	in, err := inspect(t, spec(t, "kafka://"+c.Bootstrap()+"/"+topic, map[string][]string{"acks": {"all"}}), 20*time.Second)
	assert.OK(t, err)
	var text strings.Builder
	for _, f := range in.Findings {
		fmt.Fprintf(&text, "%s: %v: %s\n", f.Check, f.Level, f.Found)
		assert.True(t, f.Level < target.LevelWarning, "got %+v", f)
	}
	for _, want := range []string{"by their API versions Kafka ", "topic: ok: the topic " + topic + " has 3 partitions", "min.insync.replicas is 1", "quotas: ok: ", "retention: ok: ", "cleanup.policy is delete"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	absent := kafkatest.TopicName(t) + "-absent"
	for range 2 {
		in, err := inspect(t, spec(t, "kafka://"+c.Bootstrap()+"/"+absent, nil), 20*time.Second)
		if f := findingOf(in.Findings, "topic"); err != nil || !strings.Contains(f.Found, "does not exist") {
			t.Errorf("got %+v and %v", f, err)
		}
	}
}
