package standin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A rawClient sends requests exactly as given.
type rawClient struct {
	t  *testing.T
	nc net.Conn
}

func dial(t *testing.T, s Server) rawClient {
	t.Helper()
	nc := assert.Value(net.Dial("tcp", s.Addr()))(t)
	t.Cleanup(func() { nc.Close() })
	assert.OK(t, nc.SetDeadline(time.Now().Add(time.Minute)))
	return rawClient{t, nc}
}

func (r rawClient) send(req kmsg.Request) {
	r.t.Helper()
	assert.Value(r.nc.Write(frameOf(req)))(r.t)
}

func (r rawClient) receive(req kmsg.Request) kmsg.Response {
	r.t.Helper()
	var size [4]byte
	assert.Value(io.ReadFull(r.nc, size[:]))(r.t)
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	assert.Value(io.ReadFull(r.nc, b))(r.t)
	resp := req.ResponseKind()
	skip := 4
	if resp.IsFlexible() {
		skip++
	}
	assert.OK(r.t, resp.ReadFrom(b[skip:]))
	// kmsg must have decoded all of the answer.
	got := len(resp.AppendTo(nil))
	assert.True(r.t, got == len(b)-skip, "an answer of %d bytes, of which %d are decoded", len(b)-skip, got)
	return resp
}

func (r rawClient) ask(req kmsg.Request) kmsg.Response {
	r.t.Helper()
	r.send(req)
	return r.receive(req)
}

func (r rawClient) ids(names ...string) map[string][16]byte {
	req := kmsg.NewPtrMetadataRequest()
	req.SetVersion(12)
	for _, n := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = new(n)
		req.Topics = append(req.Topics, t)
	}
	ids := map[string][16]byte{}
	for _, t := range r.ask(req).(*kmsg.MetadataResponse).Topics {
		ids[*t.Topic] = t.TopicID
	}
	return ids
}

// forBothSources runs a test with both ways to read a connection: by system calls and by Read.
func forBothSources(t *testing.T, opts Options, f func(t *testing.T, opts Options)) {
	t.Run("raw", func(t *testing.T) { f(t, opts) })
	opts.Delay = time.Nanosecond
	t.Run("plain", func(t *testing.T) { f(t, opts) })
}

func TestProduceVersions(t *testing.T) {
	t.Parallel()
	opts := Options{Listen: "127.0.0.1:0", Discard: true, Events: 1000, Topics: []Topic{{"one", 2}, {"two", 1}}}
	forBothSources(t, opts, func(t *testing.T, opts Options) {
		s := start(t, opts)
		cl := dial(t, s)
		ids := cl.ids("one", "two")
		ends := map[string]int64{"one/0": 1000, "one/1": 1000, "two/0": 1000}
		for version := int16(3); version <= 13; version++ {
			t.Run(fmt.Sprint("v", version), func(t *testing.T) {
				cl.t = t
				req := kmsg.NewPtrProduceRequest()
				req.SetVersion(version)
				req.Acks = 1
				want := &kmsg.ProduceResponse{Version: version}
				// Three batches in one partition, one in another, none in a third; a topic and a partition that do not exist.
				add := func(name string, index int32, code int16, counts ...int) {
					n := len(req.Topics) - 1
					if n < 0 || req.Topics[n].Topic != name {
						rt := kmsg.NewProduceRequestTopic()
						rt.Topic, rt.TopicID = name, ids[name]
						req.Topics = append(req.Topics, rt)
						at := kmsg.NewProduceResponseTopic()
						if version >= 13 {
							at.TopicID = ids[name]
						} else {
							at.Topic = name
						}
						want.Topics = append(want.Topics, at)
						n++
					}
					rp := kmsg.NewProduceRequestTopicPartition()
					rp.Partition = index
					ap := kmsg.NewProduceResponseTopicPartition()
					ap.Partition, ap.BaseOffset, ap.ErrorCode = index, -1, code
					log := fmt.Sprint(name, "/", index)
					if code == 0 {
						ap.BaseOffset = ends[log]
						if version >= 5 {
							ap.LogStartOffset = 0
						}
					}
					for _, count := range counts {
						rp.Records = append(rp.Records, newSynthetic(count, 300, time.UnixMilli(1)).data...)
						if code == 0 {
							ends[log] += int64(count)
						}
					}
					req.Topics[n].Partitions = append(req.Topics[n].Partitions, rp)
					want.Topics[n].Partitions = append(want.Topics[n].Partitions, ap)
				}
				unknown := int16(codeUnknownTopic)
				if version >= 13 {
					unknown = codeUnknownTopicID
				}
				add("one", 0, 0, 1, 700, 3)
				add("one", 1, 0)
				add("one", 7, codeUnknownTopic, 5)
				add("missing", 0, unknown, 5)
				add("two", 0, 0, 2000)
				before := s.Counts()
				assert.NoDiff(t, cmp.Diff(want, cl.ask(req), cmp.Comparer(sameTags)), "answer")
				after := s.Counts()
				assert.Equal(t, after.Events-before.Events, 2704, "counted events")
				assert.Equal(t, after.Batches-before.Batches, 4, "counted batches")
				assert.Equal(t, after.Refused-before.Refused, 10, "refused events counted")
			})
		}
	})
}

