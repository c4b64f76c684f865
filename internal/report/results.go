package report

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"

	"carronade/internal/verdict/trust"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// Value returns a result of the run. If it is not known, why says why: a clause for people.
func (d *Document) Value(r *workload.Result) (x float64, why string) {
	return d.valueIn(r, &d.Totals, 0)
}

// valueIn returns a result of the measurement or a step of it. rate is the step's target rate, 0 for
// the measurement. A verdict is 1 or 0.
func (d *Document) valueIn(r *workload.Result, t *Totals, rate float64) (x float64, why string) {
	if why := d.lacks(r.Needs, t); why != "" {
		return 0, why
	}
	known := true
	if compute, ok := computed[r.Name]; ok {
		x, why = compute(d, t, rate)
	} else {
		x, known = fieldsOf().read(d, t, r.Of)
	}
	if why == "" && (!known || r.Positive && x == 0) {
		why = unknownOf(r.Needs)
	}
	return x, why
}

// lacks says what a run did not do, or what was not watched, so that a need is not met; "" if it is.
func (d *Document) lacks(n workload.LimitNeed, t *Totals) string {
	reads := t.RateOf == RateConsumed
	switch n {
	case workload.NeedsSending, workload.NeedsSchedule:
		if reads {
			return "the run only reads"
		}
	case workload.NeedsReading:
		if !reads && t.Consumed+t.Unread == 0 {
			return "the run does not read"
		}
	case workload.NeedsCommits:
		if l := d.Ledger; l != nil && l.Committed+l.Aborted+l.Phantom == 0 {
			return "there were no transactions"
		}
	case workload.NeedsIndex:
		if d.Indexed == nil {
			return unknownOf(n)
		}
	case workload.NeedsSystem:
		if d.System == nil {
			return "the system was not watched; --system-cmd and --system-pid watch it"
		}
	case workload.NeedsBacklog:
		if d.Backlog == nil {
			return "the run built no backlog"
		}
	case workload.NeedsWatchdog:
		if d.Freezes.Longest == nil {
			return "freezes were not measured"
		}
	}
	return ""
}

// unknownOf says why a value that the report has a place for is not known.
func unknownOf(n workload.LimitNeed) string {
	switch n {
	case workload.NeedsIndex:
		return "no documents were counted behind the system"
	case workload.NeedsSystem:
		return "it is not known what the system used"
	case workload.NeedsDelivery, workload.NeedsCommits:
		return "the delivery was not checked"
	}
	return "it was not measured"
}

