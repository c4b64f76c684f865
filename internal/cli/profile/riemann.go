package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	traffic "carronade/internal/profile"
	indexed "carronade/internal/riemann"
	"carronade/internal/riemann/wire"
	"carronade/protocol"
	"carronade/units"
)

// A riemannTraffic is what was counted of the events of an index: the newest of each service of a host.
type riemannTraffic struct {
	src source
	to  string

	bytes      traffic.Sizes // of an event
	services   *traffic.Keys
	hosts      *traffic.Keys
	serviceLen traffic.Sizes
	hostLen    traffic.Sizes
	states     [len(knownStates) + 1]uint64 // the last: others
	noState    uint64
	described  traffic.Sizes
	tags       traffic.Sizes
	attributes map[string]*traffic.Sizes
	ttls       traffic.Sizes // milliseconds
	kinds      [4]uint64     // of metrics
	low, high  float64

	lowest, highest int64 // of the whole ones, which a float64 may not represent
	micros          uint64
}

// knownStates are kept as they are; other states are data.
var knownStates = [...]string{"ok", "warning", "critical", "error", "unknown", "up", "down"}

// mostAttributes limits the attributes that are counted.
const mostAttributes = 32

func newRiemann(src source, to string) *riemannTraffic {
	return &riemannTraffic{src: src, to: to, services: traffic.NewKeys(), hosts: traffic.NewKeys(), attributes: map[string]*traffic.Sizes{}, low: math.Inf(1), high: math.Inf(-1), lowest: math.MaxInt64, highest: math.MinInt64}
}

func (r *riemannTraffic) event(e *wire.Event) {
	r.src.Read++
	r.bytes.Add(wire.EventSize(e), 1)
	r.services.Add([]byte(e.Service), -1)
	r.serviceLen.Add(len(e.Service), 1)
	r.hosts.Add([]byte(e.Host), -1)
	r.hostLen.Add(len(e.Host), 1)
	if e.State == "" {
		r.noState++
	} else {
		at := slices.Index(knownStates[:], e.State)
		if at < 0 {
			at = len(knownStates)
		}
		r.states[at]++
	}
	r.described.Add(len(e.Description), 1)
	r.tags.Add(len(e.Tags), 1)
	for _, a := range e.Attributes {
		s := r.attributes[a.Key]
		if s == nil {
			if len(r.attributes) >= mostAttributes || len(a.Key) > 256 {
				continue
			}
			s = &traffic.Sizes{}
			r.attributes[a.Key] = s
		}
		s.Add(len(a.Value), 1)
	}
	if e.HasTTL && e.TTL > 0 && e.TTL < 1e6 {
		r.ttls.Add(int(e.TTL*1000), 1)
	}
	r.kinds[e.Metric.Kind&3]++
	if v := e.Metric.Value(); e.Metric.Kind != wire.NoMetric && !math.IsNaN(v) && !math.IsInf(v, 0) {
		r.low, r.high = min(r.low, v), max(r.high, v)
	}
	if e.Metric.Kind == wire.Sint64 {
		r.lowest, r.highest = min(r.lowest, e.Metric.Int), max(r.highest, e.Metric.Int)
	}
	if e.HasTimeMicros {
		r.micros++
	}
}

func (r *riemannTraffic) from() *source { return &r.src }

// named is a text with the number of names and their mean length. An index has each service of a
// host once, so it does not say which ones send more often.
func (r *riemannTraffic) named(prefix string, n uint64, lengths *traffic.Sizes) string {
	digits := len(strconv.FormatUint(n-1, 10))
	fill := max(1, int(math.Round(lengths.Mean()))-digits)
	name := prefix
	for len(name) < fill {
		name += "-" + prefix
	}
	return fmt.Sprintf("%s{uniform(%d)}", name[:min(fill, 200)], n)
}

// counted says how many different names there are.
func (r *riemannTraffic) counted(n uint64) string {
	if !r.src.Whole {
		return "at least " + units.FormatCount(n)
	}
	return units.FormatCount(n)
}

