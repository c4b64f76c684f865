package wire

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

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

func BenchmarkAppendJSON(b *testing.B) {
	e := benchEvent()
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendJSON(dst[:0], &e)
	}
	b.SetBytes(int64(len(dst)))
}

func TestJSONTimeIsUTC(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.FixedZone("", 3600))
	assert.Equal(t, string(AppendJSONTime(nil, at, false)), `"time":"2026-01-02T02:04:05.006Z",`)
}