// computed are the results that no field of the report has. In each, "" says that the value is known.
var computed = map[string]func(d *Document, t *Totals, rate float64) (float64, string){
	"target-share": func(_ *Document, t *Totals, rate float64) (float64, string) {
		if rate == 0 && t.ElapsedS > 0 {
			rate = float64(t.Offered) / t.ElapsedS
		}
		if rate <= 0 {
			return 0, "nothing was due"
		}
		return t.EventsPerS / rate, ""
	},
	"failure-rate": func(_ *Document, t *Totals, _ float64) (float64, string) {
		bad := t.Failed
		if t.RateOf != RateSent { // there, no event has a certain answer
			bad += t.Unknown
		}
		return ofSent(t, bad)
	},
	"failure-share": func(_ *Document, t *Totals, _ float64) (float64, string) { return ofSent(t, t.Failed) },
	"unknown-share": func(_ *Document, t *Totals, _ float64) (float64, string) {
		if t.RateOf != RateAcked {
			return 0, "nothing is acknowledged"
		}
		return ofSent(t, t.Unknown)
	},
	"unread": func(d *Document, t *Totals, _ float64) (float64, string) {
		switch {
		case d.Ledger != nil: // that of the whole run
			return float64(d.Ledger.Unread), ""
		case t.RateOf == RateConsumed || t.Consumed+t.Unread == 0:
			return 0, unknownOf(workload.NeedsDelivery)
		}
		return float64(t.Unread), ""
	},
	"outage":  func(d *Document, _ *Totals, _ float64) (float64, string) { return knownTime(d, d.WorstOutage()) },
	"recover": func(d *Document, _ *Totals, _ float64) (float64, string) { return knownTime(d, d.WorstRecovery()) },
	"drain": func(d *Document, _ *Totals, _ float64) (float64, string) {
		if d.Backlog.State != BacklogDrained {
			return 0, "the backlog was not drained"
		}
		return *d.Backlog.DrainS, ""
	},
	"steady": func(d *Document, _ *Totals, _ float64) (float64, string) {
		return verdictOf(d.Steady.Known, d.Steady.OK)
	},
	"keeps-up": keepsUp,
	"backlog": func(d *Document, _ *Totals, _ float64) (float64, string) {
		return d.worst(func(g *Group) float64 { return float64(g.BacklogMost) }, math.Max)
	},
	"group.consumed": func(d *Document, _ *Totals, _ float64) (float64, string) {
		return d.worst(func(g *Group) float64 { return g.EventsPerS }, math.Min)
	},
	"unassigned": func(d *Document, _ *Totals, _ float64) (float64, string) {
		return d.worst(func(g *Group) float64 { return g.UnassignedS }, math.Max)
	},
	"not-found": func(d *Document, _ *Totals, _ float64) (float64, string) {
		if d.Ledger == nil {
			return 0, unknownOf(workload.NeedsDelivery)
		}
		return float64(d.Ledger.Lost + d.notFound()), ""
	},
	"send-rate": func(_ *Document, t *Totals, _ float64) (float64, string) {
		x, _, _ := t.SendRates()
		return whileSending(t, x)
	},
	"pushed": func(_ *Document, t *Totals, _ float64) (float64, string) {
		_, x, _ := t.SendRates()
		return whileSending(t, x)
	},
	"wire": func(_ *Document, t *Totals, _ float64) (float64, string) {
		_, _, x := t.SendRates()
		return whileSending(t, x)
	},
	"accepted": func(_ *Document, t *Totals, _ float64) (float64, string) {
		if t.RateOf != RateAcked {
			return 0, "nothing is acknowledged"
		}
		return whileSending(t, t.BytesPerS)
	},
	"per-batch": func(_ *Document, t *Totals, _ float64) (float64, string) {
		if n := t.accepted(); n > 0 {
			if rate := t.AnswerRate(n); rate > 0 {
				return whileSending(t, 1/rate)
			}
		}
		return 0, "no batch was accepted"
	},
	"read": func(_ *Document, t *Totals, _ float64) (float64, string) {
		return whileReading(t, float64(t.Bytes)/t.ElapsedS)
	},
	"rebalance": func(_ *Document, t *Totals, _ float64) (float64, string) { return whileReading(t, t.RebalanceS) },
	"fetch":     func(_ *Document, t *Totals, _ float64) (float64, string) { return whileReading(t, t.FetchS) },
	"cpu": func(d *Document, _ *Totals, _ float64) (float64, string) {
		if d.Generator.Processors == 0 {
			return 0, unknownOf(workload.NeedsSystem)
		}
		cores, why := systemCores(d)
		return cores / float64(d.Generator.Processors), why
	},
	"system-cores": func(d *Document, _ *Totals, _ float64) (float64, string) { return systemCores(d) },
	"freeze-longest": func(d *Document, _ *Totals, _ float64) (float64, string) {
		if len(d.Freezes.Longest) == 0 {
			return 0, ""
		}
		return d.Freezes.Longest[0].LengthS, ""
	},
}

func ofSent(t *Totals, n uint64) (float64, string) {
	if t.Sent == 0 {
		return 0, "no event was sent"
	}
	return float64(n) / float64(t.Sent), ""
}

func whileSending(t *Totals, x float64) (float64, string) {
	if t.ElapsedS <= 0 || t.Sent == 0 {
		return 0, "no event was sent"
	}
	return x, ""
}

func whileReading(t *Totals, x float64) (float64, string) {
	if t.ElapsedS <= 0 || t.Consumed == 0 {
		return 0, "no event was read"
	}
	return x, ""
}

// knownTime is the longest time of faults. A lower bound must not be taken for it.
func knownTime(d *Document, w WorstTimes) (float64, string) {
	if t := w.Known(); t != nil && d.Faults != nil {
		return t.S, ""
	}
	return 0, "it is not known of every fault"
}

func verdictOf(known, ok bool) (float64, string) {
	switch {
	case !known:
		return 0, "the run does not decide it"
	case ok:
		return 1, ""
	}
	return 0, ""
}

