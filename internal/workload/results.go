package workload

import (
	"slices"
	"strings"
	"sync"

	"carronade/measure"
)

// A Result is a number or a verdict of a run that has a name of its own. Everything that can be
// limited, filtered, sorted by and collated is in one table of them; times and metrics have names
// of another form, see LimitTimes and MetricSources.
type Result struct {
	Name  string // in limits: "longest-stall"
	Field string // in filters and columns: "stall"; "": Name with underscores
	Kind  LimitKind
	Needs LimitNeed
	// Of is where the report has it: names of its JSON, such as "ledger.lost". Those of "totals" exist
	// for each step too. "": internal/report/results.go computes it.
	Of     string
	Better Better
	// Generator says that the generator may be the cause of a bad value.
	Generator bool
	// Positive says that 0 stands for a value that is not known.
	Positive bool
	// Stepwise says that a result without Of exists for each step, too.
	Stepwise bool
	Help     string
}

// Better is the direction in which a result is better.
type Better uint8

// The directions.
const (
	Neither Better = iota // neither: limits of both kinds make sense
	Less
	More
)

// A LimitNeed is what a run must do, or what must be watched, so that a result is known.
type LimitNeed uint8

// The needs.
const (
	NeedsNothing  LimitNeed = iota
	NeedsSending            // anything but consuming
	NeedsSchedule           // a rate or a shape
	NeedsReading            // events are consumed
	NeedsDelivery           // events are read back and counted one by one
	NeedsCommits            // also in transactions
	NeedsSystem             // the processes of the system are watched
	NeedsIndex              // documents behind the system are counted
	NeedsBacklog            // a backlog is built and drained
	NeedsWatchdog           // times in which the generator did not run are noted; all runs of today do
)

