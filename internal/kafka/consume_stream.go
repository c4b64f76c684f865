package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/conn"
	"carronade/internal/conn/socket"
	"carronade/internal/impair"
	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
)

// A fetcher reads some of the partitions that one broker leads, over one connection,
// one request at a time. It reuses the buffer for answers and everything else, so that
// a fetcher in steady state allocates nothing for records.
type fetcher struct {
	src  *wireSource
	key  fetcherKey
	addr string
	lane int

	added []*partition // handed over by the manager; guarded by wireSource.mu

	// Everything below belongs to the fetcher's goroutine.
	parts      []*partition
	topics     []wire.Topic // as of the last takeAdded; shared
	firstIndex int          // index of the first partition in the next request
	expected   int          // index of the partition whose answer is expected next
	conn       net.Conn
	in         *socket.Stamped       // reads from conn
	term       cluster.LoginTerm     // validity of the login
	connected  bool                  // the connection has been of use: the broker has said what it can
	metrics    cluster.BrokerMetrics // of this fetcher
	version    int16
	corr       int32
	format     *kmsg.RequestFormatter
	req        *kmsg.FetchRequest
	out        []byte
	buf        []byte
	answers    int // since shrink last looked
	largest    int // of these, bytes
	at         time.Duration
	late       cluster.Lateness

	arrivals    []load.Arrival
	decoder     decoder
	onPartition func(*wire.FetchPartition) error // st.partition, bound once
	handBack    []lostPart                       // partitions to hand back after this answer
}

func newFetcher(src *wireSource, key fetcherKey, addr string) *fetcher {
	c := src.cl.Config
	st := &fetcher{
		src: src, key: key, addr: addr, lane: src.fetchersCreated % len(src.lanes),
		format: kmsg.NewRequestFormatter(kmsg.FormatterClientID(c.ClientID)),
		req:    newFetchRequest(c),
	}
	src.fetchersCreated++
	st.onPartition = st.partition
	st.decoder.init(c, src.stamped)
	st.decoder.inspect = src.inspect
	return st
}

// run fetches until the fetcher has no partitions, the connection fails or the context
// ends. Then it hands back all partitions.
func (st *fetcher) run(ctx context.Context) {
	err := st.serve(ctx)
	s := st.src
	if st.conn != nil {
		st.conn.Close()
	}
	if st.connected {
		s.connected.Add(-1)
	}
	failed := err != nil && ctx.Err() == nil
	if failed && st.connected {
		st.metrics.Reconnects++
	}
	s.mu.Lock()
	s.count(st)
	if s.fetchers[st.key] == st {
		delete(s.fetchers, st.key)
	}
	left := slices.Concat(st.parts, st.added)
	st.parts, st.added = nil, nil
	for _, p := range left {
		p.owned = false
	}
	s.mu.Unlock()
	switch {
	case failed && st.connected:
		s.lostConns.Add(1)
		s.cl.Config.Happened("connection lost", time.Now(), 0)
	case failed:
		s.failedConns.Add(1)
	}
	if failed {
		text := fmt.Sprintf("fetch from broker %d at %s: %v", st.key.broker, st.addr, err)
		s.lastErr.Store(&text)
		s.cl.Config.Logf("%s", text)
	}
	for _, p := range left {
		s.lost <- lostPart{p: p, err: err} // never blocks: it has room for all partitions
	}
}

