package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/conn"
	"carronade/internal/conn/socket"
	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
)

// A readLink is the connection of one client to one broker, which is made when there is
// something to read, and again when it was lost. Requests are not held back for answers:
// the engine bounds what is in flight.
type readLink struct {
	c      *readClient
	broker int32
	ctx    context.Context
	end    context.CancelFunc
	wake   chan struct{} // capacity 1

	// Guarded by the client's lock.
	addr     string
	queue    []*itemRead
	inFlight []*itemRead // in the order of their requests
	conn     net.Conn
	usable   time.Duration // since when requests can be written: there was no connection before, or its socket was full
	writing  []*itemRead

	// Used by the goroutine that writes.
	format  *kmsg.RequestFormatter
	req     *kmsg.FetchRequest
	out     []byte
	one     []byte // a request
	version int16
	corr    int32
	term    cluster.LoginTerm

	// Used by the goroutine that reads.
	answered int32
	buf      []byte
	plain    []byte
	runs     []wire.ListRun // found in an answer, if a list is written
}

func newReadLink(c *readClient, broker int32) *readLink {
	cfg := c.r.cfg
	k := &readLink{
		c: c, broker: broker, wake: make(chan struct{}, 1),
		format: kmsg.NewRequestFormatter(kmsg.FormatterClientID(cfg.ClientID)), req: newFetchRequest(cfg),
	}
	k.ctx, k.end = context.WithCancel(c.r.ctx)
	k.req.MinBytes, k.req.IsolationLevel = 1, 0 // each request is for records that were written
	t := kmsg.NewFetchRequestTopic()
	t.Topic = cfg.Topic
	t.Partitions = append(t.Partitions, kmsg.NewFetchRequestTopicPartition())
	k.req.Topics = append(k.req.Topics, t)
	return k
}

func (k *readLink) signal() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// run connects and serves until the reader is closed.
func (k *readLink) run() {
	conn.Keeper[readLink]{First: conn.ReconnectFirst, Dial: k.dial, Failed: k.giveUp, Serve: k.use}.Run(k.ctx, nil)
}

// use uses the connection until it has ended.
func (k *readLink) use(*readLink) conn.Next {
	began := time.Now()
	err := k.serve()
	k.c.mu.Lock()
	k.conn = nil
	k.c.mu.Unlock()
	renews := errors.Is(err, errLoginEnds)
	if k.ctx.Err() == nil {
		if !renews {
			k.c.r.lost.Add(1)
			k.c.r.cfg.Happened("connection lost", time.Now(), 0)
		}
		k.giveUp(err)
	}
	if renews || k.answered > 0 || time.Since(began) > conn.ReconnectMost { // one that was idle, and that the broker then closed, was usable
		return conn.AfterFirst
	}
	return conn.AfterPause // a broker that accepts connections and closes them is as bad as none
}

// dial connects when there is something to read.
func (k *readLink) dial(ctx context.Context) (*readLink, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-k.wake:
	}
	if err := k.connect(); err != nil {
		return nil, err
	}
	return k, nil
}

// errLoginEnds: a login that ends soon is renewed by a new connection.
var errLoginEnds = errors.New("the login ends")

// connect opens the connection.
func (k *readLink) connect() error {
	c := k.c
	c.mu.Lock()
	addr := k.addr
	c.mu.Unlock()
	nc, term, version, err := dialFetch(k.ctx, c.r.cfg, addr, c.r.metadata.view.Load().hasIDs())
	if err != nil {
		return fmt.Errorf("connect to broker %d at %s: %w", k.broker, addr, err)
	}
	k.version, k.term, k.corr, k.answered = version, term, 0, 0
	c.mu.Lock()
	k.conn, k.usable = nc, c.r.sink.Now()
	c.mu.Unlock()
	return nil
}

// serve writes requests, and reads answers in another goroutine, until the connection
// fails.
func (k *readLink) serve() error {
	ctx, cancel := context.WithCancelCause(k.ctx)
	nc := k.conn // the function may run when the next connection is open
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	received := make(chan struct{})
	go func() {
		defer close(received)
		cancel(k.receive())
	}()
	k.signal() // what was queued before
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-k.wake:
			if err := k.write(); err != nil {
				cancel(err)
			}
		}
	}
	nc.Close()
	<-received
	return context.Cause(ctx)
}

// write writes the requests that are queued.
func (k *readLink) write() error {
	c := k.c
	c.mu.Lock()
	if k.term.Due() {
		idle := len(k.inFlight) == 0
		c.mu.Unlock()
		if !idle {
			return nil // the last answer wakes this again
		}
		return errLoginEnds
	}
	if len(k.queue) == 0 {
		c.mu.Unlock()
		return nil
	}
	k.out = k.out[:0]
	k.writing = append(k.writing[:0], k.queue...)
	for _, p := range k.writing {
		k.appendRequest(p)
	}
	clear(k.queue)
	k.queue = k.queue[:0]
	now := c.r.sink.Now()
	for _, p := range k.writing {
		if p.sent < 0 {
			p.sent = now
			p.batch.Free = max(p.batch.Free, k.usable) // it waited for the connection, which is the system's delay
		}
	}
	k.inFlight = append(k.inFlight, k.writing...)
	err := k.conn.SetDeadline(time.Now().Add(c.r.cfg.RequestTimeout + c.r.cfg.Fetch.MaxWait))
	c.mu.Unlock()
	if err != nil {
		return err
	}
	n, err := k.conn.Write(k.out)
	c.r.written.Add(uint64(n))
	if at := c.r.sink.Now(); at-now > socket.SlowWrite {
		c.mu.Lock()
		k.usable = at
		c.mu.Unlock()
	}
	return err
}

