package serve

import (
	"net/url"
	"slices"
	"strings"

	"carronade/internal/jobs"
	"carronade/internal/workload"
	"carronade/target"
)

// thisMachine is the system of a job that loads nothing else.
const thisMachine = "this machine"

// SystemOf is the system that a command line of carronade loads: the address of its target, so
// that two spellings of one system wait for each other. It is jobs.Everything if the command line does
// not have exactly one.
func SystemOf(kinds []target.Kind, args []string) string {
	found := ""
	if len(args) > 0 && (args[0] == "demo" || args[0] == "calibrate") {
		found = thisMachine
	}
	for i, arg := range args {
		if slices.Contains([]string{"-f", "--file", "--vary"}, arg) || strings.HasPrefix(arg, "--file=") || strings.HasPrefix(arg, "-f") && i > 0 {
			return jobs.Everything // a file may have another target, or several
		}
		if strings.HasPrefix(arg, "-") { // such as --target=URL
			_, arg, _ = strings.Cut(arg, "=")
		}
		if !strings.Contains(arg, "://") {
			continue
		}
		if _, _, err := workload.ParseTarget(kinds, arg); err != nil {
			continue
		}
		name := addresses(arg)
		if found != "" && found != thisMachine && found != name {
			return jobs.Everything
		}
		found = name
	}
	if found == "" {
		return jobs.Everything
	}
	return found
}

// addresses are the hosts of a target, sorted, with the loopback names made one.
func addresses(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	if scheme == "null" {
		return thisMachine
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		rest = rest[i+1:]
	}
	hosts := strings.Split(strings.ToLower(rest), ",")
	for i, h := range hosts {
		u := url.URL{Host: h}
		switch u.Hostname() {
		case "localhost", "::1":
			hosts[i] = "127.0.0.1"
			if u.Port() != "" {
				hosts[i] += ":" + u.Port()
			}
		}
	}
	slices.Sort(hosts)
	kind, _, _ := strings.Cut(scheme, "+")
	return kind + "://" + strings.Join(slices.Compact(hosts), ",")
}
