package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

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
	f.Fuzz(func(t *testing.T, b []byte) { assert.Equal(t, CountAcks(b), countSlowly(b)) })
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
	msg, rest, err := NextFrame([]byte("\x00\x00\x00\x0aabcdefghij"), 10)
	assert.True(t, string(msg) == "abcdefghij" && rest != nil && err == nil, "of maximum length: got %q, %v, %v", msg, rest, err)
	msg, rest, err = NextFrame([]byte("\x00\x00\x00\x00"), 10)
	assert.True(t, msg != nil && rest != nil && err == nil, "an empty message: got %v, %v, %v, want no nil", msg, rest, err)
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
		frames, size := CountFrames(b[:cut], MaxFrame)
		assert.Must(t, frames == whole && size == n, "the first %d bytes: got %d frames of %d bytes, want %d of %d", cut, frames, size, whole, n)
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
		got := AppendJSON([]byte("x"), &test.e)
		assert.Equal(t, string(got), "x"+test.want, "%s: got  %s\nwant x%s", test.name, got, test.want)
		assert.True(t, json.Valid(got[1:]), "%s: %s is not JSON", test.name, got[1:])
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

// full is an event with every field.
var full = Event{
	Time: 1700000000, HasTime: true, TimeMicros: 1700000000123456, HasTimeMicros: true,
	State: "ok", Service: "cpu", Host: "web-07", Description: "of all", Tags: []string{"a", "bc"},
	TTL: 60, HasTTL: true, Attributes: []Attribute{{"env", "prod"}, {"k", ""}},
	Metric: Metric{Kind: Double, Real: 0.5},
}

// golden has messages encoded by hand from the schema: tag (number<<3 | wire
// type), then varint, length and bytes, or fixed little-endian.
var golden = []struct {
	name string
	msg  Msg
	hex  string
}{
	{"empty", Msg{}, ""},
	{"ack", Msg{OK: true, HasOK: true}, "10 01"},
	{"refusal", Msg{HasOK: true, Error: "no"}, "10 00  1a 02 6e6f"},
	{"query", Msg{Query: "true", HasQuery: true}, "2a 06  0a 04 74727565"},
	{"empty query", Msg{HasQuery: true}, "2a 02  0a 00"},
	{"empty event", Msg{Events: []Event{{}}}, "32 00"},
	{
		"full event",
		Msg{Events: []Event{full}},
		"32 4f" +
			" 08 80e2cfaa06" + // time
			" 12 02 6f6b  1a 03 637075  22 06 7765622d3037  2a 06 6f6620616c6c" +
			" 3a 01 61  3a 02 6263" + // tags
			" 45 00007042" + // ttl
			" 4a 0b 0a 03 656e76 12 04 70726f64  4a 03 0a 01 6b" + // attributes
			" 50 c0c480c1c1c48203" + // time_micros
			" 71 000000000000e03f", // metric_d
	},
	{"sint64", Msg{Events: []Event{{Metric: Metric{Kind: Sint64, Int: -2}}}}, "32 02  68 03"},
	{"smallest sint64", Msg{Events: []Event{{Metric: Metric{Kind: Sint64, Int: math.MinInt64}}}}, "32 0b  68 ffffffffffffffffff01"},
	{"float", Msg{Events: []Event{{Metric: Metric{Kind: Float, Real: -1.5}}}}, "32 05  7d 0000c0bf"},
	{"time before 1970", Msg{Events: []Event{{Time: -1, HasTime: true}}}, "32 0b  08 ffffffffffffffffff01"},
	{"two events", Msg{Events: []Event{{Service: "a"}, {Service: "b"}}}, "32 03 1a 01 61  32 03 1a 01 62"},
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b := assert.Value(hex.DecodeString(strings.ReplaceAll(s, " ", "")))(t)
	return b
}

func TestGolden(t *testing.T) {
	for _, test := range golden {
		t.Run(test.name, func(t *testing.T) {
			want := unhex(t, test.hex)
			got := AppendMsg(nil, &test.msg)
			assert.True(t, bytes.Equal(got, want), "got  % x\nwant % x", got, want)
			assert.Equal(t, MsgSize(&test.msg), len(want), "size")
			assert.Same(t, assert.Value(DecodeMsg(want))(t), test.msg, "decoded")
			n, err := countEvents(want)
			assert.True(t, n == len(test.msg.Events) && err == nil, "count: got %d, %v, want %d", n, err, len(test.msg.Events))
		})
	}
}