func sameTags(a, b kmsg.Tags) bool { return a.Len() == b.Len() }

// TestPipelined sends many requests at once, in pieces of various sizes, and expects the answers in order.
func TestPipelined(t *testing.T) {
	t.Parallel()
	opts := Options{Listen: "127.0.0.1:0", Discard: true, Events: 1, Topics: []Topic{{"t", 1}}}
	forBothSources(t, opts, func(t *testing.T, opts Options) {
		for _, piece := range []int{1 << 20, 70000, 4096, 517, 61} {
			t.Run(fmt.Sprint("pieces of ", piece), func(t *testing.T) {
				s := start(t, opts)
				cl := dial(t, s)
				cl.ids("t")
				small, large := produceFrame("t", 0, 1, 10), produceFrame("t", 0, 1000, 100)
				var all []byte
				var want []int64
				next := int64(1)
				for i := range 30 {
					want = append(want, next)
					if i%3 == 2 {
						all = append(all, large...)
						next += 1000
					} else {
						all = append(all, small...)
						next++
					}
				}
				go func() {
					for len(all) > 0 {
						n, err := cl.nc.Write(all[:min(piece, len(all))])
						if err != nil {
							t.Error(err)
							return
						}
						all = all[n:]
					}
				}()
				var got []int64
				for range want {
					req := kmsg.NewPtrProduceRequest()
					req.SetVersion(12)
					resp := cl.receive(req).(*kmsg.ProduceResponse)
					got = append(got, resp.Topics[0].Partitions[0].BaseOffset)
				}
				assert.Same(t, got, want, "base offsets")
			})
		}
	})
}

func TestNotBatches(t *testing.T) {
	t.Parallel()
	opts := Options{Listen: "127.0.0.1:0", Discard: true, Topics: []Topic{{"t", 1}}}
	good := newSynthetic(3, 10, time.UnixMilli(1)).data
	change := func(at int, b ...byte) []byte {
		data := bytes.Clone(good)
		copy(data[at:], b)
		return data
	}
	for _, test := range []struct {
		name string
		data []byte
	}{
		{"too short", good[:60]},
		{"cut off", good[:len(good)-1]},
		{"an old format", change(16, 1)},
		{"a negative count", change(57, 255)},
		{"a negative length", change(8, 255)},
		{"a length of nothing", change(8, 0, 0, 0, 0)},
		{"a good one first", append(bytes.Clone(good), 1, 2, 3)},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, opts)
			cl := dial(t, s)
			cl.ids("t")
			req := kmsg.NewPtrProduceRequest()
			req.SetVersion(12)
			req.Acks = 1
			rt := kmsg.NewProduceRequestTopic()
			rt.Topic = "t"
			rp := kmsg.NewProduceRequestTopicPartition()
			rp.Records = test.data
			rt.Partitions = append(rt.Partitions, rp)
			req.Topics = append(req.Topics, rt)
			resp := cl.ask(req).(*kmsg.ProduceResponse)
			assert.Equal(t, resp.Topics[0].Partitions[0].ErrorCode, codeCorruptMessage, "code")
			assert.Equal(t, s.Counts().Events, 0, "counted events")
		})
	}
}

// TestNotKafka sends the first bytes of other protocols: the stand-in closes the connection and keeps running.
func TestNotKafka(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		s := start(t, opts)
		for name, bytes := range map[string]string{
			"HTTP":               "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
			"TLS":                "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
			"no such request":    "\x00\x00\x00\x0c\x03\xe7\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00",
			"a negative version": "\x00\x00\x00\x0c\x00\x03\xff\xff\x00\x00\x00\x01\x00\x00\x00\x00",
			"produce version 2":  "\x00\x00\x00\x12\x00\x00\x00\x02\x00\x00\x00\x01\xff\xff\x00\x01\x00\x00\x00\x00\x00\x00",
			"a wrong length":     "\x00\x00\x00\x12\x00\x00\x00\x09\x00\x00\x00\x01\x7f\xff\x00\x00\x00\x01\x00\x00\x00\x00",
		} {
			t.Run(name, func(t *testing.T) {
				cl := dial(t, s)
				assert.Value(cl.nc.Write([]byte(bytes)))(t)
				if n, err := cl.nc.Read(make([]byte, 1)); n != 0 || err == nil {
					t.Errorf("got %d bytes, %v; want the connection closed", n, err)
				} else if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("the connection stays open")
				}
				dial(t, s).ids()
			})
		}
	})
}

