package kafka

import (
	"cmp"
	"errors"
	"net"
	"slices"
	"time"

	"carronade/internal/conn"
	"carronade/internal/conn/socket"
	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
)

// A link is one connection to a broker with its queue of requests. The first requests
// of the queue have been written and wait for their answers, which arrive in the same
// order. The sender's lock guards all of it except the reader's buffer.
type link struct {
	conn.Link
	conn.Window[*request] // the queue
	l                     *lane
	format                wire.ProduceFormat
	topics                []wire.Topic // of the view when it was opened

	startedAt  time.Duration // when the lane began to use it
	unsent     int           // bytes queued and not written
	progressAt time.Duration // when bytes were last written, an answer came, or the queue was last empty
	dirty      bool          // in sender.dirty
	answered   bool          // a request was answered on it

	term   cluster.LoginTerm // validity of the login
	paused bool              // logging in again: no produce request may be queued

	answeredEarly []*request // answered while being written; freed after the write
	correlation   int32
	hints         []hint // new leaders of partitions
}

// A hint is what a broker reported about a log's new leader.
type hint struct{ log, leader, epoch int32 }

// A request is a produce request: its framing (heads, tails, batch headers), and the
// records of its slots in between. The slots are sorted by topics.
type request struct {
	correlation int32
	slots       []*slot
	framing     []byte
	segs        [][]byte
	size        int
	sent        time.Duration // when its first byte was written; -1: not yet
	reply       chan []byte   // receives the answer to a request that does not produce; else nil
}

var (
	errEarlyAnswer    = &protocolError{errors.New("an answer to a partly written request")}
	errTopicRecreated = errors.New("the topic was deleted and created again")
)

func newLink(l *lane, nc net.Conn, f wire.ProduceFormat, topics []wire.Topic) *link {
	k := &link{l: l, format: f, topics: topics}
	k.Init(nc, k, &l.s.mu, func() time.Duration { return l.s.p.sink.Now() }) // a closure: the sink is set later, when the run starts
	return k
}

// push queues a request with the slots given, each of a different partition.
func (k *link) push(r *request, slots []*slot) {
	r.slots = append(r.slots[:0], slots...)
	if len(k.topics) > 1 { // the batches of a topic stand together
		slices.SortStableFunc(r.slots, func(a, b *slot) int { return cmp.Compare(k.placeOf(a).Topic, k.placeOf(b).Topic) })
	}
	r.sent = -1
	k.correlation++
	r.correlation = k.correlation
	k.assemble(r)
	k.enqueue(r)
	m := &k.l.metrics
	m.Requests++
	m.Batches += uint64(len(slots))
	m.Bytes += uint64(r.size)
	for _, sl := range slots {
		m.Records += uint64(sl.count)
		m.RawBytes += uint64(sl.raw)
		m.SentBytes += uint64(len(sl.recs))
		sl.wire += int64(wire.HeaderSize + len(sl.recs))
		sl.inFlight = true
	}
	slots[0].wire += int64(r.size) // the request's framing counts for its first batch
	for _, sl := range slots {
		slots[0].wire -= int64(wire.HeaderSize + len(sl.recs))
	}
}

// enqueue puts a request at the end of the queue.
func (k *link) enqueue(r *request) {
	if k.Head == k.Tail {
		k.progressAt = k.l.s.now
	}
	k.Push(r)
	k.unsent += r.size
}

// smallRecords is the size up to which records are copied into the framing: another
// element of the vector costs the kernel more than copying so few bytes.
const smallRecords = 2 << 10

// placeOf is where a batch goes.
func (k *link) placeOf(sl *slot) cluster.Place { return k.l.s.p.places[sl.log] }

// topicSize is an upper bound of what the topics of a request take in addition to its batches, for one
// more batch; before is the one before it, nil if it is the first.
func (k *link) topicSize(before, sl *slot) int {
	if before != nil && k.placeOf(before).Topic == k.placeOf(sl).Topic {
		return 0
	}
	return k.topics[k.placeOf(sl).Topic].MaxTopic()
}

// ofTopic returns how many of the first batches go to a topic.
func (k *link) ofTopic(slots []*slot, topic int32) (n int) {
	for n < len(slots) && k.placeOf(slots[n]).Topic == topic {
		n++
	}
	return n
}

// countTopics returns how many topics batches go to that are sorted by topics.
func (k *link) countTopics(slots []*slot) (topics int) {
	last := int32(-1)
	for _, sl := range slots {
		if t := k.placeOf(sl).Topic; t != last {
			topics, last = topics+1, t
		}
	}
	return topics
}