// appendRequest encodes the request for what is left of a read.
func (k *readLink) appendRequest(p *itemRead) {
	v := k.c.r.metadata.view.Load()
	t := &k.req.Topics[0]
	t.TopicID = v.topics[0].ID
	f := &t.Partitions[0]
	f.Partition, f.FetchOffset, f.CurrentLeaderEpoch, f.LogStartOffset = p.part, p.next, -1, -1
	f.PartitionMaxBytes = k.c.r.answerBytes(p.to - p.next)
	k.corr++
	k.req.Version = k.version
	k.one = k.format.AppendRequest(k.one[:0], k.req, k.corr) // it takes what is before for a part of the request
	k.out = append(k.out, k.one...)
}

// receive reads answers until the connection fails.
func (k *readLink) receive() error {
	in := socket.NewStamped(k.conn)
	most := cluster.MaxControlAnswer + int(k.req.MaxBytes)
	if k.buf == nil {
		k.buf = make([]byte, 64<<10)
	}
	var have []byte // bytes of frames that are not handled yet, at the start of k.buf
	before := k.c.r.sink.Now()
	for {
		n, err := in.Read(k.buf[len(have):])
		k.c.r.read.Add(uint64(n))
		have = k.buf[:len(have)+n]
		at := k.c.r.sink.Now()
		arrived := in.Arrived(before, at)
		before = at
		for len(have) > 0 {
			f, rest, err := wire.NextFrame(have, most)
			if err != nil {
				return err
			}
			if rest == nil {
				break // incomplete
			}
			if err := k.answer(f, at, arrived); err != nil {
				return err
			}
			have = rest
		}
		if err != nil {
			return err
		}
		have = k.buf[:copy(k.buf, have)]
		if len(have) == len(k.buf) {
			k.buf = append(k.buf, make([]byte, len(k.buf))...)
			have = k.buf[:len(have)]
		}
	}
}