// unnamed is the share of events up to which a field counts as always present.
const unnamed = 0.5

func (r *riemannTraffic) make() (*plan, error) {
	p := &plan{head: []string{
		fmt.Sprintf("Fitted by carronade profile to %s.", r.src.title()),
		"Names and texts are made; those of attributes are the source's.",
	}}
	p.set("target", r.to, "Not the source: set it to the server that you want to load.")
	services, hosts := r.distinct()
	p.set("service", r.named("service", services, &r.serviceLen), fmt.Sprintf("Services: %s, each as often as the others. Bytes of their names: %.4g in the mean.", r.counted(services), r.serviceLen.Mean()))
	p.set("host", r.named("host", hosts, &r.hostLen), fmt.Sprintf("Hosts: %s.", r.counted(hosts)))
	r.texts(p)
	if n := r.bytes.Mean() * min(20_000, 4*float64(max(services, hosts))); n > 256<<10 {
		p.set("pool", units.FlagSize((int64(min(n, 64<<20))+1023)&^1023), "Services and hosts beyond the pool would not occur.")
	}
	p.set("count", strconv.FormatUint(r.src.Read, 10), "An index has the newest event of each service of a host, and not how many came before: as many events as it has, as fast as possible. Set a rate or a concurrency.")
	return p, nil
}

// distinct is the number of services, and of hosts.
func (r *riemannTraffic) distinct() (services, hosts uint64) {
	s, _ := r.services.Distinct()
	h, _ := r.hosts.Distinct()
	return uint64(s), uint64(h)
}

// texts sets the other fields of events.
func (r *riemannTraffic) texts(p *plan) {
	n := float64(r.src.Read)
	var weights []string
	for i, c := range r.states {
		if c == 0 {
			continue
		}
		name := "other"
		if i < len(knownStates) {
			name = knownStates[i]
		}
		weights = append(weights, fmt.Sprintf("%s:%d", name, c))
	}
	switch {
	case float64(r.noState) > unnamed*n:
		p.set("state", "none", "Most events have no state.")
	case len(weights) == 1:
		name, _, _ := strings.Cut(weights[0], ":")
		p.set("state", name)
	default:
		p.set("state", "{weighted("+strings.Join(weights, ",")+")}", "States; those that are not usual ones are called other.")
	}
	description := "none"
	if size := int(math.Round(r.described.Mean())); size > 0 {
		description = strings.Repeat("x", min(size, 4096))
	}
	p.set("description", description, fmt.Sprintf("Descriptions: %d-%d bytes, mean %.4g.", r.described.Min(), r.described.Max(), r.described.Mean()))
	tags := "none"
	if count := int(math.Round(r.tags.Mean())); count > 0 {
		var list []string
		for i := range min(count, 100) {
			list = append(list, "tag-"+strconv.Itoa(i))
		}
		tags = strings.Join(list, ",")
	}
	p.set("tag", tags, fmt.Sprintf("Tags: %d-%d an event, mean %.4g.", r.tags.Min(), r.tags.Max(), r.tags.Mean()))
	var attributes []string
	for _, name := range sortedNames(r.attributes) {
		if s := r.attributes[name]; float64(s.Count()) >= unnamed*n && !strings.Contains(name, "=") {
			attributes = append(attributes, escapeExpression(name)+"="+strings.Repeat("x", max(1, min(int(math.Round(s.Mean())), 4096))))
		}
	}
	if len(attributes) > 0 {
		p.setList("attribute", attributes, "Attributes of at least half of the events, with values of the mean length.")
	}
	if float64(r.ttls.Count()) > unnamed*n {
		p.set("ttl", units.FlagDuration(max(time.Second, time.Duration(r.ttls.Quantile(0.5))*time.Millisecond)), fmt.Sprintf("The median; %s to %s.", units.FormatDuration(time.Duration(r.ttls.Min())*time.Millisecond), units.FormatDuration(time.Duration(r.ttls.Max())*time.Millisecond)))
	} else {
		p.set("ttl", "none")
	}
	if float64(r.micros) > unnamed*n {
		p.set("time", "us")
	}
	kind := wire.NoMetric
	for i, c := range r.kinds {
		if c > r.kinds[kind] {
			kind = wire.MetricKind(i)
		}
	}
	p.set("metric-type", kind.String())
	switch {
	case kind == wire.Sint64 && r.lowest == r.highest:
		p.set("metric", strconv.FormatInt(r.lowest, 10), "Metrics: all are this one.")
	case kind == wire.Sint64:
		p.set("metric", fmt.Sprintf("uniform(%d,%d)", r.lowest, r.highest), "Metrics: their range.")
	case kind != wire.NoMetric && r.high >= r.low:
		p.set("metric", fmt.Sprintf("uniform(%.6g,%.6g)", math.Floor(r.low), math.Ceil(r.high)+1), "Metrics: their range.")
	}
	p.note(fmt.Sprintf("Bytes an event: %d-%d, mean %.4g.", r.bytes.Min(), r.bytes.Max(), r.bytes.Mean()))
}

