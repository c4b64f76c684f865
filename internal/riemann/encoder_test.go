package riemann

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/internal/riemann/wire"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func checkMessage(t testing.TB, s *shape, msg []byte, stream int32, first uint64, events int, now time.Time) {
	t.Helper()
	got := assert.Value(wire.DecodeMsg(msg))(t)
	var want wire.Msg
	for i := range events {
		e := s.event(stream, first+uint64(i))
		s.fillTime(&e, now)
		want.Events = append(want.Events, e)
	}
	if !reflect.DeepEqual(got, want) { // takes a tenth of cmp's time
		t.Fatalf("message of %d events from %d: -want +got\n%s", events, first, cmp.Diff(want, got))
	}
	// Byte for byte, where varints are not padded.
	if s.kind != wire.Sint64 {
		canonical := wire.AppendMsg(nil, &want)
		assert.Must(t, bytes.Equal(msg, canonical), "got  % x\nwant % x", msg, canonical)
	}
}

// testShapes are shapes of all kinds.
var testShapes = []struct {
	name string
	set  map[string]string
}{
	{"defaults", nil},
	{"micros and sint64", map[string]string{optTime: "us", optMetric: "uniform(-300,5000)", optMetricType: "sint64"}},
	{"micros and float", map[string]string{optTime: "us", optMetric: "uniform(0,1)", optMetricType: "float"}},
	{"micros alone", map[string]string{optTime: "us", optMetricType: "none"}},
	{"nothing changes", map[string]string{optTime: "none", optMetricType: "none"}},
	{"next to nothing", map[string]string{optTime: "none", optMetricType: "none", optHost: "none", optState: "none", optDescription: "none", optTag: "none", optTTL: "none", optService: "x"}},
	{"nothing at all", map[string]string{optTime: "none", optMetricType: "none", optHost: "none", optState: "none", optDescription: "none", optTag: "none", optTTL: "none", optService: "none"}},
	{"numbers everywhere", map[string]string{optService: "{seq}", optHost: "a{seq}{seq}", optAttribute: "n=x{seq}|m={client}", optTag: "{seq},b"}},
	{"long ones", map[string]string{optDescription: string(bytes.Repeat([]byte("long "), 4000)), optPool: "64KiB"}},
	{"small sint64", map[string]string{optMetric: "cycle(-64,63)", optMetricType: "sint64"}},
	{"negative sint64", map[string]string{optMetric: "uniform(-9000,3)", optMetricType: "sint64"}},
	{"large sint64", map[string]string{optMetric: "seq", optMetricType: "sint64"}},
	{"walk of sint64", map[string]string{optMetric: "walk(0,100)", optMetricType: "sint64"}},
	{"a pool of few", map[string]string{optPool: "1KiB"}},
	{"cycles", map[string]string{optState: "{cycle(a,b,c)}", optMetric: "cycle(1,2)", optTTL: "cycle(1s,2s)"}},
}

// TestEncoderAgrees: all methods of the encoder write the shape's events, also
// around the end of the pool and of blocks, at any time.
func TestEncoderAgrees(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	t0 := time.UnixMicro(1700000000123456)
	for _, m := range testShapes {
		for _, events := range []int{1, 7} {
			t.Run(fmt.Sprintf("%s, %d", m.name, events), func(t *testing.T) {
				s := shapeOf(t, m.set)
				p := newEncoder(s, 3, events)
				starts := []uint64{0, 1, encoderBlock - 1, encoderBlock, s.period - 1, s.period, 5*s.period + 17, 1e10 + 5}
				for i, first := range starts {
					now := t0.Add(time.Duration(i*i) * 700 * time.Millisecond)
					lengths := []int{events, 1, 3, encoderBlock + 2}
					if p.most > 10000 {
						lengths = lengths[:3] // the longest would take megabytes
					}
					for _, n := range lengths {
						out, size := p.append([]byte("x"), first, n, now)
						checkMessage(t, s, frame(t, out[1:]), 3, first, n, now)
						assert.True(t, len(out)-1 <= p.sizeOf(n), "%d bytes, more than sizeOf's %d", len(out)-1, p.sizeOf(n))
						unframed, same := p.datagram([]byte("x"), first, n, now)
						assert.True(t, bytes.Equal(unframed[1:], out[5:]) && same == size,
							"a datagram of %d events differs from the message", n)
						checkBatchGroup(t, s, p, first, 5, n, now)
					}
				}
				assert.Equal(t, p.size(), p.sizeOf(events), "size")
			})
		}
	}
}

