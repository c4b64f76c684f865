package otlp

import (
	"encoding/base64"
	"testing"
	"time"

	"carronade/internal/conn/web"
	"carronade/internal/otlp/wire"
	"carronade/load"
	"carronade/test/testkit/assert"
)

// TestEvaluate: answers over HTTP, and what becomes of ten events.
func TestEvaluate(t *testing.T) {
	status := func(text string) string { return string(wire.AppendStatus(nil, wire.Status{Code: 3, Message: text})) }
	partial := string(wire.AppendAnswer(nil, wire.Partial{Rejected: 3, Message: "too old"}))
	for _, tt := range []struct {
		name   string
		status int
		body   string
		cut    bool
		want   web.Verdict
	}{
		{"accepted", 200, "", false, web.Verdict{Acked: 10}},
		{"partial success", 200, partial, false, web.Verdict{Acked: 7, Failed: 3, Class: load.Rejected, Text: "partial success: too old", Final: true}},
		{"a warning", 200, string(wire.AppendAnswer(nil, wire.Partial{Message: "slow down"})), false, web.Verdict{Acked: 10}},
		{"more than there were", 200, string(wire.AppendAnswer(nil, wire.Partial{Rejected: 30})), false, web.Verdict{Failed: 10, Class: load.Rejected, Text: "partial success, without a message", Final: true}},
		{"empty JSON", 200, `{}`, false, web.Verdict{Acked: 10}},
		{"a page of a gateway", 200, "<html>", false, web.Verdict{Acked: 10}},
		{"too long", 200, partial[:4], true, web.Verdict{Unknown: 10, Class: load.Protocol, Text: "the answer is too long to tell how many events were accepted"}},
		{"invalid", 400, status("bad field"), false, web.Verdict{Failed: 10, Class: load.Rejected, Text: "400 Bad Request: bad field", Final: true}},
		{"plain text", 400, "no\r\ngood", false, web.Verdict{Failed: 10, Class: load.Rejected, Text: "400 Bad Request: no good", Final: true}},
		{"unauthorized", 401, "", false, web.Verdict{Failed: 10, Class: load.Unauthorized, Text: "401 Unauthorized", Final: true}},
		{"too large", 413, "", false, web.Verdict{Failed: 10, Class: load.TooLarge, Text: "413 Request Entity Too Large", Final: true}},
		{"too many", 429, status("rate"), false, web.Verdict{Failed: 10, Class: load.Throttled, Text: "429 Too Many Requests: rate"}},
		{"full", 503, status("queue is full"), false, web.Verdict{Failed: 10, Class: load.Throttled, Text: "503 Service Unavailable: queue is full"}},
		{"a gateway", 502, "", false, web.Verdict{Unknown: 10, Class: load.Refused, Text: "502 Bad Gateway"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &session{cfg: &config{}}
			assert.Same(t, s.evaluate(tt.status, []byte(tt.body), !tt.cut, 10), tt.want)
		})
	}
}

// TestEvaluateGRPC: codes of gRPC, and what becomes of ten events.
func TestEvaluateGRPC(t *testing.T) {
	details := func(s wire.Status) string { return base64.RawStdEncoding.EncodeToString(wire.AppendStatus(nil, s)) }
	failed := func(class load.Class, text string, final bool) web.Verdict {
		return web.Verdict{Failed: 10, Class: class, Text: text, Final: final}
	}
	message := func(b ...byte) []byte { return append([]byte{0, 0, 0, 0, byte(len(b))}, b...) }
	compressed := func(encoding string) []byte {
		k := compressors[encoding].Get().(*compressor)
		k.plain = wire.AppendAnswer(nil, wire.Partial{Rejected: 3, Message: "no"})
		assert.OK(t, k.compress())
		return append([]byte{1}, message(k.out...)[1:]...)
	}
	for _, tt := range []struct {
		name string
		a    answer
		want web.Verdict
		wait time.Duration
	}{
		{"accepted", answer{status: 200, body: message()}, web.Verdict{Acked: 10}, 0},
		{"no message", answer{status: 200}, web.Verdict{Unknown: 10, Class: load.Protocol, Text: "an answer without a message"}, 0},
		{"a wrong length", answer{status: 200, body: []byte{0, 0, 0, 0, 9, 1}, received: 6}, web.Verdict{Unknown: 10, Class: load.Protocol, Text: "an answer whose length is wrong"}, 0},
		{"compressed by something else", answer{status: 200, body: append([]byte{1}, message(1)[1:]...), encoding: "br", received: 6}, web.Verdict{Unknown: 10, Class: load.Protocol, Text: "an answer that cannot be decompressed"}, 0},
		{"compressed with gzip", answer{status: 200, body: compressed("gzip"), encoding: "gzip"}, web.Verdict{Acked: 7, Failed: 3, Class: load.Rejected, Text: "partial success: no", Final: true}, 0},
		{"compressed with zstd", answer{status: 200, body: compressed("zstd"), encoding: "zstd"}, web.Verdict{Acked: 7, Failed: 3, Class: load.Rejected, Text: "partial success: no", Final: true}, 0},
		{"unavailable", answer{status: 200, code: 14, message: "busy"}, failed(load.Throttled, "UNAVAILABLE: busy", false), 0},
		{"with a delay", answer{status: 200, code: 14, details: details(wire.Status{Code: 14, Retry: 2 * time.Second, Retries: true})}, failed(load.Throttled, "UNAVAILABLE", false), 2 * time.Second},
		{"exhausted", answer{status: 200, code: 8}, failed(load.Throttled, "RESOURCE_EXHAUSTED", true), 0},
		{"exhausted for a while", answer{status: 200, code: 8, details: details(wire.Status{Code: 8, Retries: true})}, failed(load.Throttled, "RESOURCE_EXHAUSTED", false), 0},
		{"too large", answer{status: 200, code: 8, message: "received message larger than max"}, failed(load.TooLarge, "RESOURCE_EXHAUSTED: received message larger than max", true), 0},
		{"invalid", answer{status: 200, code: 3, message: "a%0Ab"}, failed(load.Rejected, "INVALID_ARGUMENT: a b", true), 0},
		{"unauthorized", answer{status: 200, code: 16}, failed(load.Unauthorized, "UNAUTHENTICATED", true), 0},
		{"unimplemented", answer{status: 200, code: 12}, failed(load.Protocol, "UNIMPLEMENTED", true), 0},
		{"deadline", answer{status: 200, code: 4}, web.Verdict{Unknown: 10, Class: load.Timeout, Text: "DEADLINE_EXCEEDED"}, 0},
		{"unknown code", answer{status: 200, code: 99}, failed(load.Rejected, "code 99", true), 0},
		{"no headers", answer{code: -1}, web.Verdict{Unknown: 10, Class: load.Protocol, Text: "an answer without a grpc-status"}, 0},
		{"a proxy without a server", answer{status: 502, code: -1}, web.Verdict{Unknown: 10, Class: load.Refused, Text: "502 Bad Gateway"}, 0},
		{"a proxy that is full", answer{status: 503, code: -1}, failed(load.Throttled, "503 Service Unavailable", false), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, wait := evaluateGRPC(nil, &tt.a, 10)
			assert.Same(t, got, tt.want)
			assert.Equal(t, wait, tt.wait, "wait")
		})
	}
}
