package fleet

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

// riemann is the port on which Riemann also takes datagrams.
const riemann = 5555

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

// ports are those of one pattern, HOST or HOST:PORT. There is at least one.
func ports(target string) []port {
	n := 0
	// A colon inside brackets is part of an address of IPv6.
	if colon := strings.LastIndex(target, ":"); colon > strings.LastIndex(target, "]") {
		if p, err := strconv.Atoi(target[colon+1:]); err == nil && p > 0 && p <= 65535 {
			n = p
		}
	}
	if n == riemann {
		return []port{{n, "TCP"}, {n, "UDP"}}
	}
	return []port{{n, "TCP"}}
}
