package bus

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// After the first exchange a connection has frames in both directions. A frame is four bytes of length,
// then as many bytes: one byte for the length of a name, the name, and a message. On an operator's connection
// the name is that of the agent that sent the message, or that gets it; on an agent's connection it is empty. A
// frame of length 0 says only that its sender is there.

// Bounds of frames and of a connection.
const (
	mostName   = 63 // see agentName
	mostFrame  = 1 + mostName + MaxMessage
	mostQueued = 32 << 20 // bytes that wait for one peer
	ofFrame    = 64       // bytes that a frame takes up besides its content

	// Each side sends a frame every two seconds at least. One that has received nothing for three times as long
	// ends the connection: 4 to 6 s after the other machine was lost.
	pingEvery  = 2 * time.Second
	silentFor  = 3 * pingEvery
	stalledFor = 10 * time.Second // of a peer that does not read
)

var (
	errSilent = fmt.Errorf("nothing was received for %v", silentFor)
	errStuck  = fmt.Errorf("the other side does not read: it took nothing for %v", stalledFor)
	errSlow   = fmt.Errorf("the other side does not read: more than %d MiB wait for it", mostQueued>>20)
)

// messageFrame is the frame of a message.
func messageFrame(agent string, message []byte) []byte {
	n := 1 + len(agent) + len(message)
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+n), uint32(n))
	frame = append(append(frame, byte(len(agent))), agent...)
	return append(frame, message...)
}

// readMessage reads up to the next message.
func readMessage(r io.Reader) (agent string, message []byte, err error) {
	var data []byte
	for len(data) == 0 {
		if data, err = readFrame(r, mostFrame); err != nil {
			return "", nil, err
		}
	}
	n, data := int(data[0]), data[1:]
	if n > len(data) {
		return "", nil, errors.New("a frame ends within a name")
	}
	agent, message = string(data[:n]), data[n:]
	switch {
	case n > 0 && !ValidName(agent):
		return "", nil, ErrName
	case len(message) > MaxMessage:
		return "", nil, ErrTooLarge
	}
	return agent, message, nil
}

// A peer is the other end of a connection after the first exchange.
type peer struct {
	conn *tls.Conn
	wake chan struct{} // of the writer; capacity 1
	over chan struct{} // closed when the connection has ended

	mu     sync.Mutex
	frames [][]byte // to be written
	bytes  int      // that they take up
	last   bool     // nothing follows the frames
	why    error    // the end; nil: it was ours
}

func newPeer(conn *tls.Conn) *peer {
	return &peer{conn: conn, wake: make(chan struct{}, 1), over: make(chan struct{})}
}

// put queues a frame and never waits. It returns false if the connection has ended, or ends because
// its peer does not take what is queued.
func (p *peer) put(frame []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last || p.ended() {
		return false
	}
	if p.bytes+len(frame)+ofFrame > mostQueued {
		p.endLocked(errSlow)
		return false
	}
	p.frames = append(p.frames, frame)
	p.bytes += len(frame) + ofFrame
	p.rouse()
	return true
}

// finish has the writer say goodbye after what is queued.
func (p *peer) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = true
	p.rouse()
}

func (p *peer) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// next takes a frame from the queue. It returns nil if there is none; last: nor will there be.
func (p *peer) next() (frame []byte, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.frames) == 0 {
		return nil, p.last
	}
	frame = p.frames[0]
	p.frames[0] = nil
	p.frames = p.frames[1:]
	p.bytes -= len(frame) + ofFrame
	return frame, false
}

// end ends the connection for a reason, nil if it is ours; the first one counts. It does not say goodbye by
// TLS, which could wait for a peer that does not read.
func (p *peer) end(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended() {
		p.endLocked(why)
	}
}

func (p *peer) endLocked(why error) {
	p.why = why
	p.frames = nil
	close(p.over)
	p.conn.NetConn().Close()
}

func (p *peer) ended() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// run moves messages until the connection ends, and returns why it did: io.EOF if the peer said goodbye, nil if
// end had no reason. It calls got with each message that was received.
func (p *peer) run(got func(agent string, message []byte) error) error {
	var writer sync.WaitGroup
	writer.Go(p.write)
	p.end(p.read(got))
	writer.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

func (p *peer) read(got func(agent string, message []byte) error) error {
	r := bufio.NewReaderSize(timely{p.conn}, 16<<10) // one record of TLS
	for {
		agent, message, err := readMessage(r)
		if err == nil {
			err = got(agent, message)
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return errSilent
		case errors.Is(err, io.EOF):
			return io.EOF
		case err != nil:
			return reason(err)
		}
	}
}

func (p *peer) write() {
	w := bufio.NewWriterSize(timely{p.conn}, 16<<10)
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		frame, last := p.next()
		if frame != nil {
			w.Write(frame) //nolint:errcheck // Flush has the error
			continue
		}
		err := w.Flush()
		if err == nil && last {
			err = p.conn.CloseWrite()
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			p.end(errStuck)
			return
		case err != nil:
			p.end(reason(err))
			return
		case last:
			return
		}
		select {
		case <-p.wake:
		case <-ping.C:
			w.Write(make([]byte, 4)) //nolint:errcheck // likewise
		case <-p.over:
			return
		}
	}
}

// A timely connection bounds each read and the writing of each piece.
type timely struct{ *tls.Conn }

// Read implements io.Reader.
func (c timely) Read(b []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(silentFor)) // it fails only where Read does, which says why
	return c.Conn.Read(b)
}

// Write implements io.Writer.
func (c timely) Write(b []byte) (n int, err error) {
	for piece := range slices.Chunk(b, 16<<10) {
		_ = c.SetWriteDeadline(time.Now().Add(stalledFor)) // likewise
		m, err := c.Conn.Write(piece)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}
