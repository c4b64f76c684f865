package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/test/testkit/assert"
)

func TestAckIsTheMessage(t *testing.T) {
	assert.Equal(t, string(AppendFramed(nil, &Msg{OK: true, HasOK: true})), Ack)
	for n := range 40 {
		got, want := AppendAcks([]byte("x"), n), "x"+strings.Repeat(Ack, n)
		assert.True(t, string(got) == want, "%d acks: got % x, want % x", n, got, want)
	}
}

func countSlowly(b []byte) int {
	n := 0
	for ; len(b) >= AckSize && string(b[:AckSize]) == Ack; b = b[AckSize:] {
		n++
	}
	return n
}

func TestCountAcks(t *testing.T) {
	for n := range 30 {
		whole := AppendAcks(nil, n)
		for tail := range AckSize {
			// First a truncated ack follows, then an ack with one wrong byte.
			b := append(bytes.Clone(whole), Ack[:tail]...)
			assert.Equal(t, CountAcks(b), n, "acks before %d bytes", tail)
			b = append(bytes.Clone(whole), Ack...)
			b[len(whole)+tail] ^= 0x10
			b = AppendAcks(b, 9)
			assert.Equal(t, CountAcks(b), n, "acks, then one with its byte %d wrong", tail)
		}
	}
	// Repeating bytes that are not acks.
	for _, b := range [][]byte{make([]byte, 60), bytes.Repeat([]byte{0, 0, 0, 2, 0x10, 0}, 20), nil} {
		if got := CountAcks(b); got != 0 {
			t.Errorf("% x: got %d acks, want 0", b[:min(len(b), 12)], got)
		}
	}
}

func FuzzCountAcks(f *testing.F) {
	f.Add([]byte(strings.Repeat(Ack, 13)))
	f.Add([]byte(strings.Repeat(Ack, 5) + "\x00\x00\x00\x02\x10\x00" + strings.Repeat(Ack, 5)))
	f.Fuzz(func(t *testing.T, b []byte) {
		assert.Equal(t, CountAcks(b), countSlowly(b))
	})
}

func stream() (b []byte, want []string) {
	b = AppendAcks(b, 7)
	b = AppendFramed(b, &Msg{HasOK: true, Error: "boom"})
	b = AppendFramed(b, &Msg{})
	b = AppendAcks(b, 1)
	b = AppendFramed(b, &Msg{OK: true, HasOK: true, Events: []Event{full}})
	b = AppendAcks(b, 30)
	return b, append(append(append(slicesOf("ack", 7), "boom", ""), "ack", "events"), slicesOf("ack", 30)...)
}

func slicesOf(s string, n int) []string {
	return strings.Split(strings.TrimSuffix(strings.Repeat(s+" ", n), " "), " ")
}

// TestNextAnswers reads a stream that arrives in pieces of every size.
func TestNextAnswers(t *testing.T) {
	b, want := stream()
	for piece := 1; piece <= len(b); piece++ {
		var got []string
		var buffered []byte
		for from := 0; from < len(b); from += piece {
			buffered = append(buffered, b[from:min(from+piece, len(b))]...)
			for {
				acks, msg, rest, err := NextAnswers(buffered, MaxFrame)
				assert.OK(t, err)
				if acks > 0 {
					got = append(got, slicesOf("ack", acks)...)
				}
				buffered = rest
				if msg == nil {
					break
				}
				m, err := DecodeMsg(msg)
				switch {
				case err != nil:
					t.Fatal(err)
				case len(m.Events) > 0:
					got = append(got, "events")
				default:
					got = append(got, m.Error)
				}
			}
		}
		diff := cmp.Diff(want, got)
		assert.Must(t, diff == "", "pieces of %d: -want +got\n%s", piece, diff)
		assert.Must(t, len(buffered) == 0, "pieces of %d: % x is left", piece, buffered)
	}
}

