package riemann

import (
	"errors"
	"io"
	"math"
	"time"

	"carronade/internal/socket"
	"carronade/internal/wire/riemann"
	"carronade/load"
)

const (
	// readBuffer holds ten thousand acks.
	readBuffer = 64 << 10
	// mostRefusal bounds an answer, of which the longest are exceptions with
	// their causes.
	mostRefusal = 1 << 20
	// mostUnread bounds what is kept of answers that do not end, such as an
	// HTTP response of nothing but fields.
	mostUnread = 4 * mostRefusal
)

var errEndless = errors.New("an answer that does not end")

// read reads answers until the connection ends, and says why it did.
func (k *link) read() (err error) {
	r := reader{k: k, buf: make([]byte, readBuffer)}
	if c, ok := k.nc.(*socket.Conn); ok {
		c.Serve(func(end bool) bool {
			for {
				var n int
				left := len(r.buf) - r.have
				if n, err = r.read(c); err != nil || n == 0 || n < left && !end {
					return err != nil
				}
			}
		})
		return err
	}
	for err == nil {
		_, err = r.read(nil)
	}
	return err
}

// A reader has what of an answer has come.
type reader struct {
	k    *link
	buf  []byte
	have int
}

// read reads once; polled is the connection where a poller reads it. An error is why
// the connection ended.
func (r *reader) read(polled *socket.Conn) (n int, err error) {
	k, l := r.k, r.k.l
	n, err = k.nc.Read(r.buf[r.have:])
	if n == 0 && err == nil {
		return 0, nil
	}
	// One look at the clock for all answers that this wake-up brought.
	now := l.sink.Now()
	l.readBy.Add(uint64(n))
	r.have += n
	came := socket.Arrival{Last: now}
	if polled != nil {
		came = polled.Arrival(now)
	}
	rest, perr := k.take(r.buf[:r.have], came)
	if perr != nil {
		return n, perr
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errHangUp // also when it would read on: nothing it did could be known
		}
		return n, err
	}
	r.have = copy(r.buf, rest)
	if r.have == len(r.buf) {
		if r.have >= mostUnread {
			return n, &protocolError{errEndless}
		}
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	return n, nil
}

// take completes what the answers in b decide, and returns what is left of b:
// the beginning of another.
func (k *link) take(b []byte, came socket.Arrival) (rest []byte, err error) {
	l := k.l
	l.mu.Lock()
	defer l.mu.Unlock()
	now, completed := came.Last, l.completed
	if k.dead {
		return nil, k.cause // what was sent is being given up elsewhere
	}
	for {
		var acks int
		var msg []byte
		if l.web != nil {
			messages, events := l.expects()
			acks, msg, b, err = l.web.answers(b, messages, events)
		} else {
			acks, msg, b, err = riemann.NextAnswers(b, mostRefusal)
		}
		if l.answered(uint64(acks), now) != nil {
			err = &protocolError{errMany}
		} else if err != nil {
			if !errors.Is(err, errHangUp) { // in so many words
				err = &protocolError{err}
			}
		} else if msg != nil {
			err = l.judge(msg, now)
		}
		k.proven = k.proven || acks > 0 || msg != nil
		if err == nil && msg != nil && l.web != nil && l.web.over() {
			err = errLast // before something is written that nobody reads
		}
		if err != nil || msg == nil && (l.web == nil || acks == 0) {
			break
		}
	}
	if err != nil {
		k.kill(err) // before the sending thread, which may be this one, fires what nobody reads
	}
	k.came(came, int(l.completed-completed), len(b) > 0)
	l.deliver()
	l.ready(now)
	l.since = 0
	return b, err
}

// came notes when the answers arrived that are about to be delivered.
func (k *link) came(at socket.Arrival, answers int, more bool) {
	l := k.l
	if answers == 0 {
		return
	}
	l.since = at.First(answers, more)
	for i := range l.outcomes {
		l.outcomes[i].Earliest = l.since
	}
	if c, ok := k.nc.(*socket.Conn); ok && l.outcomes[0].Sent != l.outcomes[len(l.outcomes)-1].Sent {
		c.Together()
	}
}

// answered notes that the oldest n messages were taken.
func (l *lane) answered(n uint64, now time.Duration) error {
	if err := l.expected(n); err != nil {
		return err
	}
	for n > 0 {
		m := min(n, l.queue.at(l.queue.head).batches())
		o := l.complete(m, now)
		o.Acked = o.Events
		n -= m
	}
	return nil
}

// expected checks that the oldest n messages may have been answered, and notes
// that they were sent: the writer may not have come back yet.
func (l *lane) expected(n uint64) error {
	most := l.upto
	if !l.writing {
		most = l.whole()
	}
	if l.completed+n > most {
		return errMany
	}
	l.begin(l.completed + n)
	return nil
}

// expects is how many messages of how many events are answered next.
func (l *lane) expects() (messages, events int) {
	if l.queue.empty() {
		return 1, 1 // it will turn out that none was
	}
	r := l.queue.at(l.queue.head)
	return int(r.batches()), int(uint64(r.batch.Events) / r.batches())
}

// judge deals with an answer that is no plain ack.
func (l *lane) judge(msg []byte, now time.Duration) error {
	_, events := l.expects()
	if l.answer == nil || events != l.answers || string(msg) != string(l.answer) { // a server that refuses everything says the same of each
		refused, text, err := l.verdict(msg, events)
		if err != nil {
			return &protocolError{err}
		}
		if refused > 0 && text == "" {
			text = "the server refused it without a reason"
		}
		l.answer, l.answers, l.refused, l.text = append(l.answer[:0], msg...), events, refused, text
	}
	if l.refused == 0 {
		return wrapped(l.answered(1, now))
	}
	if err := l.expected(1); err != nil {
		return wrapped(err)
	}
	o := l.complete(1, now)
	o.Failed = min(o.Events, l.refused)
	o.Acked = o.Events - o.Failed
	o.Class, o.Text = load.Rejected, l.text
	return nil
}

// verdict reads how many events of its message an answer refuses, and why.
func (l *lane) verdict(msg []byte, events int) (refused int32, text string, err error) {
	if l.web != nil {
		return l.web.verdict(msg, int32(events))
	}
	m, err := riemann.DecodeMsg(msg)
	switch {
	case err != nil:
		return 0, "", err
	case !m.HasOK && m.Error == "":
		return 0, "", errNeither
	case m.OK && m.HasOK:
		return 0, "", nil
	}
	return math.MaxInt32, m.Error, nil // a message is taken whole, or not
}

func wrapped(err error) error {
	if err != nil {
		return &protocolError{err}
	}
	return nil
}
