package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/cli/profile"
	"carronade/internal/dropin"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/protocol"
)

// A kindEntry is what the command line knows about one kind of target.
type kindEntry struct {
	kind  string // protocol.Kind.Name
	form  string // form of a target's URL
	about string // description, a sentence or two
	event string // what its events and batches are; "" if they can be anything
	batch string
	// expressions says where expressions are possible; "": nowhere.
	expressions string

	demo *demo
	sink *server // discarding stand-in to calibrate with
	// prepares reports whether null:// prepares the batches of a workload like this kind does;
	// nil: never.
	prepares func(w *workload.Workload) bool
	// own returns the command that only this protocol has; nil: none.
	own func(*session, protocol.Kind) *cobra.Command
	// profiled says how carronade profile reads its targets; nil: it does not.
	profiled func(*session, protocol.Kind, *profile.Tools)
	// topics runs loads of operations on topics for old tools; nil: not supported.
	topics topicLoad
}

// A server is a stand-in to start, and the target that reaches it.
type server struct {
	args []string // of `carronade standin`
	to   string   // the target; ADDR is replaced by the address it listens on
}

// entryOf returns the entry of a kind, nil for a kind of another program.
func entryOf(k protocol.Kind) *kindEntry {
	list := entries()
	i := slices.IndexFunc(list, func(p kindEntry) bool { return p.kind == k.Name() })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// listed are the protocols of this program's kinds, in the order of the list.
func (s *session) listed() []kindEntry {
	return slices.DeleteFunc(entries(), func(p kindEntry) bool { return s.kindOf(p) == nil })
}

// kindOf returns the program's kind of a protocol, nil if it has none.
func (s *session) kindOf(p kindEntry) protocol.Kind {
	for _, k := range s.Kinds {
		if k.Name() == p.kind {
			return k
		}
	}
	return nil
}

// ownCommands returns the commands that only one protocol has.
func (s *session) ownCommands() []*cobra.Command {
	var list []*cobra.Command
	for _, p := range s.listed() {
		if p.own != nil {
			list = append(list, p.own(s, s.kindOf(p)))
		}
	}
	return list
}

// A topicLoad runs a load of operations on topics for an old tool. It returns the target, without
// secrets, and the result, also as that of a run.
type topicLoad func(context.Context, cmdutil.Console, protocol.Kind, *workload.Document, dropin.TopicLoad) (string, *dropin.TopicResult, *load.Result, error)

// topicLoads returns a kind and its function for loads of operations on topics; nil if it has
// none.
func (s *session) topicLoads(kind string) (protocol.Kind, topicLoad) {
	for _, p := range s.listed() {
		if p.kind == kind && p.topics != nil {
			return s.kindOf(p), p.topics
		}
	}
	return nil, nil
}

// target returns the target for a server that listens at addr.
func (s server) target(addr string) string { return strings.ReplaceAll(s.to, "ADDR", addr) }
