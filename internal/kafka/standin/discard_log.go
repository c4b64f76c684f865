package standin

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A discardLog contains the lengths of the discard broker's partitions. The
// records in them are synthetic.
//
// A partition begins with Options.Events synthetic records at offset 0. Records
// produced to it follow, and are replaced by synthetic ones when they are fetched.
type discardLog struct {
	broker *broker
	start  int64
	batch  *syntheticBatch

	table   atomic.Pointer[topicTable] // never modified but replaced, so that readers need no lock
	mu      sync.Mutex                 // locked to replace it
	created atomic.Bool                // topics were created since it was last made
	waiters atomic.Int32               // fetches that wait for records
	grown   chan struct{}              // closed when records arrive and a fetch waits; under mu
}

type topicTable struct {
	byName map[string]*topic
	byID   map[[16]byte]*topic
}

type topic struct {
	name  string
	id    [16]byte
	parts []*logPartition
}

// A logPartition is padded to a cache line, because connections on different cores
// produce to different partitions.
type logPartition struct {
	end atomic.Int64 // offset of the next record
	_   [56]byte
}

func newDiscardLog(opts Options, b *broker) *discardLog {
	l := &discardLog{broker: b, start: int64(opts.Events), grown: make(chan struct{})}
	l.batch = newSynthetic(opts.BatchEvents, opts.EventSize, time.Now())
	l.table.Store(&topicTable{byName: map[string]*topic{}, byID: map[[16]byte]*topic{}})
	return l
}

// append makes room for n records and returns the offset of the first.
func (l *discardLog) append(p *logPartition, n int64) int64 {
	return p.end.Add(n) - n
}

// notify wakes the fetches that wait for records. It costs one atomic read if no
// fetch waits.
func (l *discardLog) notify() {
	if l.waiters.Load() == 0 {
		return
	}
	l.mu.Lock()
	close(l.grown)
	l.grown = make(chan struct{})
	l.mu.Unlock()
}

func (l *discardLog) grownSignal() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grown
}

// byName finds a topic, asking the broker if the table does not contain it; nil if
// it does not exist.
func (l *discardLog) byName(name []byte) (*topic, error) {
	if t := l.table.Load().byName[string(name)]; t != nil {
		return t, nil
	}
	if err := l.refresh(); err != nil {
		return nil, err
	}
	return l.table.Load().byName[string(name)], nil
}

func (l *discardLog) byID(id [16]byte) (*topic, error) {
	if t := l.table.Load().byID[id]; t != nil {
		return t, nil
	}
	if err := l.refresh(); err != nil {
		return nil, err
	}
	return l.table.Load().byID[id], nil
}

func (t *topic) partition(index int32) *logPartition {
	if t == nil || index < 0 || int(index) >= len(t.parts) {
		return nil
	}
	return t.parts[index]
}

// answered follows a request that was answered: some change the topics. Those that were created are read when a client
// asks for metadata, or uses them: to read all after each of a thousand requests that create some takes minutes.
func (l *discardLog) answered(key int16) error {
	switch key {
	case 19: // create topics
		l.created.Store(true)
	case 3: // metadata
		if l.created.Swap(false) {
			return l.refresh()
		}
	case 20, 37: // delete topics, create partitions
		return l.refresh()
	}
	return nil
}

// refresh reads the list of topics from the broker. Topics that still exist keep
// their offsets.
func (l *discardLog) refresh() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	conn, err := l.broker.dial(pipeAddr("127.0.0.1:0"))
	if err != nil {
		return err
	}
	defer conn.Close()
	req := kmsg.NewPtrMetadataRequest()
	req.SetVersion(12)
	req.Topics = nil // all
	resp := kmsg.NewPtrMetadataResponse()
	if err := ask(conn, req, resp); err != nil {
		return fmt.Errorf("reading the broker's topics: %w", err)
	}
	old := l.table.Load()
	table := &topicTable{byName: map[string]*topic{}, byID: map[[16]byte]*topic{}}
	for _, rt := range resp.Topics {
		if rt.Topic == nil || rt.ErrorCode != 0 {
			continue
		}
		t := &topic{name: *rt.Topic, id: rt.TopicID}
		if was := old.byID[rt.TopicID]; was != nil {
			t.parts = append(t.parts, was.parts...)
		}
		for len(t.parts) < len(rt.Partitions) {
			p := &logPartition{}
			p.end.Store(l.start)
			t.parts = append(t.parts, p)
		}
		table.byName[t.name] = t
		table.byID[t.id] = t
	}
	l.table.Store(table)
	return nil
}

// ask sends one request of the stand-in's own to the broker and reads the answer.
// Both must be of a flexible version.
func ask(conn interface {
	Read([]byte) (int, error)
	Write([]byte) (int, error)
}, req kmsg.Request, resp kmsg.Response,
) error {
	frame := make([]byte, 4, 64)
	frame = binary.BigEndian.AppendUint16(frame, uint16(req.Key()))
	frame = binary.BigEndian.AppendUint16(frame, uint16(req.GetVersion()))
	frame = append(frame, 0, 0, 0, 0) // correlation id
	frame = append(frame, 0, 0, 0)    // client id "", no tags
	frame = req.AppendTo(frame)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	answer, err := exchange(conn, frame)
	if err != nil {
		return err
	}
	if len(answer) < 9 {
		return errFrame
	}
	resp.SetVersion(req.GetVersion())
	return resp.ReadFrom(answer[9:])
}
