//go:build conformance

package acceptance

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// refusalTimeout bounds a refusal: the contract allows 10 s to find that the broker
// is missing, and a busy machine needs some more.
const refusalTimeout = 15 * time.Second

// refused runs the program and checks that it gives up in time with exit code 2, an
// error and a hint, and no report.
func refused(t *testing.T, args ...string) ended {
	t.Helper()
	e := start(t, append([]string{"run"}, args...)...).wait(refusalTimeout+15*time.Second).want(t, 2)
	assert.True(t, e.elapsed <= refusalTimeout, "it took %v to give up", e.elapsed)
	e.says(t, "error:", "hint:")
	assert.Equal(t, e.stdout, "", "stdout")
	return e
}

// silentAddress is the address of a listener that never answers.
func silentAddress(t *testing.T) string {
	t.Helper()
	l := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

func TestNoBroker(t *testing.T) {
	t.Parallel()
	greeter := testkit.Listen(t, func(c *net.TCPConn) {
		fmt.Fprint(c, "SSH-2.0-OpenSSH_9.2\r\n")
		io.Copy(io.Discard, c)
	})
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	tests := []struct {
		name string
		addr string
		says []string
	}{
		{"nothing listens", closedAddress(t), nil},
		{"never answers", silentAddress(t), nil},
		{"a web server", web.Listener.Addr().String(), nil},
		{"greets first", greeter, nil},
		{"no such host", "no-such-host.invalid:9092", nil},
		{"two dead ones", closedAddress(t) + "," + closedAddress(t), nil},
	}
	for _, engine := range engines {
		for _, tt := range tests {
			t.Run(engine+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				refused(t, "kafka://"+tt.addr+"/t", "--engine", engine, "--count", "1").says(t, strings.Split(tt.addr, ",")[0])
			})
		}
	}
}

// TestMismatch connects with the wrong security settings.
func TestMismatch(t *testing.T) {
	t.Parallel()
	plain, secure := kafkatest.Shared(t), kafkatest.SharedSecure(t)
	secret := filepath.Join(t.TempDir(), "password")
	assert.OK(t, os.WriteFile(secret, []byte("not-the-password-8741"), 0o600))
	topic := secure.CreateTopic(t, 1, 1)
	mallory := secure.ClientProperties(t, kafkatest.Mallory, kafkatest.ScramSHA512)
	tests := []struct {
		name string
		args []string
		says []string
	}{
		{"TLS to plaintext", []string{topicURL(plain, "t"), "--tls"}, []string{"TLS"}},
		{"plaintext to TLS", []string{topicURL(secure, "t")}, []string{"TLS"}},
		{"unknown authority", []string{topicURL(secure, "t"), "--tls"}, []string{"certificate"}},
		{
			"no login", []string{topicURL(secure, "t"), "--tls-ca", secure.CAFile()}, []string{"SASL"},
		},
		{
			"wrong password",
			[]string{topicURL(secure, topic), "--tls-ca", secure.CAFile(), "--sasl-mechanism", "SCRAM-SHA-256", "--user", kafkatest.Alice, "--password", "file:" + secret},
			[]string{"--password"},
		},
		{
			"wrong password, PLAIN",
			[]string{topicURL(secure, topic), "--tls-ca", secure.CAFile(), "--sasl-mechanism", "PLAIN", "--user", kafkatest.Alice, "--password", "file:" + secret},
			[]string{"--password"},
		},
		{
			"mechanism not offered",
			[]string{topicURL(secure, topic), "--tls-ca", secure.CAFile(), "--sasl-mechanism", "AWS_MSK_IAM", "--user", kafkatest.Alice, "--password", "file:" + secret},
			[]string{"AWS_MSK_IAM"},
		},
		{"no client certificate", []string{"kafka://" + secure.Node(1).MTLSAddr() + "/" + topic, "--tls-ca", secure.CAFile()}, []string{"certificate"}},
		{"not authorised", []string{topicURL(secure, topic), "--client-config", mallory}, []string{"authori"}},
		{"not authorised to read", []string{topicURL(secure, topic), "--client-config", mallory, "--op", "consume"}, []string{"authori"}},
	}
	for _, engine := range engines {
		for _, tt := range tests {
			t.Run(engine+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				e := refused(t, append(tt.args, "--engine", engine, "--count", "1")...).says(t, tt.says...)
				for _, secret := range []string{"not-the-password-8741", kafkatest.Password(kafkatest.Mallory)} {
					assert.True(t, !strings.Contains(e.stderr+e.stdout, secret), "the password is shown:\n%s", e.stderr)
				}
			})
		}
	}
}

