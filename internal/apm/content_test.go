package apm

import (
	"bytes"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/internal/apm/standin"
	"carronade/internal/apm/wire"
	"carronade/internal/conn/web"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func plan(events uint64) load.Plan { return load.Plan{Measurement: load.Limits{Events: events}} }

// ids are the ids of transactions, spans and errors in the bodies, and their times.
func ids(t *testing.T, bodies [][]byte) (ids map[string]int, oldest time.Time) {
	t.Helper()
	ids, oldest = map[string]int{}, time.Now().Add(time.Hour)
	for _, b := range bodies {
		for line := range bytes.Lines(b) {
			var l map[string]struct {
				ID        string `json:"id"`
				Timestamp int64  `json:"timestamp"`
			}
			assert.OK(t, json.Unmarshal(line, &l), "%s", line)
			for kind, e := range l {
				if kind == "metadata" {
					continue
				}
				ids[e.ID]++
				if at := time.UnixMicro(e.Timestamp); e.Timestamp != 0 && at.Before(oldest) {
					oldest = at
				}
			}
		}
	}
	return ids, oldest
}

// Every event of every request has a unique id and a current time, over several
// connections, with and without gzip, and also if the run ends within a request.
func TestFreshIDs(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	for _, tt := range []struct {
		name    string
		options map[string]string
		events  uint64
	}{
		{"transactions and spans", map[string]string{"events": "3", "spans": "2"}, 900},
		{"gzip", map[string]string{"events": "3", "spans": "2", "gzip": "6"}, 900},
		{"errors", map[string]string{"events": "4", "spans": "0"}, 400},
		{"a run that ends within a request", map[string]string{"events": "3", "spans": "2"}, 905},
		{"errors, ending within a request", map[string]string{"events": "4", "spans": "0"}, 403},
		{"requests of many sizes", map[string]string{"events": "1-5", "spans": "0-3"}, 1000},
		{"a mix of many sizes", map[string]string{"events": "1-5", "spans": "0-3", "mix": "transaction=3,error,span"}, 1000},
		{"traces over requests", map[string]string{"events": "2", "spans": "1", "trace-hops": "3"}, 800},
		{"one connection, pipelined", map[string]string{"events": "3", "spans": "2", "clients": "1", "max-in-flight": "4", "pool": "1"}, 900},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newIntake(t, false)
			options := map[string]string{"clients": "3", "pool": "64KiB"}
			maps.Copy(options, tt.options)
			began := time.Now()
			r := fire(t, open(t, s.url(), options), plan(tt.events))
			assert.True(t, r.Measurement.Acked == tt.events && s.events.Load() == tt.events,
				"acked %d, the server has %d; want %d", r.Measurement.Acked, s.events.Load(), tt.events)
			bodies, _ := s.taken()
			all, oldest := ids(t, bodies)
			assert.Equal(t, uint64(len(all)), tt.events, "different ids")
			assert.True(t, !oldest.Before(began.Add(-10*time.Minute)), "the oldest event has the time %v", oldest)
		})
	}
}

// Partial requests have events of the same kinds as complete ones.
func TestPartialRequests(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		options map[string]string
		want    wire.Counts
	}{
		{"transactions", nil, wire.Counts{wire.Transaction: 1, wire.Span: 4}},
		{"transactions of v1", map[string]string{"intake": "v1"}, wire.Counts{wire.Transaction: 1, wire.Span: 4}},
		{"transactions of RUM v3", map[string]string{"intake": "rum-v3"}, wire.Counts{wire.Transaction: 1, wire.Span: 4}},
		{"errors", map[string]string{"spans": "0"}, wire.Counts{wire.Error: 5}},
		{"logs", map[string]string{"mix": "log=1"}, wire.Counts{wire.Log: 5}},
		{"metrics", map[string]string{"mix": "metricset"}, wire.Counts{wire.Metricset: 5}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := assert.Value(newBodyPool(spec(t, "apm+http://h", tt.options).Options, 1, true))(t)
			b, err := m.source.makePartial(5)
			assert.True(t, err == nil && b.Counts == tt.want, "got %v, %v; want %v", b.Counts, err, tt.want)
		})
	}
}

