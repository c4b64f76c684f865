package digest

import (
	"slices"
	"strings"
	"sync"

	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/target"
)

// A Known field is one whose name depends neither on the target nor on names
// that users choose.
type Known struct {
	Name string
	Kind Kind
	Help string
}

// independent are the fields that are independent variables but not settings.
var independent = map[string]bool{
	"op": true, "target": true,
	"branch": true, "revision": true, "unstaged_changes": true, "system.image_id": true,
	"target.version": true, "target.brokers.version": true, "target.servers.version": true,
	"target.index.address": true, "target.index.store": true, "target.index.nodes": true,
	"target.brokers": true, "target.servers": true, "target.topic.partitions": true, "target.topic.replicas": true,
	"host.cpu": true, "host.cores": true, "host.cpu_limit": true,
	"system.host.cpu": true, "system.host.cores": true, "system.host.cpu_limit": true,
}

func isTime(name string) bool { return slices.Contains(report.TimeNames(), name) }

// measuredFields are the fields that Of itself defines, in the order of
// documents.
var measuredFields = []Known{
	{"id", Text, "of the report"},
	{"started", Time, "when the run began"},
	{"ended", Time, "when it ended"},
	{"version", Text, "of the program that measured"},
	{"note", Text, "given with --note"},
	{"mode", Text, "open loop, closed loop, consuming"},
	{"stopped", Text, "why the run ended"},
	{"partial", Bool, "it ended before it was done"},
	{"trusted", Bool, "the generator was not the limit: the run is trusted or noisy"},
	{"trust_level", Text, "trusted, noisy, not trusted"},
	{"steady", Bool, "neither in flight nor response times climbed, and there was no outage"},
	{"exit", Number, "exit code of the run"},
	{"limits", Text, "of the run, the worst: holds, cannot tell, broken"},
	{"repetition", Count, "repetition number"},
	{"repetitions", Count, "repetitions planned"},
	{"replaces", Text, "report of the same repetition that was not trusted"},
	{"warnings", Count, "that the report holds"},
	{"target", Text, "address of the target"},
	{"kind", Text, "of the target"},
	{"op", Text, "operation"},

	{"ceiling", Rate, "of a search: the highest rate confirmed to hold all limits"},
	{"ceiling_upper", Rate, "of a search: the rate above it that is confirmed to fail"},

	{"elapsed", Duration, "length of the measurement"},
	{"throughput", Rate, "events acked (sent, consumed) over the measurement"},
	{"pushed", Speed, "bytes of events sent, before compression"},
	{"accepted", Speed, "bytes of events acked, before compression"},
	{"wire", Speed, "bytes on the connections"},
	{"read", Speed, "bytes of events consumed"},
	{"per_batch", Duration, "measurement over accepted batches: the inverse of their rate, not a waiting time"},
	{"rebalance", Duration, "until the first event could be read"},
	{"fetch", Duration, "the rest of a reading measurement"},
	{"offered", Count, "events due"},
	{"sent", Count, "events sent"},
	{"dropped", Count, "events dropped at the in-flight limit"},
	{"unsent", Count, "events due and never sent"},
	{"acked", Count, "events taken"},
	{"failed", Count, "events refused for certain"},
	{"unknown", Count, "events without a certain answer"},
	{"consumed", Count, "events read"},
	{"missing", Count, "events missing from --count"},
	{"retries", Count, "attempts beyond the first"},
	{"batches", Count, "batches sent"},
	{"bytes_moved", Size, "of events sent or consumed"},
	{"acked_bytes", Size, "of events acked"},
	{"wire_bytes", Size, "on the connections"},
	{"in_flight", Number, "events in flight, mean"},
	{"in_flight_max", Count, "events in flight, most at the end of an interval"},
	{"in_flight_peak", Count, "events in flight, most at once"},
	{"failure_share", Share, "failed of sent"},
	{"unknown_share", Share, "unknown of sent"},
	{"stall", Duration, "longest gap in the answers"},
	{"outage", Duration, "longest time without an ack after a fault, in the worst partition or connection"},
	{"recover", Duration, "longest time from a fault until the limit on response holds again"},
	{"freezes", Count, "freezes: times of 10 ms or longer in which the generator did not run"},
	{"freeze_total", Duration, "their total, within the measurement"},
	{"freeze_longest", Duration, "of those, the longest"},
	{"lost", Count, "events acked and not found"},
	{"unread", Count, "events acked, but not read: removed before, or not reached"},
	{"removed", Count, "of these, removed before they were read"},
	{"duplicated", Count, "events found twice"},
	{"reordered", Count, "events out of order"},
	{"corrupted", Count, "events altered"},
	{"recovered", Count, "unknown events that were found"},
	{"contradicted", Count, "of these, refused for certain"},
	{"compacted", Count, "events acked, then removed by compaction"},
	{"committed", Count, "events acked in transactions that were committed"},
	{"committed_read", Count, "of these, found by a read_committed consumer"},
	{"aborted", Count, "events acked in transactions that were aborted"},
	{"phantom", Count, "events of aborted transactions found by a read_committed consumer"},
	{"documents", Count, "documents in the store behind the system at the end"},
	{"indexed", Rate, "documents over the measurement"},
	{"index_share", Share, "documents of those expected"},

	{"target.index.address", Text, "of the Elasticsearch behind the system"},
	{"target.index.store", Text, "its product and version"},
	{"target.index.version", Text, "its version"},
	{"target.index.nodes", Number, "nodes of its cluster"},

	{"branch", Text, "of the system under test"},
	{"revision", Text, "of the system under test"},
	{"revision_date", Time, "when the revision was committed"},
	{"unstaged_changes", Bool, "the repository had uncommitted changes"},
	{"died", Bool, "the system ended by itself"},
	{"max_rss", Size, "the system's resident memory, peak"},
	{"system_cpu", Duration, "processor time the system used"},
	{"system_cores", Number, "the same over the run: processors that were busy with it"},
	{"events_per_core", Rate, "events acked a second of the system's processor time"},
	{"efficiency", Number, "bytes accepted a minute over the system's peak memory"},
	{"gc_pauses", Count, "of the system's collector"},
	{"gc_pause", Duration, "of those, in all"},
	{"gc_pause_max", Duration, "of those, the longest"},

	{"generator_cpu", Duration, "processor time of the generator over the measurement"},
	{"generator_cpu_share", Share, "the same of all its processors"},
	{"generator_max_rss", Size, "the generator's resident memory, peak"},
	{"generator_busy", Share, "of the busiest sending thread"},
}

