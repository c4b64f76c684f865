package wire

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"carronade/internal/splitmix"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func testMakeups() map[string]Makeup {
	all := map[string]Makeup{}
	for p := range protocols {
		for _, e := range []Range{{0, 0}, {1, 1}, {10, 10}, {0, 7}} {
			for _, s := range []Range{{0, 0}, {1, 1}, {10, 10}, {0, 3}} {
				for _, f := range []Range{{0, 0}, {1, 1}, {10, 10}, {0, 5}} {
					all[fmt.Sprintf("%v/%v/%v/%v", p, e, s, f)] = Makeup{Protocol: p, Events: e, Spans: s, Frames: f}
				}
			}
		}
	}
	mix := Makeup{Events: Range{20, 20}, Spans: Range{0, 3}, Frames: Range{0, 3}, Mix: [Kinds]int{3, 2, 2, 2, 2}, Services: 13, Hops: 3}
	all["mix"] = mix
	mix.Protocol = RUMV2
	all["mix of RUM v2"] = mix
	mix.Protocol, mix.Mix = RUMV3, [Kinds]int{Transaction: 2, Error: 1}
	all["mix of RUM v3"] = mix
	all["logs"] = Makeup{Events: Range{0, 9}, Frames: Range{0, 2}, Mix: [Kinds]int{Log: 1}}
	all["transactions without spans"] = Makeup{Events: Range{3, 3}, Mix: [Kinds]int{Transaction: 1}}
	return all
}

func maker(t testing.TB, m Makeup) *Maker {
	t.Helper()
	mk := assert.Value(NewMaker(m, 1))(t)
	return mk
}

func inflate(t testing.TB, p []byte) []byte {
	t.Helper()
	r := assert.Value(gzip.NewReader(bytes.NewReader(p)))(t)
	out := assert.Value(io.ReadAll(r))(t)
	return out
}

func TestBodies(t *testing.T) {
	now := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC).UnixMicro()
	run := NewRun(7)
	for name, m := range testMakeups() {
		t.Run(name, func(t *testing.T) {
			mk := maker(t, m)
			for n := range uint64(testkit.Cases(4, 1)) {
				b, again := mk.Make(n), mk.Make(n)
				assert.Must(t, bytes.Equal(b.Bytes, again.Bytes), "the same n makes two bodies")
				assert.Equal(t, b.Counts, mk.Counts(n), "events")
				z := assert.Value(b.Gzip(6))(t)
				for batch := n; batch < n+2; batch++ {
					b.Stamp(run, batch, now)
					z.Stamp(run, batch, now)
					got := inflate(t, z.Bytes)
					assert.Must(t, bytes.Equal(got, b.Bytes), "batch %d inflates to\n%s\nwant\n%s", batch, got, b.Bytes)
				}
				assert.True(t, len(b.places) == 0 || !bytes.Equal(b.Bytes, again.Bytes), "stamping changed nothing")
				for i, line := range bytes.Split(bytes.TrimSuffix(b.Bytes, []byte("\n")), []byte("\n")) {
					assert.Must(t, json.Valid(line), "line %d is not JSON: %s", i, line)
				}
			}
		})
	}
}

func TestSeedsDiffer(t *testing.T) {
	m := Makeup{Events: Range{5, 5}, Spans: Range{1, 9}, Frames: Range{1, 9}}
	a, _ := NewMaker(m, 1)
	b, _ := NewMaker(m, 2)
	assert.True(t, !bytes.Equal(a.Make(0).Bytes, b.Make(0).Bytes), "two seeds make the same body")
	assert.True(t, !bytes.Equal(a.Make(0).Bytes, a.Make(1).Bytes), "two numbers make the same body")
}

// event has the ids and the time of an event.
type event struct {
	kind   Kind
	ID     string `json:"id"`
	Trace  string `json:"trace_id"`
	Parent string `json:"parent_id"`
	Tx     string `json:"transaction_id"`
	Time   int64  `json:"timestamp"`

	// The names of a log.
	LogTrace string `json:"trace.id"`
	LogTx    string `json:"transaction.id"`
	LogTime  int64  `json:"@timestamp"`
}