func (st *fetcher) serve(ctx context.Context) error {
	if err := st.connect(ctx); err != nil {
		return err
	}
	stop := conn.Interrupt(ctx, st.conn)
	defer stop()
	for ctx.Err() == nil {
		if !st.takeAdded() {
			return nil
		}
		if st.term.Due() {
			if err := st.renew(ctx); err != nil {
				return err
			}
		}
		if resumed := st.src.pause.until(); resumed != nil {
			if err := st.rest(ctx, resumed); err != nil {
				return err
			}
			continue
		}
		if err := st.ask(ctx); err != nil {
			return err
		}
		frame, err := st.answer()
		if err != nil {
			return err
		}
		wait, err := st.handle(frame)
		if err != nil {
			return err
		}
		st.shrink(len(frame))
		if wait > 0 {
			// KIP-219: the broker has answered, and does not read for this time.
			st.src.throttled.Add(int64(wait))
			st.metrics.Throttled++
			st.metrics.Throttle += wait
			st.late.Throttled(wait)
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
	}
	return nil
}

// takeAdded takes over the partitions that the manager added. False: the fetcher has no
// partitions, and ends.
func (st *fetcher) takeAdded() bool {
	s := st.src
	s.mu.Lock()
	defer s.mu.Unlock()
	st.parts = append(st.parts, st.added...)
	st.added = st.added[:0]
	if len(st.parts) == 0 {
		delete(s.fetchers, st.key)
		return false
	}
	st.topics = s.topics
	st.decoder.recreations = s.recreations
	return true
}

// connect dials and chooses the version of fetch requests.
func (st *fetcher) connect(ctx context.Context) (err error) {
	c := st.src.cl.Config
	ctx, cancel := context.WithTimeout(ctx, c.RequestTimeout)
	defer cancel()
	st.src.mu.Lock()
	ids := !slices.ContainsFunc(st.src.topics, func(t wire.Topic) bool { return t.ID == [16]byte{} })
	st.src.mu.Unlock()
	if st.conn, st.term, st.version, err = dialFetch(ctx, c, st.addr, ids); err != nil {
		return err
	}
	st.in = socket.NewStamped(st.conn)
	st.connected = true
	st.src.connected.Add(1)
	return nil
}

// ask writes a request for all partitions of the fetcher. It begins with a different one
// each time, so that the bound on the answer's size starves none.
func (st *fetcher) ask(ctx context.Context) error {
	c := st.src.cl.Config
	topics := st.req.Topics[:0]
	for i := range st.parts {
		p := st.parts[(st.firstIndex+i)%len(st.parts)]
		if topic := &st.topics[p.place.Topic]; i == 0 || topics[len(topics)-1].Topic != topic.Name {
			topics = appendTopic(topics, topic)
		}
		t := &topics[len(topics)-1]
		fp := kmsg.NewFetchRequestTopicPartition()
		fp.Partition = p.place.Partition
		fp.CurrentLeaderEpoch = p.epoch
		fp.FetchOffset = p.offset
		fp.LogStartOffset = -1
		fp.PartitionMaxBytes = c.Fetch.MaxPartition
		t.Partitions = append(t.Partitions, fp)
	}
	st.req.Topics = topics
	if len(st.parts) > 0 {
		st.expected = st.firstIndex % len(st.parts)
		st.firstIndex++
	}
	st.corr++
	st.req.Version = st.version
	st.out = st.format.AppendRequest(st.out[:0], st.req, st.corr)
	if err := st.conn.SetDeadline(time.Now().Add(c.RequestTimeout + c.Fetch.MaxWait)); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // the end of the context may have set a deadline just before
	}
	before := st.src.now()
	n, err := st.conn.Write(st.out)
	st.src.written.Add(uint64(n))
	st.metrics.Requests++
	st.metrics.Bytes += uint64(n)
	st.late.Asked(before, st.src.now())
	return err
}

// appendTopic appends a topic without partitions, in the memory of one that was there before.
func appendTopic(to []kmsg.FetchRequestTopic, topic *wire.Topic) []kmsg.FetchRequestTopic {
	var partitions []kmsg.FetchRequestTopicPartition
	if n := len(to); n < cap(to) {
		partitions = to[:n+1][n].Partitions[:0]
	}
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID, t.Partitions = topic.Name, topic.ID, partitions
	return append(to, t)
}