// frame returns the message of the only frame in b.
func frame(t testing.TB, b []byte) []byte {
	t.Helper()
	msg, rest, err := wire.NextFrame(b, wire.MaxFrame)
	assert.Must(t, err == nil && msg != nil && len(rest) == 0, "got message % x, rest % x, error %v", msg, rest, err)
	return msg
}

// checkBatchGroup compares a batch group with its messages one by one.
func checkBatchGroup(t testing.TB, s *shape, p *encoder, first uint64, batches, events int, now time.Time) {
	t.Helper()
	got, gotBytes := p.batchGroup([]byte("x"), first, batches, events, now)
	want, wantBytes := []byte("x"), int64(0)
	own := int64(0)
	for range batches {
		var n int64
		want, n = p.append(want, first, events, now)
		wantBytes += n
		for i := range events {
			e := s.event(3, first+uint64(i))
			s.fillTime(&e, now)
			own += int64(wire.EventSize(&e))
		}
		first += uint64(events)
	}
	assert.Must(t, bytes.Equal(got, want) && gotBytes == wantBytes,
		"a batch group of %d messages of %d events differs from the single messages: %d event bytes, want %d", batches, events, gotBytes, wantBytes)
	assert.Must(t, s.kind == wire.Sint64 || own == gotBytes, "%d event bytes, want %d", gotBytes, own)
}

// The same events have the same size, in one message or in several.
func TestBytesDoNotDependOnMessages(t *testing.T) {
	s := shapeOf(t, map[string]string{optMetric: "uniform(0,1000000)", optMetricType: "sint64"})
	single, bulk := newEncoder(s, 0, 1), newEncoder(s, 0, 50)
	now := time.Unix(1700000000, 0)
	_, a := single.batchGroup(nil, 0, 5000, 1, now)
	_, b := bulk.batchGroup(nil, 0, 100, 50, now)
	assert.True(t, a == b && a >= 100000, "one by one %d bytes, in messages of 50 %d, want the same", a, b)
}

// TestEncoderRepeatsContent: content repeats with the pool, and metrics do not.
func TestEncoderRepeatsContent(t *testing.T) {
	s := shapeOf(t, map[string]string{optMetric: "uniform(0,1)"})
	p := newEncoder(s, 0, 1)
	now := time.Unix(1700000000, 0)
	a, _ := p.append(nil, 9, 1, now)
	b, _ := p.append(nil, 9+s.period, 1, now.Add(time.Second))
	x := assert.Value(wire.DecodeMsg(a[4:]))(t)
	y := assert.Value(wire.DecodeMsg(b[4:]))(t)
	assert.True(t, x.Events[0].Metric != y.Events[0].Metric && x.Events[0].Time+1 == y.Events[0].Time,
		"got %+v, then %+v, want another metric and a second more", x, y)
	x.Events[0].Metric, x.Events[0].Time = y.Events[0].Metric, y.Events[0].Time
	assert.Same(t, y, x, "an event a period later")
}

func TestEncoderVerifies(t *testing.T) {
	s := assert.Value(newShape(eventValues(nil), 1, 0xabcdef01, true))(t)
	p := newEncoder(s, 12, 1)
	now := time.Unix(1700000000, 0)
	out, _ := p.batchGroup(nil, 9999999990, 3000, 1, now)
	for i := uint64(9999999990); len(out) > 0; i++ {
		msg, rest, err := wire.NextFrame(out, 1000)
		assert.Must(t, err == nil && msg != nil, "%v", err)
		checkMessage(t, s, msg, 12, i, 1, now)
		m, _ := wire.DecodeMsg(msg)
		if run, stream, index, ok := parseService(m.Events[0].Service); run != 0xabcdef01 || stream != 12 || index != i%1e10 || !ok {
			t.Fatalf("event %d has the service %q", i, m.Events[0].Service)
		}
		out = rest
	}
}

// TestOddClocks: no time of the clock breaks a message.
func TestOddClocks(t *testing.T) {
	for _, form := range []string{"s", "us"} {
		s := shapeOf(t, map[string]string{optTime: form})
		p := newEncoder(s, 0, 1)
		for _, now := range []time.Time{time.Unix(0, 0), time.Unix(1, 5000), time.Unix(1<<32, 0), time.Unix(1<<35-1, 0)} {
			out, _ := p.append(nil, 1, 1, now)
			m := assert.Value(wire.DecodeMsg(out[4:]))(t)
			got, ok := m.Events[0].When()
			assert.True(t, ok && got.Unix() == now.Unix(), "%s: got %v, want %v", form, got, now)
		}
		out, _ := p.append(nil, 1, 1, time.Unix(-5, 0))
		m := assert.Value(wire.DecodeMsg(out[4:]))(t)
		got, _ := m.Events[0].When()
		assert.True(t, got.Unix() == 0, "%s, before 1970: got %v, want 1970", form, got)
	}
}

