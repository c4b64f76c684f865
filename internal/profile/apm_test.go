package profile

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"carronade/internal/apm/wire"
	"carronade/test/testkit/assert"
)

// recorded are made requests, one after the other, a hundred a second.
func recorded(t testing.TB, m wire.Makeup, requests int) []byte {
	t.Helper()
	mk := assert.Value(wire.NewMaker(m, 1))(t)
	var out []byte
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for n := range requests {
		b := mk.Make(uint64(n))
		b.Stamp(wire.Run(0), uint64(n), start.Add(time.Duration(n)*10*time.Millisecond).UnixMicro())
		out = append(out, b.Bytes...)
	}
	return out
}

func readAPM(data []byte) (requests []APMRequest, err error) {
	err = APM(bufio.NewReader(bytes.NewReader(data)), func(r *APMRequest, _ []byte) error {
		requests = append(requests, *r)
		return nil
	})
	return requests, err
}

func TestAPMReadsRequests(t *testing.T) {
	for _, test := range []struct {
		name string
		m    wire.Makeup
	}{
		{"transactions", wire.Makeup{Events: wire.Range{Min: 10, Max: 10}, Spans: wire.Range{Min: 3, Max: 3}, Frames: wire.Range{Min: 2, Max: 2}}},
		{"all kinds", wire.Makeup{Events: wire.Range{Min: 1, Max: 20}, Spans: wire.Range{Max: 5}, Mix: [wire.Kinds]int{4, 1, 1, 1, 1}}},
		{"browsers", wire.Makeup{Protocol: wire.RUMV3, Events: wire.Range{Min: 2, Max: 2}, Spans: wire.Range{Min: 2, Max: 2}, Frames: wire.Range{Min: 4, Max: 4}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			data := recorded(t, test.m, 50)
			assert.Must(t, IsAPM(data), "the requests are not recognized")
			got, err := readAPM(data)
			assert.Must(t, err == nil && len(got) == 50, "got %d requests and %v, want 50", len(got), err)
			mk, _ := wire.NewMaker(test.m, 1)
			for n, r := range got {
				var counts wire.Counts
				for _, e := range r.Events {
					counts[e.Kind]++
					assert.Must(t, e.Kind != wire.Transaction || e.Duration > 0 && e.Outcome != "",
						"got a transaction of %v that ended as %q", e.Duration, e.Outcome)
					if e.Framed && test.m.Frames.Max > 0 && e.Kind == wire.Span && test.m.Protocol == wire.IntakeV2 && e.Frames != test.m.Frames.Max {
						t.Fatalf("got %d frames, want %d", e.Frames, test.m.Frames.Max)
					}
				}
				want := mk.Counts(uint64(n))
				assert.Must(t, counts == want, "request %d: got %v events, want %v", n, counts, want)
				assert.Must(t, r.Service != "" && r.Agent != "" && r.Protocol == test.m.Protocol && r.Bytes != 0,
					"got %+v without events, want a service and an agent",
					APMRequest{Service: r.Service, Agent: r.Agent, Protocol: r.Protocol})
			}
		})
	}
}

// The spans in one transaction are bounded before all of them take memory.
func TestAPMSpansAreBounded(t *testing.T) {
	line := []byte(`{"x":{"id":"1","y":[{}` + strings.Repeat(",{}", 2*maxRequestEvents) + `]}}`)
	r := &APMRequest{}
	if err := r.event(line); err == nil || len(r.Events) > maxRequestEvents+1 {
		t.Errorf("got %d events and %v, want an error", len(r.Events), err)
	}
}

func TestAPMRefuses(t *testing.T) {
	for _, test := range []struct{ name, data, want string }{
		{"an event before metadata", `{"transaction":{}}`, "line 1: it is not metadata"},
		{"garbage", "{\"metadata\":{}}\nxyz", "line 2: it is neither"},
		{"cut", "{\"metadata\":{}}\n{\"transaction\":{\"id\":\"1", "line 2: "},
		{"wrong types", "{\"metadata\":{}}\n{\"span\":{\"id\":7}}", "line 2: the span is invalid"},
		{"metadata of another type", `{"metadata":7}`, "line 1: its metadata is invalid"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := readAPM([]byte(test.data))
			var at *Error
			assert.True(t, errors.As(err, &at) && strings.Contains(err.Error(), test.want), "got %v, want %q", err, test.want)
		})
	}
}

func FuzzAPM(f *testing.F) {
	f.Add(recorded(f, wire.Makeup{Events: wire.Range{Min: 2, Max: 2}, Mix: [wire.Kinds]int{1, 1, 1, 1, 1}}, 2))
	f.Add(recorded(f, wire.Makeup{Protocol: wire.RUMV3, Events: wire.Range{Min: 2, Max: 2}}, 1))
	f.Add([]byte("{\"m\":{}}\n{\"x\":{\"y\":[{}]}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		IsAPM(data)
		requests, err := readAPM(data)
		assert.True(t, err != nil || len(requests) > 0 || len(bytes.TrimSpace(data)) == 0,
			"got no request and no error of a file that is not empty")
	})
}
