package judge

import (
	"cmp"
	"net"
	"slices"
	"strings"

	"carronade/internal/store"
	"carronade/units"
)

// systemLabel is the label that names a system: reports with the same name are of
// one system, whatever its address.
const systemLabel = "label.system"

// The fields of the Elasticsearch behind a system. indexLabel is the label that names
// it: reports with the same name have the same one, whatever its address.
const (
	indexLabel   = "label.index"
	indexPrefix  = "target.index."
	indexAddress = indexPrefix + "address"
	indexStore   = indexPrefix + "store"
	indexNodes   = indexPrefix + "nodes"
)

// systemFields are the fields that say which system a report is of.
var systemFields = []string{"target", systemLabel, "target.standin", "target.discards", clusterID, "system-cmd", "system-image", indexLabel}

// clusterID is the field of a Kafka cluster's id. Those of stand-ins begin with
// standinCluster.
const (
	clusterID      = "target.cluster_id"
	standinCluster = "carronade-"
)

// identity is a report's target in the form in which it is compared with others:
// its address with its port, except that
//   - a system that the label names has that name;
//   - a stand-in on this machine is identified by its kind;
//   - a system that the run itself started on this machine has no port, since it is
//     identified by how it was started.
func identity(r *store.Row, address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	hosts, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		hosts, path = rest[:i], rest[i:]
	}
	name := r.Text(systemLabel)
	if name == "" && onThisMachine(hosts) {
		standin, _ := r.Num("target.standin")
		discards, _ := r.Num("target.discards")
		switch {
		case standin == 0 && !strings.HasPrefix(r.Text(clusterID), standinCluster):
			if r.Text("system-cmd") != "" || r.Text("system-image") != "" {
				name = withoutPorts(hosts)
			}
		case discards != 0:
			name = "discarding-stand-in"
		default:
			name = "stand-in"
		}
	}
	if name != "" {
		hosts = name
	}
	return scheme + "://" + hosts + path
}

// systemOf is the system of a report: its target without the topic.
func systemOf(r *store.Row) string {
	text := identity(r, r.Text("target"))
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		if label := r.Text(systemLabel); label != "" { // may contain a slash
			return scheme + "://" + label
		}
		hosts, _, _ := strings.Cut(rest, "/")
		return scheme + "://" + hosts
	}
	return text
}

// indexIdentity is the address of the Elasticsearch behind a system in the form in which
// it is compared with others: its name if it has one.
func indexIdentity(r *store.Row, address string) string {
	if name := r.Text(indexLabel); name != "" {
		return name
	}
	return address
}

// indexOf is the Elasticsearch behind the system of a report, as far as it is known; ""
// if nothing is.
func indexOf(r *store.Row) string {
	address := r.Text(indexAddress)
	if address == "" {
		return ""
	}
	text := r.Text(indexStore)
	text = cmp.Or(text, "a store")
	text += " at " + indexIdentity(r, address)
	if n, ok := r.Num(indexNodes); ok {
		text += ", " + units.Plural(uint64(n), "node")
	}
	return text
}

// wholeSystem is a system with the Elasticsearch behind it.
func wholeSystem(r *store.Row) string {
	if index := indexOf(r); index != "" {
		return systemOf(r) + " with " + index
	}
	return systemOf(r)
}

// onThisMachine is whether all hosts of an address are this machine.
func onThisMachine(hosts string) bool {
	if !strings.Contains(hosts, "localhost") && !strings.Contains(hosts, "127.") && !strings.Contains(hosts, "::1") {
		return false // most addresses
	}
	for host := range strings.SplitSeq(withoutPorts(hosts), ",") {
		ip := net.ParseIP(strings.Trim(host, "[]"))
		if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}

// withoutPorts removes the ports from hosts. An address of IPv6 keeps its
// brackets.
func withoutPorts(hosts string) string {
	all := strings.Split(hosts, ",")
	for i, host := range all {
		if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
			all[i] = host[:colon]
		}
	}
	return strings.Join(all, ",")
}

