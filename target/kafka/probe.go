package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/dial"
)

// openTimeout bounds all of Open, so that a wrong address is told within ten
// seconds.
const openTimeout = 10 * time.Second

// probe connects to the seeds, all at once, until one answers as a Kafka
// broker does, and tells precisely what is wrong when none does. Clients hide
// that: they retry.
func (c *config) probe(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg     sync.WaitGroup
		faults = make([]error, len(c.seeds))
		ok     = make(chan struct{}, len(c.seeds))
	)
	for i, addr := range c.seeds {
		wg.Go(func() {
			if faults[i] = c.probeOne(ctx, addr); faults[i] == nil {
				ok <- struct{}{}
			}
		})
	}
	all := make(chan struct{})
	go func() { wg.Wait(); close(all) }()
	select {
	case <-ok:
		return nil
	case <-all:
	}
	select {
	case <-ok:
		return nil
	default:
	}
	// The most telling error: one from a broker that was reached.
	best := 0
	for i, err := range faults {
		if rank(err) > rank(faults[best]) {
			best = i
		}
	}
	doing := "connect to " + c.seeds[best]
	if n := len(c.seeds); n > 1 {
		doing = fmt.Sprintf("connect to any of %s (here: %s)", strings.Join(c.seeds, ", "), c.seeds[best])
	}
	return c.explain(doing, faults[best])
}

// rank orders errors by how much they tell.
func rank(err error) int {
	switch {
	case errors.Is(err, context.Canceled):
		return 0
	case dial.IsTimeout(err):
		return 1
	case dial.IsRefused(err):
		return 2
	}
	return 3
}

// probeOne connects, asks for the versions, and for nothing in particular, to
// see whether a login was needed.
func (c *config) probeOne(ctx context.Context, addr string) error {
	// Time is left for a second look at what answers so strangely.
	first, cancel := context.WithTimeout(ctx, openTimeout*6/10)
	defer cancel()
	err := c.greet(first, addr, c.security)
	if err == nil {
		return nil
	}
	var (
		record tls.RecordHeaderError
		auth   *authError
		alien  *alienError
		failed *dial.TLSError
	)
	switch {
	case ctx.Err() != nil:
		return errors.Join(ctx.Err(), err)
	case errors.As(err, &auth) && errors.Is(err, kerr.IllegalSaslState):
		return fmt.Errorf("%w: %w", errNoLogin, err)
	case errors.As(err, &auth), dial.IsRefused(err):
		return err
	case c.security.tls == nil && errors.As(err, &alien) && alien.tls():
		return fmt.Errorf("%w (%w)", errSpeaksTLS, err)
	case c.security.tls != nil && errors.As(err, &failed) && (errors.As(err, &record) || dial.IsHangUp(err) || dial.IsTimeout(err)):
		plainly := &security{clientID: c.clientID}
		if again := c.greet(ctx, addr, plainly); again == nil || errors.Is(again, errWantsLogin) {
			return fmt.Errorf("%w (%w)", errSpeaksPlain, err)
		}
	case c.security.tls == nil && (dial.IsHangUp(err) || dial.IsTimeout(err)):
		if dial.SpeaksTLS(ctx, addr) {
			return fmt.Errorf("%w (%w)", errSpeaksTLS, err)
		}
		if errors.As(err, new(*net.OpError)) && strings.Contains(err.Error(), "dial") {
			return err
		}
		if dial.IsTimeout(err) {
			return fmt.Errorf("%w (%w)", errNoAnswer, err)
		}
		return fmt.Errorf("%w (%w)", errHungUp, err)
	}
	return err
}

// greet makes a connection and asks for the API versions and the brokers.
func (c *config) greet(ctx context.Context, addr string, s *security) error {
	conn, err := s.Dial(ctx, addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := dial.Interrupt(ctx, conn)
	defer stop()

	versions := kmsg.NewPtrApiVersionsRequest()
	versions.Version = 0 // the one that every broker knows
	answer, err := roundTrip(conn, c.clientID, versions)
	if err != nil {
		return fmt.Errorf("ask for the API versions: %w", err)
	}
	keys := answer.(*kmsg.ApiVersionsResponse)
	if err := kerr.ErrorForCode(keys.ErrorCode); err != nil {
		return fmt.Errorf("ask for the API versions: %w", err)
	}
	if len(keys.ApiKeys) == 0 {
		return errors.New("ask for the API versions: the broker knows none")
	}
	if c.engine == engineWire {
		for _, k := range keys.ApiKeys {
			// Produce v3 and Fetch v4 are the first that carry batches v2.
			if k.ApiKey == int16(kmsg.Produce) && k.MaxVersion < 3 || k.ApiKey == int16(kmsg.Fetch) && k.MaxVersion < 4 {
				return errTooOld
			}
		}
	}
	if s.mechanism != nil {
		return nil
	}
	// A listener with SASL answers ApiVersions to anybody, and hangs up at
	// anything else.
	meta := kmsg.NewPtrMetadataRequest()
	meta.Version = 1
	meta.Topics = []kmsg.MetadataRequestTopic{}
	if _, err := roundTrip(conn, c.clientID, meta); err != nil {
		if dial.IsHangUp(err) && c.wantsLogin(ctx, addr, s) {
			return errWantsLogin
		}
		return fmt.Errorf("ask for the brokers: %w", err)
	}
	return nil
}

// wantsLogin asks for a mechanism that cannot be: a listener with SASL answers
// that it does not support it, another that it takes no login.
func (c *config) wantsLogin(ctx context.Context, addr string, s *security) bool {
	conn, err := s.Dial(ctx, addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	stop := dial.Interrupt(ctx, conn)
	defer stop()
	hs := kmsg.NewPtrSASLHandshakeRequest()
	hs.Version = 1
	hs.Mechanism = "NONE"
	answer, err := roundTrip(conn, c.clientID, hs)
	return err == nil && errors.Is(kerr.ErrorForCode(answer.(*kmsg.SASLHandshakeResponse).ErrorCode), kerr.UnsupportedSaslMechanism)
}
