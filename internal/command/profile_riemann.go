package command

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/traffic"
	"carronade/internal/wire/riemann"
	"carronade/units"
)

// A riemannTraffic is what was counted of messages of Riemann.
type riemannTraffic struct {
	src     source
	to      string
	clients int // connections that sent them; 0: not known

	messages   uint64
	perMessage traffic.Sizes
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
	micros     uint64
	arrivals   traffic.Arrivals // events by their own times
	sent       traffic.Arrivals // by that of their message
}

// knownStates are kept as they are; other states are data.
var knownStates = [...]string{"ok", "warning", "critical", "error", "unknown", "up", "down"}

// mostAttributes limits the attributes that are counted.
const mostAttributes = 32

func newRiemann(src source, to string) *riemannTraffic {
	return &riemannTraffic{src: src, to: to, services: traffic.NewKeys(), hosts: traffic.NewKeys(), attributes: map[string]*traffic.Sizes{}, low: math.Inf(1), high: math.Inf(-1)}
}

func (r *riemannTraffic) message(m *traffic.RiemannMessage) {
	r.messages++
	r.perMessage.Add(len(m.Events), 1)
	r.src.Read += uint64(len(m.Events))
	if m.Time > 0 {
		r.sent.Add(m.Time, uint64(len(m.Events)))
	}
	for i := range m.Events {
		r.event(&m.Events[i])
	}
}

func (r *riemannTraffic) event(e *riemann.Event) {
	r.bytes.Add(riemann.EventSize(e), 1)
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
	if v := e.Metric.Value(); e.Metric.Kind != riemann.NoMetric && !math.IsNaN(v) && !math.IsInf(v, 0) {
		r.low, r.high = min(r.low, v), max(r.high, v)
	}
	if t, ok := e.When(); ok && t.Year() > 1970 && t.Year() < 2200 {
		r.arrivals.Add(t.UnixNano(), 1)
	}
	if e.HasTimeMicros {
		r.micros++
	}
}

func (r *riemannTraffic) from() *source { return &r.src }

func (r *riemannTraffic) pace() traffic.PaceFit {
	if r.sent.Count() > 0 {
		return r.sent.Fit(r.perMessage.Mean())
	}
	if r.micros > 0 {
		return r.arrivals.Fit(1)
	}
	// Times are whole seconds: all events of one count as sent together.
	f := r.arrivals.Fit(1)
	if r.arrivals.Span() < 20*time.Second {
		f.Family, f.Shape = traffic.NoPace, ""
	} else if f.Family == traffic.BurstPace || f.Family == traffic.PoissonPace {
		f.Family, f.Shape = traffic.ConstantPace, fmt.Sprintf("constant(%s):%s", units.FlagRate(math.Round(f.Rate*100)/100), units.FlagDuration(f.Span.Round(time.Second)))
	}
	return f
}

// named is a text with the number and the skew of names, and their mean length.
func (r *riemannTraffic) named(prefix string, k *traffic.Keys, lengths *traffic.Sizes) (text, about string) {
	f := k.Fit(r.src.Whole)
	n := max(f.Keys, 1)
	digits := len(strconv.FormatUint(n-1, 10))
	fill := max(1, int(math.Round(lengths.Mean()))-digits)
	name := prefix
	for len(name) < fill {
		name += "-" + prefix
	}
	name = name[:min(fill, 200)]
	about = keyWords(&f)
	switch f.Family {
	case traffic.ZipfKeys:
		return fmt.Sprintf("%s{zipf(%d,%.4g)}", name, n, f.Zipf), about
	case traffic.UniqueKeys:
		return name + "{seq}", about
	}
	return fmt.Sprintf("%s{uniform(%d)}", name, n), about
}

// unnamed is the share of events up to which a field counts as always present.
const unnamed = 0.5

