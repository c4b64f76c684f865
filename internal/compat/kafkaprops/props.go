// Package kafkaprops says the properties of Kafka's Java clients, as old tools
// take them in arguments and files, in carronade's words. It answers for which
// of them reach the workload, and for what to say of the others; what a
// property means is target/kafka's to know.
//
// Its invariant: no property is dropped in silence, and no value of one is
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

// Props are the properties of one client. They are not changed once read.
type Props struct {
	file   string
	pairs  []string
	values map[string]string
}

// Read reads a properties file, none where it is "", and pairs, each k=v, which
// win over the file. A value may have more = in it.
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
// client-property. Of settings that are also given otherwise, those win. What
// carronade knows no meaning of is warned of where the workload is resolved.
func (p *Props) Set(d *compat.Draft, fileFlag, pairFlag string) {
	if p.file != "" {
		d.Set("client-config", fileFlag, p.file)
	}
	for _, pair := range p.pairs {
		d.Set("client-property", pairFlag, pair)
	}
}

// Unused lists, by name, the properties that carronade knows and that have no
// meaning for an operation (produce, consume or roundtrip).
func (p *Props) Unused(op string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		if kafka.PropertyKnown(name) && !kafka.PropertyMeans(name, op) {
			names = append(names, name)
		}
	}
	return names
}

// Warn says on w, a line each, what of the properties is not used, and which of
// the pairs were better in a file.
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
