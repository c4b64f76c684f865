package mongoose

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"carronade/internal/dropin"
	"carronade/internal/host"
)

// nodeHelp is the help of the flags of nodes.
const nodeHelp = `flags of carronade for --run-node and --load-step-node-addrs=A,B:
  --node-listen=ADDR   the node listens on this HOST:PORT (default: 127.0.0.1,
                       and the port of --load-step-node-port)
  --node-key=FILE      the key that nodes and those who use them share; a node
                       makes the file (default: your own, on this machine)
  --allow-target=ADDR  the node sends to addresses like this, HOST or HOST:PORT
                       with * (repeatable; default: this machine)
  --allow              the node sends to any address
  --api-listen=ADDR    the remote API listens on this HOST:PORT (default:
                       127.0.0.1, and the port of --run-port); also without
                       --run-node, if one of the two is given
  --api-name=HOST      requests of the remote API may name this machine HOST
                       (repeatable), as its host name and addresses do
`

// nodeFlags are our own flags for nodes.
type nodeFlags struct {
	first     string // that belongs to --run-node, "" for none
	listen    string
	key       string
	targets   []string
	all       bool
	apiListen string
	apiNames  []string
}

// splitNode takes our own flags for nodes out of a command line.
func splitNode(args []string) (rest []string, f nodeFlags, err error) {
	for _, arg := range args {
		name, text, has := strings.Cut(arg, "=")
		node := true
		switch name {
		case "--node-listen":
			f.listen = text
		case "--node-key":
			f.key, node = text, false
		case "--allow-target":
			f.targets = append(f.targets, text)
		case "--allow":
			f.all = true
			if has {
				return nil, f, errors.New("--allow takes no value")
			}
			has, text = true, "true"
		case "--api-listen":
			f.apiListen, node = text, false
		case "--api-name":
			if strings.ContainsAny(text, ":/?#@% \t") {
				return nil, f, fmt.Errorf("--api-name: %q is not the name of a host", text)
			}
			f.apiNames, node = append(f.apiNames, text), false
		default:
			rest = append(rest, arg)
			continue
		}
		if !has || text == "" {
			return nil, f, fmt.Errorf("%s needs a value, after =", name)
		}
		if node && f.first == "" {
			f.first = name
		}
	}
	for name, addr := range map[string]string{"--node-listen": f.listen, "--api-listen": f.apiListen} {
		if addr == "" {
			continue
		}
		if err := checkAddr(addr); err != nil {
			return nil, f, fmt.Errorf("%s: %w", name, err)
		}
	}
	return rest, f, nil
}

// checkAddr checks HOST:PORT.
func checkAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || strings.ContainsAny(host, "/?#@% \t") {
		return fmt.Errorf("%q is not HOST:PORT", addr)
	}
	return nil
}

// listenOf is the address that an option with a port stands for.
func listenOf(given string, v *values, option string) (string, error) {
	if given != "" {
		return given, nil
	}
	port := v.number(option)
	if port < 0 || port > 65535 {
		return "", fmt.Errorf("--%s: %d is not a port", option, port)
	}
	return net.JoinHostPort("127.0.0.1", strconv.FormatInt(port, 10)), nil
}

// runNode makes this machine a node with a remote API, until the context ends.
func runNode(ctx context.Context, p *dropin.Program, v *values, f *nodeFlags) (int, error) {
	listen, err := listenOf(f.listen, v, "load-step-node-port")
	if err != nil {
		return host.ExitFailed, err
	}
	if err := (&step{v: v}).checkRefused(); err != nil {
		return host.ExitFailed, err
	}
	a := newAPI(p, v)
	defer a.end()
	node, err := p.Node(ctx, dropin.NodeOptions{Listen: listen, Key: f.key, Targets: f.targets, Everything: f.all, Claim: a.claim})
	if err != nil {
		return host.ExitFailed, err
	}
	defer node.Close()
	addr, stop, err := a.serve(ctx, f.apiListen, f.apiNames)
	if err != nil {
		return host.ExitFailed, err
	}
	defer stop()
	fmt.Fprintf(p.Out, "node %s: it sends to %s\n", node.Addr, node.Rules)
	fmt.Fprintf(p.Out, "remote API at http://%s\n", addr)
	select {
	case <-ctx.Done():
		return host.ExitOK, nil
	case err := <-node.Ended:
		return host.ExitFailed, err
	}
}

// withAPI serves the remote API while f runs, if that is wanted.
func withAPI(ctx context.Context, p *dropin.Program, v *values, flags *nodeFlags, f func(ctx context.Context) (int, error)) (int, error) {
	if flags.apiListen == "" && !v.has("run-port") {
		if len(flags.apiNames) > 0 {
			return host.ExitFailed, errors.New("--api-name belongs to the remote API: --api-listen=HOST:PORT")
		}
		return f(ctx)
	}
	a := newAPI(p, v)
	defer a.end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.began(v, cancel)
	addr, stop, err := a.serve(ctx, flags.apiListen, flags.apiNames)
	if err != nil {
		return host.ExitFailed, err
	}
	defer stop()
	warner(p)("remote API at http://%s", addr)
	return f(context.WithValue(ctx, apiKey{}, a))
}

// setNodes sets the nodes that take part besides this machine.
func (s *step) setNodes() error {
	for _, addr := range s.v.addrs("load-step-node") {
		if err := checkAddr(addr); err != nil {
			return fmt.Errorf("--load-step-node-addrs: %w", err)
		}
		s.nodes = append(s.nodes, addr)
	}
	if len(s.nodes) == 0 {
		return nil
	}
	what := ""
	switch {
	case s.v.kind != linearLoad:
		what = "a " + s.v.kind + " runs on one machine"
	case s.work == readRecords:
		what = "records are read by one machine: run it there, without nodes"
	case s.work == onTopics:
		what = "topics are worked on by one machine: run it there, without nodes"
	case s.v.text("item-output-file") != "":
		what = "nodes keep no lists: leave out --item-output-file"
	case s.v.flag("output-metrics-trace-persist"):
		what = "nodes keep no trace: leave out --output-metrics-trace-persist"
	}
	if what != "" {
		return fmt.Errorf("--load-step-node-addrs: %s", what)
	}
	return nil
}

// nodeCount is the number of machines that send: with nodes, this one is another.
func (s *step) nodeCount() int { return len(s.nodes) + 1 }

// runner returns what runs the workload of a step: this machine, or this machine with nodes. The
// returned function ends the connections.
func (s *step) runner(ctx context.Context, p *dropin.Program) (run runFunc, end func(), err error) {
	if len(s.nodes) == 0 {
		return p.Run, func() {}, nil
	}
	nodes, err := p.Nodes(ctx, dropin.NodesOptions{Addrs: s.nodes, Key: s.v.key, Start: "--run-node"})
	if err != nil {
		return nil, nil, err
	}
	return nodes.Run, nodes.Close, nil
}
