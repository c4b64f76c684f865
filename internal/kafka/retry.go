package kafka

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"carronade/internal/conn"
	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
)

// Retries. A sender that is not idempotent sends a batch again only if the
// broker certainly did not append it: the batch was never written completely, or
// the answer was one of the errors that precede appending. An idempotent sender
// sends every batch again until the delivery timeout, in order: a partition whose
// batch failed waits until all its batches in flight are answered or lost, and
// then sends all unanswered ones again. A batch that is finally refused leaves a
// gap in the sequence. The sender closes it by beginning a new epoch (KIP-360),
// which a producer without transactions may do without asking the broker.

const (
	// minRetryPause and maxRetryPause are the Java client's retry.backoff.ms and
	// retry.backoff.max.ms. A new leader ends a pause.
	minRetryPause = 100 * time.Millisecond
	maxRetryPause = time.Second
	// maxPartitionInFlight is how many batches of one producer and partition a
	// broker remembers, to detect duplicates.
	maxPartitionInFlight = 5
)

// backoff is how long a slot waits after its n-th attempt.
func backoff(n int32) time.Duration {
	return conn.Jittered(min(minRetryPause<<min(n-1, 8), maxRetryPause))
}

// sendNew sends slots for the first time.
func (s *sender) sendNew(l *lane, slots []*slot) {
	up := l.writable(s.now)
	stray := false
	if s.pid < 0 {
		s.sending = s.sending[:0]
		for _, sl := range slots {
			if !up || s.route(sl.log).Load() != l {
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
		ps := s.partition(sl.log)
		sl.pid, sl.epoch, sl.seq = ps.pid, ps.epoch, ps.next
		ps.next = (ps.next + sl.count) & math.MaxInt32
		ps.queue = append(ps.queue, sl)
		if ps.recovering {
			continue
		}
		if !up || s.route(sl.log).Load() != l {
			s.startRecovery(sl.log)
			stray = true
			continue
		}
		if ps.inFlight < maxPartitionInFlight && ps.inFlight == len(ps.queue)-1 {
			s.markInFlight(ps, sl)
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

// markInFlight notes that a slot of an idempotent sender is sent now.
func (s *sender) markInFlight(ps *partitionState, sl *slot) {
	sl.sentAlone = ps.inFlight == 0
	sl.attempts++
	ps.inFlight++
}

// send queues slots on a link in as few requests as possible; finish writes
// them.
func (s *sender) send(k *link, slots []*slot) {
	cfg := s.p.cfg
	for len(slots) > 0 {
		s.requestCount++
		size, n := k.format.MaxHead(), 0
		for n < len(slots) {
			sl := slots[n]
			ps := s.partition(sl.log)
			var before *slot
			if n > 0 {
				before = slots[n-1]
			}
			size += k.topicSize(before, sl) + wire.MaxPartition + wire.HeaderSize + len(sl.recs)
			// With a fixed number of events per batch, each batch is its own
			// request. A request has at most one batch per partition.
			if n > 0 && (cfg.BatchEvents > 0 || size > cfg.MaxRequest || ps.lastRequest == s.requestCount) {
				break
			}
			ps.lastRequest = s.requestCount
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

// noteFree notes that a slot can be sent now. If no byte of it was written yet, it has waited for a leader,
// a connection or answers to others: that is the system's delay, not the generator's.
func (s *sender) noteFree(sl *slot) {
	if sl.sent < 0 {
		sl.batch.Free = max(sl.batch.Free, cmp.Or(s.earliestArrival, s.now))
	}
}

// startRecovery makes a partition wait until none of its batches is in flight.
func (s *sender) startRecovery(part int32) {
	ps := s.partition(part)
	ps.recovering = true
	if !ps.listed {
		ps.listed = true
		s.recovering = append(s.recovering, part)
	}
}

// dispatch sends what waits for a leader, a connection or the end of a pause. Its cost
// depends on how much waits, and not on the number of partitions and lanes: while a
// broker is away, every flush calls it.
func (s *sender) dispatch() {
	keep := s.recovering[:0]
	for _, part := range s.recovering { // resolve adds none
		ps := s.partition(part)
		if ps.recovering {
			s.resolve(part)
		}
		if ps.recovering {
			keep = append(keep, part)
		} else {
			ps.listed = false
		}
	}
	s.recovering = keep
	if len(s.later) == 0 {
		return
	}
	waiting := s.later[:0]
	for _, sl := range s.later {
		to := s.route(sl.log).Load()
		if to == nil || !to.writable(s.now) || s.now < sl.notBefore && s.partition(sl.log).notBefore != 0 {
			waiting = append(waiting, sl)
			continue
		}
		if len(to.resend) == 0 {
			s.resendLanes = append(s.resendLanes, to)
		}
		s.noteFree(sl)
		sl.attempts++
		to.resend = append(to.resend, sl)
	}
	clear(s.later[len(waiting):])
	s.later = waiting
	for _, l := range s.resendLanes {
		s.send(l.link, l.resend)
		clear(l.resend)
		l.resend = l.resend[:0]
	}
	s.resendLanes = s.resendLanes[:0]
}

// handleBatchAnswer processes a broker's answer about one batch.
func (k *link) handleBatchAnswer(sl *slot, a *wire.ProduceAnswer, now time.Duration) {
	s := k.l.s
	ps := s.partition(sl.log)
	sl.inFlight = false
	if a.ErrorCode != 0 && a.LeaderID >= 0 {
		k.hints = append(k.hints, hint{sl.log, a.LeaderID, a.LeaderEpoch})
	}
	if s.pid >= 0 {
		k.handleIdempotentAnswer(ps, sl, a, now)
		return
	}
	if a.ErrorCode == 0 {
		s.acked(sl, now, a.BaseOffset)
		return
	}
	sl.class, sl.text = cluster.ClassOf(a.ErrorCode), errorText(a.ErrorCode, a.Message)
	switch {
	case notAppended(a.ErrorCode) && now < sl.deadline:
		s.p.metadata.ask()
		sl.notBefore = now + backoff(sl.attempts)
		ps.notBefore = sl.notBefore
		s.later = append(s.later, sl)
	case cluster.PerhapsAppended(a.ErrorCode):
		s.unknown(sl, now, sl.class, sl.text)
	default:
		s.failed(sl, now, sl.class, sl.text)
	}
}

// completeUnacked completes a slot that was written with acks=0.
func (s *sender) completeUnacked(sl *slot) {
	if sl.liveIndex >= 0 {
		s.unknown(sl, sl.sent, load.OK, "")
	}
}

// lost cleans up after a lost connection.
func (l *lane) lost(k *link) conn.Next {
	s := l.s
	var logged error
	defer func() { // without the lock: logging may be slow
		if logged != nil {
			s.p.cfg.Logf("%v", logged)
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	k.Bury(errBrokerClosed)
	s.now = s.p.sink.Now()
	l.link = nil
	if !l.closed {
		logged = fmt.Errorf("connection to broker %d at %s lost: %w", l.broker, l.addr, k.Cause())
		l.outage.Note(s.now, logged)
		l.metrics.Reconnects++
		s.p.cfg.Happened("connection lost", time.Now(), 0)
		s.p.metadata.ask()
	}
	class, text := load.Refused, fmt.Sprintf("connection to broker %d lost: %v", l.broker, k.Cause())
	if errors.As(k.Cause(), new(*protocolError)) || errors.Is(k.Cause(), wire.ErrLength) {
		class = load.Protocol
	}
	for k.Head < k.Tail {
		written := k.Head < k.Next
		started := k.Begun(k.Head)
		r := k.pop()
		late := errors.Is(k.Cause(), conn.ErrTimeout) && s.now-r.sent >= s.p.cfg.RequestTimeout
		for _, sl := range r.slots {
			if sl.liveIndex < 0 {
				continue
			}
			sl.inFlight = false
			sl.class, sl.text = class, text
			if late && written {
				sl.class, sl.text = load.Timeout, fmt.Sprintf("no answer from broker %d within %v", l.broker, s.p.cfg.RequestTimeout)
			}
			if !started {
				sl.attempts-- // no byte of it was written
			}
			switch {
			case s.pid >= 0:
				sl.maybeAppended = sl.maybeAppended || written
				s.partition(sl.log).inFlight--
				s.startRecovery(sl.log)
			case written:
				s.unknown(sl, s.now, sl.class, sl.text)
			default:
				// The request was not written completely, so the broker cannot
				// have appended it.
				s.later = append(s.later, sl)
			}
		}
		k.free(r)
	}
	s.dispatch()
	s.finish()
	switch {
	case l.closed:
		return conn.Never
	case k.answered, s.now-k.startedAt > conn.ReconnectMost: // one that was idle, and that the broker then closed, was usable
		return conn.AtOnce
	case k.format.Acks == 0 && k.Next > 0:
		return conn.AfterFirst // nothing is ever answered: what was written may have been of use
	}
	return conn.AfterPause // a broker that accepts connections and closes them is as bad as none
}

// watch ends what is over, and reports whether anything waits for the end of a pause.
func (s *sender) watch() (busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.p.sink.Now()
	s.now = now
	for _, l := range s.lanes {
		k := l.link
		if k == nil || k.Dead() {
			l.ready(now)
			busy = true
			continue
		}
		if k.term != (cluster.LoginTerm{}) {
			busy = true
			if k.term.Due() {
				k.renew()
			}
		}
		l.ready(now) // only in case an earlier call is missing
	}
	s.routeLeaderless(now)
	s.expire(now)
	s.dispatch()
	s.finish()
	s.calm = !busy && !s.pauses()
	return !s.calm
}

// pauses reports whether anything waits for the end of a pause or for a leader.
func (s *sender) pauses() bool { return len(s.later) > 0 || len(s.recovering) > 0 || s.leaderless > 0 }

// expire gives up batches that waited too long for an attempt.
func (s *sender) expire(now time.Duration) {
	keep := s.later[:0]
	for _, sl := range s.later {
		if now < sl.deadline && !s.unservedTooLong(sl.log, now) {
			keep = append(keep, sl)
			continue
		}
		s.giveUp(sl, now, s.classFor(sl), s.textFor(sl))
		s.release(sl)
	}
	clear(s.later[len(keep):])
	s.later = keep
}

// maxOutage is how long a broker may be away, or a partition may have no leader,
// before batches for it fail. An idempotent producer loses nothing by waiting: its
// limit is the delivery timeout.
func (s *sender) maxOutage() time.Duration {
	if s.pid >= 0 {
		return s.p.cfg.DeliveryTimeout
	}
	return s.p.cfg.RequestTimeout
}

// unservedTooLong reports whether a partition's broker has been away for longer than
// its batches wait.
func (s *sender) unservedTooLong(part int32, now time.Duration) bool {
	l := s.route(part).Load()
	return l != nil && l.downTooLong(now)
}

// routeLeaderless routes partitions that had no leader for too long to a lane on
// which batches fail: otherwise a run of a fixed number of events would never end.
func (s *sender) routeLeaderless(now time.Duration) {
	if s.leaderless == 0 {
		return
	}
	found := false
	for part := range s.partitions {
		ps := &s.partitions[part]
		if !ps.leaderless || now-ps.leaderlessSince <= s.maxOutage() || s.routes[part].Load() != nil {
			continue
		}
		if s.leaderlessLane == nil {
			s.leaderlessLane = &lane{s: s, id: int(s.p.laneCount.Add(1) - 1), broker: noLeader, outage: conn.Outage{Err: errNoLeader, Since: math.MinInt64 / 2}}
		}
		s.routes[part].Store(s.leaderlessLane)
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
	l := s.route(sl.log).Load()
	switch {
	case l == nil:
		return errNoLeader.Error()
	case l.outage.Err != nil:
		return l.outage.Err.Error()
	}
	return "could not be written in time"
}
