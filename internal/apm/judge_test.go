package apm

import (
	"strings"
	"testing"

	"carronade/load"
	"carronade/test/testkit/assert"
)

// cut ends an answer whose rest was not kept.
const cut = "aaaaaaaaaaaaaaaa"

func TestEvaluate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   verdict
	}{
		{"accepted", 202, "", verdict{acked: 10}},
		{"200, as v1 and gateways answer", 200, "", verdict{acked: 10}},
		{"verbose", 202, `{"accepted":10}`, verdict{acked: 10}},
		{"verbose and spaced", 202, "{\"accepted\":10}\n", verdict{acked: 10}},
		{"verbose and with more", 202, `{"accepted":10,"errors":[]}`, verdict{acked: 10}},
		{"verbose and fewer", 202, `{"accepted":1}`, verdict{acked: 1, failed: 9, class: load.Rejected, text: "202 Accepted"}},
		{"verbose and broken", 202, `{"accepted":}`, verdict{acked: 10}},
		{"accepted in part", 202, `{"accepted":7,"errors":[{"message":"a"}]}`, verdict{acked: 7, failed: 3, class: load.Rejected, text: "202 Accepted: a"}},
		{"a page of a gateway", 200, `<html>ok</html>`, verdict{acked: 10}},
		{"invalid events", 400, `{"accepted":8,"errors":[{"message":"invalid","document":"{}"},{"message":"invalid"}]}`, verdict{acked: 8, failed: 2, class: load.Rejected, text: "400 Bad Request: invalid"}},
		{"none accepted", 400, `{"accepted":0,"errors":[{"message":"bad metadata"}]}`, verdict{failed: 10, class: load.Rejected, text: "400 Bad Request: bad metadata"}},
		{"more than there were", 400, `{"accepted":11}`, verdict{acked: 10}},
		{"a negative number", 202, `{"accepted":-1}`, verdict{acked: 10}},
		{"a document too long to keep", 400, `{"accepted":8,"errors":[{"message":"too long","document":"{` + cut, verdict{acked: 8, failed: 2, class: load.Rejected, text: "400 Bad Request: too long"}},
		{"the second one", 400, `{"accepted":8,"errors":[{"document":"{}","message":"a"},{"message":"b","document":"` + cut, verdict{acked: 8, failed: 2, class: load.Rejected, text: "400 Bad Request: a"}},
		{"a number that was not kept", 400, `{"errors":[{"message":"too long","document":"{` + cut, verdict{unknown: 10, class: load.Rejected, text: "400 Bad Request: too long"}},
		{"an error of v1", 400, `{"error":"data validation error"}`, verdict{failed: 10, class: load.Rejected, text: "400 Bad Request: data validation error"}},
		{"plain text on two lines", 400, "no\r\ngood", verdict{failed: 10, class: load.Rejected, text: "400 Bad Request: no good"}},
		{"wrong token", 401, `{"accepted":0,"errors":[{"message":"unauthorized"}]}`, verdict{failed: 10, class: load.Unauthorized, text: "401 Unauthorized: unauthorized"}},
		{"forbidden", 403, "", verdict{failed: 10, class: load.Unauthorized, text: "403 Forbidden"}},
		{"too large", 413, "", verdict{failed: 10, class: load.TooLarge, text: "413 Request Entity Too Large"}},
		{"too many", 429, `{"accepted":0,"errors":[{"message":"rate limit exceeded"}]}`, verdict{failed: 10, class: load.Throttled, text: "429 Too Many Requests: rate limit exceeded"}},
		{"the queue filled on the way", 503, `{"accepted":4,"errors":[{"message":"queue is full"}]}`, verdict{acked: 4, failed: 6, class: load.Throttled, text: "503 Service Unavailable: queue is full"}},
		{"a fault inside", 500, "", verdict{failed: 10, class: load.Rejected, text: "500 Internal Server Error"}},
		{"too slow for it", 408, "", verdict{failed: 10, class: load.Timeout, text: "408 Request Timeout"}},
		{"a gateway whose server closed the connection", 502, "<html>", verdict{unknown: 10, class: load.Refused, text: "502 Bad Gateway"}},
		{"a gateway whose server was silent", 504, "", verdict{unknown: 10, class: load.Timeout, text: "504 Gateway Timeout"}},
		{"elsewhere", 302, "", verdict{failed: 10, class: load.Protocol, text: "302 Found"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &session{cfg: &config{}}
			got := s.evaluate(tt.status, []byte(tt.body), !strings.HasSuffix(tt.body, cut), 10)
			assert.Equal(t, got, tt.want)
			assert.Equal(t, got.acked+got.failed+got.unknown, 10, "events that are accounted for")
		})
	}
}

func FuzzEvaluate(f *testing.F) {
	f.Add(202, []byte(`{"accepted":3}`))
	f.Add(400, []byte(`{"accepted":1e9,"errors":[{"message":"\u0000x"}]}`))
	f.Add(503, []byte("\xff\xfe"))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 {
			return
		}
		s := &session{cfg: &config{}}
		v := s.evaluate(status, body, len(body)%2 == 0, 7)
		assert.Must(t, v.acked >= 0 && v.failed >= 0 && v.unknown >= 0 && v.acked+v.failed+v.unknown == 7, "%+v does not add up to 7", v)
		assert.Must(t, (v.acked < 7) == (v.class != load.OK), "%+v: a class without a failure, or the reverse", v)
		assert.Must(t, !strings.ContainsAny(v.text, "\r\n\x00") && len(v.text) <= mostText+60,
			"a text of %d bytes: %q", len(v.text), v.text)
	})
}

// Errors of documents are counted by text, in bounded memory.
func TestTally(t *testing.T) {
	t.Parallel()
	var y tally
	for i := range 3 * mostTexts {
		y.add(strings.Repeat("x", i))
		y.add("always")
	}
	all := y.all()
	assert.Equal(t, all["always"], 3*mostTexts, "counted")
	if got, want := all["..."], uint64(2*mostTexts+1); len(all) != mostTexts+1 || got != want {
		t.Errorf("%d texts and %d others, want %d and %d", len(all), got, mostTexts+1, want)
	}
}
