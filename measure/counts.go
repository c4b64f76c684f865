package measure

import (
	"reflect"
	"strings"
)

// CountsOf is what became of the events of one phase, step or interval; N is int64 if it is a difference. All
// fields count events unless their unit says otherwise.
//
// The struct is the table of all counters: reports, rows, files, frames, metrics, panels and the fields that can be
// filtered come from it, so that a line here adds a counter to all of them. The tags are those of Counter.
//
// Two identities apply at the end of every run, and the engine checks them:
//
//	Offered = Sent + Dropped + Unsent
//	Sent    = Acked + Failed + Unknown
type CountsOf[N uint64 | int64] struct {
	Offered N `json:"offered" unit:"events" means:"due in the measurement" help:"Events due."`
	Sent    N `json:"sent" unit:"events" means:"handed to the system" help:"Events handed to the system."`
	Dropped N `json:"dropped" unit:"events" better:"less" means:"dropped at the in-flight limit" help:"Events dropped at the in-flight limit."`
	Unsent  N `json:"unsent" unit:"events" better:"less" means:"due, and not sent at the end" help:"Events due and not sent when the run ended."`
	Acked   N `json:"acked" unit:"events" better:"more" means:"accepted by the system" help:"Events acked."`
	Failed  N `json:"failed" unit:"events" better:"less" means:"refused for certain" help:"Events refused for certain."`
	Unknown N `json:"unknown" unit:"events" better:"less" means:"written, without a certain answer" help:"Events sent and without a certain answer."`

	Consumed N `json:"consumed" unit:"events" better:"more" means:"read by a consumer" help:"Events read by a consumer."`
	// Unread counts acked events (sent ones, if nothing is acknowledged) that a run which also reads did not read.
	Unread N `json:"unread,omitempty" unit:"events" better:"less" means:"acked, and never read" help:"Acked events that were to be read and were not." late:"1"`

	Retries    N `json:"retries" unit:"batches" better:"less" means:"attempts beyond the first" help:"Attempts beyond the first."`
	Batches    N `json:"batches" unit:"batches" means:"sent" help:"Batches sent."`
	Answered   N `json:"answered" unit:"batches" means:"answered, whatever the answer was" help:"Batches answered, whatever the answer was." metric:"answered_batches"`
	Bytes      N `json:"bytes" unit:"bytes" means:"of events, before compression" help:"Bytes of the events sent (or consumed), before compression." metric:"event_bytes" field:"bytes_moved"`
	AckedBytes N `json:"acked_bytes" label:"bytes acked" unit:"bytes" means:"of events that were acked" help:"Bytes of the events acked, before compression." metric:"acked_event_bytes"`
	WireBytes  N `json:"wire_bytes" label:"on the wire" unit:"bytes" means:"all bytes on the connections" help:"Bytes on the connections, with all overhead."`
}

// Counts are the counters of a phase, step or interval.
type Counts = CountsOf[uint64]

// A Counter describes a field of Counts, by its tags.
type Counter struct {
	Name   string // in reports and files: "acked"
	Label  string // for people
	Unit   string // "events", "batches" or "bytes"
	Better string // "less" or "more"; "": neither
	Means  string // in a few words
	Metric string // as a metric: "acked_events"
	Help   string // of the metric, and of the field
	Field  string // by which reports are filtered
	Late   bool   // it was added after files with columns for the others had been written: its column is at the end
	index  int
}

// Counters are all counters, in the order of tables.
var Counters = counters()

func counters() []Counter {
	var all []Counter
	for i, f := range reflect.VisibleFields(reflect.TypeFor[Counts]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		k := Counter{
			Name: name, Label: name, Metric: name, Field: name, index: i,
			Unit: f.Tag.Get("unit"), Better: f.Tag.Get("better"), Means: f.Tag.Get("means"), Help: f.Tag.Get("help"), Late: f.Tag.Get("late") != "",
		}
		if k.Unit == "events" {
			k.Metric += "_events"
		}
		for tag, to := range map[string]*string{"label": &k.Label, "metric": &k.Metric, "field": &k.Field} {
			if text := f.Tag.Get(tag); text != "" {
				*to = text
			}
		}
		all = append(all, k)
	}
	return all
}

// Of returns the value of a counter.
func (k *Counter) Of(c *Counts) uint64 { return reflect.ValueOf(c).Elem().Field(k.index).Uint() }

// Fields returns all counters, in the order of the table.
func (c *CountsOf[N]) Fields() []*N {
	v := reflect.ValueOf(c).Elem()
	all := make([]*N, v.NumField())
	for i := range all {
		all[i] = v.Field(i).Addr().Interface().(*N)
	}
	return all
}

// Add adds o to c.
func (c *CountsOf[N]) Add(o CountsOf[N]) {
	from := o.Fields()
	for i, to := range c.Fields() {
		*to += *from[i]
	}
}

// Subtract subtracts o from c.
func (c *CountsOf[N]) Subtract(o CountsOf[N]) {
	from := o.Fields()
	for i, to := range c.Fields() {
		*to -= *from[i]
	}
}

// Signed converts counts for a difference.
func Signed(c Counts) (out CountsOf[int64]) {
	from := c.Fields()
	for i, to := range out.Fields() {
		*to = int64(*from[i])
	}
	return out
}

// IsZero reports whether nothing was counted.
func (c CountsOf[N]) IsZero() bool { return c == CountsOf[N]{} }
