package store

import "strings"

// aliases are other names of fields: those of hey-apm's reports, which filters
// in many scripts use.
var aliases = map[string]string{
	"duration":            "for",
	"limit":               "system-mem",
	"report_id":           "id",
	"report_date":         "started",
	"pushed_volume":       "pushed",
	"index_success_ratio": "index_share",
	"latency":             "per_batch", // by hey-apm's formula the inverse of throughput
	"memory_efficiency":   "efficiency",
	"peak_rss":            "max_rss",
	"apm_host":            "target",
	"elastic_url":         "target.index.address",
	"reporter_host":       "host.name",
}

// Canonical returns the canonical name of a field: aliases are resolved, and
// response_p99.9 is response_p999.
func Canonical(name string) string {
	if c, ok := aliases[name]; ok {
		return c
	}
	if i := strings.LastIndex(name, "_p"); i > 0 && strings.Contains(name[i:], ".") && isTime(name[:i]) {
		return name[:i] + strings.ReplaceAll(name[i:], ".", "")
	}
	return name
}

// ofRevision are the fields that identify the revision of a system.
var ofRevision = map[string]bool{
	"branch": true, "revision": true, "revision_date": true, "unstaged_changes": true,
	"system-checkout": true, "system-image": true, "system.image_id": true,
	"target.version": true, "target.brokers.version": true, "target.servers.version": true,
}

// OfRevision reports whether a field identifies the revision of the tested
// system: in a comparison of branches or revisions all of these may differ.
func OfRevision(name string) bool { return ofRevision[Canonical(name)] }
