package apm

import (
	"strings"
	"testing"

	"carronade/internal/conn/web"
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
		want   web.Verdict
	}{
		{"accepted", 202, "", web.Verdict{Acked: 10}},
		{"200, as v1 and gateways answer", 200, "", web.Verdict{Acked: 10}},
		{"verbose", 202, `{"accepted":10}`, web.Verdict{Acked: 10}},
		{"verbose and spaced", 202, "{\"accepted\":10}\n", web.Verdict{Acked: 10}},
		{"verbose and with more", 202, `{"accepted":10,"errors":[]}`, web.Verdict{Acked: 10}},
		{"verbose and fewer", 202, `{"accepted":1}`, web.Verdict{Acked: 1, Failed: 9, Class: load.Rejected, Text: "202 Accepted"}},
		{"verbose and broken", 202, `{"accepted":}`, web.Verdict{Acked: 10}},
		{"accepted in part", 202, `{"accepted":7,"errors":[{"message":"a"}]}`, web.Verdict{Acked: 7, Failed: 3, Class: load.Rejected, Text: "202 Accepted: a"}},
		{"a page of a gateway", 200, `<html>ok</html>`, web.Verdict{Acked: 10}},
		{"invalid events", 400, `{"accepted":8,"errors":[{"message":"invalid","document":"{}"},{"message":"invalid"}]}`, web.Verdict{Acked: 8, Failed: 2, Class: load.Rejected, Text: "400 Bad Request: invalid"}},
		{"none accepted", 400, `{"accepted":0,"errors":[{"message":"bad metadata"}]}`, web.Verdict{Failed: 10, Class: load.Rejected, Text: "400 Bad Request: bad metadata"}},
		{"more than there were", 400, `{"accepted":11}`, web.Verdict{Acked: 10}},
		{"a negative number", 202, `{"accepted":-1}`, web.Verdict{Acked: 10}},
		{"a document too long to keep", 400, `{"accepted":8,"errors":[{"message":"too long","document":"{` + cut, web.Verdict{Acked: 8, Failed: 2, Class: load.Rejected, Text: "400 Bad Request: too long"}},
		{"the second one", 400, `{"accepted":8,"errors":[{"document":"{}","message":"a"},{"message":"b","document":"` + cut, web.Verdict{Acked: 8, Failed: 2, Class: load.Rejected, Text: "400 Bad Request: a"}},
		{"a number that was not kept", 400, `{"errors":[{"message":"too long","document":"{` + cut, web.Verdict{Unknown: 10, Class: load.Rejected, Text: "400 Bad Request: too long"}},
		{"an error of v1", 400, `{"error":"data validation error"}`, web.Verdict{Failed: 10, Class: load.Rejected, Text: "400 Bad Request: data validation error"}},
		{"plain text on two lines", 400, "no\r\ngood", web.Verdict{Failed: 10, Class: load.Rejected, Text: "400 Bad Request: no good"}},
		{"wrong token", 401, `{"accepted":0,"errors":[{"message":"unauthorized"}]}`, web.Verdict{Failed: 10, Class: load.Unauthorized, Text: "401 Unauthorized: unauthorized"}},
		{"forbidden", 403, "", web.Verdict{Failed: 10, Class: load.Unauthorized, Text: "403 Forbidden"}},
		{"too large", 413, "", web.Verdict{Failed: 10, Class: load.TooLarge, Text: "413 Request Entity Too Large"}},
		{"too many", 429, `{"accepted":0,"errors":[{"message":"rate limit exceeded"}]}`, web.Verdict{Failed: 10, Class: load.Throttled, Text: "429 Too Many Requests: rate limit exceeded"}},
		{"the queue filled on the way", 503, `{"accepted":4,"errors":[{"message":"queue is full"}]}`, web.Verdict{Acked: 4, Failed: 6, Class: load.Throttled, Text: "503 Service Unavailable: queue is full"}},
		{"a fault inside", 500, "", web.Verdict{Failed: 10, Class: load.Rejected, Text: "500 Internal Server Error"}},
		{"too slow for it", 408, "", web.Verdict{Failed: 10, Class: load.Timeout, Text: "408 Request Timeout"}},
		{"a gateway whose server closed the connection", 502, "<html>", web.Verdict{Unknown: 10, Class: load.Refused, Text: "502 Bad Gateway"}},
		{"a gateway whose server was silent", 504, "", web.Verdict{Unknown: 10, Class: load.Timeout, Text: "504 Gateway Timeout"}},
		{"elsewhere", 302, "", web.Verdict{Failed: 10, Class: load.Protocol, Text: "302 Found"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &session{cfg: &config{}}
			got := s.evaluate(tt.status, []byte(tt.body), !strings.HasSuffix(tt.body, cut), 10)
			assert.Equal(t, got, tt.want)
			assert.Equal(t, got.Acked+got.Failed+got.Unknown, 10, "events that are accounted for")
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
		assert.Must(t, v.Acked >= 0 && v.Failed >= 0 && v.Unknown >= 0 && v.Acked+v.Failed+v.Unknown == 7, "%+v does not add up to 7", v)
		assert.Must(t, (v.Acked < 7) == (v.Class != load.OK), "%+v: a class without a failure, or the reverse", v)
		assert.Must(t, !strings.ContainsAny(v.Text, "\r\n\x00") && len(v.Text) <= 260,
			"a text of %d bytes: %q", len(v.Text), v.Text)
	})
}