// Results lists all results, in the order of help. To add one, add a line, and its function to
// internal/report/results.go if the report has no field for it. A counter needs no line: see
// measure.Counts.
var Results = sync.OnceValue(func() []Result {
	all := slices.Concat([]Result{
		{Name: "throughput", Kind: RateKind, Of: "totals.events_per_s", Better: More, Generator: true, Help: "events acked (sent, consumed) a second"},
		{Name: "target-share", Kind: ShareKind, Needs: NeedsSchedule, Better: More, Generator: true, Stepwise: true, Help: "throughput as a share of the target rate"},
		{Name: "failure-rate", Kind: ShareKind, Needs: NeedsSending, Better: Less, Stepwise: true, Help: "failed and unknown events, as a share of those sent"},
		{Name: "failure-share", Kind: ShareKind, Needs: NeedsSending, Better: Less, Stepwise: true, Help: "failed of sent"},
		{Name: "unknown-share", Kind: ShareKind, Needs: NeedsSending, Better: Less, Stepwise: true, Help: "unknown of sent"},
	}, counterResults(), []Result{
		{Name: "missing", Kind: CountKind, Of: "totals.missing", Better: Less, Help: "events missing from --count"},
		{Name: "longest-stall", Field: "stall", Kind: DurationKind, Of: "stall.longest_s", Better: Less, Generator: true, Help: "longest gap in the answers"},
		{Name: "outage", Kind: DurationKind, Better: Less, Generator: true, Help: "longest time without an ack (an event, if the run only reads) after a fault, in the worst partition or connection"},
		{Name: "recover", Kind: DurationKind, Needs: NeedsSending, Better: Less, Generator: true, Help: "longest time from a fault until the limit on response holds again"},
		{Name: "steady", Kind: VerdictKind, Needs: NeedsSending, Help: "in flight and response time do not climb, and answers do not stop"},
		{Name: "keeps-up", Kind: VerdictKind, Needs: NeedsReading, Generator: true, Help: "reading keeps up with writing: the backlog does not grow"},
		{Name: "drain", Field: "drain_time", Kind: DurationKind, Needs: NeedsBacklog, Better: Less, Generator: true, Help: "time until a backlog was drained, by all groups (--backlog)"},
		{Name: "drain-rate", Kind: RateKind, Needs: NeedsBacklog, Of: "backlog.drained_events_per_s", Better: More, Generator: true, Help: "events read a second in that time, by all groups"},
		{Name: "build-time", Kind: DurationKind, Needs: NeedsBacklog, Of: "backlog.build_s", Help: "time until the backlog waited"},
		{Name: "backlog-max", Kind: CountKind, Needs: NeedsBacklog, Of: "backlog.most_events", Help: "events that waited for one group, at most"},

		{Name: "backlog", Field: "group_backlog", Kind: CountKind, Needs: NeedsReading, Better: Less, Generator: true, Help: "events acked and not read by a group of --groups, most at the end of an interval, in the worst group"},
		{Name: "group.consumed", Field: "group_consumed", Kind: RateKind, Needs: NeedsReading, Better: More, Generator: true, Help: "events that a group of --groups read a second, in the worst group"},
		{Name: "unassigned", Kind: DurationKind, Needs: NeedsReading, Better: Less, Help: "time that a group of --groups had no assignment, in the worst group"},

		{Name: "lost", Kind: CountKind, Needs: NeedsDelivery, Of: "ledger.lost", Better: Less, Help: "events acked and not found"},
		{Name: "not-found", Kind: CountKind, Needs: NeedsDelivery, Better: Less, Help: "events sent and not found, whatever the answer was"},
		{Name: "duplicated", Kind: CountKind, Needs: NeedsDelivery, Of: "ledger.duplicated", Better: Less, Help: "events found twice"},
		{Name: "reordered", Kind: CountKind, Needs: NeedsDelivery, Of: "ledger.reordered", Better: Less, Help: "events out of order"},
		{Name: "corrupted", Kind: CountKind, Needs: NeedsDelivery, Of: "ledger.corrupted", Better: Less, Help: "events altered"},
		{Name: "removed", Kind: CountKind, Needs: NeedsDelivery, Of: "ledger.removed", Better: Less, Help: "events acked, but removed before they were read"},
		{Name: "compacted", Kind: CountKind, Needs: NeedsDelivery, Of: "ledger.compacted", Help: "events acked, then removed by compaction"},
		{Name: "recovered", Kind: CountKind, Needs: NeedsDelivery, Of: "ledger.recovered", Help: "unknown events that were found"},
		{Name: "contradicted", Kind: CountKind, Needs: NeedsDelivery, Of: "ledger.contradicted", Better: Less, Help: "of these, refused for certain"},
		{Name: "committed", Kind: CountKind, Needs: NeedsCommits, Of: "ledger.committed", Help: "events acked in transactions that were committed"},
		{Name: "committed-read", Kind: CountKind, Needs: NeedsCommits, Of: "ledger.committed_read", Better: More, Help: "of these, found by a read_committed consumer"},
		{Name: "aborted", Kind: CountKind, Needs: NeedsCommits, Of: "ledger.aborted", Help: "events acked in transactions that were aborted"},
		{Name: "phantom", Kind: CountKind, Needs: NeedsCommits, Of: "ledger.phantom", Better: Less, Help: "events of aborted transactions found by a read_committed consumer"},

		{Name: "elapsed", Kind: DurationKind, Of: "totals.elapsed_s", Help: "length of the measurement"},
		{Name: "send-rate", Kind: RateKind, Needs: NeedsSending, Better: More, Generator: true, Help: "events sent a second in the measurement"},
		{Name: "pushed", Kind: SpeedKind, Needs: NeedsSending, Better: More, Generator: true, Help: "bytes of events sent in the measurement, before compression"},
		{Name: "accepted", Kind: SpeedKind, Needs: NeedsSending, Better: More, Generator: true, Help: "bytes of events acked, before compression"},
		{Name: "wire", Kind: SpeedKind, Needs: NeedsSending, Help: "bytes on the connections in the measurement"},
		{Name: "read", Kind: SpeedKind, Needs: NeedsReading, Better: More, Generator: true, Help: "bytes of events consumed"},
		{Name: "per-batch", Kind: DurationKind, Needs: NeedsSending, Better: Less, Generator: true, Help: "measurement over accepted batches: the inverse of their rate, not a waiting time"},
		{Name: "rebalance", Kind: DurationKind, Needs: NeedsReading, Better: Less, Help: "until the first event could be read"},
		{Name: "fetch", Kind: DurationKind, Needs: NeedsReading, Help: "the rest of a reading measurement"},
		{Name: "in-flight", Kind: NumberKind, Needs: NeedsSending, Of: "totals.in_flight_mean", Better: Less, Help: "events in flight, mean"},
		{Name: "in-flight-max", Kind: CountKind, Needs: NeedsSending, Of: "totals.in_flight_max", Better: Less, Help: "events in flight, most at the end of an interval"},
		{Name: "in-flight-peak", Kind: CountKind, Needs: NeedsSending, Of: "totals.in_flight_peak", Better: Less, Positive: true, Help: "events in flight, most at once"},

		{Name: "index-share", Kind: ShareKind, Needs: NeedsIndex, Of: "indexed.share", Better: More, Help: "documents indexed, of those expected"},
		{Name: "documents", Kind: CountKind, Needs: NeedsIndex, Of: "indexed.documents", Better: More, Help: "documents in the store behind the system at the end"},
		{Name: "indexed", Kind: RateKind, Needs: NeedsIndex, Of: "indexed.documents_per_s", Better: More, Help: "documents over the measurement"},

		{Name: "cpu", Kind: ShareKind, Needs: NeedsSystem, Better: Less, Help: "processor time of the system, as a share of its machine's"},
		{Name: "rss", Field: "max_rss", Kind: SizeKind, Needs: NeedsSystem, Of: "system.peak_rss_bytes", Better: Less, Positive: true, Help: "resident memory of the system, peak"},
		{Name: "system-cpu", Kind: DurationKind, Needs: NeedsSystem, Of: "system.cpu_s", Better: Less, Positive: true, Help: "processor time the system used"},
		{Name: "system-cores", Kind: NumberKind, Needs: NeedsSystem, Better: Less, Help: "the same over the run: processors that were busy with it"},
		{Name: "events-per-core", Kind: RateKind, Needs: NeedsSystem, Of: "system.events_per_cpu_s", Better: More, Help: "events acked a second of the system's processor time"},
		{Name: "efficiency", Kind: NumberKind, Needs: NeedsSystem, Of: "system.memory_efficiency", Better: More, Help: "bytes accepted a minute over the system's peak memory"},
		{Name: "gc-pauses", Kind: CountKind, Needs: NeedsSystem, Of: "system.gc_pauses", Better: Less, Positive: true, Help: "of the system's collector"},
		{Name: "gc-pause", Kind: DurationKind, Needs: NeedsSystem, Of: "system.gc_pause_s", Better: Less, Positive: true, Help: "of those, in all"},
		{Name: "gc-pause-max", Kind: DurationKind, Needs: NeedsSystem, Of: "system.gc_pause_max_s", Better: Less, Positive: true, Help: "of those, the longest"},

		{Name: "freezes", Kind: CountKind, Needs: NeedsWatchdog, Of: "freezes.count", Better: Less, Help: "times of 10 ms or longer in which the generator did not run"},
		{Name: "freeze-total", Kind: DurationKind, Needs: NeedsWatchdog, Of: "freezes.total_s", Better: Less, Help: "their total, within the measurement"},
		{Name: "freeze-longest", Kind: DurationKind, Needs: NeedsWatchdog, Better: Less, Help: "of those, the longest"},
		{Name: "generator-cpu", Kind: DurationKind, Of: "generator.cpu_s", Better: Less, Help: "processor time of the generator over the measurement"},
		{Name: "generator-cpu-share", Kind: ShareKind, Of: "generator.cpu_share", Better: Less, Help: "the same of all its processors"},
		{Name: "generator-max-rss", Kind: SizeKind, Of: "generator.max_rss_bytes", Better: Less, Help: "the generator's resident memory, peak"},
		{Name: "generator-busy", Kind: ShareKind, Of: "generator.busy", Better: Less, Help: "of the busiest sending thread"},
	})
	for i := range all {
		if r := &all[i]; r.Field == "" {
			r.Field = strings.ReplaceAll(r.Name, "-", "_")
		}
	}
	return all
})

