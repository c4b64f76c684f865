package kafkaconsumer

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"carronade/internal/report"
)

// The default client ids.
const (
	clientID      = "perf-consumer-client"
	shareClientID = "perf-share-consumer-client"
)

// rows is a table of --print-metrics: values by GROUP:NAME:{TAGS}.
type rows struct {
	values map[string]string
	client string // tag of all rows
}

func newRows(id string, d *report.Document) *rows {
	r := &rows{values: map[string]string{}, client: "client-id=" + id}
	r.values["app-info:version:{"+r.client+"}"] = "carronade " + d.Version
	return r
}

// add adds a number, with tags in addition to the client's.
func (r *rows) add(group, name string, value float64, tags ...string) {
	key := fmt.Sprintf("%s:%s:{%s}", group, name, strings.Join(append([]string{r.client}, tags...), ", "))
	r.values[key] = fmt.Sprintf("%.3f", value)
}

// both adds a total and its rate.
func (r *rows) both(group, name string, total, seconds float64) {
	rate := 0.0
	if seconds > 0 {
		rate = total / seconds
	}
	r.add(group, name+"-total", total)
	r.add(group, name+"-rate", rate)
}

// metrics prints the table of --print-metrics: those metrics of the Java consumer
// that are measured here, with its names and meanings. Metrics that it does not
// have are in the group carronade. Rates cover the whole run.
func metrics(w io.Writer, d *report.Document, s *settings) {
	id, ok := s.props.Get("client.id")
	if !ok {
		id = clientID
	}
	const fetching, ownGroup = "consumer-fetch-manager-metrics", "carronade"
	r, seconds := newRows(id, d), d.Totals.ElapsedS
	r.both(fetching, "records-consumed", float64(d.Totals.Consumed), seconds)
	r.both(fetching, "bytes-consumed", float64(d.Totals.Bytes), seconds)
	r.both("consumer-metrics", "incoming-byte", float64(d.Generator.ReadBytes), seconds)
	fetches := uint64(0)
	for _, c := range d.Clients {
		fetches += c.Requests
	}
	r.both(fetching, "fetch", float64(fetches), seconds)
	for _, l := range d.Logs {
		if i := strings.LastIndexByte(l.Log, '-'); i > 0 && l.Lag >= 0 {
			r.add(fetching, "records-lag", float64(l.Lag), "topic="+l.Log[:i], "partition="+l.Log[i+1:])
		}
	}
	r.add(ownGroup, "without-assignment-ms-total", d.Totals.RebalanceS*1e3)
	for _, c := range d.Clients {
		node := "node-id=node-" + strings.Fields(c.Broker + " ")[0]
		r.add(ownGroup, "fetch-total", float64(c.Requests), node)
		r.add(ownGroup, "throttle-ms-total", c.ThrottleSeconds*1e3, node)
		r.add(ownGroup, "reconnect-total", float64(c.Reconnects), node)
	}
	r.print(w)
}

// shareMetrics prints a table for each consumer of a share group.
func shareMetrics(w io.Writer, d *report.Document, s *shareSettings) {
	const fetching = "consumer-share-fetch-manager-metrics"
	for i, m := range s.members(d) {
		r := newRows(s.clientID(i), d)
		r.both(fetching, "records-consumed", float64(m.events), d.Totals.ElapsedS)
		r.both(fetching, "bytes-consumed", float64(m.bytes), d.Totals.ElapsedS)
		r.print(w)
	}
}

// print prints metrics sorted by name.
func (r *rows) print(w io.Writer) {
	width := 0
	for name := range r.values {
		width = max(width, len(name))
	}
	fmt.Fprintf(w, "\n%-*s   %s\n", width, "Metric Name", "Value")
	for _, name := range slices.Sorted(maps.Keys(r.values)) {
		fmt.Fprintf(w, "%-*s : %s\n", width, name, r.values[name])
	}
}
