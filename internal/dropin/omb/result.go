package omb

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"carronade/internal/dropin"
)

// A result is what a result file has. Rates are a second, publish and end-to-end times milliseconds, and
// publish delays microseconds.
type result struct {
	*pair
	periods                  []period
	latency, delay, endToEnd times
}

// A member is a name with a value in an object. Objects are printed as Java's library does it.
type member struct {
	name  string
	value any // string, int, float64, []float64 (as decimals), []int64, []string, object or nil
}

type object []member

// write prints an object with the given indentation.
func (o object) write(b *bytes.Buffer, indent int) {
	if len(o) == 0 {
		b.WriteString("{ }")
		return
	}
	b.WriteString("{\n")
	for i, m := range o {
		b.WriteString(strings.Repeat("  ", indent+1) + quoted(m.name) + " : ")
		switch v := m.value.(type) {
		case nil:
			b.WriteString("null")
		case string:
			b.WriteString(quoted(v))
		case bool:
			b.WriteString(strconv.FormatBool(v))
		case int:
			b.WriteString(strconv.Itoa(v))
		case int64:
			b.WriteString(strconv.FormatInt(v, 10))
		case float64:
			b.WriteString(decimal(v))
		case []float64:
			writeList(b, v, decimal)
		case []int64:
			writeList(b, v, func(n int64) string { return strconv.FormatInt(n, 10) })
		case []string:
			writeList(b, v, quoted)
		case object:
			v.write(b, indent+1)
		}
		if i < len(o)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString(strings.Repeat("  ", indent) + "}")
}

func (o object) String() string {
	var b bytes.Buffer
	o.write(&b, 0)
	return b.String()
}

func writeList[T any](b *bytes.Buffer, list []T, one func(T) string) {
	b.WriteString("[ ")
	for i, v := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(one(v))
	}
	if len(list) > 0 {
		b.WriteByte(' ')
	}
	b.WriteByte(']')
}

func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // to memory
	return strings.TrimSuffix(b.String(), "\n")
}

// decimal is a number as Java writes it.
func decimal(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return quoted(dropin.JavaDouble(x))
	}
	return dropin.JavaDouble(x)
}

// object is the result file.
func (r *result) object() object {
	o := object{
		{"workload", r.spec.name},
		{"driver", r.driver.name},
		{"messageSize", r.size},
		{"topics", r.topics},
		{"partitions", r.partitions},
		{"producersPerTopic", r.producers},
		{"consumersPerTopic", r.consumers},
		{"publishRate", r.list(func(p *period) float64 { return p.published })},
		{"publishErrorRate", r.list(func(p *period) float64 { return p.failed })},
		{"consumeRate", r.list(func(p *period) float64 { return p.consumed })},
	}
	backlog := make([]int64, len(r.periods))
	for i := range r.periods {
		if unread := r.periods[i].backlog; unread > 0 { // not a NaN, which is that of workers
			backlog[i] = int64(unread)
		}
	}
	o = append(o, member{"backlog", backlog})
	lists := func(name string, unit float64, whole bool, of func(*period) *times) {
		o = append(o, member{name + "Avg", r.list(func(p *period) float64 { return of(p).mean / unit })})
		for _, at := range percents {
			values := r.list(func(p *period) float64 { return of(p).at[at.p] / unit })
			o = append(o, member{name + at.name, values})
			if whole {
				o[len(o)-1].value = wholes(values)
			}
		}
	}
	totals := func(name string, unit float64, whole bool, t *times) {
		name = "aggregated" + name
		o = append(o, member{name + "Avg", t.mean / unit})
		for _, at := range percents {
			if o = append(o, member{name + at.name, t.at[at.p] / unit}); whole {
				o[len(o)-1].value = int64(t.at[at.p])
			}
		}
	}
	quantiles := func(name string, unit float64, whole bool, t *times) {
		all := object{}
		for _, q := range t.quantiles {
			if all = append(all, member{dropin.JavaDouble(q.p), q.us / unit}); whole {
				all[len(all)-1].value = int64(q.us)
			}
		}
		o = append(o, member{"aggregated" + name + "Quantiles", all})
	}
	lists("publishLatency", 1e3, false, func(p *period) *times { return &p.latency })
	lists("publishDelayLatency", 1, true, func(p *period) *times { return &p.delay })
	totals("PublishLatency", 1e3, false, &r.latency)
	totals("PublishDelayLatency", 1, true, &r.delay)
	quantiles("PublishLatency", 1e3, false, &r.latency)
	quantiles("PublishDelayLatency", 1, true, &r.delay)
	lists("endToEndLatency", 1e3, false, func(p *period) *times { return &p.endToEnd })
	quantiles("EndToEndLatency", 1e3, false, &r.endToEnd)
	totals("EndToEndLatency", 1e3, false, &r.endToEnd)
	return o
}

// list is a number of each period.
func (r *result) list(of func(*period) float64) []float64 {
	out := make([]float64, len(r.periods))
	for i := range r.periods {
		out[i] = of(&r.periods[i])
	}
	return out
}

// wholes are whole numbers.
func wholes(values []float64) []int64 {
	out := make([]int64, len(values))
	for i, v := range values {
		out[i] = int64(v)
	}
	return out
}