// counterResults are the results of the counters.
func counterResults() (all []Result) {
	for i := range measure.Counters {
		k := &measure.Counters[i]
		r := Result{
			Name: strings.ReplaceAll(k.Field, "_", "-"), Field: k.Field, Kind: CountKind, Needs: NeedsSending, Of: "totals." + k.Name,
			Better: map[string]Better{"less": Less, "more": More}[k.Better],
			Help:   strings.ToLower(k.Help[:1]) + strings.TrimSuffix(k.Help[1:], "."),
		}
		if k.Unit == "bytes" {
			r.Kind = SizeKind
		}
		switch k.Name {
		case "bytes":
			r.Needs = NeedsNothing
		case "consumed":
			r.Needs = NeedsReading
		case "unread": // the ledger has it of a whole run
			r.Needs, r.Of = NeedsDelivery, ""
		case "offered", "dropped", "unsent":
			r.Generator = true
			if k.Name == "unsent" {
				r.Needs = NeedsSchedule
			}
		}
		all = append(all, r)
	}
	return all
}

// ResultNamed returns the result with a name or a field; nil if there is none.
func ResultNamed(name string) *Result {
	all := Results()
	if i := slices.IndexFunc(all, func(r Result) bool { return r.Name == name || r.Field == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// PerStep reports whether each step, and each interval, has the result.
func (r *Result) PerStep() bool { return r.Stepwise || strings.HasPrefix(r.Of, "totals.") }
