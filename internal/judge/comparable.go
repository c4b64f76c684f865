package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"carronade/internal/store"
)

// A Finding speaks against comparing two sides.
type Finding struct {
	// Severe findings make the sides not comparable: what differs may be the
	// only reason for a difference. The others are for information.
	Severe bool   `json:"severe"`
	About  string `json:"about"` // client, servers, leaders, host, system, workload, time, trust
	Text   string `json:"text"`
}

// findings are the reasons not to compare base and candidate. Differences that
// are intended (the revision and, if the workloads differ, their settings) are
// shown with the workload instead.
func findings(base, candidate []store.Row) []Finding {
	var out []Finding
	add := func(severe bool, about, subject string, wanted func(store.Field) bool) {
		for _, d := range factsDiffering(base, candidate, wanted) {
			out = append(out, Finding{severe && d.known, about, strings.TrimSpace(subject+" "+plainField(d.Name)) + " " + d.words()})
		}
	}
	add(true, "client", "", func(f store.Field) bool { return f.Name == "version" })
	names := valuesOf(slices.Concat(base, candidate), func(f store.Field) bool { return f.Name == systemLabel })[systemLabel]
	named := len(names) == 1
	add(true, "servers", "", func(f store.Field) bool {
		if f.Name == clusterID && named { // a system that is made anew has another one
			return false
		}
		return strings.HasPrefix(f.Name, "target.") && !ofRun(f.Name) && f.Name != leaders && !strings.HasPrefix(f.Name, indexPrefix) && !isBrokerSetting(f) && !store.OfRevision(f.Name)
	})
	// A comparison may be about the Elasticsearch behind the system, if nothing else differs.
	indices := valuesOf(slices.Concat(base, candidate), func(f store.Field) bool { return f.Name == indexLabel })[indexLabel]
	add(len(settingsDiffer(base, candidate)) > 0, "servers", "", func(f store.Field) bool {
		if f.Name == indexPrefix+"cluster" && len(indices) == 1 { // it has a name
			return false
		}
		return strings.HasPrefix(f.Name, indexPrefix) && f.Name != indexPrefix+"version" // which is part of index.store
	})
	out = append(out, brokerFindings(base, candidate)...)
	// A comparison may be about the version of the server.
	add(false, "servers", "", func(f store.Field) bool {
		return strings.HasPrefix(f.Name, "target.") && store.OfRevision(f.Name)
	})
	add(true, "leaders", "", func(f store.Field) bool { return f.Name == leaders })
	out = append(out, attachmentFindings(base, candidate)...)
	add(true, "host", "the generator's", func(f store.Field) bool { return hostFact(f.Name, "host.") })
	add(true, "host", "the system's", func(f store.Field) bool { return hostFact(f.Name, "system.host.") })
	out = append(out, targetFindings(base, candidate)...)
	add(false, "system", "", func(f store.Field) bool {
		return strings.HasPrefix(f.Name, "system.") && !strings.HasPrefix(f.Name, "system.host") && !store.OfRevision(f.Name)
	})
	add(false, "seed", "", func(f store.Field) bool { return f.Name == "seed" })
	for _, s := range []struct {
		name string
		rows []store.Row
	}{{"base", base}, {"candidate", candidate}} {
		if n := len(s.rows) - len(trusted(slices.Clone(s.rows))); n > 0 {
			out = append(out, Finding{true, "trust", "the generator was the limit of " + runsOf(n, len(s.rows), s.name)})
		}
		if n := count(s.rows, noisy); n > 0 {
			out = append(out, Finding{false, "trust", fmt.Sprintf("%s %s noisy: intervals and verdicts allow for what %s added", runsOf(n, len(s.rows), s.name), isOrAre(n), itsGenerator(n))})
		}
	}
	return out
}

// targetFindings say that the sides have other targets. If those are other systems,
// and other settings as well, either may be the reason for a difference.
func targetFindings(base, candidate []store.Row) []Finding {
	differ := differing(base, candidate, func(f store.Field) bool { return f.Name == "target" })
	if len(differ) == 0 {
		return nil
	}
	text := "target " + differ[0].words()
	one := systemOf(&base[0])
	other := func(r store.Row) bool { return systemOf(&r) != one }
	if !slices.ContainsFunc(base, other) && !slices.ContainsFunc(candidate, other) {
		return []Finding{{false, "target", text}}
	}
	return []Finding{{len(settingsDiffer(base, candidate)) > 0, "target", text + " (give --same-system if both are one system)"}}
}

// runsOf names n of all runs of a side.
func runsOf(n, all int, side string) string {
	if all == 1 {
		return "the " + side + "'s only run"
	}
	return fmt.Sprintf("%d of the %s's %d runs", n, side, all)
}

