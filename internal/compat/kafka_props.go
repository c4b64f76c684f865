package compat

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"carronade/target/kafka"
)

// KafkaProps are the properties of one client. They do not change after ReadKafkaProps.
type KafkaProps struct {
	file   string
	pairs  []string
	values map[string]string
}

// ReadKafkaProps reads a properties file, if it is not "", and pairs, each k=v, which take
// precedence over the file. A value may contain further =.
func ReadKafkaProps(file string, pairs []string) (*KafkaProps, error) {
	values, err := kafka.ReadProperties(file, pairs)
	if err != nil {
		return nil, err
	}
	return &KafkaProps{file: file, pairs: pairs, values: values}, nil
}

// Get returns a property's value, and whether there is one.
func (p *KafkaProps) Get(name string) (string, bool) {
	v, ok := p.values[name]
	return v, ok
}

// Set gives a workload the file and the pairs, as client-config and
// client-property. Settings that are also given otherwise take precedence.
// Resolving the workload warns of properties that carronade does not know.
func (p *KafkaProps) Set(d *Draft, fileFlag, pairFlag string) {
	if p.file != "" {
		d.Set("client-config", fileFlag, p.file)
	}
	for _, pair := range p.pairs {
		d.Set("client-property", pairFlag, pair)
	}
}

// Unused lists, sorted by name, the properties that carronade knows and that have
// no meaning for an operation (produce, consume or roundtrip).
func (p *KafkaProps) Unused(op string) []string {
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
func (p *KafkaProps) Warn(w io.Writer, op string) {
	for _, pair := range p.pairs {
		if name, _, _ := strings.Cut(pair, "="); kafka.PropertySecret(strings.TrimSpace(name)) {
			fmt.Fprintf(w, "warning: the client property %s is visible in the process list: put it into a properties file\n", strings.TrimSpace(name))
		}
	}
	for _, name := range p.Unused(op) {
		fmt.Fprintf(w, "warning: the client property %s has no meaning for the operation %s and is ignored\n", name, op)
	}
}
