package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"time"

	kgzip "github.com/klauspost/compress/gzip"

	"carronade/internal/splitmix"
	"carronade/test/testkit/assert"
)

func corpus(t testing.TB, m Makeup, n int) ([]byte, Counts) {
	t.Helper()
	mk := maker(t, m)
	var out []byte
	var sum Counts
	for i := range uint64(n) {
		b := mk.Make(i)
		b.Stamp(NewRun(42), i, 1500000000000000+int64(i))
		out = append(out, b.Bytes...)
		for k, v := range b.Counts {
			sum[k] += v
		}
	}
	return out, sum
}

func replay(t testing.TB, c *Corpus) (all []*Body, sum Counts) {
	t.Helper()
	for {
		b, err := c.Next()
		if errors.Is(err, io.EOF) {
			return all, sum
		}
		assert.OK(t, err)
		all = append(all, b)
		for k, v := range b.Counts {
			sum[k] += v
		}
	}
}

func TestReplay(t *testing.T) {
	recorded, want := corpus(t, Makeup{Events: Range{2, 9}, Spans: Range{0, 4}, Mix: [Kinds]int{5, 0, 2, 1, 2}, Hops: 2}, 20)
	for _, most := range []int{0, 1, 3} {
		bodies, got := replay(t, NewCorpus(bytes.NewReader(recorded), most))
		assert.Equal(t, got, want, "events of %d at most", most)
		assert.True(t, most != 0 || len(bodies) == 20, "got %d requests, want 20", len(bodies))
		now := time.Now().UnixMicro()
		seen := map[string]bool{}
		for pass := range uint64(3) {
			ids := map[string]event{}
			for _, b := range bodies {
				assert.True(t, most <= 0 || b.Events() <= most, "%d events in a request, want at most %d", b.Events(), most)
				b.Stamp(NewRun(1), pass, now)
				last := int64(0)
				for _, e := range events(t, b.Bytes) {
					if last = max(last, e.Time); e.kind == Metricset {
						continue
					}
					if e.kind == Log {
						assert.Must(t, !bytes.Contains(recorded, []byte(e.Trace)) && !bytes.Contains(recorded, []byte(e.Tx)),
							"log %+v has ids that are not fresh", e)
						p := ids[e.Tx]
						assert.Must(t, p.ID == "" || p.Trace == e.Trace, "log %+v is of the transaction %+v", e, p)
						continue
					}
					assert.Must(t, !bytes.Contains(recorded, []byte(e.ID)) && !seen[e.ID], "id %s is not fresh", e.ID)
					seen[e.ID] = true
					ids[e.ID] = e
					if e.Parent == "" || e.kind == Error && ids[e.Parent].ID == "" {
						continue
					}
					p, ok := ids[e.Parent]
					assert.Must(t, ok && p.Trace == e.Trace, "%+v has the parent %+v", e, p)
				}
				assert.True(t, b.Events() <= 0 || last == now, "the last time is %d, want %d", last, now)
				assert.Equal(t, elasticCounts(t, b), b.Counts, "counts of the decoder")
			}
		}
	}
}

func TestReplayOfRUM(t *testing.T) {
	recorded, want := corpus(t, Makeup{Protocol: RUMV3, Events: Range{1, 4}, Spans: Range{0, 4}, Frames: Range{1, 1}, Mix: [Kinds]int{2, 0, 1, 0}}, 10)
	bodies, got := replay(t, NewCorpus(bytes.NewReader(recorded), 0))
	assert.Equal(t, got, want, "events")
	for _, b := range bodies {
		before := bytes.Clone(b.Bytes)
		b.Stamp(1, 1, timeMin)
		assert.True(t, b.Events() <= 0 || !bytes.Equal(before, b.Bytes), "stamping changed nothing")
		assert.Equal(t, elasticCounts(t, b), b.Counts, "counts of the decoder")
	}
}

