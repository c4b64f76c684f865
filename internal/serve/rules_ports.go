package serve

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/place"
	"carronade/protocol"
)

// A Wall is what the system allows the process of a job, next to its folders. It is the second
// wall: if the rules fail to recognize a file or an address, the system still refuses it.
type Wall struct {
	// Ports are the TCP ports to which it may connect, unless AnyPort is set: a broker announces
	// others than those of the command line, and a file may have any target.
	Ports   []uint16 `json:"ports,omitempty"`
	AnyPort bool     `json:"any_port,omitempty"`
}

// WallOf returns what the system allows a job with this command line. Nil is the wider set: all
// that the server's user may do. That of a job is wider if the operator allows everything, or
// allows builds and the job may need one. texts are the operator's own settings, whose addresses
// are added.
func (r *Rules) WallOf(kinds []protocol.Kind, args []string, texts ...string) *Wall {
	unread := namesFile(args)
	if r.Everything || len(r.Builds) > 0 && (unread || mentions(args, "system")) {
		return nil
	}
	w := &Wall{}
	ports, announced := portsOf(kinds, args)
	if given := portsOfPatterns(r.Targets); given != nil {
		ports = given
	} else {
		w.AnyPort = announced || unread
	}
	if !w.AnyPort {
		own, _ := portsOf(kinds, append(slices.Clone(texts), r.Store))
		w.Ports = withResolver(append(ports, own...))
	}
	return w
}

// AgentPorts are the TCP ports to which the process of an agent of a fleet may connect: those of the patterns
// of its targets and of its server, HOST:PORT; nil if they are not known.
func AgentPorts(targets []string, server string) []uint16 {
	ports := portsOfPatterns(targets)
	if ports == nil {
		return nil
	}
	own, _ := portsOf(nil, []string{server})
	return withResolver(append(ports, own...))
}

// withResolver adds the port of the resolver.
func withResolver(ports []uint16) []uint16 {
	const resolver = 53
	ports = append(ports, resolver)
	slices.Sort(ports)
	return slices.Compact(ports)
}

// BothWalls are the walls of a job that has no wider set.
const BothWalls = "rules and system"

// Walls are the walls around a job with this command line, in the words of lists.
func (r *Rules) Walls(kinds []protocol.Kind, args []string) string {
	switch {
	case r.open():
		return "none: --allow"
	case r.WallOf(kinds, args) == nil:
		return "rules alone: --allow-build"
	}
	return BothWalls
}

// namesFile reports whether a command line names a file or a report with settings that the command
// line does not show.
func namesFile(args []string) bool {
	if len(args) > 0 && args[0] == "scenario" || len(args) > 1 && args[0] == "report" && args[1] == "replay" {
		return true
	}
	return slices.ContainsFunc(args, func(arg string) bool {
		for _, flag := range []string{"--file", "--vary", "--run"} {
			if arg == flag || strings.HasPrefix(arg, flag+"=") {
				return true
			}
		}
		return strings.HasPrefix(arg, "-f")
	})
}

// mentions reports whether a command line has a command or a flag that begins with a word.
func mentions(args []string, word string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(strings.TrimLeft(arg, "-"), word) })
}

// portsOfPatterns are the ports of patterns of addresses; nil if one of them has none.
func portsOfPatterns(patterns []string) (ports []uint16) {
	for _, pattern := range patterns {
		_, text := splitPort(pattern)
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return nil
		}
		ports = append(ports, uint16(port))
	}
	return ports
}

// portForm is a port in an address.
var portForm = regexp.MustCompile(`:([0-9]{1,5})(?:[^0-9]|$)`)

// portsOf returns the ports of the addresses in texts, and whether they are of a system that
// announces others.
func portsOf(kinds []protocol.Kind, texts []string) (ports []uint16, announced bool) {
	add := func(text string) {
		if port, err := strconv.ParseUint(text, 10, 16); err == nil {
			ports = append(ports, uint16(port))
		}
	}
	for _, text := range texts {
		for _, m := range portForm.FindAllStringSubmatch(text, -1) {
			add(m[1])
		}
		if strings.HasPrefix(text, "-") {
			_, text, _ = strings.Cut(text, "=")
		}
		if !place.IsAddress(text) {
			continue
		}
		scheme, _, _ := strings.Cut(text, ":")
		announced = announced || scheme == "kafka" || strings.HasPrefix(scheme, "kafka+")
		for _, k := range kinds {
			if port := protocol.DefaultPort(k, scheme); port != "" && slices.Contains(k.Schemes(), scheme) {
				add(port)
			}
		}
		switch scheme {
		case "http":
			add("80")
		case "https":
			add("443")
		}
	}
	return ports, announced
}

// FilesOf returns the files that settings name, which the operator of a server gives for all jobs.
func FilesOf(kinds []protocol.Kind, name, value string) (paths []string) {
	for _, s := range settings(kinds, name) {
		word := s.Placeholder()
		if s.Secret {
			word = "REF"
		}
		switch word {
		case "FILE", "DIR", "PATH":
			paths = append(paths, value)
		case "REF":
			paths = append(paths, place.Reference(value).Files()...)
		case "K=REF":
			_, ref, _ := strings.Cut(value, "=")
			paths = append(paths, place.Reference(ref).Files()...)
		case "PLACE":
			paths = append(paths, FilesOfStore(value)...)
		}
	}
	return paths
}

// FilesOfStore returns the files that the place of a store names.
func FilesOfStore(text string) []string {
	p, err := place.Store(text)
	if err != nil {
		return nil
	}
	return p.Files()
}
