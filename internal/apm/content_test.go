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
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func plan(events uint64) load.Plan { return load.Plan{Measurement: load.Limits{Events: events}} }

// ids are the ids of transactions, spans and errors in the bodies, and their
// times.
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
	assert.True(t, written > 0 && written <= uint64(plain)*8/10 && read > 0,
		"%d bytes on the wire of %d, %d read", written, plain, read)
}

// A request that is sent again while it is still in flight is copied, with the
// same ids.
func TestBusyRequestIsCopied(t *testing.T) {
	m, err := newBodyPool(spec(t, "apm+http://h", map[string]string{"events": "2", "spans": "1", "gzip": "1"}).Options, 1, true)
	assert.OK(t, err)
	cycles := assert.Value(m.cycles(t.Context(), 1, 2, func(int, int) []byte { return []byte("head\r\n\r\n") }))(t)
	b := cycles[0]
	first := assert.Value(b.prepare(0, 4, 1800000000000000))(t)
	again, err := b.prepare(0, 4, 1800000000000000)
	if err != nil || &first.bytes[0] == &again.bytes[0] || !bytes.Equal(first.bytes, again.bytes) {
		t.Errorf("%v; the same memory: %v, the same bytes: %v", err, &first.bytes[0] == &again.bytes[0], bytes.Equal(first.bytes, again.bytes))
	}
	first.release()
	next, err := b.prepare(0, 4, 1800000000000000)
	assert.True(t, err == nil && next == first, "%v; the request that is free again was not used", err)
	// The next pass over the cycle has other ids.
	old := bytes.Clone(first.bytes)
	first.release()
	_, err = b.prepare(b.ends[len(b.ends)-1], 4, 1800000000000000)
	assert.True(t, err == nil && !bytes.Equal(old, first.bytes), "%v; a second pass with the ids of the first", err)
}

// Labels by expressions are in every transaction, error, metricset and log, and spans have
// none; from event to event they differ.
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
				if !strings.HasPrefix(labels["order"], "o-") || labels["fixed"] != "a=b" || labels["env"] != "quotes \" and ä" || len(labels) < 4 {
					t.Fatalf("a %s has the labels %v", kind, labels)
				}
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
		m, err := newBodyPool(spec(t, "apm+http://h", map[string]string{"intake": intake, optEventLabel: "order=o-${rnd.nextLong()}"}).Options, 1, true)
		assert.OK(t, err)
		body := m.source.Make(3).Bytes
		assert.True(t, bytes.Count(body, []byte(`"order":"o-`)) == 10, "%s: the body has not ten labels: %s", intake, body)
	}
}

// A server that repeats a label in its error does not show the environment.
func TestLabelsHideTheEnvironment(t *testing.T) {
	const value = "hunter2&<more>"
	t.Setenv("CARRONADE_TEST", value)
	c, err := parseConfig(spec(t, "apm+http://h", map[string]string{optEventLabel: "a=%{env:get('CARRONADE_TEST')}"}), true)
	assert.OK(t, err)
	sent := assert.Value(json.Marshal(value))(t)
	for _, text := range []string{value, string(sent), strconv.Quote(value)} {
		got := c.redactor.line("invalid label " + text)
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
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "--"+optEventLabel) {
			t.Errorf("%s: got %v, want %s", tt.label, err, tt.want)
		}
	}
	_, err := parseConfig(spec(t, "apm+http://h", map[string]string{optEventLabel: "a=b", "corpus": "x"}), true)
	assert.ErrorHas(t, err, "recorded", "labels and a corpus")
}
