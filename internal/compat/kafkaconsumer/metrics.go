package kafkaconsumer

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"carronade/internal/report"
)

// metrics prints the table of --print-metrics: what of the Java consumer's
// metrics is known here, by its names.
func metrics(w io.Writer, d *report.Document) {
	id := setting(d, "client-id")
	rows := map[string]float64{}
	add := func(group, name string, value float64, tags ...string) {
		rows[fmt.Sprintf("%s:%s:{%s}", group, name, strings.Join(append([]string{"client-id=" + id}, tags...), ", "))] = value
	}
	const fetching, nodes = "consumer-fetch-manager-metrics", "consumer-node-metrics"
	add(fetching, "records-consumed-total", float64(d.Totals.Consumed))
	add(fetching, "records-consumed-rate", d.Totals.EventsPerS)
	add(fetching, "bytes-consumed-total", float64(d.Totals.Bytes))
	add(fetching, "bytes-consumed-rate", d.Totals.BytesPerS)
	add("consumer-coordinator-metrics", "rebalance-latency-total", d.Totals.RebalanceS*1e3)
	if n, known := lag(d); known {
		add(fetching, "records-lag", float64(n))
	}
	for _, c := range d.Clients {
		node := "node-id=node-" + strings.Fields(c.Broker + " ")[0]
		add(nodes, "request-total", float64(c.Requests), node)
		add(nodes, "incoming-byte-total", float64(c.WireBytes), node)
		add(nodes, "records-per-request-avg", c.EventsPerBatch, node)
		add(nodes, "fetch-throttle-time-total", c.ThrottleSeconds*1e3, node)
		add(nodes, "reconnect-total", float64(c.Reconnects), node)
	}
	table(w, rows)
}

// table prints metrics in the order of their names.
func table(w io.Writer, rows map[string]float64) {
	width := 0
	for name := range rows {
		width = max(width, len(name))
	}
	fmt.Fprintf(w, "\n%-*s   %s\n", width, "Metric Name", "Value")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(w, "%-*s : %.3f\n", width, name, rows[name])
	}
}

func setting(d *report.Document, name string) string {
	for _, s := range d.Settings {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}

// lag is how many records are left behind the reader.
func lag(d *report.Document) (n int64, known bool) {
	for _, l := range d.Logs {
		if l.Behind < 0 {
			return 0, false
		}
		n += l.Behind
	}
	return n, len(d.Logs) > 0
}
