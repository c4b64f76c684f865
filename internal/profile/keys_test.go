package profile

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"carronade/internal/apm/wire"
	"carronade/payload"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// drawn counts the keys of n events of a specification.
func drawn(t *testing.T, key string, seed uint64, n int) *Keys {
	t.Helper()
	g := assert.Value(payload.New(payload.Spec{Seed: seed, Key: key}))(t)
	k := NewKeys()
	var b []byte
	for i := range n {
		b = g.AppendKey(b[:0], uint64(i))
		k.Add(b, 0)
	}
	return k
}

func TestKeyFitRecoversParameters(t *testing.T) {
	for _, test := range []struct {
		name, key string
		n         int
		family    string
		keys      float64 // at most 3 % off
		zipf      float64 // at most 0.02 off
	}{
		{"uniform, all keys often", "uniform(1000)", 100_000, UniformKeys, 1000, 0},
		{"uniform, some keys never", "uniform(50000)", 50_000, UniformKeys, 50000, 0},
		{"one key", "uniform(1)", 1000, UniformKeys, 1, 0},
		{"zipf, all keys", "zipf(1000,1.1)", 200_000, ZipfKeys, 1000, 1.1},
		{"zipf below 1", "zipf(2000,0.7)", 200_000, ZipfKeys, 2000, 0.7},
		{"zipf, many keys never", "zipf(100000,1.0)", 200_000, ZipfKeys, 100000, 1.0},
		{"steep", "zipf(500,2)", 200_000, ZipfKeys, 500, 2},
		{"unique", "seq", 10_000, UniqueKeys, 10000, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.n > 100_000 && test.zipf != 2 {
				testkit.Need(t, "a second")
			}
			k := drawn(t, test.key, 1, test.n)
			f := k.Fit(true)
			assert.True(t, f.Family == test.family && math.Abs(f.Zipf-test.zipf) <= 0.02,
				"got %s with exponent %.4f, want %s with %.4f", f.Family, f.Zipf, test.family, test.zipf)
			assert.True(t, math.Abs(float64(f.Keys)-test.keys) <= 0.03*test.keys || test.zipf >= 2,
				"got %d keys, want %.0f", f.Keys, test.keys)
			assert.True(t, f.Error <= 0.02, "got a distance of %.4f, want at most 0.02", f.Error)
			assert.True(t, f.Exact && f.DistinctLow == f.Distinct && f.DistinctHigh == f.Distinct,
				"got %d distinct keys in [%d, %d], exact %v: want them exact", f.Distinct, f.DistinctLow, f.DistinctHigh, f.Exact)
			assert.True(t, test.zipf <= 0 || f.ZipfLow <= test.zipf+0.005 && f.ZipfTop >= test.zipf-0.005,
				"got an interval of %.4f to %.4f, want %.4f in it", f.ZipfLow, f.ZipfTop, test.zipf)
		})
	}
}

func TestKeysInTurnAreUniform(t *testing.T) {
	k := NewKeys()
	for i := range 1000 {
		k.Add([]byte{byte(i % 10)}, 0)
	}
	f := k.Fit(true)
	assert.True(t, f.Family == UniformKeys && f.Keys == 10, "got %s of %d keys with exponent %v, want uniform of 10", f.Family, f.Keys, f.Zipf)
}

func TestKeysBeyondTheTable(t *testing.T) {
	k := NewKeys()
	k.most = 4096
	const distinct = 100_000
	var b [8]byte
	for range 3 {
		for i := range distinct {
			binary.LittleEndian.PutUint64(b[:], uint64(i))
			k.Add(b[:], 0)
		}
	}
	for range 100_000 { // one key has a quarter of the records
		binary.LittleEndian.PutUint64(b[:], 0)
		k.Add(b[:], 0)
	}
	got, relative := k.Distinct()
	assert.True(t, !k.Exact() && math.Abs(got-distinct) <= 4*relative*distinct && relative <= 0.04,
		"got %.0f distinct keys with a relative error of %.3f, want %d within four of them", got, relative, distinct)
	assert.True(t, k.used <= k.most, "got %d entries, want at most %d", k.used, k.most)
	f := k.Fit(true)
	assert.True(t, math.Abs(f.TopShare-0.25) <= 0.01 && !f.Exact, "got a top share of %.3f, exact %v, want 0.25 of an estimate", f.TopShare, f.Exact)
}