// assemble encodes a request.
func (k *link) assemble(r *request) {
	s := k.l.s
	need := k.format.MaxHead() + len(r.slots)*(wire.MaxPartition+wire.HeaderSize)
	var before *slot
	for _, sl := range r.slots {
		need += k.topicSize(before, sl)
		before = sl
		if len(sl.recs) <= smallRecords {
			need += len(sl.recs)
		}
	}
	if cap(r.framing) < need { // segs refer to it, so it must not move
		r.framing = make([]byte, 0, need)
	}
	g := k.format.AppendHead(r.framing[:0], r.correlation, k.countTopics(r.slots))
	r.segs = r.segs[:0]
	r.size = 0
	from := 0
	topic := int32(-1)
	for i, sl := range r.slots {
		size := wire.HeaderSize + len(sl.recs)
		at := k.placeOf(sl)
		if at.Topic != topic {
			if i > 0 {
				g = k.format.AppendTopicEnd(g)
			}
			topic = at.Topic
			g = k.format.AppendTopic(g, &k.topics[topic], k.ofTopic(r.slots[i:], topic))
		}
		g = k.format.AppendPartition(g, at.Partition, size)
		header := len(g)
		g = g[:header+wire.HeaderSize]
		if sl.millis == 0 {
			sl.millis = s.p.startTime.Add(s.now).UnixMilli()
		}
		h := wire.Header{
			Length: int32(size - 12), LeaderEpoch: -1, Attributes: int16(s.p.codec),
			LastOffsetDelta: sl.count - 1, BaseTimestamp: sl.millis, MaxTimestamp: sl.millis,
			ProducerID: sl.pid, ProducerEpoch: sl.epoch, BaseSequence: sl.seq, NumRecords: sl.count,
		}
		h.Put(g[header:])
		sl.crc = wire.Seal(g[header:], sl.sum)
		if len(sl.recs) <= smallRecords {
			g = append(g, sl.recs...)
		} else {
			r.segs = append(r.segs, g[from:len(g):len(g)], sl.recs)
			r.size += len(g) - from + len(sl.recs)
			from = len(g)
		}
		g = k.format.AppendPartitionEnd(g)
	}
	g = k.format.AppendTail(k.format.AppendTopicEnd(g))
	if from < len(g) {
		r.segs = append(r.segs, g[from:])
		r.size += len(g) - from
	}
	r.framing = g
	wire.PutSize(g, r.size)
}

// Pending implements conn.Queue.
func (k *link) Pending() bool { return k.Next < k.Tail }

// Load implements conn.Queue: a write has as much of the queue as fits a vector.
func (k *link) Load(w *socket.Writer) int {
	return k.Window.Load(w, func(r **request) ([][]byte, int) { return (*r).segs, (*r).size })
}

// Written implements conn.Queue.
func (k *link) Written(n int, _ error) {
	k.l.s.p.written.Add(uint64(n))
	k.advance(n)
	for i, r := range k.answeredEarly {
		k.free(r)
		k.answeredEarly[i] = nil
	}
	k.answeredEarly = k.answeredEarly[:0]
}

// Flushed implements conn.Queue.
func (k *link) Flushed() {
	k.l.s.deliver()
	k.l.ready(k.l.s.p.sink.Now())
}

// Oldest implements conn.Queue. For a request that is not written completely, it is when
// the broker last read something: a write over TLS reports nothing before its end.
func (k *link) Oldest() (since time.Duration, waits bool) {
	switch {
	case k.Head == k.Tail:
		return 0, false
	case k.Begun(k.Head) && k.oldest().sent >= 0:
		return k.oldest().sent, true
	}
	return k.progressAt, true
}

// advance notes that n bytes were written.
func (k *link) advance(n int) {
	s := k.l.s
	at := k.Out.Began()
	k.unsent -= n
	if n > 0 {
		k.progressAt = s.now
	}
	k.Window.Written(n, func(r **request) { k.stamp(*r, at) })
	if k.Head > k.Next {
		k.Kill(errEarlyAnswer)
	}
	if k.format.Acks == 0 {
		for k.Head < k.Next && k.oldest().reply == nil {
			r := k.pop()
			for _, sl := range r.slots {
				s.completeUnacked(sl)
			}
			k.free(r)
		}
	}
}

// oldest returns the oldest unanswered request.
func (k *link) oldest() *request { return *k.At(k.Head) }

// stamp notes when the first byte of a request was written.
func (k *link) stamp(r *request, at time.Duration) {
	if r.sent >= 0 {
		return
	}
	r.sent = at
	for _, sl := range r.slots {
		if sl.sent < 0 {
			sl.sent = at
			if k.Waited() {
				// It waited behind a full socket: the tested system caused
				// this delay, not the generator.
				sl.batch.Free = max(sl.batch.Free, at)
			}
		}
	}
}

// pop takes the oldest request out of the queue.
func (k *link) pop() *request {
	r := k.Pop()
	k.progressAt = k.l.s.now
	if k.paused && k.Head == k.Tail {
		k.Wake() // the renewal of the login waits for this
	}
	return r
}

// free returns a request, and those of its slots that are completed, for reuse.
func (k *link) free(r *request) {
	s := k.l.s
	for i, sl := range r.slots {
		if sl != nil && sl.liveIndex < 0 {
			s.release(sl)
		}
		r.slots[i] = nil
	}
	r.slots = r.slots[:0]
	clear(r.segs)
	r.reply = nil
	s.freeRequests = append(s.freeRequests, r)
}
