package profile

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/apm/wire"
	"carronade/internal/cli/cmdutil"
	traffic "carronade/internal/profile"
	"carronade/protocol"
	"carronade/units"
)

// An apmTraffic is what was counted of requests of APM agents.
type apmTraffic struct {
	src    source
	to     string
	corpus string // recorded requests that the workload replays; "": made ones

	requests  uint64
	protocols [4]uint64
	kinds     [wire.Kinds]uint64 // spans: those whose transaction is in another request
	spansIn   uint64             // spans of transactions of their request
	events    traffic.Sizes      // per request, without the spans of its transactions
	all       traffic.Sizes      // per request
	spans     traffic.Sizes      // per transaction
	frames    traffic.Sizes      // per span or error
	bytes     traffic.Sizes      // per request
	durations traffic.Sizes      // of transactions, in microseconds
	outcomes  [3]uint64
	services  *traffic.Keys
	hosts     *traffic.Keys // pairs of a service and a host
	agents    map[string]bool
	arrivals  traffic.Arrivals // of events
}

func newAPM(src source, to string) *apmTraffic {
	return &apmTraffic{src: src, to: to, services: traffic.NewKeys(), hosts: traffic.NewKeys(), agents: map[string]bool{}}
}

// outcomeWords are the outcomes of transactions, in the order of the workload.
var outcomeWords = []string{"success", "failure", "unknown"}

// request counts a request.
func (a *apmTraffic) request(r *traffic.APMRequest) {
	a.requests++
	a.protocols[r.Protocol]++
	a.services.Add([]byte(r.Service), -1)
	a.hosts.Add([]byte(r.Service+"\x00"+r.Host), -1)
	if slices.Contains(wire.AgentNames(), r.Agent) {
		a.agents[r.Agent] = true
	}
	a.bytes.Add(r.Bytes, 1)
	spans, own := map[string]int{}, len(r.Events)
	for i := range r.Events {
		if e := &r.Events[i]; e.Kind == wire.Transaction {
			spans[e.ID] = 0
		}
	}
	for i := range r.Events {
		e := &r.Events[i]
		if n, ok := spans[e.Transaction]; e.Kind == wire.Span && ok {
			spans[e.Transaction] = n + 1
			a.spansIn++
			own--
		} else {
			a.kinds[e.Kind]++
		}
		if e.Framed {
			a.frames.Add(e.Frames, 1)
		}
		if e.Time > 0 {
			a.arrivals.Add(e.Time)
		}
		if e.Kind == wire.Transaction {
			a.durations.Add(int(e.Duration.Microseconds()), 1)
			a.outcomes[max(0, slices.Index(outcomeWords, e.Outcome))]++
		}
	}
	for _, n := range spans {
		a.spans.Add(n, 1)
	}
	a.events.Add(own, 1)
	a.all.Add(len(r.Events), 1)
	a.src.Read += uint64(len(r.Events))
}

func (a *apmTraffic) from() *source { return &a.src }

// pace fits the times of the events.
func (a *apmTraffic) pace() traffic.PaceFit { return a.arrivals.Fit(1) }

// ranged writes a range, and says how far it is off.
func ranged(s *traffic.Sizes) (text, about string) {
	low, high, distance := s.FitRange()
	text = strconv.Itoa(low)
	if high > low {
		text += "-" + strconv.Itoa(high)
	}
	if s.Min() == s.Max() {
		return text, fmt.Sprintf("always %d", s.Min())
	}
	return text, fmt.Sprintf("%d-%d, mean %.4g; %s", s.Min(), s.Max(), s.Mean(), off(distance))
}

func (a *apmTraffic) make() (*plan, error) {
	p := &plan{head: []string{
		fmt.Sprintf("Fitted by carronade profile to %s, in %s.", a.src.title(), units.Plural(a.requests, "request")),
		"Distances are those of Kolmogorov and Smirnov. Names, labels and texts of events are made.",
	}}
	p.set("target", a.to, "Not the source: set it to the server that you want to load.")
	protocol := wire.IntakeV2
	for i, n := range a.protocols {
		if n > a.protocols[protocol] {
			protocol = wire.Protocol(i)
		}
	}
	if protocol != wire.IntakeV2 {
		p.set("intake", protocol.String())
	}
	if a.corpus != "" {
		p.set("corpus", a.corpus, "Recorded requests, which are sent with fresh ids and times.")
	} else {
		a.makeup(p, protocol)
	}
	pace := a.pace()
	setPace(p, &pace, a.src.Read)
	return p, nil
}

