package omb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"carronade/internal/advice"
	"carronade/internal/dropin"
	"carronade/internal/host"
)

// Worker is OMB's benchmark-worker: a machine that sends a part of what others run.
var Worker = dropin.Tool{
	Name: "omb-worker", Aliases: []string{"benchmark-worker"},
	Short: "Kafka: a machine that --workers of omb names", Kind: "kafka",
	Main: worker,
}

// workerArguments are its command line.
type workerArguments struct {
	port    string
	listen  string // HOST:PORT; "": the port of this machine alone
	key     string
	targets []string
	all     bool
	help    bool
}

const workerHelp = `  -p, --port PORT         listen on this port (8080)
  -sp, --stats-port PORT  no effect: the reports have the metrics
  -h, --help              print this

  --node-listen ADDR      listen on this HOST:PORT, for other machines
  --node-key FILE         the key that workers and those who use them share; a
                          worker makes the file, and you copy it (default: your
                          own, on this machine)
  --allow-target ADDR     send to addresses like this, HOST or HOST:PORT with *
                          (repeatable; default: this machine)
  --allow                 send to any address

`

func parseWorker(args []string) (*workerArguments, error) {
	a := &workerArguments{port: "8080"}
	values := map[string]*string{"-p": &a.port, "--port": &a.port, "-sp": new(string), "--stats-port": new(string), "--node-listen": &a.listen, "--node-key": &a.key, "--allow-target": new(string)}
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		to, ok := values[name]
		switch {
		case (name == "-h" || name == "--help") && !has:
			a.help = true
			continue
		case name == "--allow" && !has:
			a.all = true
			continue
		case !ok:
			return nil, &advice.Error{Err: fmt.Errorf("unknown flag %s", name), Hint: "carronade as omb-worker --help lists the flags"}
		case !has:
			if i++; i == len(args) {
				return nil, fmt.Errorf("%s needs a value", name)
			}
			value = args[i]
		}
		if *to = value; name == "--allow-target" {
			a.targets = append(a.targets, value)
		}
	}
	if n, err := strconv.Atoi(a.port); err != nil || n < 0 || n > 65535 {
		return nil, fmt.Errorf("--port %s: not a port", a.port)
	}
	if a.listen == "" {
		a.listen = net.JoinHostPort("127.0.0.1", a.port)
	}
	if _, _, err := net.SplitHostPort(a.listen); err != nil {
		return nil, fmt.Errorf("--node-listen %s: not HOST:PORT", a.listen)
	}
	return a, nil
}

// worker runs until it is interrupted.
func worker(ctx context.Context, p *dropin.Program) (int, error) {
	a, err := parseWorker(p.Args)
	if err != nil {
		return host.ExitFailed, err
	}
	if a.help {
		fmt.Fprintf(p.Out, "Usage: %s [FLAGS]\n\n%s%s", p.Called, workerHelp, dropin.CommonHelp)
		return host.ExitOK, nil
	}
	node, err := p.Node(ctx, dropin.NodeOptions{Listen: a.listen, Key: a.key, Targets: a.targets, Everything: a.all})
	if err != nil {
		return host.ExitFailed, err
	}
	defer node.Close()
	fmt.Fprintf(p.Out, "worker %s: it sends to %s\n", node.Addr, node.Rules)
	select {
	case <-ctx.Done():
		return host.ExitOK, nil
	case err := <-node.Ended:
		if err == nil {
			err = errors.New("the worker ended by itself")
		}
		return host.ExitFailed, err
	}
}