func (r *riemannTraffic) make() (*plan, error) {
	p := &plan{head: []string{
		fmt.Sprintf("Fitted by carronade profile to %s, in %s.", r.src.title(), units.Plural(r.messages, "message")),
		"Names and texts are made; those of attributes are the source's.",
	}}
	p.set("target", r.to, "Not the source: set it to the server that you want to load.")
	text, about := r.named("service", r.services, &r.serviceLen)
	p.set("service", text, "Services: "+about+".", fmt.Sprintf("Bytes of their names: %.4g in the mean.", r.serviceLen.Mean()))
	text, about = r.named("host", r.hosts, &r.hostLen)
	p.set("host", text, "Hosts: "+about+".")
	r.texts(p)
	events := max(1, int(math.Round(r.perMessage.Mean())))
	p.set("batch-events", strconv.Itoa(events), fmt.Sprintf("Events a message: %d-%d, mean %.4g, p50 %d, p99 %d. Messages of the workload have the mean.", r.perMessage.Min(), r.perMessage.Max(), r.perMessage.Mean(), r.perMessage.Quantile(0.5), r.perMessage.Quantile(0.99)))
	if n := r.bytes.Mean() * min(20_000, 4*float64(max(r.distinct(), 1))); n > 256<<10 {
		p.set("pool", units.FlagSize((int64(min(n, 64<<20))+1023)&^1023), "Services and hosts beyond the pool would not occur.")
	}
	if r.clients > 0 {
		p.set("clients", strconv.Itoa(min(r.clients, 10_000)), "Connections that sent messages.")
	}
	pace := r.pace()
	setPace(p, &pace, r.src.Read)
	return p, nil
}

// distinct is the number of services or of hosts, the larger one.
func (r *riemannTraffic) distinct() uint64 {
	services, _ := r.services.Distinct()
	hosts, _ := r.hosts.Distinct()
	return uint64(max(services, hosts))
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
	kind := riemann.NoMetric
	for i, c := range r.kinds {
		if c > r.kinds[kind] {
			kind = riemann.MetricKind(i)
		}
	}
	p.set("metric-type", kind.String())
	if kind != riemann.NoMetric && r.high >= r.low {
		p.set("metric", fmt.Sprintf("uniform(%.6g,%.6g)", math.Floor(r.low), math.Ceil(r.high)+1), "Metrics: their range.")
	}
	p.note(fmt.Sprintf("Bytes an event: %d-%d, mean %.4g.", r.bytes.Min(), r.bytes.Max(), r.bytes.Mean()))
}

func (r *riemannTraffic) summary() []row {
	services, hosts := r.services.Fit(r.src.Whole), r.hosts.Fit(r.src.Whole)
	pace := r.pace()
	return []row{
		{"messages", fmt.Sprintf("%s of %d-%d events, mean %.4g", units.FormatCount(r.messages), r.perMessage.Min(), r.perMessage.Max(), r.perMessage.Mean())},
		{"events", fmt.Sprintf("%d-%d B, mean %.4g", r.bytes.Min(), r.bytes.Max(), r.bytes.Mean())},
		{"services", keyWords(&services)},
		{"hosts", keyWords(&hosts)},
		paceRow(&pace),
	}
}

// riemannParameters is what JSON has of messages.
type riemannParameters struct {
	Messages   uint64          `json:"messages"`
	Events     uint64          `json:"events"`
	PerMessage traffic.SizeFit `json:"events_per_message"`
	Bytes      traffic.SizeFit `json:"bytes_per_event"`
	Services   traffic.KeyFit  `json:"services"`
	Hosts      traffic.KeyFit  `json:"hosts"`
	Tags       traffic.SizeFit `json:"tags"`
	Pace       traffic.PaceFit `json:"pace"`
}

func (r *riemannTraffic) parameters() any {
	return &riemannParameters{
		Messages: r.messages, Events: r.src.Read, PerMessage: r.perMessage.Fit(), Bytes: r.bytes.Fit(),
		Services: r.services.Fit(r.src.Whole), Hosts: r.hosts.Fit(r.src.Whole), Tags: r.tags.Fit(), Pace: r.pace(),
	}
}

// readRiemann reads a file of messages.
func (t *ProfileTools) readRiemann(f *profileFlags, name string, in *input) (sample, error) {
	return t.riemann(f, source{Kind: "riemann", Name: name, Event: "event"}, in, func(to traffic.RiemannSink) error { return traffic.Riemann(in.Reader, to) })
}

// riemann counts messages that a reader finds.
func (t *ProfileTools) riemann(f *profileFlags, src source, in *input, read func(to traffic.RiemannSink) error) (*riemannTraffic, error) {
	count, _, err := f.limits()
	if err != nil {
		return nil, err
	}
	if f.keep != "" {
		return nil, &Words{Err: errors.New("--keep-samples: events of Riemann are not replayed, so nothing is kept"), Hint: "leave it out"}
	}
	r := newRiemann(src, orElse(f.to, riemannTarget))
	err = read(func(m *traffic.RiemannMessage) error {
		r.message(m)
		if r.src.Read >= count || in.stopped() {
			return traffic.ErrEnough
		}
		return nil
	})
	if err = in.finish(&r.src, err, r.src.Read, noEvents(src.Name, "check that it has messages of clients, and not the answers of a server")); err != nil {
		return nil, err
	}
	return r, nil
}
