package store

import (
	"slices"
	"strings"
	"sync"

	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/measure"
	"carronade/protocol"
)

// A KnownField is one whose name depends neither on the target nor on names
// that users choose.
type KnownField struct {
	Name string
	Kind ValueKind
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

// measuredFields are the fields that RowOf itself defines, in the order of
// documents.
var measuredFields = slices.Concat([]KnownField{
	{"id", KindText, "of the report"},
	{"started", KindTime, "when the run began"},
	{"ended", KindTime, "when it ended"},
	{"version", KindText, "of the program that measured"},
	{"note", KindText, "given with --note"},
	{"mode", KindText, "open loop, closed loop, consuming"},
	{"stopped", KindText, "why the run ended"},
	{"partial", KindBool, "it ended before it was done"},
	{"trusted", KindBool, "the generator was not the limit: the run is trusted or noisy"},
	{"trust_level", KindText, "trusted, noisy, not trusted"},
	{"machine", KindText, "other programs that took processors from the generator, and how much"},
	{"exit", KindNumber, "exit code of the run"},
	{"limits", KindText, "of the run, the worst: holds, cannot tell, broken"},
	{"repetition", KindCount, "repetition number"},
	{"repetitions", KindCount, "repetitions planned"},
	{"replaces", KindText, "report of the same repetition that was not trusted"},
	{"warnings", KindCount, "that the report holds"},
	{"target", KindText, "address of the target"},
	{"kind", KindText, "of the target"},
	{"op", KindText, "operation"},

	{"ceiling", KindRate, "of a search: the highest rate confirmed to hold all limits"},
	{"ceiling_upper", KindRate, "of a search: the rate above it that is confirmed to fail"},
}, resultFields(), []KnownField{
	{"target.index.address", KindText, "of the Elasticsearch behind the system"},
	{"target.index.store", KindText, "its product and version"},
	{"target.index.version", KindText, "its version"},
	{"target.index.nodes", KindNumber, "nodes of its cluster"},

	{"branch", KindText, "of the system under test"},
	{"revision", KindText, "of the system under test"},
	{"revision_date", KindTime, "when the revision was committed"},
	{"unstaged_changes", KindBool, "the repository had uncommitted changes"},
	{"died", KindBool, "the system ended by itself"},
})

// resultFields are the fields of the results.
func resultFields() (out []KnownField) {
	for _, r := range workload.Results() {
		out = append(out, KnownField{r.Field, resultKinds[r.Kind], r.Help})
	}
	return out
}

// Fields lists every field whose name is known in advance: what was measured
// and where. The settings of a workload are further fields, by their flags'
// names.
func Fields() []KnownField {
	out := slices.Clone(measuredFields)
	for _, t := range new(report.Times).All() {
		ps := []string{"p50", "p99", "max"}
		if partOfResponse[t.Name] {
			ps = slices.Insert(ps, 0, "mean")
		}
		if t.Main {
			ps = []string{"mean", "min"}
			for _, p := range measure.StandardPercentiles() {
				ps = append(ps, "p"+digits(p))
			}
			ps = append(ps, "max")
		}
		title := t.Title
		if !strings.HasSuffix(title, "delay") {
			title += " time"
		}
		for _, p := range ps {
			out = append(out, KnownField{t.Name + "_" + p, KindDuration, title + ", " + p})
		}
		if t.Main {
			for _, of := range measure.PercentilesOf(measure.Compared) {
				p := "p" + digits(of)
				out = append(out, KnownField{t.Name + "_lower_" + p, KindDuration, title + ", " + p + ", without the generator's own delays"})
			}
		}
	}
	for _, f := range hostFields {
		out = append(out, KnownField{"host." + f.name, f.kind, "of the generator's machine"})
	}
	for _, f := range hostFields {
		out = append(out, KnownField{"system.host." + f.name, f.kind, "of the first machine of --system-host"})
	}
	out = append(out, KnownField{"system.hosts", KindCount, "machines described with --system-host"})
	return out
}

// known is the fields of Fields and the settings that all workloads share, with
// their kinds.
var known = sync.OnceValue(func() map[string]ValueKind {
	m := make(map[string]ValueKind)
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
func settingKind(t protocol.Type) ValueKind {
	switch t {
	case protocol.Bool:
		return KindBool
	case protocol.Int, protocol.Float:
		return KindNumber
	case protocol.Duration:
		return KindDuration
	case protocol.Size:
		return KindSize
	case protocol.Rate:
		return KindRate
	case protocol.Share:
		return KindShare
	case protocol.List:
		return KindText
	}
	return anyKind
}