func events(t *testing.T, body []byte) (all []event) {
	t.Helper()
	for _, line := range bytes.Split(bytes.TrimSpace(body), []byte("\n"))[1:] {
		var m map[string]event
		assert.OK(t, json.Unmarshal(line, &m))
		for name, e := range m {
			for k := range Kinds {
				if Kind(k).String() == name {
					e.kind = Kind(k)
				}
			}
			if e.kind == Log {
				e.Trace, e.Tx, e.Time = e.LogTrace, e.LogTx, e.LogTime
			}
			all = append(all, e)
		}
	}
	return all
}

// Parents exist, in the same request or in the one before; ids are unique in a run; and times are shortly before the batch's.
func TestTracesJoin(t *testing.T) {
	mk := maker(t, Makeup{Events: Range{3, 8}, Spans: Range{0, 4}, Mix: [Kinds]int{Transaction: 6, Error: 1, Metricset: 1, Log: 3}, Hops: 3})
	run := NewRun(99)
	now := time.Now().UnixMicro()
	const pool = 6 // a multiple of the hops
	ids := map[string]bool{}
	var before map[string]event
	across, logs := 0, 0
	for batch := range uint64(40 * pool) {
		b := mk.Make(batch % pool)
		b.Stamp(run, batch, now)
		here := map[string]event{}
		for _, e := range events(t, b.Bytes) {
			if e.kind != Metricset && e.kind != Log { // which have no ids of their own
				assert.Must(t, !ids[e.ID], "batch %d: id %s for the second time", batch, e.ID)
				ids[e.ID] = true
			}
			here[e.ID] = e
			age := now - e.Time
			assert.True(t, age >= 0 && age <= time.Hour.Microseconds()+1e6, "a time %d us before the batch's", age)
			switch {
			case e.kind == Span:
				p, ok := here[e.Parent]
				assert.Must(t, ok && p.kind == Transaction && p.Trace == e.Trace && e.Tx == e.Parent,
					"batch %d: span %+v has the parent %+v", batch, e, p)
			case e.kind == Log:
				p, ok := here[e.Tx]
				assert.Must(t, (!ok || p.kind == Transaction && p.Trace == e.Trace) && e.Trace != "",
					"batch %d: log %+v is of the transaction %+v", batch, e, p)
				if ok {
					logs++
				}
			case e.kind == Transaction && e.Parent != "":
				p, ok := before[e.Parent]
				assert.Must(t, ok && p.Trace == e.Trace && batch%3 != 0, "batch %d: transaction %+v has the parent %+v", batch, e, p)
				across++
			}
		}
		before = here
	}
	assert.True(t, logs >= 100, "%d logs are of transactions in their requests, want more", logs)
	assert.True(t, across >= 100, "%d transactions were called from another request, want more", across)
}

func TestPlacesAreWrittenAsTheirForms(t *testing.T) {
	for _, tt := range []struct {
		name string
		got  func([]byte)
		want string
	}{
		{"hex", func(b []byte) { putHex(b, 0x0123456789abcdef) }, "0123456789abcdef"},
		{"hex of ones", func(b []byte) { putHex(b, ^uint64(0)) }, "ffffffffffffffff"},
		{"micros", func(b []byte) { putMicros(b, 1795265501123456) }, "1795265501123456"},
		{"micros before", func(b []byte) { putMicros(b, 5) }, "1000000000000000"},
		{"micros after", func(b []byte) { putMicros(b, 1<<62) }, "9999999999999999"},
		{"time", func(b []byte) { putTime(b, 1795265501123456) }, "2026-11-21T12:51:41.123456Z"},
		{"uuid", func(b []byte) { putUUID(b, 0) }, "00000000-0000-0000-" + "e220-a8397b1dcdaf"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := make([]byte, len(tt.want))
			tt.got(b)
			assert.Equal(t, string(b), tt.want, "got %s", b)
		})
	}
	for i := range uint64(300000) {
		v := splitmix.Mix(i)
		var b [16]byte
		if putHex(b[:], v); string(b[:]) != fmt.Sprintf("%016x", v) {
			t.Fatalf("got %s, want %016x", b, v)
		}
		back, ok := parseHex(b[:])
		assert.Must(t, ok && back == v, "%s parses as %x, %v", b, back, ok)
		us := timeMin + int64(v%(timeMax-timeMin))
		if putMicros(b[:], us); string(b[:]) != fmt.Sprint(us) {
			t.Fatalf("got %s, want %d", b, us)
		}
	}
}

