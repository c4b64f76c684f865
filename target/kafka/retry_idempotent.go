package kafka

import (
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"carronade/internal/wire/kafka"
)

func (k *link) judgeIdempotent(sh *share, sl *slot, a *kafka.ProduceAnswer, now time.Duration) {
	s := k.l.s
	sh.wired--
	switch a.ErrorCode {
	case 0, kerr.DuplicateSequenceNumber.Code:
		place := a.BaseOffset
		if a.ErrorCode != 0 {
			place = -1 // it is there, and the broker has forgotten where
		}
		sh.remove(sl)
		s.acked(sl, now, place)
		if sh.recovering {
			s.resolve(sl.part)
		} else {
			s.feed(sh)
		}
		return
	}
	err := kerr.ErrorForCode(a.ErrorCode)
	sl.class, sl.text = classOf(a.ErrorCode), errorText(a.ErrorCode, a.Message)
	s.recover(sl.part)
	switch {
	case a.ErrorCode == kerr.OutOfOrderSequenceNumber.Code:
		// Of a batch sent behind others it is a consequence of their failure.
		// Of one sent alone it says that the broker knows another sequence:
		// it certainly did not append this one.
		if sl.first {
			sh.bump = true
			sl.maybe = false
		}
	case a.ErrorCode == kerr.UnknownProducerID.Code, a.ErrorCode == kerr.InvalidProducerEpoch.Code, a.ErrorCode == kerr.ProducerFenced.Code:
		sh.bump = true
	case kerr.IsRetriable(err):
		if perhapsAppended(a.ErrorCode) {
			sl.maybe = true
		}
		s.p.book.ask()
		sh.after = now + backoff(sl.attempts)
	default:
		sh.remove(sl)
		sh.bump = true
		s.failed(sl, now, sl.class, sl.text)
	}
	s.resolve(sl.part)
}

// remove takes a slot out of the queue; it is most often the first.
func (sh *share) remove(sl *slot) {
	for i, q := range sh.queue {
		if q == sl {
			copy(sh.queue[i:], sh.queue[i+1:])
			sh.queue[len(sh.queue)-1] = nil
			sh.queue = sh.queue[:len(sh.queue)-1]
			return
		}
	}
}

// feed sends the batches that waited for others to be answered.
func (s *sender) feed(sh *share) {
	for !sh.recovering && sh.wired < mostWired && sh.wired < len(sh.queue) {
		sl := sh.queue[sh.wired]
		l := s.routes[sl.part].Load()
		if l == nil || !l.open(s.now) {
			s.recover(sl.part)
			return
		}
		s.wire(sh, sl)
		s.send(l.link, []*slot{sl})
	}
}

// resolve ends the recovery of a partition, if nothing of it is on the wire
// any more and there is somebody to send to.
func (s *sender) resolve(part int32) {
	sh := &s.shares[part]
	if sh.wired > 0 {
		return
	}
	for len(sh.queue) > 0 && (s.now >= sh.queue[0].deadline || s.hopeless(part, s.now)) {
		sl := sh.queue[0]
		sh.remove(sl)
		if !sl.maybe {
			sh.bump = true // its numbers will not be used
		}
		s.giveUp(sl, s.now, s.classFor(sl), s.textFor(sl))
		s.release(sl)
	}
	l := s.routes[part].Load()
	if s.now < sh.after || l == nil || !l.open(s.now) {
		return
	}
	if sh.bump && !s.renumber(sh) {
		return
	}
	sh.recovering, sh.bump = false, false
	s.feed(sh)
	if len(sh.queue) == 0 {
		l.ready(s.now)
	}
}

// renumber begins a new epoch for a partition. False: a new producer id has to
// be got first.
func (s *sender) renumber(sh *share) bool {
	if sh.pid == s.pid && sh.epoch == s.epoch {
		if s.epoch == math.MaxInt16 {
			s.newID()
			return false
		}
		s.epoch++
	}
	// What may be in the log already is not sent under numbers by which the
	// broker could not know it again: it would be there twice.
	keep := sh.queue[:0]
	for _, sl := range sh.queue {
		if !sl.maybe {
			keep = append(keep, sl)
			continue
		}
		s.unknown(sl, s.now, s.classFor(sl), s.textFor(sl))
		s.release(sl)
	}
	clear(sh.queue[len(keep):])
	sh.queue = keep
	sh.pid, sh.epoch, sh.next = s.pid, s.epoch, 0
	for _, sl := range sh.queue {
		sl.pid, sl.epoch, sl.seq = sh.pid, sh.epoch, sh.next
		sh.next = (sh.next + sl.count) & math.MaxInt32
	}
	return true
}

// newID gets another producer id when the epochs are used up.
func (s *sender) newID() {
	if s.fetching {
		return
	}
	s.fetching = true
	s.p.tasks.Go(func() {
		id, epoch, err := newProducerID(s.p.ctx, s.p.cfg, s.p.book.view.Load())
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fetching = false // the watch asks again if need be
		if err != nil {
			s.p.cfg.logf("%v", err)
			return
		}
		s.pid, s.epoch = id, epoch
	})
}
