package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

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
		"Attribute": {
			{"key", 1, text, descriptorpb.FieldDescriptorProto_LABEL_REQUIRED, ""},
			{"value", 2, text, one, ""},
		},
		"Query": {{"string", 1, text, one, ""}},
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

// TestReference lets the reference implementation of protocol buffers decode our
// messages and encode them again.
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
		t.Run(test.name, func(t *testing.T) {
			assert.Same(t, assert.Value(DecodeMsg(unhex(t, test.hex)))(t), test.want)
		})
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
		t.Run(test.name, func(t *testing.T) {
			got, ok := test.e.When()
			assert.True(t, got.Equal(test.want) && ok == test.ok, "got %v, %v, want %v, %v", got, ok, test.want, test.ok)
		})
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
