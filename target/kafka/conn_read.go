package kafka

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"carronade/internal/socket"
	"carronade/internal/wire/kafka"
)

const (
	readBuffer = 64 << 10
	// mostAnswer bounds an answer to a produce request: 100,000 partitions
	// with a long message each.
	mostAnswer = 32 << 20
)

// run reads answers until the connection ends.
func (k *link) run() {
	r := reader{k: k, buf: make([]byte, readBuffer)}
	if c, ok := k.nc.(*socket.Conn); ok {
		c.Serve(func(end bool) bool {
			for {
				left := len(r.buf) - r.have
				if n, over := r.read(c); over || n == 0 || n < left && !end {
					return over
				}
			}
		})
		return
	}
	for over := false; !over; {
		_, over = r.read(nil)
	}
}

// A reader has what of an answer has come.
type reader struct {
	k    *link
	buf  []byte
	have int
}

// read reads once; polled is the connection where a poller reads it. It reports
// whether the connection is over.
func (r *reader) read(polled *socket.Conn) (n int, over bool) {
	k, s := r.k, r.k.l.s
	n, err := k.nc.Read(r.buf[r.have:])
	if n == 0 && err == nil {
		return 0, false
	}
	// One look at the clock for all answers that this wake-up brought.
	now := s.p.sink.Now()
	s.p.read.Add(uint64(n))
	r.have += n
	came := socket.Arrival{Last: now}
	if polled != nil {
		came = polled.Arrival(now)
	}
	used, perr := k.take(r.buf[:r.have], came)
	if perr != nil {
		err = perr
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errHangUp
		}
		s.mu.Lock()
		k.kill(err)
		s.mu.Unlock()
		return n, true
	}
	r.have = copy(r.buf, r.buf[used:r.have])
	if r.have == len(r.buf) {
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	return n, false
}

var errHangUp = errors.New("the broker closed the connection")

// take answers to all whole answers in b, and completes what they decide.
func (k *link) take(b []byte, came socket.Arrival) (used int, err error) {
	s := k.l.s
	answers, more := frames(b)
	s.mu.Lock()
	now, completed := came.Last, len(s.outcomes)
	s.now, s.since = now, came.First(answers, more)
	all := len(b)
	for {
		f, rest, ferr := kafka.NextFrame(b, mostAnswer)
		if ferr != nil || rest == nil {
			err = ferr
			break
		}
		b = rest
		if k.dead {
			break // what was sent is being given up elsewhere
		}
		if k.head >= k.upto {
			err = &protocolError{fmt.Errorf("answer %d to a request that was not sent", f.Correlation)}
			break
		}
		if r := k.at(k.head); r.correlation != f.Correlation {
			err = &protocolError{fmt.Errorf("answer %d where %d was expected", f.Correlation, r.correlation)}
			break
		}
		if r := k.at(k.head); r.reply != nil {
			r.reply <- bytes.Clone(f.Body)
			k.answered()
			continue
		}
		if err = k.answer(f.Body, now); err != nil {
			break
		}
	}
	if c, ok := k.nc.(*socket.Conn); ok && answers > 1 {
		if out := s.outcomes[completed:]; len(out) > 0 && out[0].Sent != out[len(out)-1].Sent {
			c.Together()
		}
	}
	k.l.ready(now)
	s.since = 0
	var hints []hint
	hints, k.hints = k.hints, nil
	s.finish()
	s.mu.Unlock()
	for _, h := range hints {
		s.p.book.moved(h.partition, h.leader, h.epoch)
	}
	return all - len(b), err
}

// frames is how many whole answers b holds, 2 where there are more, and whether a part
// of one follows.
func frames(b []byte) (n int, more bool) {
	for n < 2 {
		_, rest, err := kafka.NextFrame(b, mostAnswer)
		if err != nil || rest == nil {
			break
		}
		b = rest
		n++
	}
	return n, len(b) > 0
}

// A protocolError is an answer that makes no sense.
type protocolError struct{ err error }

func (e *protocolError) Error() string { return e.err.Error() }
func (e *protocolError) Unwrap() error { return e.err }

// answer deals with the answer to the oldest request.
func (k *link) answer(body []byte, now time.Duration) error {
	s := k.l.s
	var throttle int32
	var err error
	s.answers, throttle, err = kafka.ParseProduce(body, k.format.Version, s.answers[:0])
	if err != nil {
		return &protocolError{err}
	}
	r := k.at(k.head)
	if len(s.answers) != len(r.slots) {
		return &protocolError{fmt.Errorf("an answer for %d partitions to a request for %d", len(s.answers), len(r.slots))}
	}
	k.stamp(r, k.out.Began()) // the writer may not have come back yet
	// All is checked before anything is believed.
	for i := range s.answers {
		if !r.match(i, s.answers[i].Partition) {
			return &protocolError{fmt.Errorf("an answer for partition %d, which was not in the request", s.answers[i].Partition)}
		}
	}
	for i, sl := range r.slots {
		if sl.live >= 0 {
			k.judge(sl, &s.answers[i], now)
		}
	}
	k.answered()
	if throttle > 0 {
		k.l.throttle(now, time.Duration(throttle)*time.Millisecond)
	}
	return nil
}

// answered takes the oldest request out of the queue, and back as soon as no
// writer has its bytes.
func (k *link) answered() {
	number := k.head
	r := k.pop()
	if number >= k.next {
		// The writer still has its bytes. Slots that go again belong to
		// another request from now on.
		for i, sl := range r.slots {
			if sl.live >= 0 {
				r.slots[i] = nil
			}
		}
		k.limbo = append(k.limbo, r)
	} else {
		k.free(r)
	}
}

// match brings the slot of a partition to place i, where it most often is.
func (r *request) match(i int, partition int32) bool {
	for j := i; j < len(r.slots); j++ {
		if r.slots[j].part == partition {
			r.slots[i], r.slots[j] = r.slots[j], r.slots[i]
			return true
		}
	}
	return false
}

// throttle keeps a lane quiet for as long as the broker asked for (KIP-219:
// it does not read from the connection meanwhile).
func (l *lane) throttle(now, wait time.Duration) {
	l.metrics.Throttled++
	l.metrics.Throttle += wait
	if now+wait <= l.quiet {
		return
	}
	l.quiet = now + wait
	s := l.s
	time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.closed {
			return
		}
		s.now = s.p.sink.Now()
		s.dispatch()
		l.ready(max(s.now, l.quiet))
		s.finish()
	})
}
