package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"carronade/test/testkit/assert"
)

func writeItems(t testing.TB, topic string, runs []ListRun) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list")
	w := assert.Value(CreateList(path, topic))(t)
	for _, r := range runs {
		w.Add(r)
	}
	assert.OK(t, errors.Join(w.Close(), w.Close()))
	return path
}

func readItems(t testing.TB, path string) (topic string, runs []ListRun) {
	t.Helper()
	topic = assert.Value(ReadList(path, func(r ListRun) error { runs = append(runs, r); return nil }))(t)
	return topic, runs
}

// singleItems is every record of runs.
func singleItems(runs []ListRun) (all []ListRun) {
	for _, r := range runs {
		for i := range r.Count {
			all = append(all, ListRun{r.Partition, r.Offset + i, 1})
		}
	}
	return all
}

// A list that was written has the same records in the same order, and consecutive ones share a line.
func TestItemsRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		runs := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) ListRun {
			return ListRun{rapid.Int32Range(0, 2).Draw(rt, "partition"), rapid.Int64Range(0, 9).Draw(rt, "offset"), rapid.Int64Range(1, 5).Draw(rt, "count")}
		}), 0, 30).Draw(rt, "runs")
		topic, got := readItems(t, writeItems(t, "orders", runs))
		assert.Must(rt, topic == "orders" && slices.Equal(singleItems(got), singleItems(runs)), "topic %s: %v, want %v", topic, got, runs)
		for i := 1; i < len(got); i++ {
			if a, b := got[i-1], got[i]; a.Partition == b.Partition && a.Offset+a.Count == b.Offset {
				rt.Fatalf("%v and %v have two lines", a, b)
			}
		}
	})
}

// TestItemsText: the format is the documented one.
func TestItemsText(t *testing.T) {
	text := assert.Value(os.ReadFile(writeItems(t, "orders", []ListRun{{0, 1000, 4}, {0, 1004, 6}, {3, 17, 1}})))(t)
	const want = "# topic: orders\n# partition,offset[,count]\n0,1000,10\n3,17\n"
	assert.Equal(t, string(text), want, "got %q", text)
}

// TestWriteManyItems: what many goroutines write is complete, each record once.
func TestWriteManyItems(t *testing.T) {
	const writers, each = 4, 50_000
	path := filepath.Join(t.TempDir(), "list")
	w := assert.Value(CreateList(path, "t"))(t)
	var wg sync.WaitGroup
	for p := range int32(writers) {
		wg.Go(func() {
			for i := range int64(each) {
				w.Add(ListRun{p, 2 * i, 1})
			}
		})
	}
	wg.Wait()
	assert.OK(t, w.Close())
	var n [writers]int64
	_, runs := readItems(t, path)
	for _, r := range runs {
		assert.Must(t, r.Offset == 2*n[r.Partition] && r.Count == 1, "got %v after %d records", r, n[r.Partition])
		n[r.Partition]++
	}
	assert.Equal(t, n, [writers]int64{each, each, each, each}, "records of each writer")
}

// If the disk fails, the writer says so, does not block, and leaves whole lines.
func TestWriteItemsFails(t *testing.T) {
	if _, err := CreateList(filepath.Join(t.TempDir(), "absent", "list"), "t"); err == nil {
		t.Error("got no error for a missing folder")
	}
	if _, err := os.Stat("/dev/full"); err == nil {
		_, err := CreateList("/dev/full", "t")
		assert.ErrorHas(t, err, "no space left on device", "a full disk")
	}
	path := filepath.Join(t.TempDir(), "list")
	w := assert.Value(CreateList(path, "t"))(t)
	w.Add(ListRun{0, 1, 1})
	w.Add(ListRun{0, 3, 1})
	w.mu.Lock()
	w.hand()
	w.mu.Unlock()
	for len(w.full) > 0 { // until the goroutine has it; what it writes fails or not
		w.Add(ListRun{1, 1, 1})
	}
	w.file.Close()
	for i := range int64(1 << 20) {
		w.Add(ListRun{0, 2 * i, 1})
	}
	err := w.Close()
	assert.ErrorHas(t, err, "the list "+path+" is not complete: ", "the error")
	again := w.Close()
	assert.True(t, again != nil && again.Error() == err.Error(), "the second time: %v", again)
}

