package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"carronade/internal/conn"
	"carronade/internal/dropin"
	"carronade/internal/fleet"
	"carronade/internal/fleet/bus"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/protocol"
)

// A node of a tool is the server of a fleet with a single agent, in one process. The program that
// uses nodes is the operator of each of them, and an agent itself.

// The names of agents: on a node's own server, and of this machine among the nodes that it uses.
const (
	nodeAgent  = "node"
	entryAgent = "entry"
)

// keepResults is how long a node keeps results that were not fetched. A program that was killed
// does not come back for them.
const keepResults = 3 * 24 * time.Hour

// nodeKey returns the key file for nodes at addresses: the given one, or that of the user if all
// addresses are of this machine.
func nodeKey(given string, addrs ...string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	for _, addr := range addrs {
		if !onLoopback(addr) {
			return "", &protocol.Error{
				Err:  fmt.Errorf("%s is not an address of this machine alone: a node there needs a key", addr),
				Hint: "--node-key=FILE; a node makes the file, and you copy it to the other machines",
			}
		}
	}
	dir, err := ownFolder("", "nodes")
	return filepath.Join(dir, "node.key"), err
}

// onLoopback reports whether only this machine reaches HOST:PORT.
func onLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// node makes this machine a node.
func (s *session) node(ctx context.Context, o dropin.NodeOptions) (*dropin.Node, error) { //nolint:gocritic // options by value
	if s.rules != nil {
		return nil, &protocol.Error{Err: errors.New("a job of a server may not be a node"), Hint: "start it yourself"}
	}
	key, err := nodeKey(o.Key, o.Listen)
	if err != nil {
		return nil, err
	}
	if err := checkPatterns(o.Targets); err != nil {
		return nil, err
	}
	if len(o.Targets) == 0 && !o.Everything {
		if !onLoopback(o.Listen) {
			return nil, &protocol.Error{
				Err:  errors.New("a node for other machines has to know what it may send to"),
				Hint: "--allow-target=PATTERN, such as --allow-target='broker-*:9092', or --allow for any target",
			}
		}
		o.Targets = []string{"127.0.0.1", "localhost", "::1"}
	}
	if err := bus.MakeKey(key); err != nil {
		return nil, err
	}
	dir, remove, err := nodeFolder(o.Listen)
	if err != nil {
		return nil, err
	}
	n, err := s.openNode(ctx, &o, key, dir)
	if err != nil {
		remove()
		return nil, err
	}
	closeNode := n.Close
	n.Close = func() {
		closeNode()
		remove()
	}
	return n, nil
}

// nodeFolder makes the folder of a node that listens on an address. The folder of one that listens
// on any free port is removed at its end.
func nodeFolder(listen string) (dir string, remove func(), err error) {
	all, err := ownFolder("", "nodes")
	if err == nil {
		err = os.MkdirAll(all, 0o700)
	}
	if err != nil {
		return "", nil, err
	}
	if !strings.HasSuffix(listen, ":0") {
		return filepath.Join(all, strings.NewReplacer(":", "_", "[", "", "]", "").Replace(listen)), func() {}, nil
	}
	dir, err = os.MkdirTemp(all, "free-")
	return dir, func() { os.RemoveAll(dir) }, err
}

// openNode starts the server and the agent of a node.
func (s *session) openNode(ctx context.Context, o *dropin.NodeOptions, key, dir string) (*dropin.Node, error) {
	server, err := bus.Serve(bus.ServerConfig{Listen: o.Listen, Advertise: localName(o.Listen), Dir: filepath.Join(dir, "server"), Key: key, Logf: s.logLine})
	if err != nil {
		return nil, err
	}
	join, err := server.Join(nodeAgent)
	if err != nil {
		server.Close()
		return nil, err
	}
	a, end, err := s.openAgent(ctx, bus.AgentConfig{Given: &join, Dir: filepath.Join(dir, "agent")}, fleet.Info{AllowTargets: o.Targets}, o.Everything, keepResults)
	if err != nil {
		server.Close()
		return nil, err
	}
	a.Claim = o.Claim
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended, over := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(over)
		ended <- fleet.Serve(serving, a)
	}()
	targets := strings.Join(o.Targets, ", ")
	if o.Everything {
		targets = "any target"
	}
	return &dropin.Node{Addr: server.Addr(), Rules: targets, Ended: ended, Close: func() {
		stop()
		<-over
		end()
		server.Close()
	}}, nil
}

// localName is the host under which this machine reaches an address that it listens on, if that is
// all of its addresses.
func localName(listen string) string {
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return "127.0.0.1"
	}
	return ""
}