func (r *riemannTraffic) summary() []row {
	services, hosts := r.distinct()
	return []row{
		{"events", fmt.Sprintf("%d-%d B, mean %.4g", r.bytes.Min(), r.bytes.Max(), r.bytes.Mean())},
		{"services", r.counted(services)},
		{"hosts", r.counted(hosts)},
		{"arrivals", "no rate: an index has only the newest event of each service"},
	}
}

// riemannParameters is what JSON has of an index.
type riemannParameters struct {
	Events   uint64          `json:"events"`
	Bytes    traffic.SizeFit `json:"bytes_per_event"`
	Services uint64          `json:"services"`
	Hosts    uint64          `json:"hosts"`
	Tags     traffic.SizeFit `json:"tags"`
}

func (r *riemannTraffic) parameters() any {
	services, hosts := r.distinct()
	return &riemannParameters{Events: r.src.Read, Bytes: r.bytes.Fit(), Services: services, Hosts: hosts, Tags: r.tags.Fit()}
}

// readIndex reads the index of a server.
func (t *Tools) readIndex(ctx context.Context, f *profileFlags, from string) (sample, error) {
	count, length, err := f.limits()
	if err != nil {
		return nil, err
	}
	if f.keep != "" {
		return nil, &protocol.Error{Err: errors.New("--keep-samples: events of Riemann are not replayed, so nothing is kept"), Hint: "leave it out"}
	}
	w, spec, err := t.resolve(t.Index, f, from)
	if err != nil {
		return nil, err
	}
	length = cmp.Or(length, indexTimeout)
	asking, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	events, err := indexed.Index(asking, w.URL, spec.Options)
	switch {
	case ctx.Err() != nil:
		return nil, context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return nil, &protocol.Error{Err: fmt.Errorf("no answer from %s within %s", w.Target(), units.FormatDuration(length)), Hint: "raise --for"}
	case err != nil:
		return nil, err
	case len(events) == 0:
		return nil, &protocol.Error{Err: fmt.Errorf("the index of %s has no events", w.Target()), Hint: "check that streams of the server index events, and that these have not expired"}
	}
	r := newRiemann(source{Kind: "riemann index", Name: w.Target(), Event: "event", Available: uint64(len(events)), Whole: uint64(len(events)) <= count}, cmp.Or(f.to, elsewhere(w.URL)))
	for i := range min(count, uint64(len(events))) {
		r.event(&events[i])
	}
	return r, nil
}

// indexTimeout is how long the answer of a server may take if no time is given.
const indexTimeout = 10 * time.Second

// elsewhere is a target on this machine that is not the server that was read.
func elsewhere(read *url.URL) string {
	if read.Port() == "15555" {
		return "riemann://127.0.0.1:25555"
	}
	return "riemann://127.0.0.1:15555"
}