// answer handles the answer to the oldest request.
func (k *readLink) answer(f wire.Frame, at, arrived time.Duration) error {
	c := k.c
	c.mu.Lock()
	if len(k.inFlight) == 0 {
		c.mu.Unlock()
		return errors.New("the broker sent more than was requested")
	}
	p := k.inFlight[0]
	done := p.live < 0
	c.mu.Unlock()
	k.answered++
	if f.Correlation != k.answered {
		return fmt.Errorf("the answer is to request %d, not to %d", f.Correlation, k.answered)
	}
	found := itemsFound{next: p.next}
	code, seen := int16(0), false
	a, err := wire.WalkFetch(f.Body, k.version, func(fp *wire.FetchPartition) error {
		if fp.Partition != p.part {
			return fmt.Errorf("the answer has partition %d, which was not in the request", fp.Partition)
		}
		if seen, code = true, fp.ErrorCode; code != 0 || done {
			return nil
		}
		return k.find(p, fp.Records, &found)
	})
	if code == 0 {
		code = a.ErrorCode
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k.inFlight = append(k.inFlight[:0], k.inFlight[1:]...)
	var deadline time.Time
	if len(k.inFlight) > 0 {
		deadline = time.Now().Add(c.r.cfg.RequestTimeout + c.r.cfg.Fetch.MaxWait)
	}
	if derr := k.conn.SetReadDeadline(deadline); derr != nil && err == nil {
		err = derr
	}
	if k.term.Due() && len(k.inFlight) == 0 {
		k.signal()
	}
	if p.live < 0 { // the lane was closed
		return err
	}
	p.wire += int64(len(f.Body))
	switch {
	case errors.Is(err, errBatch): // it would be the same the next time
		c.complete(p, at, arrived, load.Protocol, err.Error(), false)
		err = nil
	case err != nil:
		c.again(p, load.Protocol, err)
	case code != 0:
		if cause := kerr.ErrorForCode(code); cluster.Recoverable(cause) && (c.r.lags || !errors.Is(cause, kerr.OffsetOutOfRange)) {
			c.again(p, cluster.ClassOf(code), errors.New(errorText(code, nil)))
		} else { // the record was deleted, or was never written, or may not be read
			c.complete(p, at, arrived, cluster.ClassOf(code), errorText(code, nil), false)
		}
	case !seen:
		c.again(p, load.Protocol, cluster.ErrNoAnswer)
	default:
		k.found(p, &found, at, arrived)
	}
	c.deliver()
	return err
}

// An itemsFound is what an answer contains of a read.
type itemsFound struct {
	next    int64 // the first offset not read
	n       int32 // records
	bytes   int64
	corrupt bool // the checksum of a batch does not match, or it cannot be decompressed
	altered bool // the value of a record is not the one that was sent
}

// Texts of reads that failed because of what is, or is not, at their offsets.
const (
	textAbsent  = "no record has this offset: it is a transaction marker, or the log was compacted"
	textCorrupt = "the record is altered: a checksum does not match, or it cannot be decompressed"
	textAltered = "the record is altered: its value is not the one that was sent"
	textBeyond  = "no record has this offset: the partition ends before it"
	textNotYet  = "the record could not be read yet"
)

// found adds what was found to a read, and completes it or asks for the rest. The
// caller holds the lock, and delivers.
func (k *readLink) found(p *itemRead, found *itemsFound, at, arrived time.Duration) {
	c := k.c
	p.found += found.n
	p.bytes += found.bytes
	p.runs = append(p.runs, k.runs...)
	p.next, p.err = found.next, nil
	p.corrupt = p.corrupt || found.corrupt
	p.altered = p.altered || found.altered
	switch {
	case p.next >= p.to && p.corrupt:
		c.complete(p, at, arrived, load.Protocol, textCorrupt, false)
	case p.next >= p.to && p.altered:
		c.complete(p, at, arrived, load.Protocol, textAltered, false)
	case p.next >= p.to:
		c.complete(p, at, arrived, load.Rejected, textAbsent, false)
	case c.r.items.ended(p.part, p.next):
		c.complete(p, at, arrived, load.Rejected, textBeyond, false)
	case at >= p.deadline:
		c.complete(p, at, arrived, load.Timeout, textNotYet, false)
	default: // the answer was cut off, or replicas do not have the record yet
		k.queue = append(k.queue, p)
		k.signal()
	}
}

// find looks for the records of a read.
func (k *readLink) find(p *itemRead, records []byte, found *itemsFound) error {
	k.runs = k.runs[:0]
	_, err := wire.ForEachBatch(records, func(b wire.Batch) error {
		last := b.BaseOffset + int64(b.LastOffsetDelta)
		if last < found.next || found.next >= p.to {
			return nil // a broker may send from the start of a segment's index entry
		}
		from := found.next
		found.next = min(last+1, p.to)
		if b.Control() {
			return nil
		}
		k.c.r.noteRecordBytes(int64(len(b.Raw)), int64(b.NumRecords))
		if k.c.r.cfg.Decode && b.Check() != nil {
			found.corrupt = true
			return nil //nolint:nilerr // a corrupt record is a result
		}
		records := b.Records()
		if codec := b.Codec(); codec != wire.None {
			plain, err := wire.Decompress(k.plain[:0], codec, records)
			if err != nil {
				found.corrupt = true
				return nil //nolint:nilerr // a corrupt record is a result
			}
			k.plain, records = plain, plain
		}
		var (
			n     int32
			bytes int64
			err   error
		)
		if r := k.c.r; r.check != nil {
			var altered bool
			k.runs, n, bytes, altered, err = r.checkedWithin(k.runs, p, &b, records, from, p.to)
			found.altered = found.altered || altered
		} else if n, bytes, err = recordsWithin(&b, records, from, p.to); err == nil && r.list != nil {
			k.runs = appendFound(k.runs, &b, records, from, p.to)
		}
		if most := max(0, found.next-max(from, b.BaseOffset)); err == nil && int64(n) > most {
			err = fmt.Errorf("%d records at %d offsets: %w", n, most, wire.ErrLength)
		}
		found.n, found.bytes = found.n+n, found.bytes+bytes
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errBatch, err)
	}
	return nil
}

// recordsWithin counts the records of a batch with offsets in [from, to), and their bytes.
// The records are not compressed.
func recordsWithin(b *wire.Batch, records []byte, from, to int64) (n int32, bytes int64, err error) {
	if b.BaseOffset >= from && b.BaseOffset+int64(b.LastOffsetDelta) < to {
		bytes, err = eventBytes(records, b.NumRecords)
		return b.NumRecords, bytes, err
	}
	err = wire.ForEachRecord(records, b.NumRecords, func(r *wire.Record) error {
		if offset := b.BaseOffset + int64(r.OffsetDelta); offset >= from && offset < to {
			n++
			bytes += int64(r.EventBytes())
		}
		return nil
	})
	return n, bytes, err
}

// giveUp lets what a lost connection should have read wait for a new one.
func (k *readLink) giveUp(err error) {
	c := k.c
	if err != nil && !errors.Is(err, errLoginEnds) {
		c.r.cfg.Logf("read from broker %d: %v", k.broker, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range k.inFlight {
		c.again(p, load.Refused, fmt.Errorf("the connection was lost: %w", err))
	}
	for _, p := range k.queue {
		if p.live >= 0 {
			p.class, p.err = load.Refused, err
			c.wait(p)
		}
	}
	clear(k.inFlight)
	clear(k.queue)
	k.inFlight, k.queue = k.inFlight[:0], k.queue[:0]
	c.deliver()
}