func TestFrameErrors(t *testing.T) {
	for _, test := range []struct {
		name, in string
		most     int
		bad      bool
	}{
		{"no bytes", "", 10, false},
		{"cut head", "\x00\x00\x00", 10, false},
		{"cut message", "\x00\x00\x00\x05abcd", 10, false},
		{"too long by one", "\x00\x00\x00\x0babcd", 10, true},
		{"another protocol", "HTTP/1.1 400 Bad Request\r\n", MaxFrame, true},
		{"longest number", "\xff\xff\xff\xff", MaxFrame, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			acks, msg, rest, err := NextAnswers([]byte(test.in), test.most)
			assert.True(t, acks == 0 && msg == nil && string(rest) == test.in && errors.Is(err, ErrFrame) == test.bad,
				"got %d acks, message %x, rest %x, error %v", acks, msg, rest, err)
		})
	}
	if msg, rest, err := NextFrame([]byte("\x00\x00\x00\x0aabcdefghij"), 10); string(msg) != "abcdefghij" || rest == nil || err != nil {
		t.Errorf("of maximum length: got %q, %v, %v", msg, rest, err)
	}
	if msg, rest, err := NextFrame([]byte("\x00\x00\x00\x00"), 10); msg == nil || rest == nil || err != nil {
		t.Errorf("an empty message: got %v, %v, %v, want no nil", msg, rest, err)
	}
	assert.Equal(t, FrameSize([]byte("\x00\x00\x01\x00")), 260, "size of a frame with only its head")
}

func TestCountFrames(t *testing.T) {
	var b []byte
	var ends []int
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		m := Msg{}
		for range r.IntN(4) {
			m.Events = append(m.Events, full)
		}
		b = AppendFramed(b, &m)
		ends = append(ends, len(b))
	}
	whole, n := 0, 0
	for cut := range len(b) + 1 {
		if whole < len(ends) && cut == ends[whole] {
			whole, n = whole+1, cut
		}
		if frames, size := CountFrames(b[:cut], MaxFrame); frames != whole || size != n {
			t.Fatalf("the first %d bytes: got %d frames of %d bytes, want %d of %d", cut, frames, size, whole, n)
		}
	}
	asked := AppendFramed(bytes.Clone(b), &Msg{Query: "true"})
	if frames, size := CountFrames(asked, MaxFrame); frames != 50 || size != len(b) {
		t.Errorf("before a query: got %d frames of %d bytes, want 50 of %d", frames, size, len(b))
	}
	long := append(bytes.Clone(b), "\x00\x00\x01\x00"...)
	long = append(long, make([]byte, 256)...)
	frames, _ := CountFrames(long[len(b):], 256)
	assert.True(t, frames == 1, "of maximum length: got %d frames, want 1", frames)
	frames, _ = CountFrames(long[len(b):], 255)
	assert.True(t, frames == 0, "longer than the maximum: got %d frames, want 0", frames)
}

// FuzzFrames: CountFrames and repeated calls of NextFrame agree.
func FuzzFrames(f *testing.F) {
	b, _ := stream()
	f.Add(b, 100)
	f.Add(b, MaxFrame)
	f.Add([]byte("GET / HTTP/1.1"), 1<<20)
	f.Fuzz(func(t *testing.T, b []byte, most int) {
		frames, size := CountFrames(b, most)
		got, rest := 0, b
		for {
			msg, next, err := NextFrame(rest, most)
			if next == nil || err != nil || len(msg) > 0 && msg[0] == tagQuery {
				break
			}
			got, rest = got+1, next
		}
		assert.True(t, got == frames && len(b)-len(rest) == size,
			"counted %d frames of %d bytes, NextFrame %d of %d", frames, size, got, len(b)-len(rest))
	})
}