func itsGenerator(n int) string {
	if n == 1 {
		return "its generator"
	}
	return "their generators"
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// severeFirst sorts severe findings before the others.
func severeFirst(a, b Finding) int {
	switch {
	case a.Severe && !b.Severe:
		return -1
	case b.Severe && !a.Severe:
		return 1
	}
	return 0
}

// leaders is the field that lists the leading broker of each partition.
const leaders = "target.topic.leaders"

// attachmentFindings are the attached files, such as the servers'
// configurations, that differ between the sides. If one side lacks a file,
// nothing is known about its servers.
//
// Files are compared by the hashes of their original bytes, since what a report shows
// of a file changes with what is masked. Hashes say nothing if any is missing, or if
// they have different keys: then what the reports show is compared.
func attachmentFindings(base, candidate []store.Row) []Finding {
	var out []Finding
	rows := slices.Concat(base, candidate)
	shown := valuesOf(rows, func(f store.Field) bool { return strings.HasPrefix(f.Name, store.AttachmentPrefix) })
	originals := valuesOf(rows, func(f store.Field) bool { return strings.HasPrefix(f.Name, store.OriginalPrefix) })
	differ := map[string]bool{} // by what the reports show, between the sides
	for _, d := range differing(base, candidate, func(f store.Field) bool { return strings.HasPrefix(f.Name, store.AttachmentPrefix) }) {
		differ[d.Name] = true
	}
	for _, field := range slices.Sorted(maps.Keys(shown)) {
		name := strings.TrimPrefix(field, store.AttachmentPrefix)
		own := func(f store.Field) bool { return f.Name == store.OriginalPrefix+name }
		sums := slices.DeleteFunc(shown[field], func(s string) bool { return s == "" })
		missing := slices.ContainsFunc(rows, func(r store.Row) bool { _, ok := r.Get(field); return !ok })
		hashes := slices.DeleteFunc(originals[store.OriginalPrefix+name], func(s string) bool { return s == "" })
		known := oneKey(hashes) && !slices.ContainsFunc(rows, func(r store.Row) bool {
			_, attached := r.Get(field)
			_, hashed := r.Get(store.OriginalPrefix + name)
			return attached && !hashed
		})
		same := known && len(hashes) == 1
		switch {
		case differ[field] && len(sums) > 1 && !same:
			out = append(out, Finding{true, "servers", "the attached " + name + " differs (report show --json has both)"})
		case differ[field] && missing:
			out = append(out, Finding{false, "servers", name + " is not attached to all reports"})
		case known && len(sums) == 1 && len(differing(base, candidate, own)) > 0:
			out = append(out, Finding{false, "servers", "the attached " + name + " differs in what reports hide, such as a password"})
		}
	}
	return out
}

// oneKey reports whether hashes, each KEY:HASH, have the same key.
func oneKey(hashes []string) bool {
	if len(hashes) == 0 {
		return false
	}
	key, _, _ := strings.Cut(hashes[0], ":")
	return !slices.ContainsFunc(hashes, func(h string) bool { return !strings.HasPrefix(h, key+":") })
}

// ofRun is whether a fact reported by a target describes the run and its client
// rather than the servers: requested settings are compared as settings, and
// counts and ratios differ from run to run.
func ofRun(name string) bool {
	fact := strings.TrimPrefix(name, "target.")
	return name == brokersDescribed || slices.Contains(runFacts, fact) || slices.ContainsFunc(runPrefixes, func(prefix string) bool { return strings.HasPrefix(fact, prefix+".") })
}

var (
	runFacts = []string{
		"controller", "standin", "topic.name", "topic.created_by", "address", "absent", "acks", "idempotent", "engine", "client", "stamped", "events", "isolation",
		"group", "share_group", "topics", "read_from", "connections", "compressed_to", "distinct_events", "fetch_throttle_s", "logins_renewed",
		"fetch_logins_renewed", "batch_attempts", "batch_attempts_refused", "batch_attempts_unanswered",
	}
	runPrefixes = []string{"request", "transactions", "server_said", "io", "corpus"} // prefixes of further names
)

// hostFact is whether a field is a property of a machine that matters for a
// comparison. The host name does not: every container has a new one.
func hostFact(name, prefix string) bool {
	fact, ok := strings.CutPrefix(name, prefix)
	return ok && slices.Contains([]string{"os", "kernel", "arch", "cpu", "cores", "cpu_limit", "memory", "memory_limit", "governor", "gomaxprocs"}, fact)
}

// plainField is a field's name as shown to users.
func plainField(name string) string {
	for _, prefix := range []string{"target.", "system.host.", "host.", "system."} {
		name = strings.TrimPrefix(name, prefix)
	}
	return strings.NewReplacer(".", " ", "_", " ").Replace(name)
}

// words says how a field differs.
func (d *Differing) words() string {
	side := func(values []string) string {
		if len(values) == 0 {
			return "not set"
		}
		shown := make([]string, 0, len(values))
		for _, v := range values {
			v = cmp.Or(v, "none")
			shown = append(shown, v)
		}
		if len(shown) > 3 {
			return fmt.Sprintf("%s and %d others", strings.Join(shown[:2], ", "), len(shown)-2)
		}
		return strings.Join(shown, ", ")
	}
	return "was " + side(d.Base) + " and is " + side(d.Candidate)
}

// timeFindings says how the sides are ordered in time: if all runs of one side
// came before all runs of the other, any change in between is part of the
// difference. The rows are all that were run: those left out alternated with
// the others, too.
func timeFindings(base, candidate []store.Row) []Finding {
	if len(base) == 0 || len(candidate) == 0 {
		return nil
	}
	first := func(rows []store.Row) store.Row { return slices.MinFunc(rows, byTime) }
	last := func(rows []store.Row) store.Row { return slices.MaxFunc(rows, byTime) }
	gap := first(candidate).At.Sub(last(base).At)
	if back := first(base).At.Sub(last(candidate).At); back > gap {
		gap = back
	}
	if gap <= 0 || min(len(base), len(candidate)) < 2 && gap <= time.Hour { // with one run on each side, one always comes first
		return nil
	}
	text := "all runs of one side were before all runs of the other"
	if gap > time.Hour {
		text += ", " + spanText(gap) + " apart"
	}
	return []Finding{{Severe: false, About: "time", Text: text + ": drift is part of the difference (compare --run interleaves)"}}
}

// spanText is a span in its largest unit.
func spanText(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", int(d.Hours()))
	}
	return fmt.Sprintf("%d minutes", int(d.Minutes()))
}
