package kafka

import (
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
)

// handleIdempotentAnswer is handleBatchAnswer for an idempotent sender.
func (k *link) handleIdempotentAnswer(ps *partitionState, sl *slot, a *wire.ProduceAnswer, now time.Duration) {
	s := k.l.s
	ps.inFlight--
	switch a.ErrorCode {
	case 0, kerr.DuplicateSequenceNumber.Code:
		place := a.BaseOffset
		if a.ErrorCode != 0 {
			place = -1 // it was appended, and the broker no longer knows where
		}
		ps.remove(sl)
		s.acked(sl, now, place)
		if ps.recovering {
			s.resolve(sl.log)
		} else {
			s.sendQueued(ps)
		}
		return
	}
	err := kerr.ErrorForCode(a.ErrorCode)
	sl.class, sl.text = cluster.ClassOf(a.ErrorCode), errorText(a.ErrorCode, a.Message)
	s.startRecovery(sl.log)
	switch {
	case a.ErrorCode == kerr.OutOfOrderSequenceNumber.Code:
		// For a batch sent behind others this follows from their failure. For
		// one sent alone it means that the broker expects another sequence, and
		// certainly did not append this batch.
		if sl.sentAlone {
			ps.needsEpoch = true
			sl.maybeAppended = false
		}
	case a.ErrorCode == kerr.UnknownProducerID.Code, a.ErrorCode == kerr.InvalidProducerEpoch.Code, a.ErrorCode == kerr.ProducerFenced.Code:
		ps.needsEpoch = true
	case kerr.IsRetriable(err):
		if cluster.PerhapsAppended(a.ErrorCode) {
			sl.maybeAppended = true
		}
		s.p.metadata.ask()
		ps.notBefore = now + backoff(sl.attempts)
	default:
		ps.remove(sl)
		ps.needsEpoch = true
		s.failed(sl, now, sl.class, sl.text)
	}
	s.resolve(sl.log)
}

// remove removes a slot from the queue; it is usually the first.
func (ps *partitionState) remove(sl *slot) {
	for i, q := range ps.queue {
		if q == sl {
			copy(ps.queue[i:], ps.queue[i+1:])
			ps.queue[len(ps.queue)-1] = nil
			ps.queue = ps.queue[:len(ps.queue)-1]
			return
		}
	}
}

// sendQueued sends the batches that waited for answers to others.
func (s *sender) sendQueued(ps *partitionState) {
	for !ps.recovering && ps.inFlight < maxPartitionInFlight && ps.inFlight < len(ps.queue) {
		sl := ps.queue[ps.inFlight]
		l := s.route(sl.log).Load()
		if l == nil || !l.writable(s.now) {
			s.startRecovery(sl.log)
			return
		}
		s.noteFree(sl)
		s.markInFlight(ps, sl)
		s.send(l.link, []*slot{sl})
	}
}

// resolve ends the recovery of a partition, if none of its batches is in flight
// and its leader can be reached.
func (s *sender) resolve(part int32) {
	ps := s.partition(part)
	if ps.inFlight > 0 {
		return
	}
	for len(ps.queue) > 0 && (s.now >= ps.queue[0].deadline || s.unservedTooLong(part, s.now)) {
		sl := ps.queue[0]
		ps.remove(sl)
		if !sl.maybeAppended {
			ps.needsEpoch = true // its numbers will not be used
		}
		s.giveUp(sl, s.now, s.classFor(sl), s.textFor(sl))
		s.release(sl)
	}
	l := s.route(part).Load()
	if s.now < ps.notBefore || l == nil || !l.writable(s.now) {
		return
	}
	if ps.needsEpoch && !s.renumber(ps) {
		return
	}
	ps.recovering, ps.needsEpoch = false, false
	s.sendQueued(ps)
	if len(ps.queue) == 0 {
		l.ready(s.now)
	}
}

// renumber begins a new epoch for a partition. False: a new producer id must be
// requested first.
func (s *sender) renumber(ps *partitionState) bool {
	if ps.pid == s.pid && ps.epoch == s.epoch {
		if s.epoch == math.MaxInt16 {
			s.requestProducerID()
			return false
		}
		s.epoch++
	}
	// A batch that may be in the log already is not sent under new numbers: the
	// broker could not detect the duplicate.
	keep := ps.queue[:0]
	for _, sl := range ps.queue {
		if !sl.maybeAppended {
			keep = append(keep, sl)
			continue
		}
		s.unknown(sl, s.now, s.classFor(sl), s.textFor(sl))
		s.release(sl)
	}
	clear(ps.queue[len(keep):])
	ps.queue = keep
	ps.pid, ps.epoch, ps.next = s.pid, s.epoch, 0
	for _, sl := range ps.queue {
		sl.pid, sl.epoch, sl.seq = ps.pid, ps.epoch, ps.next
		ps.next = (ps.next + sl.count) & math.MaxInt32
	}
	return true
}

// requestProducerID requests another producer id when all epochs are used.
func (s *sender) requestProducerID() {
	if s.requestingID {
		return
	}
	s.requestingID = true
	s.p.tasks.Go(func() {
		id, epoch, err := newProducerID(s.p.ctx, s.p.cfg, s.p.metadata.view.Load())
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requestingID = false // watch causes another attempt if necessary
		if err != nil {
			s.p.cfg.Logf("%v", err)
			return
		}
		s.pid, s.epoch = id, epoch
	})
}