func schema(t testing.TB) protoreflect.MessageDescriptor {
	t.Helper()
	type field struct {
		name   string
		number int32
		typ    descriptorpb.FieldDescriptorProto_Type
		label  descriptorpb.FieldDescriptorProto_Label
		of     string
	}
	const (
		text, i64, msg = descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_INT64, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
		one, many      = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL, descriptorpb.FieldDescriptorProto_LABEL_REPEATED
	)
	messages := map[string][]field{
		"Event": {
			{"time", 1, i64, one, ""},
			{"state", 2, text, one, ""},
			{"service", 3, text, one, ""},
			{"host", 4, text, one, ""},
			{"description", 5, text, one, ""},
			{"tags", 7, text, many, ""},
			{"ttl", 8, descriptorpb.FieldDescriptorProto_TYPE_FLOAT, one, ""},
			{"attributes", 9, msg, many, ".Attribute"},
			{"time_micros", 10, i64, one, ""},
			{"metric_sint64", 13, descriptorpb.FieldDescriptorProto_TYPE_SINT64, one, ""},
			{"metric_d", 14, descriptorpb.FieldDescriptorProto_TYPE_DOUBLE, one, ""},
			{"metric_f", 15, descriptorpb.FieldDescriptorProto_TYPE_FLOAT, one, ""},
		},
		"Attribute": {{"key", 1, text, descriptorpb.FieldDescriptorProto_LABEL_REQUIRED, ""}, {"value", 2, text, one, ""}},
		"Query":     {{"string", 1, text, one, ""}},
		"Msg": {
			{"ok", 2, descriptorpb.FieldDescriptorProto_TYPE_BOOL, one, ""},
			{"error", 3, text, one, ""},
			{"query", 5, msg, one, ".Query"},
			{"events", 6, msg, many, ".Event"},
		},
	}
	file := &descriptorpb.FileDescriptorProto{Name: new("riemann.proto"), Syntax: new("proto2")}
	for name, fields := range messages {
		m := &descriptorpb.DescriptorProto{Name: new(name)}
		for _, f := range fields {
			d := &descriptorpb.FieldDescriptorProto{Name: new(f.name), Number: new(f.number), Type: f.typ.Enum(), Label: f.label.Enum()}
			if f.of != "" {
				d.TypeName = new(f.of)
			}
			m.Field = append(m.Field, d)
		}
		file.MessageType = append(file.MessageType, m)
	}
	fd := assert.Value(protodesc.NewFile(file, nil))(t)
	return fd.Messages().ByName("Msg")
}

// TestReference lets the reference implementation of protocol buffers decode our messages and encode them again.
func TestReference(t *testing.T) {
	d := schema(t)
	for _, test := range golden {
		t.Run(test.name, func(t *testing.T) {
			written := AppendMsg(nil, &test.msg)
			m := dynamicpb.NewMessage(d)
			assert.OK(t, proto.Unmarshal(written, m))
			assert.OK(t, noUnknown(m))
			again := assert.Value(proto.MarshalOptions{Deterministic: true}.Marshal(m))(t)
			assert.True(t, bytes.Equal(written, again), "got  % x\nwant % x", written, again)
		})
	}
}

func noUnknown(m protoreflect.Message) (err error) {
	if len(m.GetUnknown()) > 0 {
		return errors.New("fields that the schema does not have in " + string(m.Descriptor().Name()))
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				err = errors.Join(err, noUnknown(v.List().Get(i).Message()))
			}
		case f.Message() != nil:
			err = errors.Join(err, noUnknown(v.Message()))
		}
		return true
	})
	return err
}

func TestDecodeRules(t *testing.T) {
	for _, test := range []struct {
		name, hex string
		want      Msg
	}{
		{"sint64 before d before f", "32 10  7d 0000c0bf 71 000000000000e03f 68 03", Msg{Events: []Event{{Metric: Metric{Kind: Sint64, Int: -2}}}}},
		{"d before f", "32 0e  7d 0000c0bf 71 000000000000e03f", Msg{Events: []Event{{Metric: Metric{Kind: Double, Real: 0.5}}}}},
		{"padded varint", "32 05  68 83808000", Msg{Events: []Event{{Metric: Metric{Kind: Sint64, Int: -2}}}}},
		{"last of several", "32 08  1a 02 6162 1a 02 6364", Msg{Events: []Event{{Service: "cd"}}}},
		{"state, the old form, and the unknown", "22 02 3000  0d 01020304  32 03 1a 01 61  7b 08 01 7c", Msg{Events: []Event{{Service: "a"}}}},
		{"another type than known", "12 01 61  32 08 18 01 0a 01 61 1a 01 62", Msg{Events: []Event{{Service: "b"}}}},
		{"any ok but 0 is true", "10 8001", Msg{OK: true, HasOK: true}},
		{"query merged", "2a 03 0a 01 61  2a 02 10 01", Msg{Query: "a", HasQuery: true}},
	} {
		t.Run(test.name, func(t *testing.T) { assert.Same(t, assert.Value(DecodeMsg(unhex(t, test.hex)))(t), test.want) })
	}
}

