package kafkaproducer

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"carronade/internal/report"
	"carronade/measure"
)

// A metric is a row of --print-metrics: one of the Java client's names and the
// value measured here. Rates cover the whole run, not its last half minute.
type metric struct {
	name  string
	value float64 // NaN: nothing was measured
	text  string  // instead of a value
}

// metrics are the Java producer's metrics that a report contains.
func metrics(d *report.Document, o *options) []metric {
	var t measure.Counts
	seconds := 0.0
	for _, ph := range d.Phases {
		t.Add(ph.Totals.Counts)
		seconds = max(seconds, ph.EndS)
	}
	id, ok := o.client.Get("client.id")
	if !ok {
		id = clientID
	}
	client, topic := "{client-id="+id+"}", "{client-id="+id+", topic="+o.topic+"}"
	per := func(x, y float64) float64 {
		if y == 0 {
			return math.NaN()
		}
		return x / y
	}
	var out []metric
	add := func(group, name, tags string, v float64) {
		out = append(out, metric{name: group + ":" + name + ":" + tags, value: v})
	}
	both := func(name string, n uint64) {
		for group, tags := range map[string]string{"producer-metrics": client, "producer-topic-metrics": topic} {
			add(group, name+"-total", tags, float64(n))
			add(group, name+"-rate", tags, per(float64(n), seconds))
		}
	}
	both("record-send", t.Sent)
	both("record-error", t.Failed+unknown(t, o))
	both("record-retry", t.Retries)
	add("producer-topic-metrics", "byte-total", topic, float64(t.WireBytes))
	add("producer-topic-metrics", "byte-rate", topic, per(float64(t.WireBytes), seconds))
	add("producer-metrics", "outgoing-byte-total", client, float64(t.WireBytes))
	add("producer-metrics", "outgoing-byte-rate", client, per(float64(t.WireBytes), seconds))
	add("producer-metrics", "incoming-byte-total", client, float64(d.Generator.ReadBytes))
	add("producer-metrics", "request-total", client, float64(t.Batches))
	add("producer-metrics", "request-rate", client, per(float64(t.Batches), seconds))
	add("producer-metrics", "batch-size-avg", client, per(float64(t.WireBytes), float64(t.Batches)))
	add("producer-metrics", "records-per-request-avg", client, per(float64(t.Sent), float64(t.Batches)))
	add("producer-metrics", "record-size-avg", client, per(float64(t.Bytes), float64(t.Sent)))
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
		add("producer-metrics", name+"-avg", client, per(sum, float64(n))/1e3)
		add("producer-metrics", name+"-max", client, most/1e3)
	}
	times("request-latency", func(ph *report.Phase) *measure.Summary { return ph.Service })
	times("record-queue-time", func(ph *report.Phase) *measure.Summary { return ph.Batching })
	out = append(out, metric{name: "app-info:version:" + client, text: "carronade " + d.Version})
	slices.SortFunc(out, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	return out
}

// unknown is the number of records without an expected answer.
func unknown(t measure.Counts, o *options) uint64 {
	if acks, _ := o.client.Get("acks"); acks == "0" {
		return 0
	}
	return t.Unknown
}

// printMetrics writes the table as ToolsUtils does.
func printMetrics(w io.Writer, rows []metric) {
	longest := 0
	for _, r := range rows {
		longest = max(longest, len(r.name))
	}
	fmt.Fprintf(w, "\n%-*s   %s\n", longest, "Metric Name", "Value")
	for _, r := range rows {
		text := r.text
		if text == "" {
			text = strings.ReplaceAll(fmt.Sprintf("%.3f", r.value), "+Inf", "Infinity")
		}
		fmt.Fprintf(w, "%-*s : %s\n", longest, r.name, text)
	}
}
