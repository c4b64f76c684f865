package kafkatools

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"carronade/internal/dropin"
	"carronade/internal/kafka/cluster"
)

// properties are those of one of Java's clients. They do not change after readProperties.
type properties struct {
	file   string
	pairs  []string
	values map[string]string
}

// readProperties reads a properties file, if it is not "", and pairs, each k=v, which take
// precedence over the file. A value may contain further =.
func readProperties(file string, pairs []string) (*properties, error) {
	values, err := cluster.ReadProperties(file, pairs)
	if err != nil {
		return nil, err
	}
	return &properties{file: file, pairs: pairs, values: values}, nil
}

// get returns a property's value, and whether there is one.
func (p *properties) get(name string) (string, bool) {
	v, ok := p.values[name]
	return v, ok
}

// clientID is the client's name, or otherwise if no property names it.
func (p *properties) clientID(otherwise string) string {
	if id, ok := p.values["client.id"]; ok {
		return id
	}
	return otherwise
}

// set gives a workload the file and the pairs, as client-config and
// client-property. Settings that are also given otherwise take precedence.
// Resolving the workload warns of properties that carronade does not know.
func (p *properties) set(d *dropin.Draft, fileFlag, pairFlag string) {
	if p.file != "" {
		d.Set("client-config", fileFlag, p.file)
	}
	for _, pair := range p.pairs {
		d.Set("client-property", pairFlag, pair)
	}
}

// unused lists, sorted by name, the properties that carronade knows and that have
// no meaning for an operation (produce, consume or roundtrip).
func (p *properties) unused(op string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		if cluster.PropertyKnown(name) && !cluster.PropertyApplies(name, op) {
			names = append(names, name)
		}
	}
	return names
}

// warn writes to w, a line each, the properties that are not used and the pairs
// that should be in a file.
func (p *properties) warn(w io.Writer, op string) {
	for _, pair := range p.pairs {
		if name, _, _ := strings.Cut(pair, "="); cluster.PropertySecret(strings.TrimSpace(name)) {
			fmt.Fprintf(w, "warning: the client property %s is visible in the process list: put it into a properties file\n", strings.TrimSpace(name))
		}
	}
	for _, name := range p.unused(op) {
		fmt.Fprintf(w, "warning: the client property %s has no meaning for the operation %s and is ignored\n", name, op)
	}
}
