package kafka

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"carronade/internal/conn"
	"carronade/internal/conn/socket"
	"carronade/internal/kafka/wire"
)

// mostAnswer bounds an answer to a produce request: 100,000 partitions with a long
// message each.
const mostAnswer = 32 << 20

// run reads answers until the connection ends.
func (k *link) run() {
	p := k.l.s.p
	r := conn.Reader{
		Conn: k.Conn, Now: p.sink.Now,
		Read:     func(n int) { p.read.Add(uint64(n)) },
		Received: k.handleAnswers,
		Ended: func(cause error) {
			if errors.Is(cause, io.EOF) {
				cause = errBrokerClosed
			}
			k.l.s.mu.Lock()
			k.Kill(cause)
			k.l.s.mu.Unlock()
		},
	}
	r.Run()
}

var errBrokerClosed = errors.New("the broker closed the connection")

// handleAnswers handles all complete answers in b, and completes the batches that they
// decide.
func (k *link) handleAnswers(b []byte, arrival socket.Arrival) (used int, err error) {
	s := k.l.s
	answers, more := countFrames(b)
	s.mu.Lock()
	now, completed := arrival.Last, len(s.outcomes)
	s.now, s.earliestArrival = now, arrival.First(answers, more)
	all := len(b)
	for {
		f, rest, ferr := wire.NextFrame(b, mostAnswer)
		if ferr != nil || rest == nil {
			err = ferr
			break
		}
		b = rest
		if k.Dead() {
			break // lane.lost or lane.Close completes what was sent
		}
		if k.Head >= k.End {
			err = &protocolError{fmt.Errorf("answer %d to a request that was not sent", f.Correlation)}
			break
		}
		if r := k.oldest(); r.correlation != f.Correlation {
			err = &protocolError{fmt.Errorf("answer %d where %d was expected", f.Correlation, r.correlation)}
			break
		}
		if r := k.oldest(); r.reply != nil {
			r.reply <- bytes.Clone(f.Body)
			k.popAnswered()
			continue
		}
		if err = k.handleAnswer(f.Body, now); err != nil {
			break
		}
	}
	if c, ok := k.Conn.(*socket.Conn); ok && answers > 1 {
		if out := s.outcomes[completed:]; len(out) > 0 && out[0].Sent != out[len(out)-1].Sent {
			c.Together()
		}
	}
	k.l.ready(now)
	s.earliestArrival = 0
	var hints []hint
	hints, k.hints = k.hints, nil
	s.finish()
	s.mu.Unlock()
	for _, h := range hints {
		s.p.metadata.updateLeader(h.log, h.leader, h.epoch)
	}
	return all - len(b), err
}

// countFrames counts the complete answers in b, up to 2, and reports whether more bytes
// follow.
func countFrames(b []byte) (n int, more bool) {
	for n < 2 {
		_, rest, err := wire.NextFrame(b, mostAnswer)
		if err != nil || rest == nil {
			break
		}
		b = rest
		n++
	}
	return n, len(b) > 0
}

// A protocolError is an answer that violates the protocol.
type protocolError struct{ err error }

func (e *protocolError) Error() string { return e.err.Error() }
func (e *protocolError) Unwrap() error { return e.err }

// handleAnswer handles the answer to the oldest request.
func (k *link) handleAnswer(body []byte, now time.Duration) error {
	s := k.l.s
	var throttle int32
	var err error
	s.answers, throttle, err = wire.ParseProduce(body, k.format.Version, s.answers[:0])
	if err != nil {
		return &protocolError{err}
	}
	r := k.oldest()
	if len(s.answers) != len(r.slots) {
		return &protocolError{fmt.Errorf("an answer for %d partitions to a request for %d", len(s.answers), len(r.slots))}
	}
	k.stamp(r, k.Out.Began()) // the write may not have returned yet
	// Check all partitions before using any.
	for i := range s.answers {
		if !k.match(r, i, &s.answers[i]) {
			return &protocolError{fmt.Errorf("an answer for partition %d, which was not in the request", s.answers[i].Partition)}
		}
	}
	for i, sl := range r.slots {
		if sl.liveIndex >= 0 {
			k.handleBatchAnswer(sl, &s.answers[i], now)
		}
	}
	k.popAnswered()
	if throttle > 0 {
		k.l.throttle(now, time.Duration(throttle)*time.Millisecond)
	}
	return nil
}

// popAnswered takes the oldest request out of the queue, and frees it once its bytes
// are no longer being written.
func (k *link) popAnswered() {
	number := k.Head
	r := k.pop()
	k.answered = true
	if number >= k.Next {
		// Its bytes are still being written. Slots that are sent again belong
		// to another request from now on.
		for i, sl := range r.slots {
			if sl.liveIndex >= 0 {
				r.slots[i] = nil
			}
		}
		k.answeredEarly = append(k.answeredEarly, r)
	} else {
		k.free(r)
	}
}

// match moves the slot that an answer is for to index i, where it usually is already.
func (k *link) match(r *request, i int, a *wire.ProduceAnswer) bool {
	for j := i; j < len(r.slots); j++ {
		at := k.placeOf(r.slots[j])
		if at.Partition == a.Partition && (len(k.topics) == 1 || k.topics[at.Topic].Is(a.Topic, k.format.Version)) {
			r.slots[i], r.slots[j] = r.slots[j], r.slots[i]
			return true
		}
	}
	return false
}

// throttle sends nothing on a lane for as long as the broker asked for (KIP-219: it
// does not read from the connection until then).
func (l *lane) throttle(now, wait time.Duration) {
	l.metrics.Throttled++
	l.metrics.Throttle += wait
	if now+wait <= l.throttledUntil {
		return
	}
	l.throttledUntil = now + wait
	s := l.s
	time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.closed {
			return
		}
		s.now = s.p.sink.Now()
		s.dispatch()
		l.ready(max(s.now, l.throttledUntil))
		s.finish()
	})
}
