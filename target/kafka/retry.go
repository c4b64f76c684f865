package kafka

import (
	"errors"
	"fmt"
	"math"
	"time"

	"carronade/internal/wire/kafka"
	"carronade/load"
)

// Retries. Of a sender that is not idempotent, a batch goes again only where
// the broker certainly did not append it: it was never written whole, or it
// was answered with one of the errors that come before appending. Of an
// idempotent one everything goes again until the delivery timeout, in order:
// a partition whose batch failed waits until all its batches on the wire are
// answered or lost, and then sends all unanswered ones again. A gap in the
// sequence, left by a batch that was refused for good, is closed by beginning
// a new epoch (KIP-360), which a producer without transactions may do alone.

const (
	// retryPause and retryMost are the Java client's retry.backoff.ms and
	// retry.backoff.max.ms. A new leader ends a pause.
	retryPause = 100 * time.Millisecond
	retryMost  = time.Second
	// mostWired is how many batches of one producer and partition a broker
	// remembers, to know them again.
	mostWired = 5
)

// backoff is how long a slot waits after its n-th attempt.
func backoff(n int32) time.Duration {
	return jittered(min(retryPause<<min(n-1, 8), retryMost))
}

// launch sends slots just fired.
func (s *sender) launch(l *lane, slots []*slot) {
	up := l.open(s.now)
	stray := false
	if s.pid < 0 {
		s.sending = s.sending[:0]
		for _, sl := range slots {
			if !up || s.routes[sl.part].Load() != l {
				s.later = append(s.later, sl)
				stray = true
				continue
			}
			sl.attempts++
			s.sending = append(s.sending, sl)
		}
		if len(s.sending) > 0 {
			s.send(l.link, s.sending)
		}
		if stray {
			s.dispatch()
		}
		return
	}
	s.sending = s.sending[:0]
	for _, sl := range slots {
		sh := &s.shares[sl.part]
		sl.pid, sl.epoch, sl.seq = sh.pid, sh.epoch, sh.next
		sh.next = (sh.next + sl.count) & math.MaxInt32
		sh.queue = append(sh.queue, sl)
		if sh.recovering {
			continue
		}
		if !up || s.routes[sl.part].Load() != l {
			s.recover(sl.part)
			stray = true
			continue
		}
		if sh.wired < mostWired && sh.wired == len(sh.queue)-1 {
			s.wire(sh, sl)
			s.sending = append(s.sending, sl)
		}
	}
	if len(s.sending) > 0 {
		s.send(l.link, s.sending)
	}
	if stray {
		s.dispatch()
	}
}

// wire notes that a slot of an idempotent sender goes out now.
func (s *sender) wire(sh *share, sl *slot) {
	sl.first = sh.wired == 0
	sl.attempts++
	sh.wired++
}

// send queues slots on a link in as few requests as possible; finish writes
// them.
func (s *sender) send(k *link, slots []*slot) {
	cfg := s.p.cfg
	for len(slots) > 0 {
		s.marks++
		size, n := k.format.MaxHead(), 0
		for n < len(slots) {
			sl := slots[n]
			sh := &s.shares[sl.part]
			size += kafka.MaxPartition + kafka.HeaderSize + len(sl.recs)
			// A fixed number of events a batch is meant as one request each;
			// a broker takes one batch a partition in a request.
			if n > 0 && (cfg.batchEvents > 0 || size > cfg.maxRequest || sh.mark == s.marks) {
				break
			}
			sh.mark = s.marks
			n++
		}
		k.push(s.newRequest(), slots[:n])
		slots = slots[n:]
	}
	if !k.dirty {
		k.dirty = true
		s.dirty = append(s.dirty, k)
	}
}

// recover makes a partition wait until none of its batches is on the wire.
func (s *sender) recover(part int32) {
	sh := &s.shares[part]
	sh.recovering = true
	if !sh.listed {
		sh.listed = true
		s.recovering = append(s.recovering, part)
	}
}

