package cluster

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"

	"carronade/internal/conn"
	"carronade/protocol"
)

// What a connection that should have worked found.
var (
	errSpeaksTLS        = errors.New("the listener speaks TLS, and plaintext was tried")
	errSpeaksPlain      = errors.New("the listener speaks plaintext, and TLS was tried")
	errWantsLogin       = errors.New("the listener requires a login (SASL)")
	errNoLogin          = errors.New("the listener does not support a login (SASL)")
	errNoAnswer         = errors.New("connected, but no answer came in time")
	errClosedUnanswered = errors.New("connected, but the connection was closed without an answer")
	ErrTooOld           = errors.New("the broker is older than Kafka 0.11 (record batches v2)")
	errNoZstd           = errors.New("the broker is older than Kafka 2.1, and does not know zstd (KIP-110)")
)

// Explain adds a hint to an error of connecting. doing names what was tried, with the
// address.
func (c *Config) Explain(doing string, err error) error {
	return conn.Explain(doing, err, c.Hint)
}

// Hint suggests what to check.
func (c *Config) Hint(err error) string {
	var (
		auth  *authError
		alien *NotKafkaError
	)
	hasCert := c.Security.TLS != nil && len(c.Security.TLS.Certificates) > 0
	dialHint := conn.Hint(err, hasCert)
	switch {
	case errors.Is(err, errSpeaksTLS):
		return "add --tls (and --tls-ca FILE, unless its certificate is signed by an authority of the system)"
	case errors.Is(err, errSpeaksPlain):
		return "leave out --tls, or use the port of the TLS listener (often 9093)"
	case errors.Is(err, errWantsLogin):
		return "add --sasl-mechanism, --user and --password env:NAME"
	case errors.Is(err, errNoLogin):
		return "leave out --sasl-mechanism, or use the port of the SASL listener"
	case isTooOld(err):
		return tooOldHint(err)
	case errors.As(err, &auth):
		return auth.hint()
	case dialHint != "":
		return dialHint
	case errors.As(err, &alien):
		return "another protocol answers there: check the port (Kafka's is often 9092)"
	case conn.IsRefused(err):
		return "nothing listens there: is the broker running, and is this its address? (carronade standin kafka starts a small one)"
	case errors.Is(err, errNoAnswer), errors.Is(err, errClosedUnanswered), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return "another protocol may be listening there, or the broker may be stuck: check the port and the broker's log"
	case conn.IsTimeout(err):
		return "check the address, the firewall between, and whether the broker is stuck"
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed),
		errors.Is(err, kerr.GroupAuthorizationFailed), errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		if grant := c.grantFor(err); grant != "" {
			return "the user lacks a permission: log in as another user, or let an administrator run " + grant
		}
		return "the user lacks a permission: log in as another user, or " + AskAdmin
	}
	return "check the address and the broker's log"
}

// isTooOld reports whether a broker answered, but cannot do what the run needs.
func isTooOld(err error) bool { return errors.Is(err, ErrTooOld) || errors.Is(err, errNoZstd) }

// tooOldHint suggests what an old broker can do.
func tooOldHint(err error) string {
	if errors.Is(err, errNoZstd) {
		return "choose another codec: --compression lz4"
	}
	return "add --engine client, which also speaks to brokers before 0.11"
}

// hint suggests what to check when a login was refused.
func (e *authError) hint() string {
	switch {
	case errors.Is(e.err, kerr.UnsupportedSaslMechanism) && len(e.offered) > 0:
		return "the listener offers " + strings.Join(slices.Sorted(slices.Values(e.offered)), ", ") + ": choose one with --sasl-mechanism"
	case errors.Is(e.err, kerr.UnsupportedSaslMechanism):
		return "choose another --sasl-mechanism, one that the listener has enabled"
	}
	return "check --user and --password, and that the user exists for " + e.mechanism
}

// MissingTopic is the error for a topic that does not exist and is not created.
func (c *Config) MissingTopic(name string, err error) error {
	e := &protocol.Error{Doing: "find the topic " + name}
	if c.OnlyReads() {
		e.Err = fmt.Errorf("it does not exist, so nothing can be read (%w)", err)
		e.Hint = "check the name (carronade topics list shows them); --wait-topic 30s waits until it exists, and --create-topic auto creates it"
		return e
	}
	e.Err = fmt.Errorf("it does not exist, and the broker does not create topics automatically (%w)", err)
	e.Hint = "check the name (carronade topics list shows them), or add --create-topic partitions=3,replicas=1"
	return e
}

// forbidden is the error for missing rights on a topic.
func (c *Config) forbidden(doing, topic string, err error, rights ...string) error {
	fix := AskAdmin
	if grant := c.Grant(ACLTopic(topic), rights...); grant != "" {
		fix = "let an administrator run " + grant
	}
	return &protocol.Error{
		Doing: doing, Err: err,
		Hint: fmt.Sprintf("%s lacks a permission on the topic %s (%s): log in as another user, or %s",
			c.UserInWords(), topic, strings.ToUpper(strings.Join(rights, ", ")), fix),
	}
}