func TestSampleIsALowerBound(t *testing.T) {
	k := drawn(t, "uniform(20000)", 1, 10_000)
	f := k.Fit(false)
	assert.True(t, f.Distinct < f.DistinctLow && f.DistinctLow <= 20000 && f.DistinctHigh >= 20000,
		"got %d distinct keys and [%d, %d], want an interval above it with 20000", f.Distinct, f.DistinctLow, f.DistinctHigh)
}

func TestKeyDistance(t *testing.T) {
	a, b := drawn(t, "zipf(1000,1.1)", 1, 100_000), drawn(t, "zipf(1000,1.1)", 2, 100_000)
	d := a.Distance(b)
	assert.True(t, d <= 0.01, "got %.4f between two samples of one distribution, want less than 0.01", d)
	d = a.Distance(drawn(t, "uniform(1000)", 1, 100_000))
	assert.True(t, d >= 0.3, "got %.4f between zipf and uniform, want more than 0.3", d)
	assert.Equal(t, a.Distance(a), 0, "to itself")
}

func TestKeysByLog(t *testing.T) {
	k := NewKeys()
	for i := range 100 {
		key := fmt.Appendf(nil, "%d", i)
		k.Add(key, int32(i%4))
		k.Add(key, int32(i%4))
	}
	assert.Equal(t, k.Single(), 1, "of the keys in one log")
	k.Add([]byte("1"), 3)
	assert.Equal(t, k.Single(), 0.99, "of the keys in one log")
}

// sized counts the sizes of n events of a specification.
func sized(t *testing.T, size string, seed uint64, n int) *Sizes {
	t.Helper()
	g := assert.Value(payload.New(payload.Spec{Seed: seed, Size: size}))(t)
	var s Sizes
	for i := range n {
		s.Add(g.Size(uint64(i)), 1)
	}
	return &s
}

func TestSizeFitRecoversParameters(t *testing.T) {
	for _, test := range []struct {
		name, size, family string
		text               string // "": any
	}{
		{"constant", "100", Constant, "100"},
		{"nothing", "0", Constant, "0"},
		{"uniform", "100-2000", Uniform, "100-2000"},
		{"two", "weighted(100:70,1KiB:30)", Weighted, ""},
		{"lognormal", "lognormal(1KiB,0.5)", Lognormal, ""},
		{"small lognormal", "lognormal(60,0.3)", Lognormal, ""},
		{"three", "weighted(10:1,20:1,500:8)", Weighted, ""},
		{"empirical", "quantiles(10,200,210,220,4000,90000)", Quantiles, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := sized(t, test.size, 1, 50_000)
			f := s.Fit()
			assert.Must(t, f.Family == test.family && (test.text == "" || f.Text == test.text),
				"got %s %.60s, want %s %s", f.Family, f.Text, test.family, test.text)
			assert.True(t, f.Error <= 0.02, "got a distance of %.4f, want at most 0.02", f.Error)
			d := s.Distance(sized(t, f.Text, 2, 50_000))
			assert.True(t, d <= 0.02, "got %.4f from a sample of the fit, %.60s, want at most 0.02", d, f.Text)
		})
	}
}

func TestLognormalParameters(t *testing.T) {
	f := sized(t, "lognormal(1KiB,0.5)", 1, 100_000).Fit()
	assert.True(t, math.Abs(f.Median-1024) <= 10 && math.Abs(f.Sigma-0.5) <= 0.01,
		"got a median of %.0f and a sigma of %.3f, want 1024 and 0.5", f.Median, f.Sigma)
}

func TestSizesWithinBounds(t *testing.T) {
	var s Sizes
	rng := rand.New(rand.NewPCG(1, 1))
	var all []int
	for range 50_000 {
		v := int(math.Exp(rng.Float64() * 20))
		s.Add(v, 1)
		all = append(all, v)
	}
	assert.True(t, !s.Exact() && len(s.buckets) <= 8192,
		"got exact %v with %d buckets, want buckets, at most 8192", s.Exact(), len(s.buckets))
	for _, q := range []float64{0.1, 0.5, 0.9, 0.99} {
		got, below := s.Quantile(q), 0
		for _, v := range all {
			if float64(v) <= float64(got)*1.005 {
				below++
			}
		}
		share := float64(below) / float64(len(all))
		assert.True(t, math.Abs(share-q) <= 0.01, "got %d as the %v quantile, with %v of the sizes up to it", got, q, share)
	}
	for v := range 1 << 16 {
		low, high := bucketRange(bucketOf(v))
		assert.Must(t, v >= low && v <= high, "got the bucket %d to %d for %d", low, high, v)
	}
}