func TestFetchVersions(t *testing.T) {
	t.Parallel()
	const events = 250
	opts := Options{
		Listen: "127.0.0.1:0", Discard: true, Events: events, EventSize: 100, BatchEvents: 100,
		Topics: []Topic{{"one", 2}, {"two", 1}},
	}
	s := start(t, opts)
	cl := dial(t, s)
	ids := cl.ids("one", "two")
	type part struct {
		topic string
		index int32
		from  int64
		max   int32
	}
	tests := []struct {
		name  string
		parts []part
		max   int32
		want  []string // each partition's code, high watermark and offsets
	}{
		{"from the start", []part{{"one", 0, 0, 1 << 20}}, 1 << 20, []string{"0 250 0-99 100-199 200-249"}},
		{"within a batch", []part{{"one", 1, 150, 1 << 20}}, 1 << 20, []string{"0 250 150-199 200-249"}},
		{"in the short last one", []part{{"one", 1, 249, 1 << 20}}, 1 << 20, []string{"0 250 249-249"}},
		{"at the end", []part{{"one", 0, 250, 1 << 20}}, 1 << 20, []string{"0 250"}},
		{"beyond it", []part{{"one", 0, 251, 1 << 20}}, 1 << 20, []string{"1 -1"}},
		{"before the start", []part{{"one", 0, -1, 1 << 20}}, 1 << 20, []string{"1 -1"}},
		{"a small partition limit", []part{{"one", 0, 0, 10}, {"two", 0, 0, 10}}, 1 << 20, []string{"0 250 0-99", "0 250"}},
		{"a small limit", []part{{"one", 0, 0, 1 << 20}, {"two", 0, 0, 1 << 20}}, 15000, []string{"0 250 0-99", "0 250"}},
		{"a limit between", []part{{"one", 0, 0, 1 << 20}, {"two", 0, 0, 1 << 20}}, 35000, []string{"0 250 0-99 100-199 200-249", "0 250"}},
		{"two topics", []part{{"one", 0, 100, 1 << 20}, {"one", 1, 200, 1 << 20}, {"two", 0, 200, 1 << 20}}, 1 << 20, []string{"0 250 100-199 200-249", "0 250 200-249", "0 250 200-249"}},
		{"no such partition", []part{{"one", 9, 0, 1 << 20}}, 1 << 20, []string{"3 -1"}},
	}
	for version := int16(4); version <= 18; version++ {
		for _, test := range tests {
			t.Run(fmt.Sprint("v", version, "/", test.name), func(t *testing.T) {
				cl := cl
				cl.t = t
				req := kmsg.NewPtrFetchRequest()
				req.SetVersion(version)
				req.MaxBytes = test.max
				for _, p := range test.parts {
					n := len(req.Topics) - 1
					if n < 0 || req.Topics[n].Topic != p.topic {
						rt := kmsg.NewFetchRequestTopic()
						rt.Topic, rt.TopicID = p.topic, ids[p.topic]
						req.Topics = append(req.Topics, rt)
						n++
					}
					rp := kmsg.NewFetchRequestTopicPartition()
					rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = p.index, p.from, p.max
					req.Topics[n].Partitions = append(req.Topics[n].Partitions, rp)
				}
				resp := cl.ask(req).(*kmsg.FetchResponse)
				var got []string
				for i, rt := range resp.Topics {
					assert.True(t, (version < 13 || rt.TopicID == req.Topics[i].TopicID) && (version >= 13 || rt.Topic == req.Topics[i].Topic),
						"got topic %q %x", rt.Topic, rt.TopicID)
					for _, rp := range rt.Partitions {
						text := fmt.Sprint(rp.ErrorCode, " ", rp.HighWatermark)
						for _, b := range checkBatches(t, rp.RecordBatches) {
							text += fmt.Sprintf(" %d-%d", b.FirstOffset, b.FirstOffset+int64(b.LastOffsetDelta))
						}
						got = append(got, text)
					}
				}
				assert.Same(t, got, test.want)
			})
		}
	}
}

func TestListOffsetsVersions(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Listen: "127.0.0.1:0", Discard: true, Events: 250, Topics: []Topic{{"t", 1}}})
	tests := []struct {
		name     string
		at, want int64
	}{
		{"end", -1, 250},
		{"start", -2, 0},
		{"largest time", -3, 249},
		{"start here", -4, 0},
		{"tiered", -5, -1},
		{"long ago", 1, 0},
		{"in the future", time.Now().Add(time.Hour).UnixMilli(), -1},
	}
	for version := range int16(11) {
		for _, test := range tests {
			t.Run(fmt.Sprint("v", version, "/", test.name), func(t *testing.T) {
				req := kmsg.NewPtrListOffsetsRequest()
				req.SetVersion(version)
				rt := kmsg.NewListOffsetsRequestTopic()
				rt.Topic = "t"
				rp := kmsg.NewListOffsetsRequestTopicPartition()
				rp.Timestamp = test.at
				rt.Partitions = append(rt.Partitions, rp)
				req.Topics = append(req.Topics, rt)
				p := dial(t, s).ask(req).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
				got := p.Offset
				if version == 0 {
					got = p.OldStyleOffsets[0]
				}
				assert.True(t, got == test.want && p.ErrorCode == 0, "got offset %d, code %d; want %d", got, p.ErrorCode, test.want)
			})
		}
	}
}
