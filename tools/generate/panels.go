package main

import (
	"math"
	"strconv"

	"carronade/measure"
)

// rows are the panels of a dashboard, by the rows that contain them.
func (s *source) rows() []row {
	runs := panel{title: "Runs", about: "The selected runs, with the labels of their reports.", kind: "table", width: 20, height: 6, queries: []query{{"last_over_time(" + s.info + "[$__range])", ""}}}
	state := []panel{runs, {
		title: "Active runs", about: "Runs that have begun and not ended.", kind: "stat", width: 4, height: 6, unit: "none",
		queries: []query{{"sum(" + s.active + s.selected + s.filter + ")", "active"}},
	}}
	if s.phases {
		state[0].width = 12
		state = append(state, panel{
			title: "Phase", about: "The phase that a run is in. Only the measurement counts in its report.", kind: "state-timeline", width: 8, height: 6,
			queries: []query{{s.gauge("carronade_phase"), s.legend("{{phase}}")}},
		})
	}
	shown := map[string]bool{}
	// counters is a panel of counters: legends and names, alternately; and those of a unit that no panel before shows.
	counters := func(title, about, unit, of string, named ...string) panel {
		metrics := map[string]string{}
		for _, k := range measure.Counters {
			metrics[k.Name] = "carronade_" + k.Metric + "_total"
		}
		for i := 1; i < len(named); i += 2 {
			shown[named[i]] = true
			named[i] = metrics[named[i]]
		}
		for _, k := range measure.Counters {
			if k.Unit == of && !shown[k.Name] {
				named = append(named, k.Label, metrics[k.Name])
			}
		}
		return s.counts(title, about, unit, named...)
	}
	return []row{
		{"Runs", state},
		{"Rates", []panel{
			counters("Events", "Events a second, in all phases: offered (due), sent, acked, and failed (certainly refused).", "cps", "",
				"offered", "offered", "sent", "sent", "acked", "acked", "failed", "failed"),
			counters("Events without an ack", "Events a second: failed (certainly refused), unknown (sent, without a certain answer), dropped at the in-flight limit, and unsent when the run ended.", "cps", "",
				"failed", "failed", "unknown", "unknown", "dropped", "dropped", "unsent", "unsent"),
			counters("Batches", "Batches a second: sent, answered (whatever the answer was), and attempts beyond the first.", "cps", "batches",
				"sent", "batches", "answered", "answered", "retried", "retries"),
			s.counts("Answers", "Batches answered a second, by status code. Only systems that answer with codes have them.", "cps",
				"{{code}}", "carronade_answers_total"),
			counters("Bytes", "Bytes a second: of events sent or consumed and of events acked, both before compression, and on the connections with all overhead.", "Bps", "bytes",
				"events", "bytes", "acked events", "acked_bytes", "connections", "wire_bytes"),
			counters("Consumed events", "Events a second that a consumer read, and acked ones that a run which also reads has given up waiting for.", "cps", "events",
				"consumed", "consumed", "unread", "unread"),
		}},
		{"Times", []panel{
			s.percentiles("Response time", "Of acked events: done - due. It includes the time that an event waited before it was sent.", "response"),
			s.heatmap("Response time, all", "Acked events a second, by response time, over all selected runs.", "response"),
			s.percentiles("Service time", "Of answered batches: done - sent.", "service"),
			s.heatmap("Service time, all", "Answered batches a second, by service time, over all selected runs.", "service"),
			s.percentiles("End-to-end time", "Of events that were written and read back: consumed - due, or consumed - sent without a schedule.", "end_to_end"),
			s.heatmap("End-to-end time, all", "Consumed events a second, by end-to-end time, over all selected runs.", "end_to_end"),
		}},
		{"Backlog and generator", []panel{
			s.gauges("In flight", "Events sent and not yet done.", "none", "in flight", "carronade_in_flight_events"),
			s.gauges("Behind", "Consuming: events behind the end of the logs.", "none", "behind", "carronade_behind_events"),
			s.percentiles("Send delay", "The generator's own lateness of sent events. If it is large compared to the response time, the generator was too slow, and the report says whether the run is trusted.", "send_delay"),
			s.counts("Processors of the generator", "Processors that the generator used. 1 is one whole processor.", "none", "processors", s.cpu),
			s.gauges("Memory of the generator", "Its resident memory.", "bytes", "resident", "carronade_generator_resident_memory_bytes"),
		}},
	}
}

// A row is a title, and the panels below it.
type row struct {
	title  string
	panels []panel
}

// A panel shows queries.
type panel struct {
	title, about string // about is the text that Grafana shows at the title
	kind         string // Grafana's name of the panel
	width        int    // of 24
	height       int
	unit         string // Grafana's name of the unit
	queries      []query
}

// A query is an expression in PromQL, and the names of its series.
type query struct{ expr, legend string }

// counts is a panel of the growth of counters. named are names and metrics, alternately.
func (s *source) counts(title, about, unit string, named ...string) panel {
	return s.lines(title, about, unit, s.rate, named)
}

// gauges is a panel of gauges. named are names and metrics, alternately.
func (s *source) gauges(title, about, unit string, named ...string) panel {
	return s.lines(title, about, unit, s.gauge, named)
}

func (s *source) lines(title, about, unit string, expr func(string) string, named []string) panel {
	p := panel{title: title, about: about, kind: "timeseries", width: 12, height: 8, unit: unit}
	for i := 0; i < len(named); i += 2 {
		p.queries = append(p.queries, query{expr(named[i+1]), s.legend(named[i])})
	}
	return p
}

// percentiles is a panel of percentiles of a time.
func (s *source) percentiles(title, about, time string) panel {
	p := panel{title: title, about: about, kind: "timeseries", width: 12, height: 8, unit: "s"}
	for _, q := range measure.PercentilesOf(measure.Brief) {
		share := strconv.FormatFloat(math.Round(q*1e4)/1e6, 'f', -1, 64)
		p.queries = append(p.queries, query{s.percentile(share, time), s.legend(measure.PercentileName(q))})
	}
	return p
}

// heatmap is a panel of all values of a time.
func (s *source) heatmap(title, about, time string) panel {
	return panel{title: title, about: about, kind: "heatmap", width: 12, height: 8, unit: "s", queries: []query{{s.buckets(time), "{{le}}"}}}
}