// With --repeat-body every request is the same, with the times of the run's start.
func TestRepeatBody(t *testing.T) {
	t.Parallel()
	s := newIntake(t, false)
	began := time.Now()
	r := fire(t, open(t, s.url(), map[string]string{"repeat-body": "true", "clients": "3"}), plan(4000))
	bodies, _ := s.taken()
	for _, b := range bodies {
		assert.Must(t, bytes.Equal(b, bodies[0]), "two different requests")
	}
	_, oldest := ids(t, bodies[:1])
	assert.True(t, r.Measurement.Acked == 4000 && len(bodies) == 100 && !oldest.Before(began.Add(-10*time.Minute)),
		"acked %d in %d requests of %v, want 4000 in 100, and today", r.Measurement.Acked, len(bodies), oldest)
}

// Bytes counts the bodies before compression, and Wire the bytes sent.
func TestVolume(t *testing.T) {
	t.Parallel()
	s := newIntake(t, false)
	sess := open(t, s.url(), map[string]string{"gzip": "1", "clients": "2"})
	r := fire(t, sess, plan(4000))
	plain := 0
	bodies, _ := s.taken()
	for _, b := range bodies {
		plain += len(b)
	}
	assert.Equal(t, r.Measurement.Bytes, uint64(plain), "bytes")
	written, read := sess.Wire()
	assert.True(t, written > 0 && written <= uint64(plain)*8/10 && read > 0, "%d bytes on the wire of %d, %d read", written, plain, read)
}

// A request that is sent again while it is still in flight is copied, with the same ids.
func TestBusyRequestIsCopied(t *testing.T) {
	m := assert.Value(newBodyPool(spec(t, "apm+http://h", map[string]string{"events": "2", "spans": "1", "gzip": "1"}).Options, 1, true))(t)
	cycles := assert.Value(m.cycles(t.Context(), 1, 2, func(int, int) []byte { return []byte("head\r\n\r\n") }))(t)
	b := cycles[0]
	first := assert.Value(b.prepared(0, 4))(t)
	again, err := b.prepared(0, 4)
	if err != nil || &first.bytes[0] == &again.bytes[0] || !bytes.Equal(first.bytes, again.bytes) {
		t.Errorf("%v; the same memory: %v, the same bytes: %v", err, &first.bytes[0] == &again.bytes[0], bytes.Equal(first.bytes, again.bytes))
	}
	first.Release()
	next, err := b.prepared(0, 4)
	assert.True(t, err == nil && next == first, "%v; the request that is free again was not used", err)
	// The next pass over the cycle has other ids.
	old := bytes.Clone(first.bytes)
	first.Release()
	_, err = b.prepared(b.ends[len(b.ends)-1], 4)
	assert.True(t, err == nil && !bytes.Equal(old, first.bytes), "%v; a second pass with the ids of the first", err)
}

// prepared is Prepare at a fixed time.
func (b *cycle) prepared(first uint64, events int) (*encodedRequest, error) {
	r, err := b.Prepare(first, events, time.UnixMicro(1800000000000000))
	if err != nil {
		return nil, err
	}
	return r.(*encodedRequest), nil
}

// Labels by expressions are in every transaction, error, metricset and log, and spans have none; from event to event they differ.
func TestLabelsArrive(t *testing.T) {
	t.Setenv("CARRONADE_TEST", "quotes \" and ä")
	const events = 400
	options := map[string]string{
		"events": "10", "spans": "1", "mix": "transaction=1,error=1,metricset=1,log=1", "clients": "2", "pool": "1MiB",
		optEventLabel: "order=o-${rnd.nextInt(1000000)}\x00fixed=a=b\x00env=%{env:get('CARRONADE_TEST')}",
	}
	for _, gzip := range []string{"none", "1"} {
		s := newIntake(t, false)
		options["gzip"] = gzip
		r := fire(t, open(t, s.url(), options), plan(events))
		assert.Must(t, r.Measurement.Acked == events, "acked %d of %d", r.Measurement.Acked, events)
		bodies, _ := s.taken()
		kinds, orders := map[string]int{}, map[string]bool{}
		for line := range bytes.Lines(bytes.Join(bodies, nil)) {
			var l map[string]struct {
				Tags    map[string]string `json:"tags"`
				Labels  map[string]string `json:"labels"`
				Context struct {
					Tags map[string]string `json:"tags"`
				} `json:"context"`
			}
			if bytes.HasPrefix(line, []byte(`{"metadata"`)) {
				continue
			}
			assert.OK(t, json.Unmarshal(line, &l), "%s", line)
			for kind, e := range l {
				labels := e.Context.Tags
				switch kind {
				case "metricset":
					labels = e.Tags
				case "log":
					labels = e.Labels
				case "span":
					continue
				}
				kinds[kind]++
				assert.Must(t, strings.HasPrefix(labels["order"], "o-") && labels["fixed"] == "a=b" && labels["env"] == "quotes \" and ä" && len(labels) >= 4,
					"a %s has the labels %v", kind, labels)
				orders[labels["order"]] = true
			}
		}
		assert.True(t, len(kinds) == 4 && len(orders) >= 100, "gzip %s: %v events with %d different labels", gzip, kinds, len(orders))
	}
}