// Custom data does not change: contexts, ids that are not hex, data of spans. Links
// and child ids change with the ids that they refer to.
func TestReplayKnowsItsPlaces(t *testing.T) {
	in := `{"metadata":{"service":{"name":"a","agent":{"name":"b","version":"1"}},"process":{"pid":1}}}
{"transaction":{"id":"0123456789abcdef","trace_id":"00000000000000010000000000000002","links":[{"trace_id":"00000000000000010000000000000002","span_id":"0123456789ABCDEF","x":{"id":"0123456789abcdef"}}],"context":{"custom":{"id":"0123456789abcdef","timestamp":1500000000000000}},"type":"x","duration":1,"span_count":{"started":0}}}
{"span":{"id":"no hex","child_ids":["0123456789abcdef",null],"timestamp":1.5e15}}
{"log":{"trace.id":"00000000000000010000000000000002","transaction.id":"0123456789abcdef","span.id":"no hex","@timestamp":1500000000000000,"message":"0123456789abcdef","labels":{"span.id":"0123456789abcdef"}}}
{"log":{"@timestamp":"2026-11-21T13:00:00.000Z","message":"a time as text"}}
`
	b := assert.Value(NewCorpus(strings.NewReader(in), 0).Next())(t)
	assert.True(t, b.Counts == (Counts{Transaction: 1, Span: 1, Log: 2}) && len(b.places) == 9,
		"got %v and %d places, want a transaction, a span, two logs and 9 places", b.Counts, len(b.places))
	b.Stamp(5, 1, timeMin)
	assert.Equal(t, strings.Count(string(b.Bytes), "0123456789abcdef"), 4,
		"how often the id occurs: in a link's nested object, in custom data, in a message and in labels")
	var id [16]byte
	putHex(id[:], splitmix.Mix(Run(5).key(1)^0x0123456789abcdef))
	assert.Equal(t, bytes.Count(b.Bytes, id[:]), 4, "how often the new id occurs")
}

// Times as text are shifted like those as numbers, and what follows an object does not matter.
func TestReplayShiftsTexts(t *testing.T) {
	const in = `{"metadata":{"service":{"name":"a","agent":{"name":"b","version":"1"}}}} tail
{"log":{"@timestamp":"2026-11-21T13:00:00+01:00","trace.id":"00000000000000010000000000000002","message":"m"}} tail
{"error":{"timestamp":"2026-11-21T12:00:00.5Z","id":"00000000000000010000000000000002","log":{"message":"\n` + "\x01" + `"}}}}
{"span":{"timestamp":1795262401000000,"id":"0123456789abcdef"}}{"span":{"id":"0123456789abcdef"}}
{"log":{"message":"no time","@timestamp":"yesterday"},"more":[1}
`
	b := assert.Value(NewCorpus(strings.NewReader(strings.Replace(in, ",\"more\":[1}", "}", 1)), 0).Next())(t)
	b.Stamp(1, 1, 1800000000000000)
	for _, want := range []string{
		`{"log":{"@timestamp":"2027-01-15T07:59:59.000000Z","trace.id":"`, `","message":"m"}} tail` + "\n", `{"error":{"timestamp":"2027-01-15T07:59:59.500000Z","id":"`,
		`{"span":{"timestamp":1800000000000000,"id":"`, `"}}{"span":{"id":"0123456789abcdef"}}` + "\n", `"@timestamp":"yesterday"}}` + "\n",
	} {
		assert.Has(t, string(b.Bytes), want)
	}
	assert.True(t, b.Counts == (Counts{Log: 2, Error: 1, Span: 1}) && bytes.Count(b.Bytes, []byte("0000000000000001")) == 0, "%v in\n%s", b.Counts, b.Bytes)
	_, err := NewCorpus(strings.NewReader(in), 0).Next() // the object itself is not JSON
	assert.ErrorHas(t, err, "line 5")
}