func TestAppendJSON(t *testing.T) {
	seconds := full
	seconds.HasTimeMicros, seconds.TimeMicros = false, 0
	for _, test := range []struct {
		name string
		e    Event
		want string
	}{
		{"empty", Event{}, `{}`},
		{
			"full", full,
			`{"host":"web-07","service":"cpu","state":"ok","description":"of all","tags":["a","bc"],"ttl":60.0,` +
				`"env":"prod","k":"","metric":0.5,"time":"2023-11-14T22:13:20.123456Z"}`,
		},
		{"seconds", Event{Time: 1700000000, HasTime: true}, `{"time":"2023-11-14T22:13:20.000Z"}`},
		{"whole number", Event{Metric: Metric{Kind: Sint64, Int: -3}}, `{"metric":-3}`},
		{"whole double", Event{Metric: Metric{Kind: Double, Real: 42}}, `{"metric":42.0}`},
		{"large double", Event{Metric: Metric{Kind: Double, Real: 1e30}}, `{"metric":1e+30}`},
		{"no number", Event{Metric: Metric{Kind: Double, Real: math.NaN()}, HasTTL: true, TTL: 0.1}, `{"ttl":0.1,"metric":null}`},
		{"escapes", Event{State: "a\"b\\c\nd\x01\xffé<"}, `{"state":"a\"b\\c\nd\u0001` + "\ufffd" + `é<"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := AppendJSON([]byte("x"), &test.e)
			assert.Equal(t, string(got), "x"+test.want, "got  %s\nwant x%s", got, test.want)
			assert.True(t, json.Valid(got[1:]), "%s is not JSON", got[1:])
		})
	}
	back := assert.Value(DecodeJSON(AppendJSON(nil, &full)))(t)
	want := full
	want.HasTime, want.Time = false, 0 // JSON has only one time
	assert.Same(t, back, want)
}

func TestDecodeJSON(t *testing.T) {
	for _, test := range []struct {
		name, in string
		want     Event
		fails    string
	}{
		{"empty", `{}`, Event{}, ""},
		{"null is absent", `{"host":"h","metric":null,"ttl":null,"time":null,"x":null,"tags":null}`, Event{Host: "h"}, ""},
		{"ISO time in whole seconds", `{"time":"2023-11-14T22:13:20.000Z"}`, Event{Time: 1700000000, HasTime: true}, ""},
		{"ISO time with an offset", `{"time":"2023-11-14T23:13:20+01:00"}`, Event{Time: 1700000000, HasTime: true}, ""},
		{"ISO time in milliseconds", `{"time":"2023-11-14T22:13:20.125Z"}`, Event{TimeMicros: 1700000000125000, HasTimeMicros: true}, ""},
		{"seconds", `{"time":1700000000}`, Event{Time: 1700000000, HasTime: true}, ""},
		{"seconds and a fraction", `{"time":1700000000.25}`, Event{TimeMicros: 1700000000250000, HasTimeMicros: true}, ""},
		{"integer metric", `{"metric":7}`, Event{Metric: Metric{Kind: Sint64, Int: 7}}, ""},
		{"real metric", `{"metric":7.0}`, Event{Metric: Metric{Kind: Double, Real: 7}}, ""},
		{"integer beyond 64 bits", `{"metric":98765432109876543210}`, Event{Metric: Metric{Kind: Double, Real: 98765432109876543210}}, ""},
		{"attributes by name", `{"b":"2","a":{"x":[1]},"c":true}`, Event{Attributes: []Attribute{{"a", `{"x":[1]}`}, {"b", "2"}, {"c", "true"}}}, ""},

		{"no object", `[1]`, Event{}, "cannot unmarshal array"},
		{"null", `null`, Event{}, "not an object"},
		{"cut", `{"host":"h`, Event{}, "unexpected end"},
		{"text for a metric", `{"metric":"7"}`, Event{}, "metric: "},
		{"number for a host", `{"host":7}`, Event{}, "host: "},
		{"text for tags", `{"tags":"a"}`, Event{}, "tags: "},
		{"ttl beyond a float", `{"ttl":1e99}`, Event{}, "ttl: "},
		{"no time", `{"time":"yesterday"}`, Event{}, "is not a time such as"},
		{"time beyond all", `{"time":1e300}`, Event{}, "is not a time in seconds"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := DecodeJSON([]byte(test.in))
			if test.fails != "" {
				assert.ErrorHas(t, err, test.fails, "got %+v", got)
				return
			}
			assert.OK(t, err)
			assert.Same(t, got, test.want)
		})
	}
}

// FuzzDecodeJSON: a decoded event, written as JSON and decoded again, is the same.
func FuzzDecodeJSON(f *testing.F) {
	f.Add(AppendJSON(nil, &full))
	f.Add([]byte(`{"time":1700000000.25,"metric":7,"b":"2","a":{"x":[1]},"state":"a\"\u0001\n"}`))
	f.Add([]byte(`{"metric":1e-300,"ttl":0.1,"time":"2023-11-14T22:13:20.123456789+07:00"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeJSON(b)
		if err != nil {
			return
		}
		if at, ok := e.When(); ok && (at.Year() < 0 || at.Year() > 9999) {
			return // ISO 8601 has no such year
		}
		written := AppendJSON(nil, &e)
		assert.Must(t, json.Valid(written), "%s is not JSON", written)
		again := assert.Value(DecodeJSON(written))(t, "%s", written)
		if len(e.Tags) == 0 {
			e.Tags = nil
		}
		assert.Same(t, again, e, "%s", written)
	})
}

func TestJSONTimeIsUTC(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.FixedZone("", 3600))
	assert.Equal(t, string(AppendJSONTime(nil, at, false)), `"time":"2026-01-02T02:04:05.006Z",`)
}
