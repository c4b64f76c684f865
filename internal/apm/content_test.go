package apm

import (
	"bytes"
	"encoding/json"
	"maps"
	"testing"
	"time"

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
