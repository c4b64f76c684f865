package kafkatools

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"carronade/internal/dropin"
	"carronade/internal/report"
	"carronade/measure"
)

// The default client ids.
const (
	producerClientID = "perf-producer-client"
	consumerClientID = "perf-consumer-client"
	shareClientID    = "perf-share-consumer-client"
)

// kafkaMetrics is a table of --print-metrics: values by GROUP:NAME:{TAGS}. It has those
// metrics of Java's clients that are measured here, with their names and meanings.
// Rates are of the whole run, not of its last half minute.
type kafkaMetrics struct {
	values map[string]string
	client string // tag of all rows
}

func newKafkaMetrics(clientID string, d *report.Document) *kafkaMetrics {
	m := &kafkaMetrics{values: map[string]string{}, client: "client-id=" + clientID}
	m.values["app-info:version:{"+m.client+"}"] = "carronade " + d.Version
	return m
}

// add adds a number, with tags in addition to the client's. NaN: nothing was measured.
func (m *kafkaMetrics) add(group, name string, value float64, tags ...string) {
	key := fmt.Sprintf("%s:%s:{%s}", group, name, strings.Join(append([]string{m.client}, tags...), ", "))
	m.values[key] = strings.ReplaceAll(fmt.Sprintf("%.3f", value), "+Inf", "Infinity")
}

// both adds a total and its rate.
func (m *kafkaMetrics) both(group, name string, total, rate float64, tags ...string) {
	m.add(group, name+"-total", total, tags...)
	m.add(group, name+"-rate", rate, tags...)
}

// print prints the table as ToolsUtils does, sorted by name.
func (m *kafkaMetrics) print(w io.Writer) {
	width := 0
	for name := range m.values {
		width = max(width, len(name))
	}
	fmt.Fprintf(w, "\n%-*s   %s\n", width, "Metric Name", "Value")
	for _, name := range slices.Sorted(maps.Keys(m.values)) {
		fmt.Fprintf(w, "%-*s : %s\n", width, name, m.values[name])
	}
}

// consumerMetrics are the consumer's. Metrics that the Java consumer does not have are
// in the group carronade.
func consumerMetrics(d *report.Document, s *consumerSettings) *kafkaMetrics {
	const fetching, ownGroup = "consumer-fetch-manager-metrics", "carronade"
	m := newKafkaMetrics(s.props.clientID(consumerClientID), d)
	both := func(group, name string, total float64) {
		m.both(group, name, total, dropin.PerSecond(total, d.Totals.ElapsedS))
	}
	both(fetching, "records-consumed", float64(d.Totals.Consumed))
	both(fetching, "bytes-consumed", float64(d.Totals.Bytes))
	both("consumer-metrics", "incoming-byte", float64(d.Generator.ReadBytes))
	fetches := uint64(0)
	for _, c := range d.Clients {
		fetches += c.Requests
	}
	both(fetching, "fetch", float64(fetches))
	for _, l := range d.Logs {
		if i := strings.LastIndexByte(l.Log, '-'); i > 0 && l.Lag >= 0 {
			m.add(fetching, "records-lag", float64(l.Lag), "topic="+l.Log[:i], "partition="+l.Log[i+1:])
		}
	}
	m.add(ownGroup, "without-assignment-ms-total", d.Totals.RebalanceS*1e3)
	for _, c := range d.Clients {
		node := "node-id=node-" + strings.Fields(c.Broker + " ")[0]
		m.add(ownGroup, "fetch-total", float64(c.Requests), node)
		m.add(ownGroup, "throttle-ms-total", c.ThrottleSeconds*1e3, node)
		m.add(ownGroup, "reconnect-total", float64(c.Reconnects), node)
	}
	return m
}

// shareMetrics are those of each consumer of a share group.
func shareMetrics(d *report.Document, s *shareSettings) (all []*kafkaMetrics) {
	const fetching = "consumer-share-fetch-manager-metrics"
	for i, one := range s.members(d) {
		m := newKafkaMetrics(s.clientID(i), d)
		m.both(fetching, "records-consumed", float64(one.events), dropin.PerSecond(float64(one.events), d.Totals.ElapsedS))
		m.both(fetching, "bytes-consumed", float64(one.bytes), dropin.PerSecond(float64(one.bytes), d.Totals.ElapsedS))
		all = append(all, m)
	}
	return all
}

// producerMetrics are the metrics of the producer over all phases. Rates of sending leave out the drain,
// which may be long: the producer only waits for answers in it.
func producerMetrics(d *report.Document, o *producerOptions) *kafkaMetrics {
	var t measure.Counts
	var sending, sent, sentWire float64 // s, records and bytes without the drain
	seconds := 0.0
	for i := range d.Phases {
		ph := &d.Phases[i]
		t.Add(ph.Totals.Counts)
		seconds = max(seconds, ph.EndS)
		if length := ph.EndS - ph.StartS; ph.Name != measure.Drain {
			events, _, wire := ph.Totals.SendRates()
			sending, sent, sentWire = sending+length, sent+events*length, sentWire+wire*length
		}
	}
	const producer, ofTopic = "producer-metrics", "producer-topic-metrics"
	m, topic := newKafkaMetrics(o.client.clientID(producerClientID), d), "topic="+o.topic
	per := func(x, y float64) float64 {
		if y == 0 {
			return math.NaN()
		}
		return x / y
	}
	both := func(name string, n uint64, rate float64) {
		m.both(producer, name, float64(n), rate)
		m.both(ofTopic, name, float64(n), rate, topic)
	}
	errors := t.Failed + unknownRecords(t, o)
	both("record-send", t.Sent, per(sent, sending))
	both("record-error", errors, per(float64(errors), seconds))
	both("record-retry", t.Retries, per(float64(t.Retries), seconds))
	wire, requests := float64(t.WireBytes), float64(t.Batches)
	m.both(ofTopic, "byte", wire, per(sentWire, sending), topic)
	m.both(producer, "outgoing-byte", wire, per(sentWire, sending))
	m.add(producer, "incoming-byte-total", float64(d.Generator.ReadBytes))
	m.both(producer, "request", requests, per(requests*per(sent, float64(t.Sent)), sending))
	m.add(producer, "batch-size-avg", per(wire, requests))
	m.add(producer, "records-per-request-avg", per(float64(t.Sent), requests))
	m.add(producer, "record-size-avg", per(float64(t.Bytes), float64(t.Sent)))
	times := func(name string, of func(*report.Phase) *measure.Summary) {
		n, sum, most := uint64(0), 0.0, math.NaN()
		for i := range d.Phases {
			if s := of(&d.Phases[i]); s != nil && s.Count > 0 {
				n, sum = n+s.Count, sum+s.Mean*float64(s.Count)
				if math.IsNaN(most) || s.Max > most {
					most = s.Max
				}
			}
		}
		m.add(producer, name+"-avg", per(sum, float64(n))/1e3)
		m.add(producer, name+"-max", most/1e3)
	}
	times("request-latency", func(ph *report.Phase) *measure.Summary { return ph.Service })
	times("record-queue-time", func(ph *report.Phase) *measure.Summary { return ph.Batching })
	return m
}

// unknownRecords is the number of records without an expected answer.
func unknownRecords(t measure.Counts, o *producerOptions) uint64 {
	if acks, _ := o.client.get("acks"); acks == "0" {
		return 0
	}
	return t.Unknown
}
