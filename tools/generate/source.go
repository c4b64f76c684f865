package main

// A source is a way in which Prometheus gets the metrics. It decides their names and labels.
type source struct {
	uid, title, about string
	// active and cpu are the metrics whose names differ.
	active, cpu string
	// run is the metric that has a series for each run, and runLabel is its label that
	// has the ID of the report.
	run, runLabel string
	// info selects the series that have the labels of the reports, one for each run.
	info string
	// join adds runLabel to series that do not have it, and keeps the selected runs;
	// filter only keeps them. Both are empty if all series have the label.
	join, filter string
	// selected selects the series of the selected targets, operations and runs, as far
	// as all metrics have such labels.
	selected string
	// classic is true if histograms may have classic buckets.
	classic bool
	// phases is true if the phase and the start of a run are exported.
	phases bool
}

// scraped is what Prometheus scrapes from --metrics-addr. Only run_info has the ID of the run.
var scraped = source{
	uid: "carronade", title: "Carronade", about: "Runs of carronade run --metrics-addr, scraped by Prometheus.",
	active: "carronade_run_active", cpu: "carronade_generator_cpu_seconds_total",
	run: "carronade_run_info", runLabel: "id",
	info:     `carronade_run_info{target=~"$target", op=~"$op", id=~"$run"}`,
	join:     ` * on (job, instance, target, op) group_left (id) carronade_run_info{id=~"$run"}`,
	filter:   ` and on (job, instance, target, op) carronade_run_info{id=~"$run"}`,
	selected: `{target=~"$target", op=~"$op"}`,
	classic:  true, phases: true,
}

// received is what Prometheus receives by OTLP. The label instance has the ID of the run.
var received = source{
	uid: "carronade-otlp", title: "Carronade (OTLP)", about: "Runs of carronade run --otlp, received by Prometheus.",
	active: "carronade_run_active_ratio", cpu: "carronade_generator_cpu_time_seconds_total",
	run: "carronade_run_active_ratio", runLabel: "instance",
	info:     `target_info{job="carronade", carronade_target=~"$target", carronade_op=~"$op", instance=~"$run"}`,
	selected: `{target=~"$target", op=~"$op", instance=~"$run"}`,
}

// legend names a series: the name, and the run it belongs to.
func (s *source) legend(name string) string { return name + " {{" + s.runLabel + "}}" }

// gauge is the query of a gauge.
func (s *source) gauge(metric string) string { return metric + s.selected + s.join }

// rate is the query of how much a counter grows a second.
func (s *source) rate(metric string) string {
	return "rate(" + metric + s.selected + window + ")" + s.join
}

// window is the range of rates. Grafana makes it at least four scrapes long.
const window = "[$__rate_interval]"

// percentile is the query of a percentile of a time, such as 0.99. Native buckets are narrower
// than classic ones, so they are used where Prometheus has them.
func (s *source) percentile(share, time string) string {
	of := func(suffix string) string {
		return "histogram_quantile(" + share + ", rate(carronade_" + time + "_seconds" + suffix + s.selected + window + "))"
	}
	if !s.classic {
		return of("") + s.join
	}
	return "(" + of("") + " or " + of("_bucket") + ")" + s.join
}

// buckets is the query of a heat map: the values a second in each bucket, over all selected runs.
func (s *source) buckets(time string) string {
	rate := func(suffix string) string {
		return "rate(carronade_" + time + "_seconds" + suffix + s.selected + window + ")" + s.filter
	}
	if !s.classic {
		return "sum(" + rate("") + ")"
	}
	return "sum(" + rate("") + ") or on () sum by (le) (" + rate("_bucket") + ")"
}
