package riemannload

import (
	"fmt"
	"strings"
	"time"
)

// Metrics are grouped by the class that owns them. The class of throughput is not
// known.
const (
	workerGroup     = "org.robotninjas.riemann.load.ClientWorker"
	unackedGroup    = "org.robotninjas.riemann.load.InstrumentedBlockingQueue"
	throughputGroup = "org.robotninjas.riemann.load.InstrumentedClientModule"
	bufferedGroup   = "org.robotninjas.riemann.load.InstrumentedQueue"
)

const (
	consoleWidth = 80
	consoleTime  = "1/2/06 3:04:05 PM"
)

// block is one block of all metrics in the form of Yammer's reporter: a time, then
// groups and names in order.
func (m *riemannMetrics) block(now time.Time) string {
	var b strings.Builder
	at := now.Format(consoleTime)
	fmt.Fprintf(&b, "%s %s\n", at, strings.Repeat("=", consoleWidth-len(at)-1))
	b.WriteString(workerGroup + ":\n")
	m.acks.write(&b)
	m.events.write(&b)
	m.rtt.write(&b)
	m.sends.write(&b)
	b.WriteString("\n" + unackedGroup + ":\n")
	writeGauge(&b, "unacked", m.unacked)
	b.WriteString("\n" + throughputGroup + ":\n")
	m.bytes.write(&b)
	b.WriteString("\n" + bufferedGroup + ":\n")
	writeGauge(&b, "buffered-sends", 0)
	b.WriteString("\n\n")
	return b.String()
}

func writeGauge(b *strings.Builder, name string, v uint64) {
	fmt.Fprintf(b, "  %s:\n    value = %d\n\n", name, v)
}

func (m *meter) write(b *strings.Builder) {
	m.lines(b)
	b.WriteString("\n")
}

func (m *meter) lines(b *strings.Builder) {
	fmt.Fprintf(b, "  %s:\n             count = %d\n", m.name, m.count)
	fmt.Fprintf(b, "         mean rate = %2.2f %s/s\n", m.mean(), m.unit)
	fmt.Fprintf(b, "     1-minute rate = %2.2f %s/s\n", m.minutes(0), m.unit)
	fmt.Fprintf(b, "     5-minute rate = %2.2f %s/s\n", m.minutes(1), m.unit)
	fmt.Fprintf(b, "    15-minute rate = %2.2f %s/s\n", m.minutes(2), m.unit)
}

func (t *timer) write(b *strings.Builder) {
	t.lines(b)
	h := t.shown()
	for _, line := range []struct {
		name string
		s    float64
	}{
		{"min =", h.Min().Seconds()},
		{"max =", h.Max().Seconds()},
		{"mean =", h.Mean().Seconds()},
		{"stddev =", deviation(h)},
		{"median =", t.percentile(50)},
		{"75% <=", t.percentile(75)},
		{"95% <=", t.percentile(95)},
		{"98% <=", t.percentile(98)},
		{"99% <=", t.percentile(99)},
		{"99.9% <=", t.percentile(99.9)},
	} {
		fmt.Fprintf(b, "%20s %2.2fs\n", line.name, line.s)
	}
	b.WriteString("\n")
}