// TestEncoderJSON: the lines are the events as JSON.
func TestEncoderJSON(t *testing.T) {
	now := time.UnixMicro(1700000000123456)
	for _, m := range testShapes {
		t.Run(m.name, func(t *testing.T) {
			s := shapeOf(t, m.set)
			p := newEncoder(s, 3, 1)
			for _, first := range []uint64{0, s.period - 1, 3*s.period + 1} {
				out, size := p.json(nil, first, 3, now)
				lines := bytes.Split(bytes.TrimSuffix(out, []byte("\n")), []byte("\n"))
				assert.Must(t, len(lines) == 3 && size == int64(len(out)-3),
					"%d lines and %d bytes, want 3 and %d", len(lines), size, len(out)-3)
				for i, line := range lines {
					e := s.event(3, first+uint64(i))
					s.fillTime(&e, now)
					want := wire.AppendJSON(nil, &e)
					assert.Must(t, bytes.Equal(line, want), "got  %s\nwant %s", line, want)
				}
			}
		})
	}
}

func TestEncoderAllocatesNothing(t *testing.T) {
	now := time.Unix(1700000000, 0)
	for _, m := range testShapes {
		s := shapeOf(t, m.set)
		one, many := newEncoder(s, 0, 1), newEncoder(s, 0, 50)
		dst := make([]byte, 0, max(100*one.size(), 4*many.size()))
		first := uint64(0)
		calls := map[string]func(){
			"append":      func() { dst, _ = one.append(dst[:0], first, 1, now) },
			"batch group": func() { dst, _ = one.batchGroup(dst[:0], first, 100, 1, now) },
			"messages":    func() { dst, _ = many.batchGroup(dst[:0], first, 3, 50, now) },
			"datagram":    func() { dst, _ = one.datagram(dst[:0], first, 1, now) },
			"json":        func() { dst, _ = one.json(dst[:0], first, 2, now) },
		}
		for name, f := range calls {
			f()
			got := testing.AllocsPerRun(20, func() { f(); first += 1000; now = now.Add(300 * time.Millisecond) })
			assert.True(t, got == 0, "%s, %s: %v allocations, want none", m.name, name, got)
		}
	}
}

func TestPutDigits(t *testing.T) {
	var b [seqDigits]byte
	for _, v := range []uint64{0, 9, 10, 99999, 100000, 1234567890, 9999999999, 1e10, 12345678901, 1<<64 - 1} {
		putDigits(b[:], v)
		want := fmt.Sprintf("%010d", v%1e10)
		assert.True(t, string(b[:]) == want, "%d: got %s, want %s", v, b, want)
	}
}

func BenchmarkEncoder(b *testing.B) {
	now := time.Now()
	benches := []struct {
		name   string
		set    map[string]string
		events int
		verify bool
	}{
		{"defaults", nil, 1, false},
		{"uniform", map[string]string{optMetric: "uniform(0,100)"}, 1, false},
		{"us", map[string]string{optTime: "us"}, 1, false},
		{"sint64", map[string]string{optMetric: "uniform(0,1000)", optMetricType: "sint64"}, 1, false},
		{"float", map[string]string{optMetricType: "float"}, 1, false},
		{"zipf", map[string]string{optMetric: "zipf(1000,1.1)"}, 1, false},
		{"constant", map[string]string{optMetricType: "none"}, 1, false},
		{"verified", nil, 1, true},
		{"100 a message", nil, 100, false},
	}
	for _, bench := range benches {
		b.Run(bench.name, func(b *testing.B) {
			s := assert.Value(newShape(eventValues(bench.set), 1, 1, bench.verify))(b)
			p := newEncoder(s, 0, bench.events)
			batches := 500
			if bench.events > 1 {
				batches = 5
			}
			dst := make([]byte, 0, batches*p.size())
			first := uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				dst, _ = p.batchGroup(dst[:0], first, batches, bench.events, now)
				first += uint64(batches * bench.events)
			}
			b.SetBytes(int64(len(dst)))
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(batches*bench.events), "ns/event")
		})
	}
	b.Run("one message a call", func(b *testing.B) {
		p := newEncoder(shapeOf(b, nil), 0, 1)
		dst := make([]byte, 0, p.size())
		first := uint64(0)
		for b.Loop() {
			dst, _ = p.append(dst[:0], first, 1, now)
			first++
		}
	})
	b.Run("json", func(b *testing.B) {
		p := newEncoder(shapeOf(b, nil), 0, 1)
		dst := make([]byte, 0, 1024)
		first := uint64(0)
		for b.Loop() {
			dst, _ = p.json(dst[:0], first, 1, now)
			first++
		}
	})
}
