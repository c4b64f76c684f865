package profile

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

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
