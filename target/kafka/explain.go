package kafka

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"

	"carronade/internal/dial"
	"carronade/target"
)

// What a connection that should have worked turned out to reach.
var (
	errSpeaksTLS   = errors.New("the listener speaks TLS, and plaintext was tried")
	errSpeaksPlain = errors.New("the listener speaks plaintext, and TLS was tried")
	errWantsLogin  = errors.New("the listener requires a login (SASL)")
	errNoLogin     = errors.New("the listener does not support a login (SASL)")
	errNoAnswer    = errors.New("connected, but no answer came in time")
	errHungUp      = errors.New("connected, but the connection was closed without an answer")
	errTooOld      = errors.New("the broker is older than Kafka 0.11 (record batches v2)")
)

// explain turns an error of connecting into one with a way out. doing names
// what was tried, with the address.
func (c *config) explain(doing string, err error) error {
	if already := (*target.Error)(nil); errors.As(err, &already) {
		return err
	}
	return &target.Error{Doing: doing, Err: err, Hint: c.hint(err)}
}

// hint says what to check.
func (c *config) hint(err error) string {
	var (
		auth  *authError
		alien *alienError
	)
	hasCert := c.security.tls != nil && len(c.security.tls.Certificates) > 0
	trouble := dial.Hint(err, hasCert)
	switch {
	case errors.Is(err, errSpeaksTLS):
		return "add --tls (and --tls-ca FILE, unless its certificate is signed by an authority of the system)"
	case errors.Is(err, errSpeaksPlain):
		return "leave out --tls, or use the port of the TLS listener (often 9093)"
	case errors.Is(err, errWantsLogin):
		return "add --sasl-mechanism, --user and --password env:NAME"
	case errors.Is(err, errNoLogin):
		return "leave out --sasl-mechanism, or use the port of the SASL listener"
	case errors.Is(err, errTooOld):
		return "add --engine client, which also speaks to brokers before 0.11"
	case errors.As(err, &auth):
		return auth.hint()
	case trouble != "":
		return trouble
	case errors.As(err, &alien):
		return "another protocol answers there: check the port (Kafka's is often 9092)"
	case dial.IsRefused(err):
		return "nothing listens there: is the broker running, and is this its address? (carronade standin kafka starts a small one)"
	case errors.Is(err, errNoAnswer), errors.Is(err, errHungUp), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return "another protocol may be listening there, or the broker may be stuck: check the port and the broker's log"
	case dial.IsTimeout(err):
		return "check the address, the firewall between, and whether the broker is stuck"
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed),
		errors.Is(err, kerr.GroupAuthorizationFailed), errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		return "the user lacks a permission: grant it with kafka-acls, or log in as another user"
	}
	return "check the address and the broker's log"
}

// hint says what to check when a login was refused.
func (e *authError) hint() string {
	switch {
	case errors.Is(e.err, kerr.UnsupportedSaslMechanism) && len(e.offered) > 0:
		return "the listener offers " + strings.Join(slices.Sorted(slices.Values(e.offered)), ", ") + ": choose by --sasl-mechanism"
	case errors.Is(e.err, kerr.UnsupportedSaslMechanism):
		return "choose another --sasl-mechanism, one that the listener has enabled"
	}
	return "check --user and --password, and that the user exists for " + e.mechanism
}

// missingTopic is the error of a topic that is not there and is not made.
func (c *config) missingTopic(err error) error {
	return &target.Error{
		Doing: fmt.Sprintf("find the topic %s", c.topic),
		Err:   fmt.Errorf("it does not exist, and the broker does not create topics automatically (%w)", err),
		Hint:  "add --create-topic partitions=3,replicas=1, or run: carronade topics create",
	}
}

// forbidden is the error of a right that is missing.
func (c *config) forbidden(doing, right string, err error) error {
	who := "the user"
	if c.security.user != "" {
		who = c.security.user
	} else if c.security.mechanism == nil {
		who = "an anonymous client"
	}
	return &target.Error{
		Doing: doing, Err: err,
		Hint: fmt.Sprintf("%s needs the permission %s on the topic %s: grant it with kafka-acls, or log in as another user", who, right, c.topic),
	}
}