// The stand-in, which checks events, accepts labels in every protocol.
func TestLabelsAreValid(t *testing.T) {
	t.Parallel()
	for _, intake := range []string{"v2", "rum-v2", "rum-v3", "v1"} {
		s := startStandin(t, standin.Options{V1: intake == "v1"})
		r := fire(t, open(t, "apm+http://"+s.Addr(), map[string]string{"intake": intake, optEventLabel: "order=${rnd.nextLong()}"}), plan(400))
		assert.Equal(t, r.Measurement.Acked, 400, "%s: events acked: %v", intake, r.Failures)
		m := assert.Value(newBodyPool(spec(t, "apm+http://h", map[string]string{"intake": intake, optEventLabel: "order=o-${rnd.nextLong()}"}).Options, 1, true))(t)
		body := m.source.Make(3).Bytes
		assert.True(t, bytes.Count(body, []byte(`"order":"o-`)) == 10, "%s: the body has not ten labels: %s", intake, body)
	}
}

// A server that repeats a label in its error does not show the environment.
func TestLabelsHideTheEnvironment(t *testing.T) {
	const value = "hunter2&<more>"
	t.Setenv("CARRONADE_TEST", value)
	c := assert.Value(parseConfig(spec(t, "apm+http://h", map[string]string{optEventLabel: "a=%{env:get('CARRONADE_TEST')}"}), true))(t)
	sent := assert.Value(json.Marshal(value))(t)
	for _, text := range []string{value, string(sent), strconv.Quote(value)} {
		got := c.redactor.Line("invalid label " + text)
		assert.True(t, !strings.Contains(got, "hunter2") && !strings.Contains(got, "more"), "got %q", got)
	}
}

func TestLabelErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ label, want string }{
		{"order", "a name or a value is missing"},
		{"=x", "a name or a value is missing"},
		{"a-${1}=x", "a name is not an expression"},
		{"a.b=x", "servers replace them"},
		{"tier=x", "events have a label tier anyway"},
		{"order=${foo}", "at 9: foo is not known"},
		{"order=${time:nanos()}", "events are made before the run here"},
		{"order=#{1}", "events are made before the run here"},
		{"order=${string:format('%1000d%1000d', rnd.nextInt(), 1)}", "servers accept 1024"},
		{"order=1\x00order=2", "two labels order"},
	} {
		_, err := parseConfig(spec(t, "apm+http://h", map[string]string{optEventLabel: tt.label}), true)
		assert.True(t, err != nil && strings.Contains(err.Error(), tt.want) && strings.Contains(err.Error(), "--"+optEventLabel),
			"%s: got %v, want %s", tt.label, err, tt.want)
	}
	_, err := parseConfig(spec(t, "apm+http://h", map[string]string{optEventLabel: "a=b", "corpus": "x"}), true)
	assert.ErrorHas(t, err, "recorded", "labels and a corpus")
}

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
		s := &session{cfg: &config{}}
		got := s.evaluate(tt.status, []byte(tt.body), !strings.HasSuffix(tt.body, cut), 10)
		assert.Equal(t, got, tt.want, tt.name)
		assert.Equal(t, got.Acked+got.Failed+got.Unknown, 10, "%s: events that are accounted for", tt.name)
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
		assert.Must(t, !strings.ContainsAny(v.Text, "\r\n\x00") && len(v.Text) <= 260, "a text of %d bytes: %q", len(v.Text), v.Text)
	})
}
