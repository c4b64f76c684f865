package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/conn"
)

// OpenTimeout bounds all of Open, so that a wrong address is reported within
// ten seconds.
const OpenTimeout = 10 * time.Second

// probe connects to all seeds at once until one answers as a Kafka broker
// does, and keeps those that have answered for the clients. If none does, its error says
// precisely what is wrong. Clients hide that, because they retry.
func (c *Config) probe(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg   sync.WaitGroup
		errs = make([]error, len(c.Seeds))
		ok   = make(chan string, len(c.Seeds))
	)
	for i, addr := range c.Seeds {
		wg.Go(func() {
			if errs[i] = c.ProbeOne(ctx, addr); errs[i] == nil {
				ok <- addr
			}
		})
	}
	all := make(chan struct{})
	go func() { wg.Wait(); close(all) }()
	c.answered = nil
	select {
	case addr := <-ok:
		c.answered = append(c.answered, addr)
	case <-all:
	}
	for len(ok) > 0 {
		c.answered = append(c.answered, <-ok)
	}
	if len(c.answered) > 0 {
		return nil
	}
	return c.NoneAnswered(errs)
}

// seeds are the addresses that clients begin with. Those that did not answer are left out: franz-go asks
// a seed now and then, and does not try another one when it looks for a group's coordinator.
func (c *Config) seeds() []string {
	if usable := slices.DeleteFunc(slices.Clone(c.Seeds), func(addr string) bool { return !slices.Contains(c.answered, addr) }); len(usable) > 0 {
		return usable
	}
	return c.Seeds
}

// NoneAnswered is the error if no seed answered, of the errors of all. It is the most
// specific one: from a broker that was reached.
func (c *Config) NoneAnswered(errs []error) error {
	best := 0
	for i, err := range errs {
		if rank(err) > rank(errs[best]) {
			best = i
		}
	}
	doing := "connect to " + c.Seeds[best]
	if n := len(c.Seeds); n > 1 {
		doing = fmt.Sprintf("connect to any of %s (here: %s)", strings.Join(c.Seeds, ", "), c.Seeds[best])
	}
	return c.Explain(doing, errs[best])
}

// rank orders errors by how specific they are.
func rank(err error) int {
	switch {
	case errors.Is(err, context.Canceled):
		return 0
	case conn.IsTimeout(err):
		return 1
	case conn.IsRefused(err):
		return 2
	}
	return 3
}

// ProbeOne checks the broker at one address. Where that fails, it finds out
// whether TLS or a login is missing or was not expected.
func (c *Config) ProbeOne(ctx context.Context, addr string) error {
	// This leaves time for a second attempt after an unexpected answer.
	first, cancel := context.WithTimeout(ctx, OpenTimeout*6/10)
	defer cancel()
	err := c.checkBroker(first, addr, c.Security)
	if err == nil {
		return nil
	}
	var (
		record tls.RecordHeaderError
		auth   *authError
		alien  *NotKafkaError
		failed *conn.TLSError
	)
	switch {
	case ctx.Err() != nil:
		return errors.Join(ctx.Err(), err)
	case errors.As(err, &auth) && errors.Is(err, kerr.IllegalSaslState):
		return fmt.Errorf("%w: %w", errNoLogin, err)
	case errors.As(err, &auth), conn.IsRefused(err):
		return err
	case c.Security.TLS == nil && errors.As(err, &alien) && alien.tls():
		return fmt.Errorf("%w (%w)", errSpeaksTLS, err)
	case c.Security.TLS != nil && errors.As(err, &failed) && (errors.As(err, &record) || conn.IsConnectionClosed(err) || conn.IsTimeout(err)):
		plaintext := &Security{clientID: c.ClientID}
		if again := c.checkBroker(ctx, addr, plaintext); again == nil || errors.Is(again, errWantsLogin) {
			return fmt.Errorf("%w (%w)", errSpeaksPlain, err)
		}
	case c.Security.TLS == nil && (conn.IsConnectionClosed(err) || conn.IsTimeout(err)):
		if conn.SpeaksTLS(ctx, addr) {
			return fmt.Errorf("%w (%w)", errSpeaksTLS, err)
		}
		if errors.As(err, new(*net.OpError)) && strings.Contains(err.Error(), "dial") {
			return err
		}
		if conn.IsTimeout(err) {
			return fmt.Errorf("%w (%w)", errNoAnswer, err)
		}
		return fmt.Errorf("%w (%w)", errClosedUnanswered, err)
	}
	return err
}

// checkBroker connects, asks for the API versions, and then for the brokers:
// the answer to that shows whether a login is required.
func (c *Config) checkBroker(ctx context.Context, addr string, s *Security) error {
	nc, err := s.Dial(ctx, addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	stop := conn.Interrupt(ctx, nc)
	defer stop()

	keys, err := askVersions(nc, c.ClientID, 0)
	if err != nil {
		return err
	}
	if len(keys.ApiKeys) == 0 {
		return errors.New("ask for the API versions: the broker knows none")
	}
	if c.Engine == EngineWire && tooOld(keys) {
		return ErrTooOld
	}
	if s.Mechanism != nil {
		return nil
	}
	// A listener with SASL answers ApiVersions before a login, and closes the
	// connection on any other request.
	meta := kmsg.NewPtrMetadataRequest()
	meta.Version = 1
	meta.Topics = []kmsg.MetadataRequestTopic{}
	if _, err := RoundTrip(nc, c.ClientID, meta); err != nil {
		if conn.IsConnectionClosed(err) && c.wantsLogin(ctx, addr, s) {
			return errWantsLogin
		}
		return fmt.Errorf("ask for the brokers: %w", err)
	}
	return nil
}

// wantsLogin requests a mechanism that does not exist. A listener with SASL
// answers that it does not support the mechanism, one without that it supports
// no login.
func (c *Config) wantsLogin(ctx context.Context, addr string, s *Security) bool {
	nc, err := s.Dial(ctx, addr)
	if err != nil {
		return false
	}
	defer nc.Close()
	stop := conn.Interrupt(ctx, nc)
	defer stop()
	hs := kmsg.NewPtrSASLHandshakeRequest()
	hs.Version = 1
	hs.Mechanism = "NONE"
	answer, err := RoundTrip(nc, c.ClientID, hs)
	return err == nil && errors.Is(kerr.ErrorForCode(answer.(*kmsg.SASLHandshakeResponse).ErrorCode), kerr.UnsupportedSaslMechanism)
}