// TestParseItemsRefuses: an error names the line and what is wrong with it.
func TestParseItemsRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"0\n":                              `f:1: "0" is not PARTITION,OFFSET`,
		"# c\n\n0,1,2,3\n":                 `f:3: "0,1,2,3" is not PARTITION,OFFSET`,
		"-1,0\n":                           `f:1: "-1" is not a partition`,
		"2147483648,0\n":                   `f:1: "2147483648" is not a partition`,
		"0,x\n":                            `f:1: "x" is not an offset`,
		"0,9223372036854775808\n":          `f:1: "9223372036854775808" is not an offset`,
		"0,0,0\n":                          `f:1: "0" is not a number of records`,
		"0,0,\n":                           `f:1: "" is not a number of records`,
		"0,9223372036854775807,1\n":        `f:1: the offset of its last record is above 2^63`,
		"0,5\n0,12":                        `f:2: the line does not end`,
		"0, 5\n":                           `f:1: " 5" is not an offset`,
		"# topic: a\n# topic: b\n":         `f:2: the list is of topic a and of topic b`,
		strings.Repeat("1", 10_000) + "\n": `f:1: the line is longer than`,
		"0,7\n":                            `f:1: no sevens`,
	} {
		_, err := parseList(strings.NewReader(text), "f", func(r ListRun) error {
			if r.Offset == 7 {
				return errors.New("no sevens")
			}
			return nil
		})
		_, ok := errors.AsType[*listError](err)
		assert.True(t, ok && strings.HasPrefix(err.Error(), want), "%.40q: %v, want %s", text, err, want)
	}
	_, err := parseList(io.MultiReader(strings.NewReader("0,1\n"), failingReader{}), "f", func(ListRun) error { return nil })
	assert.True(t, err != nil && err.Error() == "read f: broken", "a disk that fails: %v", err)
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

// A text is refused, or its runs are valid; comments, line ends of Windows and empty lines change nothing.
func FuzzParseItems(f *testing.F) {
	f.Add("# topic: orders\n0,1\n1,2,3\n")
	f.Add("0,1\r\n\r\n#\n")
	f.Add("0,9223372036854775806,1\n0,18446744073709551615\n")
	f.Fuzz(func(t *testing.T, text string) {
		var runs []ListRun
		parse := func(text string) (string, error) {
			runs = nil
			return parseList(strings.NewReader(text), "f", func(r ListRun) error { runs = append(runs, r); return nil })
		}
		topic, err := parse(text)
		if err != nil {
			return
		}
		for _, r := range runs {
			assert.True(t, r.Partition >= 0 && r.Offset >= 0 && r.Count >= 1 && r.Offset+r.Count >= 0, "%q has %+v", text, r)
		}
		first := runs
		if len(text) > 100 { // else lines may become too long
			return
		}
		again, err := parse(strings.ReplaceAll(text, "\n", "\r\n#\n\n"))
		assert.True(t, err == nil && again == topic && slices.Equal(runs, first), "%q: %v, with comments %v (%v)", text, first, runs, err)
	})
}

func randomBytes(n, set int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(set))
	}
	return b
}

// gzip and zstd compress a batch about as well as the Java client (zlib at level 6,
// zstd at level 3), even without repetitions: the bytes on the wire are comparable.
func TestRatios(t *testing.T) {
	words := []byte(strings.Repeat("all work and no play makes a dull boy. ", 400))
	for _, tt := range []struct {
		name       string
		src        []byte
		gzip, zstd float64 // at most
	}{
		{"random", randomBytes(16_000, 256), 1.01, 1.01},
		{"letters", randomBytes(16_000, 26), 0.62, 0.62},
		{"letters, large", randomBytes(500_000, 26), 0.62, 0.62},
		{"seventy-nine characters", randomBytes(16_000, 79), 0.82, 0.82},
		{"seventy-nine characters, large", randomBytes(500_000, 79), 0.82, 0.82},
		{"a small batch", randomBytes(300, 26), 0.75, 0.75},
		{"words", words, 0.02, 0.02},
		{"empty", nil, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for codec, limit := range map[Codec]float64{Gzip: tt.gzip, Zstd: tt.zstd, Snappy: 2, LZ4: 2, None: 1} {
				z := assert.Value(NewCompressor(codec))(t)
				for range 2 { // a compressor is reusable
					out := assert.Value(z.Append([]byte("before"), tt.src))(t)
					out, ok := bytes.CutPrefix(out, []byte("before"))
					got := float64(len(out)) / float64(max(len(tt.src), 1))
					assert.True(t, ok && (len(tt.src) == 0 || got <= limit), "%v: ratio %.3f, want at most %.3f", codec, got, limit)
					back, err := Decompress(nil, codec, out)
					assert.True(t, err == nil && bytes.Equal(back, tt.src), "%v: decompressed to %d bytes, %v", codec, len(back), err)
				}
			}
		})
	}
}