// keepsUp is the outcome of that limit: the intervals which decide it are not at hand in all reports.
func keepsUp(d *Document, _ *Totals, _ float64) (float64, string) {
	for _, c := range d.Checks {
		if c.Name == "keeps-up" {
			return verdictOf(!c.CannotTell, c.OK)
		}
	}
	return verdictOf(false, false)
}

// systemCores is how many processors were busy with the system.
func systemCores(d *Document) (float64, string) {
	length := d.EndedAt.Sub(d.StartedAt).Seconds()
	if d.System.CPUS <= 0 || length <= 0 {
		return 0, unknownOf(workload.NeedsSystem)
	}
	return d.System.CPUS / length, ""
}

// accepted is the number of accepted batches: by status if the protocol has one, otherwise the
// answered ones.
func (t *Totals) accepted() (n uint64) {
	if len(t.Statuses) == 0 {
		return t.Answered
	}
	for _, s := range t.Statuses {
		if s.Code/100 == 2 {
			n += s.Batches
		}
	}
	return n
}

// notFound is the number of events that were sent and not acked, and not found.
func (d *Document) notFound() uint64 {
	n := uint64(0)
	for i := range d.Phases {
		n += d.Phases[i].Totals.Failed + d.Phases[i].Totals.Unknown
	}
	found := d.Ledger.Recovered
	for i := range d.Ledger.Groups { // an event that some group did not find is counted
		g := &d.Ledger.Groups[i]
		if i == 0 || g.Recovered < found {
			found = g.Recovered
		}
	}
	return n - min(found, n)
}

// checkBacklog checks whether reading kept up with writing: a consumer by its lag, a round
// trip by what was acked (without acks: sent) and has not come back.
func (d *Document) checkBacklog() finding {
	if len(d.Groups) > 0 {
		return d.groupsKeepUp()
	}
	b := trust.Backlog{Read: d.Mode == load.Consuming}
	var ahead float64
	end := d.measurementEnd()
	for i := range d.Intervals {
		iv := &d.Intervals[i]
		behind := float64(iv.LagEvents)
		if d.Mode != load.Consuming {
			if ahead += float64(iv.Acked); d.Totals.RateOf == RateSent {
				ahead += float64(iv.Sent) - float64(iv.Failed)
			}
			if iv.EndToEnd != nil {
				ahead -= float64(iv.EndToEnd.Count)
			}
			behind = max(ahead, 0)
		}
		if iv.Phase == measure.Measurement && iv.StartS < end && behind >= 0 { // nothing is sent in the drain
			b.Add(units.Seconds(iv.EndS), units.Seconds(iv.EndS-iv.StartS), behind, float64(max(iv.Sent, iv.Consumed)))
		}
	}
	known, ok, text := b.KeepsUp()
	return d.blame(finding{holds: known && ok, open: !known, text: text})
}

// documentFields are the places of the results that a field of the report has.
type documentFields map[string][]int

// fieldsOf finds the places once. Names of JSON lead to them: "totals.failed".
var fieldsOf = sync.OnceValue(func() documentFields {
	all := documentFields{}
	for _, r := range workload.Results() {
		if r.Of != "" {
			all[r.Of] = placeOf(reflect.TypeFor[Document](), r.Of)
		}
	}
	return all
})

// placeOf is the index of a field below a struct. It panics if there is none: the table names it.
func placeOf(t reflect.Type, of string) (index []int) {
	for name := range strings.SplitSeq(of, ".") {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		found := false
		for _, f := range reflect.VisibleFields(t) {
			if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
				index, t, found = append(index, f.Index...), f.Type, true
				break
			}
		}
		if !found {
			panic(fmt.Sprintf("report: no field %s", of))
		}
	}
	return index
}

// read returns a field; false if it, or what has it, is null. Those of totals are of t.
func (all documentFields) read(d *Document, t *Totals, of string) (float64, bool) {
	v, place := reflect.ValueOf(d).Elem(), all[of]
	if strings.HasPrefix(of, "totals.") {
		v, place = reflect.ValueOf(t).Elem(), place[1:]
	}
	for _, i := range place {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return 0, false
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return 0, false
		}
		v = v.Elem()
	}
	switch {
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanInt():
		return float64(v.Int()), true
	}
	return v.Float(), true
}
