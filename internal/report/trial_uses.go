package report

import (
	"math"
	"slices"
	"strings"

	"carronade/internal/verdict/find"
)

// uses are the resources of a trial that have a bound: those of the system if it was watched, of
// this machine, and of the generator.
func uses(d *Document) (all []find.Use) {
	add := func(resource string, used, bound float64, unit string) {
		if bound > 0 && !math.IsNaN(used) { // clocks differ: a mean may exceed its bound
			used = min(used, bound)
			all = append(all, find.Use{Resource: resource, Used: used, Bound: bound, Unit: unit})
		}
	}
	mean := d.gaugeMean
	host, _ := d.Machine()
	processors := float64(host.Cores)
	if host.CPULimit > 0 && startedSystem(d) { // a system that runs elsewhere has not the limit of this process
		processors = min(processors, host.CPULimit)
	}
	memory := float64(host.Memory)

	cores, limited := systemLimit(d, "cpu_limit")
	if !limited {
		cores = processors
	}
	add("processors of the system", mean("system", "CPU"), cores, "processors")
	bytes, limited := systemLimit(d, "memory_limit_bytes")
	if !limited {
		bytes = memory
	}
	add("memory of the system", mean("system", "RSS"), bytes, "bytes")
	add("collector of the system", pauses(d), 1, "")
	for i := range d.Gauges {
		if g := &d.Gauges[i]; g.From != "host" && isIdle(g.Name) && g.Mean != nil {
			add(g.Name+" (busy)", 1-*g.Mean, 1, "")
		}
	}

	add("processors of this machine", mean("host", "CPU"), float64(host.Cores), "processors")
	add("memory of this machine", memory-mean("host", "memory available"), memory, "bytes")
	add("memory pressure of this machine", mean("host", "memory pressure")/100, 1, "")
	add("I/O pressure of this machine", mean("host", "I/O pressure")/100, 1, "")
	mbit := 0 // of all interfaces: which of them the load uses is not known
	for _, n := range host.Network {
		mbit += n.Mbit
	}
	add("network of this machine, received", mean("host", "received"), float64(mbit)*1e6/8, "bytes/s")
	add("network of this machine, sent", mean("host", "sent"), float64(mbit)*1e6/8, "bytes/s")

	add("the generator's processors", d.Generator.CPUShare, 1, "")
	add("the generator's busiest thread", d.Generator.Busy, 1, "")
	add(find.Window, d.Generator.BoundFull, 1, "")
	add(find.Busiest, d.Generator.BoundFullMost, 1, "")
	return all
}

// gaugeMean is the mean of a gauge over the measurement, NaN if it is not known.
func (d *Document) gaugeMean(from, name string) float64 {
	for i := range d.Gauges {
		if g := &d.Gauges[i]; g.From == from && g.Name == name && g.Mean != nil {
			return *g.Mean
		}
	}
	return math.NaN()
}

// others are the processors of this machine that neither the generator nor the system that was watched
// used, and those that a hypervisor gave to other machines: on average, and in the busiest second.
func others(d *Document) (mean find.Use, most float64) {
	host, _ := d.Machine()
	used := d.gaugeMean("host", "CPU")
	if host.Cores == 0 || math.IsNaN(used) || d.Totals.ElapsedS <= 0 {
		return mean, 0
	}
	for _, x := range []float64{d.gaugeMean("host", "steal") / 100 * float64(host.Cores), -d.gaugeMean("system", "CPU"), -d.Generator.CPUS / d.Totals.ElapsedS} {
		if !math.IsNaN(x) {
			used += x
		}
	}
	within := func(v float64) float64 { return min(max(v, 0), float64(host.Cores)) }
	most = used
	for i := range d.Gauges {
		if g := &d.Gauges[i]; g.From == "host" && g.Name == "CPU" {
			most += max(0, busiestSecond(g)-*g.Mean)
		}
	}
	return find.Use{Resource: "other programs", Used: within(used), Bound: float64(host.Cores), Unit: "processors"}, within(most)
}

// busiestSecond is the highest mean of a second: a shorter one says little, because the kernel counts in
// steps of 10 ms.
func busiestSecond(g *Gauge) (most float64) {
	sums, counts := map[int]float64{}, map[int]float64{}
	for _, p := range g.Points {
		sums[int(p.AtS)] += p.Value
		counts[int(p.AtS)]++
	}
	full := 0.0 // points of a second that is whole
	for _, n := range counts {
		full = max(full, n)
	}
	for second, n := range counts {
		if 2*n >= full {
			most = max(most, sums[second]/n)
		}
	}
	return most
}

// startedSystem reports whether the run started the system as a process of its own.
func startedSystem(d *Document) bool {
	return slices.ContainsFunc(d.Settings, func(s Setting) bool { return s.Name == "system-cmd" && s.Value != "" })
}

// systemLimit is a limit that the system was given, from the facts of its report.
func systemLimit(d *Document, name string) (limit float64, ok bool) {
	if d.System == nil {
		return 0, false
	}
	switch n := d.System.Facts[name].(type) {
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	case float64: // also after JSON decoding
		return n, true
	}
	return 0, false
}

// isIdle reports whether a metric is the idle share of threads, such as a broker's
// RequestHandlerAvgIdlePercent, which is from 0 to 1.
func isIdle(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "_", ""))
	return strings.Contains(name, "avgidlepercent") && !strings.Contains(name, "rate")
}

// pauses is the share of the time in which the collector stopped the system.
func pauses(d *Document) float64 {
	for i := range d.Gauges {
		g := &d.Gauges[i]
		if n := len(g.Points); g.From == "system" && g.Name == "GC pause time" && g.Mean != nil && n > 1 {
			apart := (g.Points[n-1].AtS - g.Points[0].AtS) / float64(n-1)
			return *g.Mean / 1e3 / apart
		}
	}
	return math.NaN()
}