// asOneSystem names the system of all rows, and the Elasticsearch behind it, so that
// their addresses do not count.
func asOneSystem(rows []store.Row) []store.Row {
	out := slices.Clone(rows)
	for i := range out {
		fields := slices.DeleteFunc(slices.Clone(out[i].Fields), func(f store.Field) bool { return f.Name == systemLabel || f.Name == indexLabel })
		fields = with(fields, store.Field{Name: systemLabel, Value: store.Value{Text: "same-system"}})
		out[i].Fields = with(fields, store.Field{Name: indexLabel, Value: store.Value{Text: "same-system"}})
	}
	return out
}

// bySystem splits the bundles of workloads by system. Reports that lack facts
// about the Elasticsearch behind it are joined with those that agree on them.
func bySystem(all []bundle) []bundle {
	var out []bundle
	for _, b := range all {
		at := map[string]int{}
		known := knownIndices(b.rows)
		for i := range b.rows {
			system := wholeSystem(&known[i])
			k, ok := at[system]
			if !ok {
				k = len(out)
				at[system] = k
				out = append(out, bundle{key: b.key, system: system, settings: b.settings})
			}
			out[k].rows = append(out[k].rows, b.rows[i])
		}
	}
	return out
}

// partners pairs the bundles of both sides: first those of one workload on one
// system, then those of one workload that each side has on a single other system.
// The last ones of both sides are partners in any case. a and b have none.
func partners(left, right []bundle) (pairs [][2]bundle, a, b []bundle) {
	b = right
	take := func(l bundle, only bool, like func(r bundle) bool) bool {
		i := slices.IndexFunc(b, like)
		if i < 0 || only && slices.ContainsFunc(b[i+1:], like) {
			return false
		}
		pairs = append(pairs, [2]bundle{l, b[i]})
		b = slices.Delete(slices.Clone(b), i, i+1)
		return true
	}
	for _, l := range left {
		if !take(l, false, func(r bundle) bool { return r.key == l.key && r.system == l.system }) {
			a = append(a, l)
		}
	}
	left, a = a, nil
	for i, l := range left {
		same := func(o bundle) bool { return o.key == l.key }
		if slices.ContainsFunc(left[i+1:], same) || slices.ContainsFunc(left[:i], same) || !take(l, true, same) {
			a = append(a, l)
		}
	}
	if len(pairs) == 0 && len(a) == 1 && len(b) == 1 {
		return [][2]bundle{{a[0], b[0]}}, nil, nil
	}
	return pairs, a, b
}

// sameWorkload is whether a workload is on both sides, on different systems.
func sameWorkload(a, b []bundle) bool {
	return slices.ContainsFunc(a, func(l bundle) bool {
		return slices.ContainsFunc(b, func(r bundle) bool { return l.key == r.key })
	})
}

// systemsOf names the systems of bundles.
func systemsOf(all []bundle) string {
	var names []string
	for _, b := range all {
		if !slices.Contains(names, b.system) {
			names = append(names, b.system)
		}
	}
	return commas(names, 4)
}

// nameOtherSystems notes at each workload which other systems have reports of the
// same workload, topic and branch.
func (v *Verification) nameOtherSystems() {
	likes := make([]string, len(v.Groups))
	of := map[string][]string{}
	for i := range v.Groups {
		r := &v.Groups[i].like
		system := systemOf(r)
		topic := strings.TrimPrefix(identity(r, r.Text("target")), system)
		likes[i] = topic + "\x00" + key(r, func(name string) bool {
			return name == "target" || strings.HasPrefix(name, indexPrefix) || notHistory(name)
		})
		of[likes[i]] = append(of[likes[i]], wholeSystem(r))
	}
	for i := range v.Groups {
		own := wholeSystem(&v.Groups[i].like)
		others := slices.DeleteFunc(slices.Clone(of[likes[i]]), func(s string) bool { return s == own })
		slices.Sort(others)
		v.Groups[i].OtherSystems = slices.Compact(others)
	}
}