func TestSizesDiffer(t *testing.T) {
	a := sized(t, "lognormal(1KiB,0.5)", 1, 50_000)
	d := a.Distance(sized(t, "lognormal(1100,0.5)", 2, 50_000))
	assert.True(t, d >= 0.04 && d <= 0.08, "got %.4f between medians of 1024 and 1100, want about 0.057", d)
	d = a.Distance(sized(t, "100", 1, 10))
	assert.True(t, d >= 0.99, "got %.4f to a constant, want 1", d)
	f := sized(t, "quantiles(10,200,210,220,4000,90000)", 1, 50_000).Fit()
	assert.True(t, strings.Count(f.Text, ",") == sizeSteps, "got %.60s, want %d quantiles", f.Text, sizeSteps+1)
}

// found is what a reader found.
type found struct {
	records []Record
	most    int // 0: no limit
}

func (f *found) Record(r *Record) {
	c := *r
	c.Key, c.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
	c.Headers = nil
	for _, h := range r.Headers {
		c.Headers = append(c.Headers, Header{Name: bytes.Clone(h.Name), Value: bytes.Clone(h.Value)})
	}
	f.records = append(f.records, c)
}
func (f *found) Batch(Batch) {}
func (f *found) Full() bool  { return f.most > 0 && len(f.records) >= f.most }

func readNDJSON(data string, to Sink) error {
	return NDJSON(bufio.NewReaderSize(strings.NewReader(data), 64), to)
}

func TestNDJSONReadsRecords(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, test := range []struct {
		name, line string
		want       Record
	}{
		{"kcat", `{"topic":"t","partition":2,"offset":7,"tstype":"create","ts":1767323045123,"broker":1,"headers":["a","1","b",null],"key":"k","payload":"hello"}`, Record{Log: 2, Time: 1767323045123e6, Keyed: true, Key: []byte("k"), Value: []byte("hello"), Headers: []Header{{Name: []byte("a"), Value: []byte("1")}, {Name: []byte("b")}}}},
		{"null", `{"key":null,"value":null}`, Record{Log: -1, Null: true}},
		{"a tombstone", `{"key":"k","payload":null}`, Record{Log: -1, Keyed: true, Key: []byte("k"), Null: true}},
		{"objects", `{"Key":{"id":1},"Value":[1, 2],"headers":{"a":"1"},"timestamp":"2026-01-02T03:04:05.5Z"}`, Record{Log: -1, Time: 1767323045500e6, Keyed: true, Key: []byte(`{"id":1}`), Value: []byte("[1, 2]"), Headers: []Header{{Name: []byte("a"), Value: []byte("1")}}}},
		{"a list of headers", `{"value":"","headers":[{"key":"a","value":"1"},{"name":"b","value":"2"}]}`, Record{Log: -1, Value: []byte{}, Headers: []Header{{Name: []byte("a"), Value: []byte("1")}, {Name: []byte("b"), Value: []byte("2")}}}},
		{"a size", `{"size":12,"ts":1767323045.25}`, Record{Log: -1, Size: 12, Time: 1767323045250e6}},
		{"a line of a log", `{"@timestamp":"2026-01-02 03:04:05","level":"info"}`, Record{Log: -1, Time: 1767323045e9, Value: []byte(`{"@timestamp":"2026-01-02 03:04:05","level":"info"}`)}},
		{"a long line", `{"value":"` + long + `"}`, Record{Log: -1, Value: []byte(long)}},
		{"microseconds", `{"size":0,"ts":1767323045123456}`, Record{Log: -1, Time: 1767323045123456e3}},
		{"an array", `[1,{"value":2}]`, Record{Log: -1, Value: []byte(`[1,{"value":2}]`)}},
		{"a text", `"a"`, Record{Log: -1, Value: []byte(`"a"`)}},
		{"a number", `-1.5e3`, Record{Log: -1, Value: []byte(`-1.5e3`)}},
		{"null alone", `null`, Record{Log: -1, Value: []byte(`null`)}},
		{"no partition", `{"partition":null,"size":null,"headers":null,"value":1}`, Record{Log: -1, Value: []byte(`1`)}},
		{"a partition of another type", `{"partition":"eu","key":"k","ts":1767323045}`, Record{Log: -1, Time: 1767323045e9, Value: []byte(`{"partition":"eu","key":"k","ts":1767323045}`)}},
		{"headers of another type", `{"value":1,"headers":7}`, Record{Log: -1, Value: []byte(`{"value":1,"headers":7}`)}},
		{"half a header", `{"value":1,"headers":["a","b","c"]}`, Record{Log: -1, Value: []byte(`{"value":1,"headers":["a","b","c"]}`)}},
		{"a size as text", `{"size":"12 KB"}`, Record{Log: -1, Value: []byte(`{"size":"12 KB"}`)}},
		{"a size below 0", `{"size":-1}`, Record{Log: -1, Value: []byte(`{"size":-1}`)}},
		{"a size that is too large", `{"size":1e9}`, Record{Log: -1, Value: []byte(`{"size":1e9}`)}},
		{"a time of another type", `{"time":{"s":1},"timestamp":false}`, Record{Log: -1, Value: []byte(`{"time":{"s":1},"timestamp":false}`)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got found
			err := readNDJSON("\n"+test.line+"\r\n", &got)
			assert.Must(t, err == nil && len(got.records) == 1, "got %d records and %v, want 1", len(got.records), err)
			g, w := got.records[0], test.want
			same := g.Log == w.Log && g.Time == w.Time && g.Keyed == w.Keyed && string(g.Key) == string(w.Key) && string(g.Value) == string(w.Value) && (g.Value == nil) == (w.Value == nil) && g.Size == w.Size && g.Null == w.Null && len(g.Headers) == len(w.Headers)
			for i := range w.Headers {
				same = same && string(g.Headers[i].Name) == string(w.Headers[i].Name) && string(g.Headers[i].Value) == string(w.Headers[i].Value)
			}
			assert.True(t, same, "got %+v, want %+v", g, w)
		})
	}
}

