package franz

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/conn/socket"
	"carronade/internal/kafka/cluster"
)

// An attempts counts batches as franz-go writes them and as brokers answer.
// franz-go's hooks report only batches that succeeded; it retries the others or
// gives them up. An attempts reads the bytes that pass over the clients'
// connections, inside TLS, and does not change them. Safe for concurrent use.
type attempts struct {
	written    atomic.Uint64 // batches in requests that ask for an answer
	refused    atomic.Uint64 // answered with an error
	unanswered atomic.Uint64 // their connection ended before an answer came
	answers    answerTimes
	inFlight   int // requests that may be in flight on a connection; 0: not known
	// logOf is the log of a partition, whose topic an answer names by its name or its id.
	logOf func(topic string, id [16]byte, partition int32) int32
}

// dialer returns the option with which a client's connections are counted.
func (a *attempts) dialer(s *cluster.Security) kgo.Opt {
	return kgo.Dialer(func(ctx context.Context, _, addr string) (net.Conn, error) {
		conn, err := s.DialForClient(ctx, addr)
		if err != nil {
			return nil, err
		}
		return newCountedConn(conn, a), nil
	})
}

func (a *attempts) facts(f map[string]any) {
	refused, unanswered := a.refused.Load(), a.unanswered.Load()
	if refused+unanswered == 0 {
		return
	}
	f["batch_attempts"] = a.written.Load()
	f["batch_attempts_refused"], f["batch_attempts_unanswered"] = refused, unanswered
}

// A countedConn is a connection whose produce requests and answers are counted.
// One goroutine writes and one reads, as franz-go does.
type countedConn struct {
	net.Conn
	attempts *attempts

	times    readTimes // of the reader
	mu       sync.Mutex
	pending  map[int32]pendingProduce // by correlation id
	closed   bool
	released time.Duration // when the last answer came while the in-flight limit was reached, or the connection

	// The answer that is being read; only the reader uses these.
	head      [8]byte // size and correlation id
	have      int     // bytes of head
	left      int     // bytes of the answer still to come
	releases  bool    // it came while the in-flight limit was reached
	isProduce bool    // it answers a produce request
	request   pendingProduce
	body      []byte
}

func newCountedConn(conn net.Conn, of *attempts) *countedConn {
	c := &countedConn{
		Conn: conn, attempts: of, pending: map[int32]pendingProduce{},
		times: readTimes{in: socket.NewStamped(conn), of: &of.answers.arrivalTimes},
	}
	if clock := of.answers.clock(); clock != nil {
		c.released = clock() // nothing could be written before there was a connection
	}
	return c
}

type pendingProduce struct {
	version       int16
	batches       int
	written, room time.Duration // as in an answerAt
}

// Write implements net.Conn. franz-go writes each request in one call.
func (c *countedConn) Write(b []byte) (int, error) {
	id, p, ok := produceOf(b)
	if ok {
		clock := c.attempts.answers.clock()
		c.mu.Lock()
		// After a retry the client waits for reasons of its own.
		if clock != nil && c.attempts.refused.Load()+c.attempts.unanswered.Load() == 0 {
			p.written, p.room = clock(), c.released
		}
		c.pending[id] = p // the answer may come before Write returns
		c.mu.Unlock()
	}
	n, err := c.Conn.Write(b)
	if !ok {
		return n, err
	}
	if n == len(b) {
		c.attempts.written.Add(uint64(p.batches))
	} else { // the broker ignores part of a request
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}
	return n, err
}

// produceOf parses a request. ok: it is a produce request that asks for an answer.
func produceOf(b []byte) (id int32, p pendingProduce, ok bool) {
	const head = 14 // size, key, version, correlation id, length of the client id
	if len(b) < head || int(binary.BigEndian.Uint32(b)) != len(b)-4 || kmsg.Key(binary.BigEndian.Uint16(b[4:])) != kmsg.Produce {
		return 0, p, false
	}
	req := kmsg.NewPtrProduceRequest()
	req.Version = int16(binary.BigEndian.Uint16(b[6:]))
	body := b[head:]
	if n := int(int16(binary.BigEndian.Uint16(b[12:]))); n > len(body) {
		return 0, p, false
	} else if n > 0 {
		body = body[n:]
	}
	if req.IsFlexible() {
		var err error
		if body, err = cluster.SkipTags(body); err != nil {
			return 0, p, false
		}
	}
	if req.ReadFrom(body) != nil || req.Acks == 0 {
		return 0, p, false
	}
	p.version = req.Version
	for i := range req.Topics {
		p.batches += len(req.Topics[i].Partitions)
	}
	return int32(binary.BigEndian.Uint32(b[8:])), p, true
}

// Read implements net.Conn.
func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.times.in.Read(b)
	c.times.read()
	c.parse(b[:n])
	return n, err
}

// parse splits the incoming bytes into answers.
func (c *countedConn) parse(b []byte) {
	for len(b) > 0 {
		if c.left == 0 { // between two answers, or in the head of one
			n := copy(c.head[c.have:4], b)
			c.have += n
			b = b[n:]
			if c.have < 4 {
				return
			}
			c.left = int(binary.BigEndian.Uint32(c.head[:]))
			if c.left == 0 {
				c.have = 0
			}
			continue
		}
		if c.have < len(c.head) { // its correlation id, if it has one
			n := min(copy(c.head[c.have:], b), c.left)
			c.have += n
			c.left -= n
			b = b[n:]
			if c.have == len(c.head) {
				c.matchRequest(int32(binary.BigEndian.Uint32(c.head[4:])))
			}
		} else {
			n := min(len(b), c.left)
			if c.isProduce {
				c.body = append(c.body, b[:n]...)
			}
			c.left -= n
			b = b[n:]
		}
		if c.left == 0 {
			if c.isProduce {
				c.countAnswer()
			}
			c.have, c.isProduce = 0, false
		}
	}
}

// matchRequest finds the request that the answer belongs to.
func (c *countedConn) matchRequest(id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.request, c.isProduce = c.pending[id]
	c.releases = len(c.pending) >= c.attempts.inFlight
	delete(c.pending, id)
	c.body = c.body[:0]
}

// countAnswer counts the batches that an answer refuses. It ignores an answer that
// cannot be read: franz-go reports that.
func (c *countedConn) countAnswer() {
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = c.request.version
	body := c.body
	if resp.IsFlexible() {
		var err error
		if body, err = cluster.SkipTags(body); err != nil {
			return
		}
	}
	if resp.ReadFrom(body) != nil {
		return
	}
	earliest := c.times.arrived()
	if c.releases {
		c.mu.Lock()
		c.released = earliest
		c.mu.Unlock()
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for _, p := range t.Partitions {
			c.attempts.answers.add(c.attempts.logOf(t.Topic, t.TopicID, p.Partition), answerAt{p.BaseOffset, earliest, c.request.written, c.request.room})
			if p.ErrorCode != 0 && p.ErrorCode != kerr.DuplicateSequenceNumber.Code { // a duplicate has been appended already
				c.attempts.refused.Add(1)
			}
		}
	}
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		for _, p := range c.pending {
			c.attempts.unanswered.Add(uint64(p.batches))
		}
	}
	c.mu.Unlock()
	return c.Conn.Close()
}
