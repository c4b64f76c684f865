package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A port of targets. Number 0 stands for all ports.
type port struct {
	number   int
	protocol string
}

// usual are the ports of addresses that name none.
var usual = map[string]int{"kafka": 9092, "riemann": 5555, "apm+http": 8200, "apm+https": 8200}

// egress is the rule that lets a pod reach the ports of the targets. If a target does not
// say its port, all ports are reached.
func egress(targets []string) string {
	var all []port
	for _, t := range targets {
		all = append(all, ports(t)...)
	}
	slices.SortFunc(all, func(a, b port) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.protocol, b.protocol))
	})
	all = slices.Compact(all)
	if all[0].number == 0 {
		return "    - {} # the ports of some targets are unknown"
	}
	var b strings.Builder
	b.WriteString("    - ports:")
	for _, p := range all {
		fmt.Fprintf(&b, "\n        - port: %d\n          protocol: %s", p.number, p.protocol)
	}
	return b.String()
}

// ports are those of one address: PROTOCOL://HOST:PORT,HOST:PORT/PATH, or a pattern such
// as broker-*:9092. There is at least one.
func ports(target string) (found []port) {
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok {
		scheme, rest = "", target
	}
	rest, _, _ = strings.Cut(rest, "/")
	rest = rest[strings.LastIndex(rest, "@")+1:]
	for host := range strings.SplitSeq(rest, ",") {
		n := usual[scheme]
		// A colon inside brackets is part of an address of IPv6.
		if colon := strings.LastIndex(host, ":"); colon > strings.LastIndex(host, "]") {
			n = 0
			if p, err := strconv.Atoi(host[colon+1:]); err == nil && p > 0 && p <= 65535 {
				n = p
			}
		}
		found = append(found, port{n, "TCP"})
		if strings.HasPrefix(scheme, "riemann") {
			found = append(found, port{n, "UDP"})
		}
	}
	return found
}
