package standin

import (
	"errors"
	"io"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// pieces is a source that supplies data in pieces of at most n bytes.
type pieces struct {
	data []byte
	n    int
}

func (p *pieces) read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.data[:min(p.n, len(p.data))])
	p.data = p.data[n:]
	return n, nil
}

func (p *pieces) discard(n int) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n = min(n, p.n, len(p.data))
	p.data = p.data[n:]
	return n, nil
}

// A walkResult is what walkProduce reported of a request.
type walkResult struct {
	Acks          int16
	Transactional string
	Parts         []walkedPart
	begun, ended  int
}

type walkedPart struct {
	Topic string
	ID    [16]byte
	Index int32
	Bytes int64
	Bad   bool
	Count int64
}

func (s *walkResult) begin(txn []byte, acks int16, _ int) {
	s.Acks, s.Transactional = acks, string(txn)
}

func (s *walkResult) topic(name []byte, id [16]byte, _ int) {
	s.begun++
	s.Parts = append(s.Parts, walkedPart{Topic: string(name), ID: id, Index: -1})
}

func (s *walkResult) partition(index int32, p produced) {
	last := s.Parts[len(s.Parts)-1]
	s.Parts = append(s.Parts, walkedPart{last.Topic, last.ID, index, p.bytes, p.bad, p.records})
}
func (s *walkResult) endTopic() { s.ended++ }

func walk(body []byte, version int16, piece int) (*walkResult, error) {
	st := newStream(&pieces{body, piece})
	st.frame(len(body))
	got := &walkResult{}
	err := walkProduce(st, version, got)
	return got, err
}

// FuzzProduce reads arbitrary bytes as a produce request. It must not panic, the result must not depend on the size of the
// pieces, and it must agree with kmsg where kmsg decodes the bytes.
func FuzzProduce(f *testing.F) {
	good := newSynthetic(3, 20, time.UnixMilli(1)).data
	for version := int16(3); version <= 13; version++ {
		req := kmsg.NewPtrProduceRequest()
		req.SetVersion(version)
		req.Acks = -1
		req.TransactionID = new("tx")
		for range 2 {
			rt := kmsg.NewProduceRequestTopic()
			rt.Topic, rt.TopicID = "topic", [16]byte{7}
			for i := range int32(2) {
				rp := kmsg.NewProduceRequestTopicPartition()
				rp.Partition = i
				rp.Records = append(append([]byte(nil), good...), good...)
				rt.Partitions = append(rt.Partitions, rp)
			}
			req.Topics = append(req.Topics, rt)
		}
		f.Add(req.AppendTo(nil), version, 100)
		f.Add(req.AppendTo(nil)[:60], version, 1)
	}
	f.Fuzz(func(t *testing.T, body []byte, version int16, piece int) {
		if version < 3 || version > 13 || piece < 1 {
			return
		}
		got, err := walk(body, version, piece)
		whole, wholeErr := walk(body, version, len(body)+1)
		assert.Must(t, (err == nil) == (wholeErr == nil), "in pieces of %d: %v; whole: %v", piece, err, wholeErr)
		if err != nil {
			assert.Must(t, errors.Is(err, errFrame) || errors.Is(err, io.EOF), "an error of an unknown kind: %v", err)
			return
		}
		assert.NoDiff(t, cmp.Diff(whole, got, cmp.AllowUnexported(walkResult{})), "in pieces of %d (-whole +pieces)", piece)
		assert.Equal(t, got.begun, got.ended, "topics begun and ended")
		req := kmsg.NewPtrProduceRequest()
		req.SetVersion(version)
		if req.ReadFrom(body) != nil {
			return
		}
		want := &walkResult{Acks: req.Acks, begun: len(req.Topics), ended: len(req.Topics)}
		if req.TransactionID != nil {
			want.Transactional = *req.TransactionID
		}
		for _, rt := range req.Topics {
			want.Parts = append(want.Parts, walkedPart{Topic: rt.Topic, ID: rt.TopicID, Index: -1})
			for _, rp := range rt.Partitions {
				st := frameStream(rp.Records)
				p := assert.Value(walkBatches(&st, len(rp.Records)))(t)
				want.Parts = append(want.Parts, walkedPart{rt.Topic, rt.TopicID, rp.Partition, int64(len(rp.Records)), p.bad, p.records})
			}
		}
		assert.NoDiff(t, cmp.Diff(want, got, cmp.AllowUnexported(walkResult{})), "(-kmsg +walk)")
	})
}

// FuzzConnection sends arbitrary bytes to a connection of either stand-in, in pieces.
func FuzzConnection(f *testing.F) {
	f.Add(append(produceFrame("t", 0, 9, 100), produceFrame("t", 0, 3, 10)...), true, 7)
	f.Add(produceFrame("t", 0, 3, 10), false, 100)
	servers := map[bool]*front{}
	for _, discard := range []bool{true, false} {
		s := assert.Value(Start(Options{Listen: "127.0.0.1:0", Discard: discard, InMemory: true, Topics: []Topic{{"t", 1}}}))(f)
		f.Cleanup(func() { s.Close() })
		servers[discard] = s.(*front)
		servers[discard].maxFetchWait = time.Millisecond
	}
	f.Fuzz(func(_ *testing.T, data []byte, discard bool, piece int) {
		if piece < 1 || len(data) < 6 {
			return
		}
		// kmsg decodes the other requests. It is not ours to fuzz, and loops over
		// fields that do not exist; and the broker may wait.
		if data[4] != 0 || data[5] != 0 {
			return
		}
		here, there := pipe(pipeAddr("a:1"), pipeAddr("b:2"))
		c := newConn(servers[discard], there)
		c.in.src = &pieces{data, piece}
		_ = c.serve()
		here.Close()
	})
}
