package otlp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"golang.org/x/net/http2/hpack"

	"carronade/internal/conn"
	"carronade/internal/conn/framing"
	"carronade/internal/conn/socket"
	"carronade/internal/conn/web"
	"carronade/load"
)

// A grpcLink is one connection of HTTP/2. The lane's lock guards all of it.
type grpcLink struct {
	conn.Link
	l    *grpcLane
	segs [2][]byte

	reading   web.Reading
	answered  uint64 // calls
	startedAt time.Duration
	heard     time.Duration // when bytes last came
	pinged    time.Duration // when a call got no answer, and a ping was sent to see whether the server is there
}

var (
	errGoAway  = errors.New("the server ended the connection (GOAWAY)")
	errNoHTTP2 = errors.New("the server does not speak HTTP/2 over TLS, which gRPC needs")
)

// checkHTTP2 closes a connection with TLS whose server has not agreed to HTTP/2.
func checkHTTP2(nc net.Conn) error {
	if c, ok := nc.(*tls.Conn); ok && c.ConnectionState().NegotiatedProtocol != "h2" {
		return errors.Join(errNoHTTP2, nc.Close())
	}
	return nil
}

// use starts to use a new connection.
func (l *grpcLane) use(nc net.Conn) *grpcLink {
	k := &grpcLink{l: l}
	k.Init(nc, k, &l.Mu, l.S.Sink.Now)
	l.begin()
	k.reading.Start(&l.State, &k.Link, k.receive, k.ended)
	l.up(k)
	return k
}

// begin sets what holds at the beginning of a connection. A poller may read the server's first frames before up is
// called.
func (l *grpcLane) begin() {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.window, l.initial, l.mostFrame, l.mostOpen = framing.DefaultWindow, framing.DefaultWindow, framing.LeastFrame, 100
	l.draining, l.nextStream, l.received, l.block, l.ofBlock = false, 1, 0, nil, nil
	l.decoder = hpack.NewDecoder(4096, l.header)
	l.decoder.SetMaxStringLength(64 << 10)
	l.control(framing.AppendPreface(nil))
}

// up starts to use a connection, unless the lane was closed.
func (l *grpcLane) up(k *grpcLink) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Closed {
		k.Kill(conn.ErrClosed)
		return
	}
	now := l.S.Sink.Now()
	l.link = k
	l.Up(now)
	k.startedAt = now
	for _, c := range l.toStart { // they waited for the connection, which is the system's delay
		c.batch.Free = max(c.batch.Free, now)
	}
	l.start()
	k.Watch(l.S.Timeout)
	k.Pump()
	l.Ready(now)
}

// Reading implements web.Connection.
func (k *grpcLink) Reading() *web.Reading { return &k.reading }

// Lost implements web.Connection.
func (k *grpcLink) Lost() (served bool) {
	l := k.l
	l.Mu.Lock()
	defer l.Mu.Unlock()
	k.Bury(web.ErrServerClosed)
	if l.link != k {
		return false
	}
	now := l.S.Sink.Now()
	class, text := l.Loss(k.Cause())
	l.giveUp(now, class, text, l.Closed, false)
	l.link = nil
	l.State.Lost(now, k.Cause())
	return k.answered > 0 || now-k.startedAt > conn.ReconnectMost
}

// Pending implements conn.Queue.
func (k *grpcLink) Pending() bool { return k.l.Next < k.l.Tail }

// Flushed implements conn.Queue.
func (k *grpcLink) Flushed() {
	k.l.Deliver()
	k.l.Ready(k.l.S.Sink.Now())
}

// Load implements conn.Queue.
func (k *grpcLink) Load(w *socket.Writer) int {
	return k.l.Load(w, func(f *frame) ([][]byte, int) {
		if !f.headed {
			k.segs[0] = f.payload
			return k.segs[:1], len(f.payload)
		}
		k.segs[0], k.segs[1] = f.head[:], f.payload
		return k.segs[:], framing.HeadSize + len(f.payload)
	})
}

// Written implements conn.Queue.
func (k *grpcLink) Written(n int, err error) {
	l := k.l
	at, waited := k.Out.Began(), k.Waited()
	l.S.Written.Add(uint64(n))
	l.Window.Written(n, func(f *frame) {
		if !f.begins || f.of.sent >= 0 {
			return
		}
		f.of.sent = at
		if waited { // the delay is the system's, not the generator's
			f.of.batch.Free = max(f.of.batch.Free, at)
		}
	})
	for l.Head < l.Next {
		if c := l.Pop().of; c != nil {
			c.queued--
			l.recycle(c)
		} else {
			l.controls--
		}
	}
	if err != nil {
		k.Kill(err)
	}
}