// dispatch sends what waits for a leader, a connection or the end of a pause. What it
// costs depends on how much waits, and not on how many partitions and lanes there are:
// while a broker is away it is done for every flush.
func (s *sender) dispatch() {
	keep := s.recovering[:0]
	for _, part := range s.recovering { // resolve lists no others
		sh := &s.shares[part]
		if sh.recovering {
			s.resolve(part)
		}
		if sh.recovering {
			keep = append(keep, part)
		} else {
			sh.listed = false
		}
	}
	s.recovering = keep
	if len(s.later) == 0 {
		return
	}
	waiting := s.later[:0]
	for _, sl := range s.later {
		to := s.routes[sl.part].Load()
		if to == nil || !to.open(s.now) || s.now < sl.after && s.shares[sl.part].after != 0 {
			waiting = append(waiting, sl)
			continue
		}
		if len(to.again) == 0 {
			s.again = append(s.again, to)
		}
		sl.attempts++
		to.again = append(to.again, sl)
	}
	clear(s.later[len(waiting):])
	s.later = waiting
	for _, l := range s.again {
		s.send(l.link, l.again)
		clear(l.again)
		l.again = l.again[:0]
	}
	s.again = s.again[:0]
}

// judge deals with a broker's answer about one batch.
func (k *link) judge(sl *slot, a *kafka.ProduceAnswer, now time.Duration) {
	s := k.l.s
	sh := &s.shares[sl.part]
	sl.flying = false
	if a.ErrorCode != 0 && a.LeaderID >= 0 {
		k.hints = append(k.hints, hint{sl.part, a.LeaderID, a.LeaderEpoch})
	}
	if s.pid >= 0 {
		k.judgeIdempotent(sh, sl, a, now)
		return
	}
	if a.ErrorCode == 0 {
		s.acked(sl, now, a.BaseOffset)
		return
	}
	sl.class, sl.text = classOf(a.ErrorCode), errorText(a.ErrorCode, a.Message)
	switch {
	case notAppended(a.ErrorCode) && now < sl.deadline:
		s.p.book.ask()
		sl.after = now + backoff(sl.attempts)
		sh.after = sl.after
		s.later = append(s.later, sl)
	case perhapsAppended(a.ErrorCode):
		s.unknown(sl, now, sl.class, sl.text)
	default:
		s.failed(sl, now, sl.class, sl.text)
	}
}

// gone completes a slot whose request wants no answer and was written.
func (s *sender) gone(sl *slot) {
	if sl.live >= 0 {
		s.unknown(sl, sl.sent, load.OK, "")
	}
}