func TestProduceRequestMatchesKmsg(t *testing.T) {
	for version := int16(MinProduceVersion); version <= MaxProduceVersion; version++ {
		for _, batches := range [][][]byte{{[]byte("one batch")}, {[]byte("a"), make([]byte, 20_000), []byte("c")}} {
			t.Run(fmt.Sprintf("v%d with %d", version, len(batches)), func(t *testing.T) {
				f := ProduceFormat{Version: version, ClientID: "me", Acks: -1, TimeoutMillis: 30_000}
				topics := []Topic{{"events", [16]byte{9, 8}}, {"others", [16]byte{7}}}[:min(2, len(batches))]
				req := kmsg.NewPtrProduceRequest()
				req.SetVersion(version)
				req.Acks, req.TimeoutMillis = f.Acks, f.TimeoutMillis
				got := f.AppendHead(nil, 77, len(topics))
				n := len(f.AppendTail(f.AppendHead(nil, 77, 1<<20)))
				assert.True(t, n <= f.MaxHead(), "head and tail take %d bytes, MaxHead = %d", n, f.MaxHead())
				for i := range topics {
					topic := kmsg.NewProduceRequestTopic()
					topic.Topic, topic.TopicID = topics[i].Name, topics[i].ID
					n := len(f.AppendTopicEnd(f.AppendTopic(nil, &topics[i], 1<<20)))
					assert.True(t, n <= topics[i].MaxTopic(), "a topic takes %d bytes, MaxTopic = %d", n, topics[i].MaxTopic())
					got = f.AppendTopic(got, &topics[i], len(batches))
					for j, b := range batches {
						p := kmsg.NewProduceRequestTopicPartition()
						p.Partition, p.Records = int32(j*300), b
						topic.Partitions = append(topic.Partitions, p)
						n := len(got)
						got = f.AppendPartition(got, int32(j*300), len(b))
						n = len(got) - n
						got = append(got, b...)
						end := len(got)
						got = f.AppendPartitionEnd(got)
						n += len(got) - end
						assert.True(t, n <= MaxPartition, "a partition takes %d bytes, MaxPartition = %d", n, MaxPartition)
					}
					got = f.AppendTopicEnd(got)
					req.Topics = append(req.Topics, topic)
				}
				got = f.AppendTail(got)
				PutSize(got, len(got))
				assert.Same(t, got, kmsg.NewRequestFormatter(kmsg.FormatterClientID("me")).AppendRequest(nil, req, 77))
			})
		}
	}
}

// produceAnswer returns an answer with one acknowledged and one refused partition.
func produceAnswer(version int16) *kmsg.ProduceResponse {
	resp := kmsg.NewPtrProduceResponse()
	resp.SetVersion(version)
	resp.ThrottleMillis = 40
	topic := kmsg.NewProduceResponseTopic()
	topic.Topic, topic.TopicID = "events", [16]byte{9}
	good := kmsg.NewProduceResponseTopicPartition()
	good.Partition, good.BaseOffset, good.LogAppendTime, good.LogStartOffset = 3, 1<<40, 5, 6
	bad := kmsg.NewProduceResponseTopicPartition()
	bad.Partition, bad.ErrorCode, bad.BaseOffset = 4, 6, -1
	message := "not me"
	bad.ErrorRecords = []kmsg.ProduceResponseTopicPartitionErrorRecord{{RelativeOffset: 1, ErrorMessage: &message}}
	bad.CurrentLeader.LeaderID, bad.CurrentLeader.LeaderEpoch = 2, 11
	topic.Partitions = append(topic.Partitions, good, bad)
	resp.Topics = append(resp.Topics, topic)
	b := kmsg.NewProduceResponseBroker()
	b.NodeID, b.Host = 2, "there"
	resp.Brokers = append(resp.Brokers, b)
	return resp
}

func encodeAnswer(resp kmsg.Response) []byte {
	var body []byte
	if resp.IsFlexible() {
		body = append(body, 0)
	}
	return resp.AppendTo(body)
}

func TestParseProduceMatchesKmsg(t *testing.T) {
	for version := int16(MinProduceVersion); version <= MaxProduceVersion; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			body := encodeAnswer(produceAnswer(version))
			want := []ProduceAnswer{
				{Partition: 3, BaseOffset: 1 << 40, LeaderID: -1, LeaderEpoch: -1},
				{Partition: 4, ErrorCode: 6, BaseOffset: -1, LeaderID: -1, LeaderEpoch: -1},
			}
			if version >= 8 {
				want[1].Message = []byte("not me")
			}
			if version >= 9 { // from v10 on by the protocol; kmsg writes it wherever there are tags
				want[1].LeaderID, want[1].LeaderEpoch = 2, 11
			}
			got, throttle, err := ParseProduce(body, version, nil)
			assert.OK(t, err)
			sent := Topic{"events", [16]byte{9}}
			for i := range got {
				assert.True(t, sent.Is(got[i].Topic, version) && !(&Topic{Name: "other"}).Is(got[i].Topic, version), "topic %q", got[i].Topic)
				got[i].Topic = nil
			}
			assert.Same(t, got, want)
			assert.Equal(t, throttle, 40, "throttle")
			for i := range body {
				_, _, err := ParseProduce(body[:i], version, nil)
				assert.True(t, err != nil, "an answer cut to %d of %d bytes was accepted", i, len(body))
			}
			room := make([]ProduceAnswer, 0, 8)
			assert.Equal(t, testing.AllocsPerRun(10, func() { room, _, _ = ParseProduce(body, version, room[:0]) }), 0, "allocations")
		})
	}
	for _, version := range []int16{MinProduceVersion - 1, MaxProduceVersion + 1} {
		_, _, err := ParseProduce(nil, version, nil)
		assert.True(t, err != nil, "version %d was accepted", version)
	}
}