func TestDecodeErrors(t *testing.T) {
	tests := []struct{ name, hex, want string }{
		{"cut tag", "80", "unexpected EOF"},
		{"field 0", "00 01", "invalid field number"},
		{"cut varint", "10 80", "unexpected EOF"},
		{"endless varint", "10 ffffffffffffffffffffff", "overflow"},
		{"length beyond the end", "32 05 1a", "unexpected EOF"},
		{"length beyond an event's end", "32 03 1a 05 61  32 03 1a 01 61", "event 0 of 2"},
		{"group never opened", "34", "mismatching end group"},
		{"group never closed", "33 08 01", "unexpected EOF"},
		{"attribute without key", "32 05 4a 03 12 01 61", "no key"},
		{"cut attribute", "32 04 4a 02 0a 05", "attribute"},
		{"cut query", "2a 02 0a 05", "query"},
		{"cut double", "32 03 71 00 00", "field 14"},
		{"cut float", "32 03 7d 00 00", "field 15"},
		{"cut time", "32 02 08 80", "field 1"},
		{"reserved wire type", "0f", "reserved wire type"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := DecodeMsg(unhex(t, test.hex))
			assert.ErrorHas(t, err, test.want, "got %+v", got)
		})
	}
	_, err := DecodeMsg(bytes.Repeat([]byte{TagEvents, 0}, MaxEvents+1))
	assert.True(t, errors.Is(err, ErrTooManyEvents), "a message of empty events: got %v, want %v", err, ErrTooManyEvents)
}

func TestWhen(t *testing.T) {
	seconds, micros := Event{Time: 7, HasTime: true}, full
	for _, test := range []struct {
		name string
		e    Event
		want time.Time
		ok   bool
	}{
		{"none", Event{}, time.Time{}, false},
		{"seconds", seconds, time.Unix(7, 0), true},
		{"micros first", micros, time.UnixMicro(1700000000123456), true},
	} {
		got, ok := test.e.When()
		assert.True(t, got.Equal(test.want) && ok == test.ok, "%s: got %v, %v, want %v, %v", test.name, got, ok, test.want, test.ok)
	}
}

// TestDecodedIsACopy: decoded messages do not change with the buffer.
func TestDecodedIsACopy(t *testing.T) {
	b := AppendMsg(nil, &Msg{Events: []Event{full}, Query: "q", HasQuery: true, Error: "e"})
	got := assert.Value(DecodeMsg(b))(t)
	clear(b)
	assert.Same(t, got, Msg{Events: []Event{full}, Query: "q", HasQuery: true, Error: "e"})
}

// FuzzDecodeMsg: a message that decodes without an error decodes to the same as
// with the reference, and does not change if it is encoded and decoded again.
func FuzzDecodeMsg(f *testing.F) {
	for _, g := range golden {
		f.Add(unhex(f, g.hex))
	}
	f.Add(unhex(f, "22 02 3000 0d 01020304 32 03 1a 01 61 7b 08 01 7c"))
	f.Add(unhex(f, "32 05 4a 03 12 01 61"))
	d := schema(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeMsg(b)
		ref := dynamicpb.NewMessage(d)
		assert.True(t, proto.Unmarshal(b, ref) != nil || err == nil || errors.Is(err, ErrTooManyEvents),
			"the reference decodes it, but here the error is %v", err)
		if err != nil {
			return
		}
		n, err := countEvents(b)
		assert.True(t, n == len(m.Events) && err == nil, "count: got %d, %v, want %d", n, err, len(m.Events))
		if events := d.Fields().ByName("events"); ref.IsValid() && proto.Unmarshal(b, ref) == nil {
			list := ref.Get(events).List()
			assert.Must(t, list.Len() == len(m.Events), "%d events, the reference has %d", len(m.Events), list.Len())
			for i := range m.Events {
				e := list.Get(i).Message()
				got, want := m.Events[i].Service, e.Get(e.Descriptor().Fields().ByName("service")).String()
				assert.True(t, got == want, "service %q, the reference has %q", got, want)
			}
		}
		written := AppendMsg(nil, &m)
		assert.Equal(t, len(written), MsgSize(&m), "bytes written, and their size")
		again := assert.Value(DecodeMsg(written))(t)
		assert.True(t, bytes.Equal(written, AppendMsg(nil, &again)), "% x\nbecame % x", written, AppendMsg(nil, &again))
	})
}
