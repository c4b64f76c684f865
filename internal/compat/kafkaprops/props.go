// Package kafkaprops translates the properties of Kafka's Java clients, as old
// tools take them in arguments and files, to carronade's settings. It decides which
// of them reach the workload, and words the warnings about the others. The package
// target/kafka knows what a property means.
// Its invariant: no property is dropped silently, and no property's value is
// quoted.
package kafkaprops

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"carronade/internal/compat"
	"carronade/target/kafka"
)

// Props are the properties of one client. They do not change after Read.
type Props struct {
	file   string
	pairs  []string
	values map[string]string
}

// Read reads a properties file, if it is not "", and pairs, each k=v, which take
// precedence over the file. A value may contain further =.
func Read(file string, pairs []string) (*Props, error) {
	values, err := kafka.ReadProperties(file, pairs)
	if err != nil {
		return nil, err
	}
	return &Props{file: file, pairs: pairs, values: values}, nil
}

// Get returns a property's value, and whether there is one.
func (p *Props) Get(name string) (string, bool) {
	v, ok := p.values[name]
	return v, ok
}

// Set gives a workload the file and the pairs, as client-config and
// client-property. Settings that are also given otherwise take precedence.
// Resolving the workload warns of properties that carronade does not know.
func (p *Props) Set(d *compat.Draft, fileFlag, pairFlag string) {
	if p.file != "" {
		d.Set("client-config", fileFlag, p.file)
	}
	for _, pair := range p.pairs {
		d.Set("client-property", pairFlag, pair)
	}
}

// Unused lists, sorted by name, the properties that carronade knows and that have
// no meaning for an operation (produce, consume or roundtrip).
func (p *Props) Unused(op string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		if kafka.PropertyKnown(name) && !kafka.PropertyApplies(name, op) {
			names = append(names, name)
		}
	}
	return names
}

// Warn writes to w, a line each, the properties that are not used and the pairs
// that should be in a file.
func (p *Props) Warn(w io.Writer, op string) {
	for _, pair := range p.pairs {
		if name, _, _ := strings.Cut(pair, "="); kafka.PropertySecret(strings.TrimSpace(name)) {
			fmt.Fprintf(w, "warning: the client property %s is visible in the process list: put it into a properties file\n", strings.TrimSpace(name))
		}
	}
	for _, name := range p.Unused(op) {
		fmt.Fprintf(w, "warning: the client property %s has no meaning for the operation %s and is ignored\n", name, op)
	}
}