// Oldest implements conn.Queue. A call that was not answered in time ends alone: the others on the connection
// are not affected. If nothing came since it was sent, the connection may be dead, which an answer to a ping refutes.
func (k *grpcLink) Oldest() (sent time.Duration, ok bool) {
	l := k.l
	now, silent := l.S.Sink.Now(), false
	for c := l.oldest; c != nil; c = l.oldest {
		if c.sent < 0 || now-c.sent < l.S.Timeout {
			break
		}
		silent = silent || k.heard < c.sent
		rest := len(c.rest)
		l.end(c, now, web.Verdict{Unknown: c.batch.Events, Class: load.Timeout, Text: load.TextNoAnswer})
		if rest == 0 {
			l.control(framing.AppendNumber(nil, framing.Reset, c.id, framing.CodeCancel))
		}
	}
	if silent && k.heard >= k.pinged {
		k.pinged = now
		l.control(framing.Append(nil, framing.Ping, 0, 0, make([]byte, 8)...))
	}
	k.PumpLater()
	l.Deliver()
	l.Ready(now)
	if l.draining && len(l.open) == 0 {
		k.Kill(errGoAway)
	}
	switch c := l.oldest; {
	case k.heard < k.pinged:
		return k.pinged, true
	case c == nil:
		return 0, false
	default:
		return c.sent, c.sent >= 0
	}
}

// receive processes what was just read.
func (k *grpcLink) receive(b []byte, came socket.Arrival) (used int, err error) {
	l := k.l
	l.Mu.Lock()
	defer l.Mu.Unlock()
	now, completed := came.Last, len(l.Out)
	k.heard = max(k.heard, now)
	for !k.Dead() {
		f, n, err := framing.Read(b[used:])
		if n == 0 && err == nil {
			break
		}
		used += n
		if err == nil {
			err = k.take(&f, now)
		}
		if err == nil && l.controls > mostControls {
			err = errors.New("it asks for answers and does not read them")
		}
		if err != nil {
			k.Kill(&web.ProtocolError{Err: err})
		}
	}
	if out := l.Out[completed:]; len(out) > 0 {
		l.Earliest = came.First(len(out), used < len(b))
		for i := range out {
			out[i].Earliest = l.Earliest
		}
	}
	l.start()
	k.Pump()
	l.Deliver()
	l.Ready(now)
	l.Earliest = 0
	if l.draining && len(l.open) == 0 {
		k.Kill(errGoAway)
	}
	if k.Dead() {
		err = k.Cause()
	}
	return used, err
}

// ended notes why reading ended.
func (k *grpcLink) ended(err error) {
	k.l.Mu.Lock()
	defer k.l.Mu.Unlock()
	if errors.Is(err, io.EOF) {
		err = web.ErrServerClosed
	}
	k.Kill(err)
}

// take processes a frame.
func (k *grpcLink) take(f *framing.Frame, now time.Duration) error {
	l := k.l
	if l.block != nil && f.Type != framing.Continuation {
		return errors.New("headers without an end")
	}
	c := l.open[f.Stream]
	switch f.Type {
	case framing.Headers:
		l.ofBlock, l.ends = c, f.Flags&framing.FlagEndStream != 0
		return k.headers(f, now)
	case framing.Continuation:
		if l.block == nil {
			return errors.New("a continuation of nothing")
		}
		return k.headers(f, now)
	case framing.Data:
		l.data(c, f)
		if c != nil && f.Flags&framing.FlagEndStream != 0 {
			return k.finish(c, now)
		}
	case framing.Reset:
		if c != nil {
			return k.reset(c, f.Number(), now)
		}
	case framing.Settings:
		if f.Flags&framing.FlagAck == 0 {
			return l.settings(f)
		}
	case framing.Ping:
		if f.Flags&framing.FlagAck == 0 {
			l.control(framing.Append(nil, framing.Ping, framing.FlagAck, 0, f.Payload...))
		}
	case framing.GoAway:
		k.goAway(f, now)
	case framing.Window:
		return l.grow(f, c)
	}
	return nil
}

// headers reads a block of headers, or a part of one.
func (k *grpcLink) headers(f *framing.Frame, now time.Duration) error {
	l := k.l
	block := f.Payload
	if l.block != nil || f.Flags&framing.FlagEndHeaders == 0 {
		if len(l.block)+len(block) > 256<<10 {
			return errors.New("too many headers")
		}
		l.block = append(l.block, block...)
		if f.Flags&framing.FlagEndHeaders == 0 {
			if l.block == nil {
				l.block = []byte{}
			}
			return nil
		}
		block, l.block = l.block, nil
	}
	if _, err := l.decoder.Write(block); err != nil {
		return fmt.Errorf("the headers cannot be decoded: %w", err)
	}
	if err := l.decoder.Close(); err != nil {
		return fmt.Errorf("the headers cannot be decoded: %w", err)
	}
	if c := l.ofBlock; c != nil && l.ends {
		return k.finish(c, now)
	}
	return nil
}