func TestReplayRefuses(t *testing.T) {
	meta := `{"metadata":{}}` + "\n"
	tests := []struct{ name, in, want string }{
		{"not metadata", `{"span":{}}`, "line 1"},
		{"no JSON", meta + `{"span":`, "line 2"},
		{"no event", meta + "\n\n" + `{"logs":{}}`, "line 4"},
		{"a long line", meta + `{"span":"` + strings.Repeat("x", maxLine) + `"}`, "longer"},
	}
	for _, tt := range tests {
		c := NewCorpus(strings.NewReader(tt.in), 0)
		_, err := c.Next()
		assert.ErrorHas(t, err, tt.want, "%s", tt.name)
	}
	_, err := NewCorpus(strings.NewReader(""), 0).Next()
	assert.True(t, errors.Is(err, io.EOF), "an empty corpus: got %v, want EOF", err)
}

// For any input: no panic, no endless loop, and gzip bodies that inflate to the plain ones.
func FuzzReplay(f *testing.F) {
	recorded, _ := corpus(f, Makeup{Events: Range{1, 3}, Spans: Range{0, 2}, Mix: [Kinds]int{5, 0, 2, 1, 2}}, 2)
	f.Add(recorded, 2)
	f.Add([]byte(`{"m":{}}`+"\n"+`{"x":{"id":"0123456789abcdef","y":[{"id":"0123456789abcdef"}],"me":[{}]}}`), 0)
	f.Fuzz(func(t *testing.T, in []byte, most int) {
		c := NewCorpus(bytes.NewReader(in), most)
		for range 100 {
			b, err := c.Next()
			if err != nil {
				return
			}
			z, err := b.Gzip(1)
			if err != nil {
				continue
			}
			b.Stamp(1, 2, timeMin)
			z.Stamp(1, 2, timeMin)
			assert.Must(t, bytes.Equal(inflate(t, z.Bytes), b.Bytes), "gzip inflates to something else")
		}
	})
}

// elasticCounts counts the events of a body that Elastic's decoder accepts. The decoder is large, so
// only conformance tests have it; without it, this is what the body says of itself.
var elasticCounts = func(_ *testing.T, b *Body) Counts { return b.Counts }

// The raw sums of two parts combine to the raw sum of both.
func TestSumsAreJoined(t *testing.T) {
	all := make([]byte, 1000)
	for i := range all {
		all[i] = byte(i * i)
	}
	for _, n := range []int{0, 1, 7, 500, 999, 1000} {
		got := field.Multiply(field.Shift(len(all)-n), rawSum(all[:n])) ^ rawSum(all[n:])
		assert.Equal(t, got, rawSum(all), "%d bytes and the rest", n)
	}
	assert.True(t, rawSum(all) != crc32.ChecksumIEEE(all), "the raw sum has the inversions")
}

var benches = []struct {
	name string
	m    Makeup
}{
	{"10x0x0", Makeup{Events: Range{10, 10}, Mix: [Kinds]int{Transaction: 1}}},
	{"10x10x10", Makeup{Events: Range{10, 10}, Spans: Range{10, 10}, Frames: Range{10, 10}}},
}

// Stamping an uncompressed body.
func BenchmarkStamp(b *testing.B) {
	for _, bb := range benches {
		b.Run(bb.name, func(b *testing.B) {
			body := maker(b, bb.m).Make(0)
			b.SetBytes(int64(body.Plain))
			b.ReportAllocs()
			for i := range b.N {
				body.Stamp(1, uint64(i), timeMin+int64(i))
			}
		})
	}
}

// Stamping a gzip body. It also reports the ratio of the body compressed in one piece, for comparison.
func BenchmarkStampGzip(b *testing.B) {
	for _, bb := range benches {
		b.Run(bb.name, func(b *testing.B) {
			plain := maker(b, bb.m).Make(0)
			plain.Stamp(1, 1, timeMin*2)
			body := assert.Value(plain.Gzip(6))(b)
			whole := assert.Value(plain.GzipFixed(6))(b)
			b.SetBytes(int64(body.Plain))
			b.ReportAllocs()
			for i := range b.N {
				body.Stamp(1, uint64(i), timeMin+int64(i))
			}
			b.ReportMetric(body.Ratio(), "ratio")
			b.ReportMetric(whole.Ratio(), "whole-ratio")
		})
	}
}

