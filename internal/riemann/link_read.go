package riemann

import (
	"errors"
	"io"
	"math"
	"time"

	"carronade/internal/conn"
	"carronade/internal/conn/socket"
	"carronade/internal/riemann/wire"
	"carronade/load"
)

const (
	// mostRefusal bounds an answer. The longest are exceptions with their
	// causes.
	mostRefusal = 1 << 20
	// mostUnread bounds what is kept of answers that do not end, such as an
	// endless HTTP header.
	mostUnread = 4 * mostRefusal
)

var errEndless = errors.New("an answer that does not end")

// reader returns what reads the answers until the connection ends, and notes why it ended.
func (k *link) reader() *conn.Reader {
	l := k.l
	return &conn.Reader{
		Conn: k.Conn, Now: l.sink.Now,
		Read: func(n int) { l.readBy.Add(uint64(n)) },
		Received: func(b []byte, came socket.Arrival) (int, error) {
			rest, err := k.processAnswers(b, came)
			if err == nil && len(rest) >= mostUnread {
				err = &protocolError{errEndless}
			}
			return len(b) - len(rest), err
		},
		Ended: func(cause error) {
			if errors.Is(cause, io.EOF) {
				cause = errServerClosed // even if the server still reads: what it does could not be known
			}
			k.why = cause
		},
	}
}

// processAnswers completes the messages that the answers in b are for, and
// returns the rest of b, the beginning of another answer.
func (k *link) processAnswers(b []byte, came socket.Arrival) (rest []byte, err error) {
	l := k.l
	l.mu.Lock()
	defer l.mu.Unlock()
	now, completed := came.Last, l.completed
	if k.Dead() {
		return nil, k.Cause() // lost, or Close, gives up what was sent
	}
	for {
		var acks int
		var msg []byte
		if l.web != nil {
			messages, events := l.expects()
			acks, msg, b, err = l.web.answers(b, messages, events)
		} else {
			acks, msg, b, err = wire.NextAnswers(b, mostRefusal)
		}
		if l.answered(uint64(acks), now) != nil {
			err = &protocolError{errTooManyAnswers}
		} else if err != nil {
			if !errors.Is(err, errServerClosed) { // a close frame is not a protocol error
				err = &protocolError{err}
			}
		} else if msg != nil {
			err = l.processAnswer(msg, now)
		}
		k.proven = k.proven || acks > 0 || msg != nil
		if err == nil && msg != nil && l.web != nil && l.web.closing() {
			err = errNoMoreMessages // before something is written that the server does not read
		}
		if err != nil || msg == nil && (l.web == nil || acks == 0) {
			break
		}
	}
	if err != nil {
		k.Kill(err) // before the sending thread, which may be this one, sends more on it
	}
	k.noteArrival(came, int(l.completed-completed), len(b) > 0)
	l.deliver()
	l.ready(now)
	l.earliest = 0
	return b, err
}

// noteArrival notes when the answers arrived that are about to be delivered.
func (k *link) noteArrival(at socket.Arrival, answers int, more bool) {
	l := k.l
	if answers == 0 {
		return
	}
	l.earliest = at.First(answers, more)
	out := l.outcomes.all
	for i := range out {
		out[i].Earliest = l.earliest
	}
	if c, ok := k.Conn.(*socket.Conn); ok && out[0].Sent != out[len(out)-1].Sent {
		c.Together()
	}
}

// answered completes the oldest n messages as acked.
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

// expected checks that the oldest n messages were sent, so that the server can
// have answered them, and notes that they were begun: their write may not have
// returned yet.
func (l *lane) expected(n uint64) error {
	most := l.maybeBegun
	if !l.link.Writing() {
		most = l.fullyWritten()
	}
	if l.completed+n > most {
		return errTooManyAnswers
	}
	l.begin(l.completed + n)
	return nil
}

// expects returns how many messages, of how many events each, are answered next.
func (l *lane) expects() (messages, events int) {
	if l.queue.empty() {
		return 1, 1 // answered will report that none was sent
	}
	r := l.queue.at(l.queue.head)
	return int(r.batches()), int(uint64(r.batch.Events) / r.batches())
}

// processAnswer completes the message of an answer that is not a plain ack.
func (l *lane) processAnswer(msg []byte, now time.Duration) error {
	_, events := l.expects()
	if l.answer == nil || events != l.answers || string(msg) != string(l.answer) { // a server that refuses everything repeats one answer
		refused, text, err := l.refusals(msg, events)
		if err != nil {
			return &protocolError{err}
		}
		if refused > 0 && text == "" {
			text = "the server refused it without a reason"
		}
		l.answer, l.answers, l.refused, l.text = append(l.answer[:0], msg...), events, refused, text
	}
	if l.refused == 0 {
		return asProtocolError(l.answered(1, now))
	}
	if err := l.expected(1); err != nil {
		return asProtocolError(err)
	}
	o := l.complete(1, now)
	o.Failed = min(o.Events, l.refused)
	o.Acked = o.Events - o.Failed
	o.Class, o.Text = load.Rejected, l.text
	return nil
}

// refusals reads how many events of its message an answer refuses, and why.
func (l *lane) refusals(msg []byte, events int) (refused int32, text string, err error) {
	if l.web != nil {
		return l.web.refusals(msg, int32(events))
	}
	m, err := wire.DecodeMsg(msg)
	switch {
	case err != nil:
		return 0, "", err
	case !m.HasOK && m.Error == "":
		return 0, "", errNoOK
	case m.OK && m.HasOK:
		return 0, "", nil
	}
	return math.MaxInt32, m.Error, nil // a message is accepted or refused as a unit
}

func asProtocolError(err error) error {
	if err != nil {
		return &protocolError{err}
	}
	return nil
}
