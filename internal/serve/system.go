package serve

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"carronade/internal/conn"
	"carronade/internal/serve/jobs"
	"carronade/internal/workload"
	"carronade/protocol"
)

// thisMachine is the system of a job that loads nothing else.
const thisMachine = "this machine"

// SystemOf is the system that a command line of carronade loads: the addresses of its target in one
// spelling, with ports, so that jobs of one system wait for each other. It is jobs.Everything if the command line does
// not have exactly one.
func SystemOf(kinds []protocol.Kind, args []string) string {
	found := ""
	if len(args) > 0 && slices.Contains([]string{"demo", "calibrate", "doctor"}, args[0]) {
		found = thisMachine
	}
	for i, arg := range args {
		if slices.Contains([]string{"-f", "--file", "--vary"}, arg) || strings.HasPrefix(arg, "--file=") || strings.HasPrefix(arg, "--vary=") || strings.HasPrefix(arg, "-f") && i > 0 {
			return jobs.Everything // a file may have another target, or several
		}
		if strings.HasPrefix(arg, "-") { // such as --target=URL
			_, arg, _ = strings.Cut(arg, "=")
		}
		if !strings.Contains(arg, "://") {
			continue
		}
		kind, u, err := workload.ParseTarget(kinds, arg)
		if err != nil {
			continue
		}
		name := addresses(kind, u)
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

// addresses are the hosts of a target with their ports, sorted. The names of loopback are one.
func addresses(kind protocol.Kind, u *url.URL) string {
	if u.Scheme == "null" {
		return thisMachine
	}
	port := protocol.DefaultPort(kind, u.Scheme)
	var hosts []string
	for _, text := range workload.Hosts(u) {
		text = strings.ToLower(text)
		address, err := conn.Host(text, port)
		if err != nil { // without a default port
			address = text
		}
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			host, port = address, ""
		}
		host = strings.TrimSuffix(host, ".")
		if ip, err := netip.ParseAddr(host); err == nil {
			host = ip.Unmap().String() // it has several spellings
		}
		if host == "localhost" || host == "::1" {
			host = "127.0.0.1"
		}
		if port != "" {
			host = net.JoinHostPort(host, port)
		}
		hosts = append(hosts, host)
	}
	slices.Sort(hosts)
	scheme, _, _ := strings.Cut(u.Scheme, "+")
	return scheme + "://" + strings.Join(slices.Compact(hosts), ",")
}