// makeup sets what requests are made of.
func (a *apmTraffic) makeup(p *plan, protocol wire.Protocol) {
	text, about := ranged(&a.events)
	p.set("events", text, "Events a request, without the spans of its transactions: "+about+".")
	var mix []string
	for k, n := range a.kinds {
		if n > 0 && (protocol != wire.RUMV3 || wire.Kind(k) == wire.Transaction || wire.Kind(k) == wire.Error) {
			mix = append(mix, fmt.Sprintf("%s=%d", wire.Kind(k), scaled(n, a.kinds[:])))
		}
	}
	if len(mix) > 0 {
		p.set("mix", strings.Join(mix, ","), "Their kinds. A span in it is one whose transaction is in another request.")
	}
	text, about = ranged(&a.spans)
	p.set("spans", text, "Spans a transaction, in its request: "+about+".")
	text, about = ranged(&a.frames)
	p.set("frames", text, "Stack frames a span or an error: "+about+".")
	services, _ := a.services.Distinct()
	hosts, _ := a.hosts.Distinct()
	atLeast := ""
	if !a.src.Whole {
		atLeast = "at least "
	}
	p.set("services", strconv.Itoa(int(min(max(services, 1), 1e6))), fmt.Sprintf("Services: %s%.0f.", atLeast, services))
	p.set("hosts", strconv.Itoa(int(min(max(math.Round(hosts/max(services, 1)), 1), 1e6))), fmt.Sprintf("Hosts a service; %s%.0f pairs of a service and a host.", atLeast, hosts))
	if len(a.agents) > 0 {
		p.set("agents", strings.Join(sortedNames(a.agents), ","))
	}
	if a.kinds[wire.Transaction] > 0 {
		var weights []string
		for i, n := range a.outcomes {
			if n > 0 {
				weights = append(weights, fmt.Sprintf("%s=%d", outcomeWords[i], scaled(n, a.outcomes[:])))
			}
		}
		p.set("outcomes", strings.Join(weights, ","))
		a.duration(p)
	}
	p.note(a.bytesWords(p, protocol))
}

// scaled is a weight of at most 10,000 for a count among others.
func scaled(n uint64, of []uint64) uint64 {
	sum := uint64(0)
	for _, v := range of {
		sum += v
	}
	if sum <= 10_000 {
		return n
	}
	return max(1, uint64(math.Round(float64(n)/float64(sum)*10_000)))
}

// duration sets the durations of transactions: those of the median and the 99th percentile.
func (a *apmTraffic) duration(p *plan) {
	median, p99 := max(a.durations.Quantile(0.5), 1), max(a.durations.Quantile(0.99), 1)
	about := fmt.Sprintf("Durations of transactions: p50 %s, p99 %s.", units.FormatDuration(micros(median)), units.FormatDuration(micros(p99)))
	const most = time.Hour
	if p99 == median {
		p.set("durations", fmt.Sprintf("constant(%s)", units.FlagDuration(min(micros(median), most))), about)
		return
	}
	p.set("durations", fmt.Sprintf("lognormal(%s,%s)", units.FlagDuration(min(micros(median), most)), units.FlagDuration(min(micros(p99), most))), about)
}

func micros(us int) time.Duration { return time.Duration(us) * time.Microsecond }

// bytesWords compares the bytes of an event with those of made ones.
func (a *apmTraffic) bytesWords(p *plan, protocol wire.Protocol) string {
	of := a.bytes.Sum() / math.Max(float64(a.src.Read), 1)
	m := wire.Makeup{Protocol: protocol, Mix: [wire.Kinds]int{}}
	for _, f := range []struct {
		name string
		to   *wire.Range
	}{{"events", &m.Events}, {"spans", &m.Spans}, {"frames", &m.Frames}} {
		low, high, found := strings.Cut(p.value(f.name), "-")
		f.to.Min, _ = strconv.Atoi(low)
		f.to.Max = f.to.Min
		if found {
			f.to.Max, _ = strconv.Atoi(high)
		}
	}
	for k, n := range a.kinds {
		if n > 0 {
			m.Mix[k] = int(scaled(n, a.kinds[:]))
		}
	}
	text := fmt.Sprintf("Bytes an event, with its part of the metadata: %.0f", of)
	mk, err := wire.NewMaker(m, 1)
	if err != nil {
		return text + "."
	}
	bytes, events := 0, 0
	for n := uint64(0); n < 200 && bytes < 8<<20; n++ {
		b := mk.Make(n)
		bytes, events = bytes+b.Plain, events+b.Events()
	}
	if events == 0 {
		return text + "."
	}
	made := float64(bytes) / float64(events)
	return fmt.Sprintf("%s; those of this workload have %.0f (%s off). A workload cannot set them; --keep-samples replays the requests themselves.", text, made, units.FormatPercent(relative(made, of)))
}

