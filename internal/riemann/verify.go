package riemann

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"carronade/internal/riemann/wire"
	"carronade/protocol"
)

// The ttl of verified events. It must cover the run, its drain and the reading.
const (
	ttlMargin  = 90 * time.Second // for drain and reading
	ttlUnknown = 15 * time.Minute // where the length of the run is unknown
	ttlDefault = 60 * time.Second // the server's, for events without one (index.clj, default-ttl)
)

// verifiable checks that the index can keep a run's events until they are read
// back, and returns the options with a ttl that is long enough. words say what
// it changed.
func verifiable(s protocol.Spec) (v protocol.Values, words []string, err error) {
	no := func(what, hint string) (protocol.Values, []string, error) {
		return nil, nil, &protocol.Error{Doing: "verify", Err: fmt.Errorf("%s", what), Hint: hint}
	}
	switch {
	case s.Most == 0:
		return no("the server has to keep every event until it is read back, and the run has no limit",
			"bound the run: --count 100000, or --rate with --for")
	case s.Most > mostVerified:
		return no(fmt.Sprintf("the server has to keep every event until it is read back, and %d events are more than %d", s.Most, mostVerified),
			"verify a smaller run, with a smaller --count, --rate or --for; or leave --verify out")
	}
	v = maps.Clone(s.Options)
	if !s.Given[optTTL] {
		need := ttlUnknown
		if s.Length > 0 {
			need = s.Length + ttlMargin
		}
		seconds := strconv.Itoa(int(math.Ceil(need.Seconds()))) + "s"
		v[optTTL] = []string{seconds}
		words = append(words, "events have a ttl of "+seconds+", so that the index holds them until they are read back")
	}
	words = append(words, "verified against the index, which keeps one event for each host and service: losses and changes are detected, duplicates are not")
	return v, words, nil
}

// checkRetention checks that verified events stay in the index until the run is
// read back: their ttl against the length of the run, and their states.
func (c *config) checkRetention(s protocol.Spec) error {
	if kept := c.retention(); s.Length > 0 && kept < s.Length+10*time.Second {
		return &protocol.Error{
			Doing: "verify", Err: fmt.Errorf("events expire from the index after %v, before a run of %v is over and read back", kept, s.Length),
			Hint: fmt.Sprintf("give --ttl %ds, or leave it out", int(math.Ceil((s.Length + ttlMargin).Seconds()))),
		}
	}
	for k := range c.shape.period {
		if e := c.shape.event(0, k); e.State == "expired" {
			return &protocol.Error{
				Doing: "verify", Err: fmt.Errorf("some events have the state %q, which removes them from the index", e.State),
				Hint: "give another --state",
			}
		}
	}
	return nil
}

// retention is how long the index keeps events at least.
func (c *config) retention() time.Duration {
	if ttl, ok := c.shape.shortestTTL(); ok {
		return ttl
	}
	return ttlDefault
}

// differs describes the first field in which an event of the index differs from
// the sent one; "" if none does.
func (s *source) differs(got *wire.Event, stream int32, index uint64) string {
	want := s.cfg.shape.event(stream, index)
	for _, f := range []struct{ name, got, want string }{
		{"host", got.Host, want.Host},
		{"state", got.State, want.State},
		{"description", got.Description, want.Description},
	} {
		if f.got != f.want {
			return fmt.Sprintf("%s: %s %q, sent %q", want.Service, f.name, f.got, f.want)
		}
	}
	if !slices.Equal(got.Tags, want.Tags) {
		return fmt.Sprintf("%s: tags %q, sent %q", want.Service, got.Tags, want.Tags)
	}
	if !sameAttributes(got.Attributes, want.Attributes) {
		return fmt.Sprintf("%s: attributes %q, sent %q", want.Service, got.Attributes, want.Attributes)
	}
	if want.HasTTL && got.TTL != want.TTL {
		return fmt.Sprintf("%s: ttl %v, sent %v", want.Service, got.TTL, want.TTL)
	}
	if !sameMetric(got.Metric, want.Metric) {
		return fmt.Sprintf("%s: metric %v, sent %v", want.Service, got.Metric.Value(), want.Metric.Value())
	}
	if s.cfg.shape.time == timeNone {
		return ""
	}
	// The time is the send time, to the second or finer.
	at, ok := got.When()
	if !ok || at.Before(s.began.Truncate(time.Second)) || at.After(time.Now()) {
		return fmt.Sprintf("%s: time %v, which is not within the run", want.Service, at)
	}
	return ""
}

// sameAttributes compares them in any order: the server keeps them in a map.
func sameAttributes(a, b []wire.Attribute) bool {
	if len(a) != len(b) {
		return false
	}
	for _, x := range a {
		if !slices.Contains(b, x) {
			return false
		}
	}
	return true
}

// sameMetric compares numbers in the coarser precision of their types: the
// server returns a float as a double, and a double that is a whole number, sent
// as JSON, as either type (riemann-clojure-client, codec.clj).
func sameMetric(got, want wire.Metric) bool {
	switch {
	case got.Kind == wire.NoMetric || want.Kind == wire.NoMetric:
		return got.Kind == want.Kind
	case got.Kind == wire.Sint64 && want.Kind == wire.Sint64:
		return got.Int == want.Int
	case got.Kind == wire.Float || want.Kind == wire.Float:
		return float32(got.Value()) == float32(want.Value())
	}
	return got.Value() == want.Value()
}

// warnings are the user's warnings about the events that were read back.
func (s *source) warnings() []string {
	var w []string
	if n := s.corrupt.Load(); n > 0 {
		w = append(w, fmt.Sprintf("%d events are not in the index as they were sent; the first: %s", n, *s.example.Load()))
	}
	if s.expired.Load() {
		w = append(w, fmt.Sprintf("events may have expired, after %v, before they were read back: missing events count as unread, not as lost; give a larger --ttl", s.cfg.retention()))
	}
	return w
}