// answer reads one complete answer and returns it without its size and correlation id.
// It is valid until the next call.
func (st *fetcher) answer() ([]byte, error) {
	if st.buf == nil {
		st.buf = make([]byte, leastAnswer)
	}
	impair.Point(impair.Receive, st.src.now())
	size := -1
	have := 0
	for {
		n, err := st.in.Read(st.buf[have:])
		have += n
		st.src.read.Add(uint64(n))
		if size < 0 && have >= 4 {
			size = int(binary.BigEndian.Uint32(st.buf))
			// One batch may exceed the bound asked for, so the limit is higher.
			if size < 4 || size > cluster.MaxControlAnswer+int(st.req.MaxBytes) {
				return nil, &cluster.NotKafkaError{Head: [4]byte(st.buf)}
			}
			if need := 4 + size; need > len(st.buf) {
				// Grow in steps, so that answers of slightly different sizes do
				// not each need a new buffer.
				grown := make([]byte, max(need+need/8, 2*len(st.buf)))
				copy(grown, st.buf[:have])
				st.buf = grown
			}
		}
		if size >= 0 && have >= 4+size {
			break
		}
		if err != nil {
			if errors.Is(err, io.EOF) && have > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	st.at = st.src.now()
	st.late.Answered(st.in.Arrived(st.late.Since, st.at), st.at)
	if have > 4+size {
		return nil, errors.New("the broker sent more than was requested")
	}
	if got := int32(binary.BigEndian.Uint32(st.buf[4:])); got != st.corr {
		return nil, fmt.Errorf("the answer is to request %d, not to %d", got, st.corr)
	}
	return st.buf[8 : 4+size], nil
}

const (
	// leastAnswer is the first size of the buffer for answers, in bytes.
	leastAnswer = 64 << 10
	// shrinkAfter is how many answers must be smaller before shrink gives memory back.
	shrinkAfter = 500
)

// shrink is called after each answer, of n bytes. If the buffers are far larger than the
// newest answers need, such as after a stall that ended with one of many MB, it gives them
// back: they would be kept for the rest of the run.
func (st *fetcher) shrink(n int) {
	st.answers++
	st.largest = max(st.largest, n)
	if st.answers < shrinkAfter {
		return
	}
	if len(st.buf) > 4*max(st.largest, leastAnswer) {
		st.buf, st.arrivals, st.decoder.marks, st.decoder.plain = nil, nil, nil, nil
	}
	st.answers, st.largest = 0, 0
}

// handle parses an answer, delivers what it contains, and hands back partitions that
// this fetcher can no longer read. It returns the pause that the broker asked for.
func (st *fetcher) handle(frame []byte) (time.Duration, error) {
	st.arrivals, st.handBack = st.arrivals[:0], st.handBack[:0]
	st.decoder.reset()
	a, err := wire.WalkFetch(frame, st.version, st.onPartition)
	s := st.src
	// Deliver what was decoded even if the rest of the answer is invalid: the
	// partitions are read from behind it later.
	if len(st.arrivals) > 0 {
		s.lanes[st.lane].Lock()
		s.sink(st.lane, st.arrivals)
		s.lanes[st.lane].Unlock()
	}
	for _, p := range st.parts {
		s.Deliver(p.id, p.offset)
	}
	if err != nil {
		return 0, err
	}
	if err := kerr.ErrorForCode(a.ErrorCode); err != nil {
		return 0, err
	}
	for _, l := range st.handBack {
		if !slices.Contains(st.parts, l.p) {
			continue // the answer has it twice
		}
		st.parts = slices.DeleteFunc(st.parts, func(p *partition) bool { return p == l.p })
		s.mu.Lock()
		l.p.owned = false
		s.mu.Unlock()
		s.lost <- l
	}
	return time.Duration(a.ThrottleMillis) * time.Millisecond, nil
}

// asked returns the partition that an answer is for; nil: the request did not have it. Brokers answer in the order
// of the request.
func (st *fetcher) asked(fp *wire.FetchPartition) *partition {
	n := len(st.parts)
	for i := range n {
		p := st.parts[(st.expected+i)%n]
		if p.place.Partition == fp.Partition && (len(st.topics) <= 1 || st.topics[p.place.Topic].Of(fp)) {
			st.expected = (st.expected + i + 1) % n
			return p
		}
	}
	return nil
}

// partition handles the answer for one partition.
func (st *fetcher) partition(fp *wire.FetchPartition) error {
	p := st.asked(fp)
	if p == nil {
		return fmt.Errorf("the answer has partition %d, which was not in the request", fp.Partition)
	}
	if err := kerr.ErrorForCode(fp.ErrorCode); err != nil {
		st.handBack = append(st.handBack, lostPart{p: p, err: err, reset: errors.Is(err, kerr.OffsetOutOfRange)})
		return nil
	}
	p.fails = 0
	high := fp.HighWatermark
	if st.req.IsolationLevel == 1 && fp.LastStableOffset >= 0 {
		high = fp.LastStableOffset
	}
	st.src.Reported(p.id, fp.HighWatermark, high)
	var err error
	first := len(st.arrivals)
	st.arrivals, err = st.decoder.appendArrivals(p, fp, st.at, st.arrivals)
	earliest := st.late.Earliest(&p.ownDelay, st.at, p.offset < high)
	for i := range st.arrivals[first:] {
		a := &st.arrivals[first+i]
		a.Earliest, a.Requested, a.Waited = earliest, st.late.Written, st.late.ReadDelay
	}
	if err != nil {
		return fmt.Errorf("%s at offset %d: %w", st.src.nameOf(p), p.offset, err)
	}
	s := st.src
	if n := st.decoder.skippedBatches; n > 0 {
		s.abortedBatches.Add(n)
		s.abortedEvents.Add(st.decoder.skippedEvents)
		st.decoder.skippedBatches, st.decoder.skippedEvents = 0, 0
	}
	switch {
	case p.done():
		p.emptied.Store(notRead)
	case p.offset >= high:
		p.emptied.Store(int64(st.at))
	default:
		p.emptied.Store(0)
	}
	if p.done() {
		st.handBack = append(st.handBack, lostPart{p: p, err: errReadToEnd})
	}
	return nil
}