func TestNDJSONRefuses(t *testing.T) {
	for _, test := range []struct{ name, data, want string }{
		{"not JSON", "{\"value\":1}\n[1", "line 2: it is not JSON"},
		{"cut", "{\"value\":1}\n{\"val", "line 2: it is not JSON"},
		{"text", "{\"value\":1}\nhello\n", "line 2: it is not JSON"},
		{"too long", `{"value":"` + strings.Repeat("x", maxLine) + `"}`, "longer than"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := readNDJSON(test.data, &found{})
			var at *Error
			assert.True(t, errors.As(err, &at) && strings.Contains(err.Error(), test.want), "got %v, want %q", err, test.want)
		})
	}
}

func FuzzNDJSON(f *testing.F) {
	f.Add(`{"partition":2,"ts":1767323045123,"headers":["a","1"],"key":"k","payload":"hello"}`)
	f.Add(`{"value":"","headers":[{"key":"a","value":"1"}],"timestamp":"2026-01-02T03:04:05.5Z"}`)
	f.Add(`{"size":12,"headers":{"a":{}}}` + "\n{}")
	f.Fuzz(func(t *testing.T, data string) {
		var got found
		err := readNDJSON(data, &got)
		var at *Error
		assert.True(t, err == nil || errors.As(err, &at), "got %v, want an error that says where", err)
		for _, r := range got.records {
			assert.True(t, r.Time >= 0 && r.Size >= 0 && r.Log >= -1, "got %+v", r)
		}
	})
}

// recorded are made requests, one after the other, a hundred a second.
func recorded(t testing.TB, m wire.Makeup, requests int) []byte {
	t.Helper()
	mk := assert.Value(wire.NewMaker(m, 1))(t)
	var out []byte
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for n := range requests {
		b := mk.Make(uint64(n))
		b.Stamp(wire.Run(0), uint64(n), start.Add(time.Duration(n)*10*time.Millisecond).UnixMicro())
		out = append(out, b.Bytes...)
	}
	return out
}