func TestSumsCombine(t *testing.T) {
	p := bytes.Repeat([]byte("a place in a body "), 100)
	for _, at := range []int{0, 1, 17, 900, len(p)} {
		for _, n := range []int{0, 1, 16, 64, 700} {
			end := min(len(p), at+n)
			zeroed := bytes.Clone(p)
			clear(zeroed[at:end])
			got := crc32.ChecksumIEEE(zeroed) ^ field.Multiply(field.Shift(len(p)-end), rawSum(p[at:end]))
			assert.Equal(t, got, crc32.ChecksumIEEE(p), "%d bytes at %d", n, at)
		}
	}
}

func TestGzipRefuses(t *testing.T) {
	b := maker(t, Makeup{Events: Range{1, 1}}).Make(0)
	_, err := b.Gzip(0)
	assert.True(t, err != nil, "level 0 is accepted")
	b.Bytes[4] = 0xf9
	_, err = b.Gzip(1)
	assert.True(t, err != nil, "a body that is not UTF-8 is accepted")
}

func TestMakeupChecks(t *testing.T) {
	one := Range{1, 1}
	for _, tt := range []struct {
		name string
		m    Makeup
		ok   bool
	}{
		{"defaults", Makeup{}, true},
		{"min above max", Makeup{Events: Range{2, 1}}, false},
		{"negative", Makeup{Spans: Range{-1, 1}}, false},
		{"too many in sum", Makeup{Events: Range{1, 1000}, Spans: Range{1, 1000}}, false},
		{"v1 mix", Makeup{Protocol: V1, Events: one, Mix: [Kinds]int{1, 0, 1, 0}}, false},
		{"v1 errors", Makeup{Protocol: V1, Events: one, Mix: [Kinds]int{0, 0, 1, 0}}, true},
		{"v3 metricsets", Makeup{Protocol: RUMV3, Events: one, Mix: [Kinds]int{1, 0, 0, 1}}, false},
		{"v3 logs", Makeup{Protocol: RUMV3, Events: one, Mix: [Kinds]int{Transaction: 1, Log: 1}}, false},
		{"v1 logs", Makeup{Protocol: V1, Events: one, Mix: [Kinds]int{Log: 1}}, false},
		{"logs", Makeup{Events: one, Mix: [Kinds]int{Log: 1}}, true},
		{"unknown agent", Makeup{Agents: []string{"cobol"}}, false},
		{"negative weight", Makeup{Outcomes: [3]int{1, -1, 0}}, false},
		{"hops", Makeup{Hops: 17}, false},
		{"durations upside down", Makeup{Durations: Durations{Low: 2, High: 1}}, false},
		{"exponential", Makeup{Durations: Durations{Shape: Exponential, Low: time.Second}}, true},
	} {
		_, err := NewMaker(tt.m, 0)
		assert.Equal(t, (err == nil), tt.ok, "%s: got %v", tt.name, err)
	}
}

func TestDurationsKeepTheirPercentiles(t *testing.T) {
	d := Durations{Low: 10 * time.Millisecond, High: 100 * time.Millisecond}
	rng := rand.New(rand.NewPCG(5, 5))
	below, high := 0, 0
	const n = 100000
	for range n {
		v := d.draw(rng)
		if v < 10000 {
			below++
		}
		if v > 100000 {
			high++
		}
	}
	assert.True(t, below >= n*49/100 && below <= n*51/100 && high >= n*8/1000 && high <= n*12/1000,
		"%d below the median and %d above the 99th percentile of %d", below, high, n)
}

func TestStampAllocatesNothing(t *testing.T) {
	for _, p := range []Protocol{IntakeV2, V1} {
		b := maker(t, Makeup{Protocol: p, Events: Range{10, 10}, Spans: Range{3, 3}}).Make(0)
		z := assert.Value(b.Gzip(1))(t)
		batch := uint64(0)
		assert.Equal(t, testing.AllocsPerRun(100, func() { z.Stamp(1, batch, timeMin*2); batch++ }), 0, "%v: allocations of a batch", p)
	}
}
