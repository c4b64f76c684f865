package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"carronade/internal/command"
	"carronade/internal/compat"
	"carronade/internal/workload"
	"carronade/target"
)

// A protocol is what the command line has of one kind.
type protocol struct {
	kind  string // target.Kind.Name
	form  string // how a target is written
	about string // what it is, in a sentence or two
	event string // what its events and batches are; "" where they are any
	batch string
	demo  *demo
	sink  *server // that discards, to calibrate with
	// prepares reports whether null:// makes the batches of a workload as this kind
	// does; nil: it never does.
	prepares func(w *workload.Workload) bool
	// own makes the command that only this protocol has; nil: none.
	own func(command.Console, target.Kind) *cobra.Command
	// topics makes loads of operations on topics for old tools; nil: it has none.
	topics topicLoad
}

// A server is a stand-in to start, and how it is fired at.
type server struct {
	args []string // of `carronade standin`
	to   string   // the target, ADDR standing for the address it listens on
}

// protocolOf returns what the list of protocols has of a kind, nil when it has
// nothing: a kind from outside.
func protocolOf(k target.Kind) *protocol {
	list := protocols()
	i := slices.IndexFunc(list, func(p protocol) bool { return p.kind == k.Name() })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// listed are the protocols of this program's kinds, in the order of the list.
func (s *session) listed() []protocol {
	return slices.DeleteFunc(protocols(), func(p protocol) bool { return s.kindOf(p) == nil })
}

// kindOf returns the program's kind of a protocol, nil when it has none.
func (s *session) kindOf(p protocol) target.Kind {
	for _, k := range s.Kinds {
		if k.Name() == p.kind {
			return k
		}
	}
	return nil
}

// ownCommands are those that only one protocol has.
func (s *session) ownCommands() []*cobra.Command {
	var list []*cobra.Command
	for _, p := range s.listed() {
		if p.own != nil {
			list = append(list, p.own(s.console(), s.kindOf(p)))
		}
	}
	return list
}

// A topicLoad makes a load of operations on topics for an old tool.
type topicLoad func(context.Context, command.Console, target.Kind, *workload.Document, compat.TopicLoad) (*compat.TopicResult, error)

// topicLoads returns a kind and what makes loads of operations on its topics;
// nil where it has none.
func (s *session) topicLoads(kind string) (target.Kind, topicLoad) {
	for _, p := range s.listed() {
		if p.kind == kind && p.topics != nil {
			return s.kindOf(p), p.topics
		}
	}
	return nil, nil
}

// target is where a server that listens at addr is fired at.
func (s server) target(addr string) string { return strings.ReplaceAll(s.to, "ADDR", addr) }