// Fields lists every field whose name is known in advance: what was measured
// and where. The settings of a workload are further fields, by their flags'
// names.
func Fields() []Known {
	out := slices.Clone(measuredFields)
	for _, t := range new(report.Times).All() {
		ps := []string{"p50", "p99", "max"}
		if partOfResponse[t.Name] {
			ps = slices.Insert(ps, 0, "mean")
		}
		if t.Main {
			ps = []string{"mean", "min", "p50", "p90", "p95", "p99", "p999", "p9999", "max"}
		}
		title := t.Title
		if !strings.HasSuffix(title, "delay") {
			title += " time"
		}
		for _, p := range ps {
			out = append(out, Known{t.Name + "_" + p, Duration, title + ", " + p})
		}
		if t.Main {
			for _, p := range []string{"p50", "p99", "p999"} {
				out = append(out, Known{t.Name + "_lower_" + p, Duration, title + ", " + p + ", without the generator's own delays"})
			}
		}
	}
	for _, f := range hostFields {
		out = append(out, Known{"host." + f.name, f.kind, "of the generator's machine"})
	}
	for _, f := range hostFields {
		out = append(out, Known{"system.host." + f.name, f.kind, "of the first machine of --system-host"})
	}
	out = append(out, Known{"system.hosts", Count, "machines described with --system-host"})
	return out
}

// known is the fields of Fields and the settings that all workloads share, with
// their kinds.
var known = sync.OnceValue(func() map[string]Kind {
	m := make(map[string]Kind)
	for _, s := range workload.Table(nil) {
		if s.Name != "system-flag" && s.Name != "label" && !s.FlagOnly {
			m[s.Name] = settingKind(s.Type)
		}
	}
	for _, f := range Fields() {
		m[f.Name] = f.Kind
	}
	return m
})

func isKnown(name string) bool { _, ok := known()[name]; return ok }

// anyKind stands for a field whose kind depends on its value.
const anyKind = kinds

// settingKind is the kind of the values of a type.
func settingKind(t target.Type) Kind {
	switch t {
	case target.Bool:
		return Bool
	case target.Int, target.Float:
		return Number
	case target.Duration:
		return Duration
	case target.Size:
		return Size
	case target.Rate:
		return Rate
	case target.Share:
		return Share
	case target.List:
		return Text
	}
	return anyKind
}
