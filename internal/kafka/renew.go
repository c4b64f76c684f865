package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"

	"carronade/internal/kafka/cluster"
)

// renew begins to log in again, in a separate goroutine, because a token may have
// to be fetched. The caller holds the sender's lock.
func (k *link) renew() {
	k.term.Renew = time.Time{} // only once
	k.l.s.p.tasks.Go(func() {
		s := k.l.s
		lifetime, again, err := k.relogin(s.p.ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case k.Dead():
			return
		case again:
			k.term.Renew = time.Now().Add(cluster.RenewPause)
			return
		case err != nil:
			// A new connection reports what is wrong, or succeeds. No request
			// that was sent on this one is lost.
			for k.Head < k.Tail && !k.Dead() {
				k.Wait()
			}
			k.Kill(fmt.Errorf("the login was not renewed: %w", err))
			return
		}
		k.term, k.paused = cluster.NewLoginTerm(lifetime), false
		s.p.renewed.Add(1)
		s.now = s.p.sink.Now()
		s.dispatch()
		k.l.ready(s.now)
		s.finish()
	})
}

// relogin logs in again on the link's connection. again says that nothing was
// sent yet and that there is time for another attempt.
func (k *link) relogin(ctx context.Context) (lifetime time.Duration, again bool, err error) {
	s := k.l.s
	sec := s.p.cfg.Security
	s.mu.Lock()
	addr, current := k.l.addr, k.term
	s.mu.Unlock()
	// Other requests continue while a token is fetched.
	session, first, err := sec.FirstMessage(ctx, addr)()
	if err != nil {
		s.p.cfg.Logf("connection to broker %d at %s: %v", k.l.broker, addr, err)
		if !current.EndsSoon() {
			return 0, true, err
		}
	}
	s.mu.Lock()
	k.paused = true
	s.mu.Unlock()
	if err != nil {
		return 0, false, err
	}
	lifetime, err = sec.Login(func() (sasl.Session, []byte, error) { return session, first, nil }, k.exchange)
	return lifetime, false, err
}

// exchange queues a request behind all others and waits for its answer.
func (k *link) exchange(req kmsg.Request) (kmsg.Response, error) {
	s := k.l.s
	s.mu.Lock()
	if k.Dead() {
		defer s.mu.Unlock()
		return nil, k.Cause()
	}
	r := s.newRequest()
	r.sent = -1
	r.reply = make(chan []byte, 1)
	k.correlation++
	r.correlation = k.correlation
	r.framing = kmsg.NewRequestFormatter(kmsg.FormatterClientID(s.p.cfg.ClientID)).AppendRequest(r.framing[:0], req, r.correlation)
	r.segs = append(r.segs[:0], r.framing)
	r.size = len(r.framing)
	reply, ended := r.reply, k.Ended()
	k.enqueue(r)
	if !k.dirty {
		k.dirty = true
		s.dirty = append(s.dirty, k)
	}
	s.finish()
	s.mu.Unlock()
	select {
	case body := <-reply:
		return cluster.ReadAnswer(req, body)
	case <-ended:
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, k.Cause()
	}
}

// renew logs in again between two requests.
func (st *fetcher) renew(ctx context.Context) error {
	c := st.src.cl.Config
	if err := st.conn.SetDeadline(time.Now().Add(c.RequestTimeout)); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // the end of the context may have set a deadline just before
	}
	lifetime, err := c.Security.Login(c.Security.FirstMessage(ctx, st.addr), cluster.ExchangeOn(st.conn, c.ClientID))
	if err != nil {
		// Not an error of the partitions: a new connection finds out whether the
		// login is refused. So the broker's error is not wrapped.
		return fmt.Errorf("the login was not renewed: %v", err) //nolint:errorlint // see above
	}
	st.term = cluster.NewLoginTerm(lifetime)
	st.src.renewed.Add(1)
	return nil
}