func (a *apmTraffic) summary() []row {
	_, events := ranged(&a.events)
	_, spans := ranged(&a.spans)
	rows := []row{
		{"requests", fmt.Sprintf("%s; %.4g events each in the mean, %s", units.FormatCount(a.requests), a.all.Mean(), units.FormatSize(int64(a.bytes.Mean())))},
		{"events", "a request, without spans of its transactions: " + events},
		{"spans", "a transaction: " + spans},
	}
	services, _ := a.services.Distinct()
	hosts, _ := a.hosts.Distinct()
	rows = append(rows, row{"services", fmt.Sprintf("%.0f, on %s", services, units.Plural(int(hosts), "host"))})
	pace := a.pace()
	return append(rows, paceRow(&pace))
}

// apmParameters is what JSON has of requests.
type apmParameters struct {
	Requests     uint64            `json:"requests"`
	Events       uint64            `json:"events"`
	Kinds        map[string]uint64 `json:"kinds"` // of all events
	PerRequest   traffic.SizeFit   `json:"events_per_request"`
	Spans        traffic.SizeFit   `json:"spans_per_transaction"`
	Frames       traffic.SizeFit   `json:"frames"`
	Bytes        traffic.SizeFit   `json:"bytes_per_request"`
	Durations    traffic.SizeFit   `json:"durations_us"`
	Services     float64           `json:"services"`
	ServiceHosts float64           `json:"service_hosts"`
	Pace         traffic.PaceFit   `json:"pace"`
}

func (a *apmTraffic) parameters() any {
	p := apmParameters{
		Requests: a.requests, Events: a.src.Read, Kinds: map[string]uint64{}, PerRequest: a.all.Fit(), Spans: a.spans.Fit(), Frames: a.frames.Fit(),
		Bytes: a.bytes.Fit(), Durations: a.durations.Fit(), Pace: a.pace(),
	}
	p.Services, _ = a.services.Distinct()
	p.ServiceHosts, _ = a.hosts.Distinct()
	for k, n := range a.kinds {
		if wire.Kind(k) == wire.Span {
			n += a.spansIn
		}
		p.Kinds[wire.Kind(k).String()] = n
	}
	return &p
}

// readAPM reads a file of requests, and keeps some.
func (t *Tools) readAPM(f *profileFlags, name string, in *input) (sample, error) {
	count, _, err := f.limits()
	if err != nil {
		return nil, err
	}
	a := newAPM(source{Kind: "apm", Name: name, Event: "event"}, cmp.Or(f.to, apmTarget))
	var kept []byte
	err = traffic.APM(in.Reader, func(r *traffic.APMRequest, body []byte) error {
		a.request(r)
		if f.keep != "" && r.Protocol != wire.RUMV3 && len(kept)+len(body) <= mostSampleBytes {
			kept = append(kept, body...)
		}
		if a.src.Read >= count || in.stopped() {
			return traffic.ErrEnough
		}
		return nil
	})
	if err = in.finish(&a.src, err, a.src.Read, noEvents(name, "check that the requests are complete")); err != nil {
		return nil, err
	}
	return a, a.keep(f.keep, kept)
}

// keep writes requests that were kept, for the workload to replay.
func (a *apmTraffic) keep(path string, requests []byte) error {
	if len(requests) == 0 {
		return nil
	}
	if err := cmdutil.WriteFile(path, func(w io.Writer) error { _, err := w.Write(requests); return err }); err != nil {
		return &protocol.Error{Err: fmt.Errorf("--keep-samples: cannot write %s: %s", path, cmdutil.Reason(err)), Hint: "give a file in a writable folder"}
	}
	a.corpus = path
	return nil
}
