package dropin

import (
	"context"

	"carronade/internal/report"
	"carronade/internal/workload"
)

// NodeOptions describe a node: a machine that fires a part of what others run.
type NodeOptions struct {
	Listen string // HOST:PORT; port 0 picks a free one
	// Key is the file that a node and those who use it share. It is made if it does not exist. "" is
	// the user's own, for an address of this machine only.
	Key string
	// Targets are patterns of addresses that the node sends to, HOST or HOST:PORT. None: those of
	// this machine, for a node that listens on such an address.
	Targets    []string
	Everything bool // any target
	// Claim is called when a run of others begins. It returns what is called at its end, or why the
	// node does not take part.
	Claim func(run string) (release func(), err error)
}

// A Node is this machine as a node.
type Node struct {
	Addr  string       // that it listens on
	Rules string       // the targets, in words
	Ended <-chan error // receives why the node has ended by itself
	Close func()       // ends it, and waits for a run in progress
}

// NodesOptions say which nodes are used.
type NodesOptions struct {
	Addrs []string // HOST:PORT
	Key   string   // as in NodeOptions
	Start string   // what starts a node, for messages: "--run-node"
	// Reads says that this machine sends nothing, and reads what the nodes send.
	Reads bool
}

// Nodes are connections to nodes, which fire together with this machine.
type Nodes struct {
	// Run is Program.Run, on all of them. Only Found, Opened, Interval and Kept of the observer are
	// called.
	Run   func(ctx context.Context, w *workload.Document, observer Observer) (*report.Document, error)
	Close func()
}
