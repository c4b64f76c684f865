package command

import (
	"fmt"

	"carronade/internal/traffic"
	"carronade/units"
)

// readPackets reads a capture of packets. The workload is for the protocol with the most
// events.
func (t *ProfileTools) readPackets(f *profileFlags, name string, in *input) (sample, error) {
	to, err := f.limited(in)
	if err != nil {
		return nil, err
	}
	count := to.left
	src := source{Kind: "pcap", Name: name, Event: "event"}
	agents, messages := newAPM(src, orElse(f.to, apmTarget)), newRiemann(src, orElse(f.to, riemannTarget))
	enough := func(read uint64) error {
		if read >= count || in.stopped() {
			return traffic.ErrEnough
		}
		return nil
	}
	var requests []byte
	p := traffic.Packets{Records: traffic.KafkaBatches{To: to}}
	p.APM = func(r *traffic.APMRequest, body []byte) error {
		agents.request(r)
		if f.keep != "" && len(requests)+len(body) <= mostSampleBytes {
			requests = append(requests, body...)
		}
		return enough(agents.src.Read)
	}
	p.Riemann = func(m *traffic.RiemannMessage) error {
		messages.message(m)
		return enough(messages.src.Read)
	}
	err = p.Read(in.Reader)
	records := to.sampler.Records()
	if err := in.finish(&src, err, records+agents.src.Read+messages.src.Read, noRequests(&p, name)); err != nil {
		return nil, err
	}
	src.Whole = src.Whole && p.Counts.Gaps+p.Counts.Cut+p.Unreadable+p.Counts.Ignored == 0
	src.Warnings = append(src.Warnings, packetWarnings(&p, records, agents.src.Read, messages.src.Read)...)
	switch {
	case records >= max(agents.src.Read, messages.src.Read):
		return to.fit(src, 0, orElse(f.to, recordTarget))
	case agents.src.Read >= messages.src.Read:
		src.Read = agents.src.Read
		agents.src, agents.clients = src, p.APMConns
		if err := agents.keep(f.keep, requests); err != nil {
			return nil, err
		}
		return agents, nil
	}
	src.Read = messages.src.Read
	messages.src, messages.clients = src, p.RieConns
	return messages, nil
}

// The targets of workloads that were given none.
const (
	recordTarget  = "kafka://127.0.0.1:9092/profile"
	apmTarget     = "apm+http://127.0.0.1:8200"
	riemannTarget = "riemann://127.0.0.1:5555"
)

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// noRequests is the error of a capture without requests.
func noRequests(p *traffic.Packets, name string) error {
	err := &Words{Err: fmt.Errorf("%s has no requests of Kafka, APM or Riemann, in %s", name, units.Plural(p.Counts.Packets, "packet"))}
	switch {
	case p.Counts.TCP == 0:
		err.Hint = "it has no bytes of TCP connections: check the filter and the interface of the capture"
	case p.Counts.Cut > 0:
		err.Hint = "the capture has only the beginnings of packets: capture with -s 0"
	default:
		err.Hint = "TLS cannot be read; capture on the side of the clients or the server without it"
	}
	return err
}

// packetWarnings says what of a capture is missing.
func packetWarnings(p *traffic.Packets, records, apm, riemann uint64) (list []string) {
	c := &p.Counts
	if c.Cut > 0 {
		list = append(list, fmt.Sprintf("the capture has only the beginning of %s; capture with -s 0", units.Plural(c.Cut, "packet")))
	}
	if c.Gaps > 0 {
		list = append(list, fmt.Sprintf("bytes are missing in %s: requests around them are not counted", units.Plural(c.Gaps, "place")))
	}
	if c.Ignored > 0 {
		list = append(list, fmt.Sprintf("%s belong to more connections than are followed at a time", units.Plural(c.Ignored, "packet")))
	}
	if p.Unreadable > 0 {
		list = append(list, fmt.Sprintf("%s could not be read", units.Plural(p.Unreadable, "request")))
	}
	if p.Topics > 1 {
		list = append(list, fmt.Sprintf("records of %d topics are taken together; capture those of one for a workload that fits it", p.Topics))
	}
	protocols := 0
	for _, n := range []uint64{records, apm, riemann} {
		if n > 0 {
			protocols++
		}
	}
	if protocols > 1 {
		list = append(list, fmt.Sprintf("the workload is for the protocol with the most events: %s of Kafka, %s of APM, %s of Riemann", units.FormatCount(records), units.FormatCount(apm), units.FormatCount(riemann)))
	}
	return list
}