// lost cleans up after a connection.
func (l *lane) lost(k *link) {
	s := l.s
	var words error
	defer func() { // without the lock: who listens may be slow
		if words != nil {
			s.p.cfg.logf("%v", words)
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	k.kill(errHangUp)
	for k.writing {
		if k.handed {
			// The flusher may wait for its turn.
			k.cond.Broadcast()
		}
		k.cond.Wait()
	}
	s.now = s.p.sink.Now()
	l.link = nil
	if !l.closed {
		l.downAt, l.downErr = s.now, fmt.Errorf("connection to broker %d at %s lost: %w", l.broker, l.addr, k.cause)
		l.metrics.Reconnects++
		words = l.downErr
		s.p.book.ask()
	}
	class, text := load.Refused, fmt.Sprintf("connection to broker %d lost: %v", l.broker, k.cause)
	if errors.As(k.cause, new(*protocolError)) || errors.Is(k.cause, kafka.ErrLength) {
		class = load.Protocol
	}
	for k.head < k.tail {
		written := k.head < k.next
		started := written || k.head == k.next && k.offset > 0
		r := k.pop()
		late := errors.Is(k.cause, errTimeout) && s.now-r.sent >= s.p.cfg.requestTimeout
		for _, sl := range r.slots {
			if sl.live < 0 {
				continue
			}
			sl.flying = false
			sl.class, sl.text = class, text
			if late && written {
				sl.class, sl.text = load.Timeout, fmt.Sprintf("no answer from broker %d within %v", l.broker, s.p.cfg.requestTimeout)
			}
			if !started {
				sl.attempts-- // nothing of it left this machine
			}
			switch {
			case s.pid >= 0:
				sl.maybe = sl.maybe || written
				s.shares[sl.part].wired--
				s.recover(sl.part)
			case written:
				s.unknown(sl, s.now, sl.class, sl.text)
			default:
				// Part of a request is no request: the broker cannot have
				// appended it.
				s.later = append(s.later, sl)
			}
		}
		k.free(r)
	}
	s.dispatch()
	s.finish()
}

// watch ends what is over, and reports whether anything waits for the end of a pause.
func (s *sender) watch() (busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.p.sink.Now()
	s.now = now
	for _, l := range s.lanes {
		k := l.link
		if k == nil || k.dead {
			l.ready(now)
			busy = true
			continue
		}
		if k.term != (term{}) {
			busy = true
			if k.term.due() {
				k.renew()
			}
		}
		if k.head < k.next {
			if r := k.at(k.head); r.sent >= 0 && now-r.sent > s.p.cfg.requestTimeout {
				k.kill(errTimeout)
			}
		} else if since, waits := k.unread(); waits && now-since > s.p.cfg.requestTimeout {
			k.kill(errTimeout) // the broker does not read either
		}
		l.ready(now) // it would hear of that before, unless somebody forgot to say so
	}
	s.abandon(now)
	s.expire(now)
	s.dispatch()
	s.finish()
	s.calm = !busy && !s.pauses()
	return !s.calm
}

// pauses reports whether anything waits for the end of a pause or for a leader.
func (s *sender) pauses() bool { return len(s.later) > 0 || len(s.recovering) > 0 || s.orphans > 0 }

// unread is since when the broker has not read on, where the oldest request is not
// written. Over TLS a write is told as a whole: nothing of it counts before its end.
func (k *link) unread() (since time.Duration, waits bool) {
	if k.head != k.next || k.next == k.tail {
		return 0, false
	}
	if r := k.at(k.head); k.offset > 0 && r.sent >= 0 {
		return r.sent, true
	}
	return k.moved, true
}

// expire gives up what waited too long for an attempt.
func (s *sender) expire(now time.Duration) {
	keep := s.later[:0]
	for _, sl := range s.later {
		if now < sl.deadline && !s.hopeless(sl.part, now) {
			keep = append(keep, sl)
			continue
		}
		s.giveUp(sl, now, s.classFor(sl), s.textFor(sl))
		s.release(sl)
	}
	clear(s.later[len(keep):])
	s.later = keep
}

// patience is how long a broker may be away, and a partition without a leader,
// before its batches fail: an idempotent producer, which loses nothing by waiting,
// waits for as long as it tries one again.
func (s *sender) patience() time.Duration {
	if s.pid >= 0 {
		return s.p.cfg.deliveryTimeout
	}
	return s.p.cfg.requestTimeout
}

// hopeless reports whether nobody has served a partition for so long that its
// batches are given up.
func (s *sender) hopeless(part int32, now time.Duration) bool {
	l := s.routes[part].Load()
	return l != nil && l.gone(now)
}

// abandon routes partitions that had no leader for too long to a lane on which
// batches fail: else a run that has to fire a number of events would never end.
func (s *sender) abandon(now time.Duration) {
	if s.orphans == 0 {
		return
	}
	found := false
	for part := range s.shares {
		sh := &s.shares[part]
		if !sh.orphan || now-sh.since <= s.patience() || s.routes[part].Load() != nil {
			continue
		}
		if s.nowhere == nil {
			s.nowhere = &lane{s: s, id: int(s.p.lanes.Add(1) - 1), broker: noLeader, downErr: errNoLeader, downAt: math.MinInt64 / 2}
		}
		s.routes[part].Store(s.nowhere)
		found = true
	}
	if found {
		s.p.sink.Ready(-1, now)
	}
}

var errNoLeader = errors.New("the partition has no leader")

func (s *sender) classFor(sl *slot) load.Class {
	if sl.class != load.OK {
		return sl.class
	}
	return load.Refused
}

func (s *sender) textFor(sl *slot) string {
	if sl.text != "" {
		return sl.text
	}
	l := s.routes[sl.part].Load()
	switch {
	case l == nil:
		return errNoLeader.Error()
	case l.downErr != nil:
		return l.downErr.Error()
	}
	return "could not be written in time"
}