// TestMissingTopic uses a missing topic of a broker that does not create topics.
func TestMissingTopic(t *testing.T) {
	t.Parallel()
	c := kafkatest.Start(t, kafkatest.Config{Heap: "512m", Properties: map[string]string{"auto.create.topics.enable": "false"}})
	for _, engine := range engines {
		for _, op := range []string{"produce", "consume"} {
			t.Run(engine+"/"+op, func(t *testing.T) {
				refused(t, topicURL(c, "missing"), "--op", op, "--engine", engine, "--count", "1").says(t, "missing", "create-topic")
			})
		}
	}
	t.Run("created on demand", func(t *testing.T) {
		run(t, "run", topicURL(c, "made"), "--create-topic", "partitions=3,replicas=1", "--count", "300", "--json", "--quiet").succeeded(t)
		ends := c.EndOffsets(t, "made")
		assert.True(t, len(ends) == 3, "the topic has %d partitions, want 3", len(ends))
	})
}

// TestAutoCreated lets the broker create a missing topic and reads in the report how it was created.
func TestAutoCreated(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	topic := kafkatest.TopicName(t)
	e := run(t, "run", topicURL(broker, topic), "--count", "100", "--json", "--quiet").succeeded(t)
	e.document(t)
	assert.Equal(t, broker.EndSum(t, topic), 100, "growth of the end offsets")
	assert.True(t, strings.Contains(e.stdout, "partitions") && strings.Contains(e.stdout, "replicas"),
		"the report does not contain the topic's partitions and replicas")
	want := "the topic " + topic + " did not exist, and the broker created it"
	assert.True(t, strings.Contains(e.stdout, want), "the report does not say %q", want)
}

// A topic that is only read is not created, by a broker that creates topics.
func TestConsumingCreatesNothing(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	topic := kafkatest.TopicName(t)
	for _, engine := range engines {
		refused(t, topicURL(broker, topic), "--op", "consume", "--engine", engine).says(t, "does not exist, so nothing can be read", "check the name")
	}
	listed := run(t, "topics", "list", "kafka://"+broker.Bootstrap()).succeeded(t).stdout
	assert.True(t, !strings.Contains(listed, topic), "the topic was created:\n%s", listed)
}

// TestSecured sends with each kind of login, and checks that no password is shown.
func TestSecured(t *testing.T) {
	t.Parallel()
	c := kafkatest.SharedSecure(t)
	topic := c.CreateTopic(t, 2, 1)
	c.Grant(t, kafkatest.Alice, topic, "read", "write", "describe", "describe_configs")
	c.Grant(t, kafkatest.CertUser, topic, "read", "write", "describe", "describe_configs")
	cert, key := c.ClientCert()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		assert.OK(t, os.WriteFile(path, []byte(text+"\n"), 0o600))
		return "file:" + path
	}
	password := file("password", kafkatest.Password(kafkatest.Alice))
	token := file("token", kafkatest.OAuthToken(kafkatest.Alice))
	login := func(mechanism, secret string) []string {
		return []string{topicURL(c, topic), "--tls-ca", c.CAFile(), "--sasl-mechanism", mechanism, "--user", kafkatest.Alice, "--password", secret}
	}
	tests := []struct {
		name string
		args []string
	}{
		{"PLAIN", login("PLAIN", password)},
		{"SCRAM-SHA-256", login("SCRAM-SHA-256", password)},
		{"SCRAM-SHA-512", login("SCRAM-SHA-512", password)},
		{"OAUTHBEARER", []string{topicURL(c, topic), "--tls-ca", c.CAFile(), "--sasl-mechanism", "OAUTHBEARER", "--password", token}},
		{"certificate", []string{"kafka://" + c.Node(1).MTLSAddr() + "/" + topic, "--tls-ca", c.CAFile(), "--tls-cert", cert, "--tls-key", key}},
		{"unverified", append(login("SCRAM-SHA-256", password)[:1:1], "--tls-insecure-skip-verify", "--sasl-mechanism", "SCRAM-SHA-256", "--user", kafkatest.Alice, "--password", password)},
		{"Java's properties", []string{topicURL(c, topic), "--client-config", c.ClientProperties(t, kafkatest.Alice, kafkatest.ScramSHA256)}},
		{"Java's properties, certificate", []string{"kafka://" + c.Node(1).MTLSAddr() + "/" + topic, "--client-config", c.MTLSProperties(t)}},
	}
	const each = 500
	for _, engine := range engines {
		for _, tt := range tests {
			t.Run(engine+"/"+tt.name, func(t *testing.T) {
				e := run(t, append(append([]string{"run"}, tt.args...), "--engine", engine, "--count", fmt.Sprint(each), "--json", "--quiet")...).succeeded(t)
				d := e.document(t)
				assert.True(t, d.Totals.Acked == each, "acked %d events, want %d", d.Totals.Acked, each)
				assert.True(t, !strings.Contains(e.stdout+e.stderr, kafkatest.Password(kafkatest.Alice)), "the password is shown")
				assert.True(t, tt.name != "unverified" || strings.Contains(e.stdout, "skip-verify"),
					"the report does not show that certificates were not verified")
			})
		}
	}
	got, want := c.EndSum(t, topic), int64(each*len(engines)*len(tests))
	assert.True(t, got == want, "the end offsets grew by %d, want %d", got, want)
}