func FuzzParseProduce(f *testing.F) {
	for _, v := range []int16{3, 8, 9, 13} {
		f.Add(encodeAnswer(produceAnswer(v)), v)
	}
	f.Fuzz(func(t *testing.T, body []byte, version int16) {
		got, _, err := ParseProduce(body, version, nil)
		assert.True(t, err != nil || len(got) <= len(body), "%d partitions in %d bytes", len(got), len(body))
	})
}

func TestNextFrame(t *testing.T) {
	two := []byte{0, 0, 0, 6, 0, 0, 0, 1, 'a', 'b', 0, 0, 0, 4, 0, 0, 0, 2}
	f, rest, err := NextFrame(two, 100)
	assert.Must(t, err == nil && f.Correlation == 1 && string(f.Body) == "ab" && len(rest) == 8,
		"first: %+v, rest %d, %v", f, len(rest), err)
	f, rest, err = NextFrame(rest, 100)
	assert.Must(t, err == nil && f.Correlation == 2 && len(f.Body) == 0 && rest != nil && len(rest) == 0,
		"second: %+v, rest %v, %v", f, rest, err)
	for i := range 10 {
		_, rest, err := NextFrame(two[:i], 100)
		assert.True(t, rest == nil && err == nil, "%d bytes: rest %v, error %v", i, rest, err)
	}
	for _, bad := range [][]byte{{0, 0, 0, 3}, []byte("HTTP/1.1"), {0xff, 0, 0, 0}} {
		_, _, err := NextFrame(bad, 100)
		assert.True(t, errors.Is(err, ErrLength), "%q: error = %v", bad, err)
	}
}

func FuzzNextFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 6, 0, 0, 0, 1, 'a', 'b', 0, 0, 0, 4, 0, 0, 0, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			_, rest, err := NextFrame(b, 1000)
			if err != nil || rest == nil {
				return
			}
			assert.Must(t, len(b)-len(rest) >= 8, "a frame of %d bytes", len(b)-len(rest))
			b = rest
		}
	})
}

// The values are those of Kafka's own UtilsTest.testMurmur2.
func TestMurmur2(t *testing.T) {
	for _, tt := range []struct {
		key  string
		want int32
	}{
		{"21", -973932308},
		{"foobar", -790332482},
		{"a-little-bit-long-string", -985981536},
		{"a-little-bit-longer-string", -1486304829},
		{"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
		{"abc", 479470107},
	} {
		assert.Equal(t, int32(Murmur2([]byte(tt.key))), tt.want, "Murmur2(%q)", tt.key)
		assert.Equal(t, PartitionOf([]byte(tt.key), 7), (tt.want&0x7fffffff)%7, "PartitionOf(%q, 7)", tt.key)
	}
}

func TestStamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Stamp{
			Run: rapid.Uint32().Draw(t, "run"), Stream: rapid.Int32Range(0, maxStampStream).Draw(t, "stream"),
			Index: rapid.Uint64Range(0, MaxStampIndex).Draw(t, "index"),
		}
		b := make([]byte, StampSize)
		want.Put(b)
		got, ok := ParseStamp(append(b, "and more"...))
		assert.Must(t, ok && got == want, "got %+v, %v, want %+v", got, ok, want)
		bit := rapid.IntRange(0, 8*StampSize-1).Draw(t, "bit")
		b[bit/8] ^= 1 << (bit % 8)
		if _, ok := ParseStamp(b); ok {
			t.Fatalf("flipped bit %d was not detected", bit)
		}
		if _, ok := ParseStamp(b[:StampSize-1]); ok {
			t.Fatal("a value that is too short was accepted as a stamp")
		}
	})
}

func FuzzParseStamp(f *testing.F) {
	b := make([]byte, StampSize)
	(&Stamp{Run: 1, Stream: 2, Index: 3}).Put(b)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ok := ParseStamp(b)
		if !ok {
			return
		}
		again := make([]byte, StampSize)
		s.Put(again)
		assert.Same(t, again, b[:StampSize], "written again")
	})
}