func readAPM(data []byte) (requests []APMRequest, err error) {
	err = APM(bufio.NewReader(bytes.NewReader(data)), func(r *APMRequest, _ []byte) error { requests = append(requests, *r); return nil })
	return requests, err
}

func TestAPMReadsRequests(t *testing.T) {
	for _, test := range []struct {
		name string
		m    wire.Makeup
	}{
		{"transactions", wire.Makeup{Events: wire.Range{Min: 10, Max: 10}, Spans: wire.Range{Min: 3, Max: 3}, Frames: wire.Range{Min: 2, Max: 2}}},
		{"all kinds", wire.Makeup{Events: wire.Range{Min: 1, Max: 20}, Spans: wire.Range{Max: 5}, Mix: [wire.Kinds]int{4, 1, 1, 1, 1}}},
		{"browsers", wire.Makeup{Protocol: wire.RUMV3, Events: wire.Range{Min: 2, Max: 2}, Spans: wire.Range{Min: 2, Max: 2}, Frames: wire.Range{Min: 4, Max: 4}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			data := recorded(t, test.m, 50)
			assert.Must(t, IsAPM(data), "the requests are not recognized")
			got, err := readAPM(data)
			assert.Must(t, err == nil && len(got) == 50, "got %d requests and %v, want 50", len(got), err)
			mk, _ := wire.NewMaker(test.m, 1)
			for n, r := range got {
				var counts wire.Counts
				for _, e := range r.Events {
					counts[e.Kind]++
					assert.Must(t, e.Kind != wire.Transaction || e.Duration > 0 && e.Outcome != "",
						"got a transaction of %v that ended as %q", e.Duration, e.Outcome)
					if e.Framed && test.m.Frames.Max > 0 && e.Kind == wire.Span && test.m.Protocol == wire.IntakeV2 && e.Frames != test.m.Frames.Max {
						t.Fatalf("got %d frames, want %d", e.Frames, test.m.Frames.Max)
					}
				}
				want := mk.Counts(uint64(n))
				assert.Must(t, counts == want, "request %d: got %v events, want %v", n, counts, want)
				assert.Must(t, r.Service != "" && r.Agent != "" && r.Protocol == test.m.Protocol && r.Bytes != 0,
					"got %+v without events, want a service and an agent",
					APMRequest{Service: r.Service, Agent: r.Agent, Protocol: r.Protocol})
			}
		})
	}
}

// The spans in one transaction are bounded before all of them take memory.
func TestAPMSpansAreBounded(t *testing.T) {
	line := []byte(`{"x":{"id":"1","y":[{}` + strings.Repeat(",{}", 2*maxRequestEvents) + `]}}`)
	r := &APMRequest{}
	err := r.event(line)
	assert.True(t, err != nil && len(r.Events) <= maxRequestEvents+1, "got %d events and %v, want an error", len(r.Events), err)
}

func TestAPMRefuses(t *testing.T) {
	for _, test := range []struct{ name, data, want string }{
		{"an event before metadata", `{"transaction":{}}`, "line 1: it is not metadata"},
		{"garbage", "{\"metadata\":{}}\nxyz", "line 2: it is neither"},
		{"cut", "{\"metadata\":{}}\n{\"transaction\":{\"id\":\"1", "line 2: "},
		{"wrong types", "{\"metadata\":{}}\n{\"span\":{\"id\":7}}", "line 2: the span is invalid"},
		{"metadata of another type", `{"metadata":7}`, "line 1: its metadata is invalid"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := readAPM([]byte(test.data))
			var at *Error
			assert.True(t, errors.As(err, &at) && strings.Contains(err.Error(), test.want), "got %v, want %q", err, test.want)
		})
	}
}

func FuzzAPM(f *testing.F) {
	f.Add(recorded(f, wire.Makeup{Events: wire.Range{Min: 2, Max: 2}, Mix: [wire.Kinds]int{1, 1, 1, 1, 1}}, 2))
	f.Add(recorded(f, wire.Makeup{Protocol: wire.RUMV3, Events: wire.Range{Min: 2, Max: 2}}, 1))
	f.Add([]byte("{\"m\":{}}\n{\"x\":{\"y\":[{}]}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		IsAPM(data)
		requests, err := readAPM(data)
		assert.True(t, err != nil || len(requests) > 0 || len(bytes.TrimSpace(data)) == 0,
			"got no request and no error of a file that is not empty")
	})
}
