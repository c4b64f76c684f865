package digest

// aliases are other names under which fields are known: those of hey-apm's
// reports, which many filters in scripts use.
var aliases = map[string]string{
	"duration":    "for",
	"concurrency": "callers",
	"limit":       "system-mem",
	"report_id":   "id",
	"report_date": "started",
}

// Canonical returns the name of the field that is known by name.
func Canonical(name string) string {
	if c, ok := aliases[name]; ok {
		return c
	}
	return name
}