// header notes a header of an answer.
func (l *grpcLane) header(h hpack.HeaderField) {
	c := l.ofBlock
	if c == nil {
		return
	}
	switch h.Name {
	case ":status":
		c.status, _ = strconv.Atoi(h.Value)
	case "grpc-status":
		if code, err := strconv.ParseUint(h.Value, 10, 16); err == nil {
			c.code = int(code)
		}
	case "grpc-encoding":
		c.encoding = h.Value
	case "grpc-message":
		c.message = h.Value
	case "grpc-status-details-bin":
		c.details = h.Value
	}
}

// data keeps the beginning of an answer, and gives its bytes back to the connection's window.
func (l *grpcLane) data(c *call, f *framing.Frame) {
	if l.received += f.Flow; l.received > framing.ConnectionWindow/2 {
		l.control(framing.AppendNumber(nil, framing.Window, 0, uint32(l.received)))
		l.received = 0
	}
	if c != nil {
		c.received += len(f.Payload)
		c.body = append(c.body, f.Payload[:min(len(f.Payload), mostAnswer-len(c.body))]...)
	}
}

// errUnwritten is the error of an answer that no request can have.
var errUnwritten = errors.New("an answer to a request that was not written")

// began reports whether a call was written, at least in part. The write that has its first byte may not have returned.
func (k *grpcLink) began(c *call) bool {
	l := k.l
	for n := l.Next; c.sent < 0 && n < l.End; n++ {
		if f := l.At(n); f.of == c && f.begins {
			c.sent = k.Out.Began()
		}
	}
	return c.sent >= 0
}

// finish completes a call with the complete answer.
func (k *grpcLink) finish(c *call, now time.Duration) error {
	l := k.l
	if !k.began(c) {
		return errUnwritten
	}
	k.answered++
	s := l.S
	v, wait := evaluateGRPC(s.Redactor, &c.answer, c.batch.Events)
	l.end(c, now, v)
	if wait > 0 && s.RetryAfter {
		l.Pause(now, wait)
	}
	return nil
}

// reset completes a call whose stream the server has ended without an answer.
func (k *grpcLink) reset(c *call, code uint32, now time.Duration) error {
	if !k.began(c) {
		return errUnwritten
	}
	c.rest = nil // a reset needs no answer
	v := web.Verdict{Unknown: c.batch.Events, Class: load.Refused, Text: "the server reset the stream: " + framing.CodeName(code)}
	if code == framing.CodeRefused { // it says that it did nothing
		v = web.Verdict{Failed: c.batch.Events, Class: load.Refused, Text: "the server refused the stream"}
	}
	k.l.end(c, now, v)
	return nil
}

// goAway ends the calls that the server will not answer, and lets the others end.
func (k *grpcLink) goAway(f *framing.Frame, now time.Duration) {
	l := k.l
	l.draining = true
	last := f.Number() & framing.MostWindow // without the reserved bit
	for c := l.oldest; c != nil; {
		next := c.next
		if c.id > last {
			c.rest = nil
			k.began(c)
			l.end(c, now, web.Verdict{Failed: c.batch.Events, Class: load.Refused, Text: errGoAway.Error() + " before it took the request"})
		}
		c = next
	}
}

// settings notes what the server asks for.
func (l *grpcLane) settings(f *framing.Frame) (err error) {
	f.EachSetting(func(id uint16, value uint32) {
		switch id {
		case framing.SettingStreams:
			l.mostOpen = int(min(value, framing.MostWindow))
		case framing.SettingFrameSize:
			if value < framing.LeastFrame {
				err = errors.New("a frame size that is too small")
			}
			l.mostFrame = int(min(value, 1<<20))
		case framing.SettingWindow:
			if value > framing.MostWindow {
				err = errors.New("a window that is too large")
				return
			}
			for _, c := range l.open {
				c.window += int64(value) - l.initial
			}
			l.initial = int64(value)
		}
	})
	l.control(framing.Append(nil, framing.Settings, framing.FlagAck, 0))
	l.unblock()
	return err
}

// grow makes a window larger.
func (l *grpcLane) grow(f *framing.Frame, c *call) error {
	n := int64(f.Number() & framing.MostWindow)
	switch {
	case n == 0:
		return errors.New("a window that grows by nothing")
	case f.Stream == 0:
		l.window += n
	case c != nil:
		c.window += n
	}
	if l.window > framing.MostWindow || c != nil && c.window > framing.MostWindow {
		return errors.New("a window that is too large")
	}
	l.unblock()
	return nil
}