// The alternative: stamping the plain body and compressing all of it.
func BenchmarkRecompress(b *testing.B) {
	for _, bb := range benches {
		b.Run(bb.name, func(b *testing.B) {
			body := maker(b, bb.m).Make(0)
			var out bytes.Buffer
			w, _ := kgzip.NewWriterLevel(&out, 1)
			b.SetBytes(int64(body.Plain))
			b.ReportAllocs()
			for i := range b.N {
				body.Stamp(1, uint64(i), timeMin+int64(i))
				out.Reset()
				w.Reset(&out)
				_, _ = w.Write(body.Bytes)
				_ = w.Close()
			}
			b.ReportMetric(float64(out.Len())/float64(body.Plain), "ratio")
		})
	}
}

// walk reads all tokens and returns them as text.
func walk(p []byte) (string, error) {
	var t Tokens
	t.Reset(p)
	var out strings.Builder
	for {
		tok, err := t.Next()
		if err != nil || tok == EndOfText {
			return out.String(), err
		}
		switch tok {
		case Key, String:
			out.WriteString("'" + Unquote(t.Raw()) + "'")
		default:
			out.Write(t.Raw())
		}
		out.WriteByte(' ')
	}
}

func TestTokens(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"object", ` {"a" : [1, -2.5e+3,true ,null,"x\u0041\n"], "b":{}} `, "{ 'a' [ 1 -2.5e+3 true null 'xA\n' ] 'b' { } } "},
		{"array", `[]`, "[ ] "},
		{"word", `false`, "false "},
		{"number", `0`, "0 "},
	}
	for _, tt := range tests {
		got, err := walk([]byte(tt.in))
		assert.True(t, err == nil && got == tt.want, "%s: got %q, %v, want %q", tt.name, got, err, tt.want)
	}
	for _, in := range []string{"", "{", `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[1 2]`, `{]`, `[}`, "01", "-", "1.", "1e", `"`, `"\x"`, "\"\n\"", "nul", "{} x", `{1:2}`, strings.Repeat("[", 200)} {
		_, err := walk([]byte(in))
		assert.True(t, errors.Is(err, ErrJSON), "%.20q: got %v, want an error", in, err)
	}
}

func TestTokensSkip(t *testing.T) {
	var s Tokens
	s.Reset([]byte(`[{"a":[1,{"b":2}]},7]`))
	_, _ = s.Next()
	tok, _ := s.Next()
	assert.OK(t, s.Skip(tok))
	tok, err := s.Next()
	assert.True(t, tok == Number && string(s.Raw()) == "7" && err == nil, "after skipping: %v %q %v", tok, s.Raw(), err)
}

// Tokens accepts the same texts as the standard library, except for its limit of depth.
func FuzzTokens(f *testing.F) {
	f.Add([]byte(`{"a":[1,-2.5e3,true,null,"x\u0041"],"b":{}}`))
	f.Add([]byte(`[[[{"":""}]],"\\\""]`))
	f.Fuzz(func(t *testing.T, in []byte) {
		_, err := walk(in)
		if err != nil && strings.Contains(err.Error(), "levels") {
			return
		}
		got, want := err == nil, json.Valid(in)
		assert.True(t, got == want, "%q: got %v (%v), want %v", in, got, err, want)
	})
}

func BenchmarkTokens(b *testing.B) {
	p := maker(b, benches[0].m).Make(0).Bytes
	line := p[:strings.IndexByte(string(p), '\n')]
	var t Tokens
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for range b.N {
		t.Reset(line)
		for {
			tok := assert.Value(t.Next())(b)
			if tok == EndOfText {
				break
			}
		}
	}
}