// nodes connects to nodes, and makes this machine one of those that send.
func (s *session) nodes(ctx context.Context, tool *dropin.Tool, common dropin.Common, o dropin.NodesOptions) (*dropin.Nodes, error) {
	if s.rules != nil {
		return nil, &protocol.Error{Err: errors.New("a job of a server may not use nodes"), Hint: "run it on a machine of your own"}
	}
	key, err := nodeKey(o.Key, o.Addrs...)
	if err != nil {
		return nil, err
	}
	routes, closers := fleet.Routes{}, []func(){}
	end := func() {
		for _, f := range slices.Backward(closers) {
			f()
		}
	}
	r := &fleetRuns{Fleet: fleet.Fleet{Bus: routes, Agents: []string{entryAgent}, Config: fleet.Config{Version: fleetVersion(), Logf: s.logLine}}}
	for _, addr := range o.Addrs {
		if _, twice := routes[addr]; twice {
			end()
			return nil, &protocol.Error{Err: fmt.Errorf("node %s is listed twice", addr), Hint: "name each once"}
		}
		if err := conn.Allowed(addr); err != nil { // of a run that came over the API of a node
			end()
			return nil, err
		}
		to, err := bus.ConnectKey(ctx, addr, key)
		if err != nil {
			end()
			return nil, nodeError(addr, key, o.Start, err)
		}
		closers = append(closers, func() { to.Close() })
		routes[addr] = fleet.Route{Through: to, Agent: nodeAgent}
		r.Agents = append(r.Agents, addr)
	}
	closers = append(closers, s.entry(ctx, routes))
	if o.Reads {
		r.Reader = entryAgent
	}
	r.infos = r.Look(ctx, r.Agents)
	if err := r.Silent(r.Agents, r.infos); err != nil {
		end()
		return nil, cmp.Or(ctx.Err(), error(&protocol.Error{Err: err, Hint: "start it again with " + o.Start + ", and use the same version of carronade everywhere"}))
	}
	// A run that has just failed may not be over yet on all nodes.
	for end := time.Now().Add(fleet.Lease + time.Second); ctx.Err() == nil && time.Now().Before(end); {
		if !slices.ContainsFunc(r.infos, func(i fleet.Info) bool { return i.Busy != "" }) {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(fleet.Heartbeat):
		}
		if again := r.Look(ctx, r.Agents); len(again) == len(r.Agents) {
			r.infos = again
		}
	}
	if err := cmp.Or(ctx.Err(), unusable(r.infos)); err != nil { // who interrupts has not asked which are busy
		end()
		return nil, err
	}
	return &dropin.Nodes{
		Run: func(ctx context.Context, doc *workload.Document, observer dropin.Observer) (*report.Document, error) {
			return s.fireAs(ctx, tool, doc, common, observer, r)
		},
		Close: end,
	}, nil
}

// unusable says of each node that cannot take part in a run why.
func unusable(infos []fleet.Info) error {
	var faults []error
	for _, i := range infos {
		switch {
		case i.Version != fleetVersion():
			faults = append(faults, &protocol.Error{Err: fmt.Errorf("node %s has version %s of carronade, this machine %s", i.Name, i.Version, fleetVersion()), Hint: "use the same version everywhere"})
		case i.Busy != "":
			faults = append(faults, &protocol.Error{Err: fmt.Errorf("node %s is busy with run %s", i.Name, i.Busy), Hint: "wait for its end, or use other nodes"})
		}
	}
	return errors.Join(faults...)
}

// entry starts the agent of this machine. The returned function ends it.
func (s *session) entry(ctx context.Context, routes fleet.Routes) func() {
	through, own := fleet.Within(entryAgent)
	routes[entryAgent] = fleet.Route{Through: through, Agent: entryAgent}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	over := make(chan struct{})
	go func() {
		defer close(over)
		// The operator reports what happens to the run.
		_ = fleet.Serve(ctx, fleet.AgentConfig{
			Bus: own, Spool: fleet.NewMemorySpool(), Info: thisProcess(fleet.Info{Name: entryAgent}), Kinds: s.Kinds,
			Host: host.Describe(), Logf: func(string, ...any) {},
		})
	}()
	return func() {
		stop()
		<-over
	}
}

// nodeError says why a node cannot be used.
func nodeError(addr, key, start string, err error) error {
	e, ok := errors.AsType[*protocol.Error](err)
	if !ok {
		return err
	}
	hint := e.Hint
	switch {
	case errors.Is(err, bus.ErrPin), errors.Is(err, bus.ErrNoToken):
		return &protocol.Error{Err: fmt.Errorf("node %s has another key than %s", addr, key), Hint: "copy the node's key file here, and give it with --node-key=FILE"}
	case errors.Is(err, bus.ErrNotTLS), errors.Is(err, bus.ErrNotBus):
		return &protocol.Error{Err: fmt.Errorf("node %s has another version: %w", addr, e.Err), Hint: "use the same version of carronade everywhere; the tool's own nodes cannot be used"}
	case strings.HasPrefix(e.Doing, "connect "):
		return &protocol.Error{Err: fmt.Errorf("no node answers at %s: %w", addr, e.Err), Hint: "start it there with " + start + ", and --node-listen=HOST:PORT for other machines"}
	}
	return &protocol.Error{Err: err, Hint: hint}
}
