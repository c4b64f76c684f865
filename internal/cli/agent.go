package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/conn"
	"carronade/internal/fleet"
	"carronade/internal/fleet/bus"
	"carronade/internal/host"
	"carronade/internal/serve"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/units"
)

const agentLong = `Makes this machine one of the generators of a fleet. The first time it needs a
file of carronade fleet token; from then on it has a key of its own. It connects
to the fleet's server and listens on nothing.

It sends only to addresses like those of --allow-target, reads only files in its
own folder, and starts no programs; on Linux the system sees to that, too. It
stops a run by itself when it has had no message from the operator for five
seconds. What it has measured stays in its folder until the operator has it.
Ctrl-C or TERM ends it.`

// agentCommand returns the command agent.
func (s *session) agentCommand() *cobra.Command {
	var cfg bus.AgentConfig
	var targets []string
	var weight int
	var everything bool
	var traces string
	var nats natsFlags
	cmd := &cobra.Command{
		Use: "agent", Short: "make this machine one of the generators of a fleet",
		Long: agentLong,
		Example: `
  carronade agent --join agent.join --allow-target 'broker-*:9092'
  carronade agent --allow-target 'broker-*:9092'   after the first time`,
		Args: cmdutil.Args(0, 0, "nothing"),
		RunE: cmdutil.Run(func(cmd *cobra.Command, _ []string) (err error) {
			if s.rules != nil {
				return &protocol.Error{Err: errors.New("a job of a server may not be an agent"), Hint: "start it yourself"}
			}
			if weight < 1 || weight > fleet.MaxWeight {
				return &protocol.Error{Err: fmt.Errorf("--weight: must be between 1 and 4096, not %d", weight), Hint: "1 is as much as other agents"}
			}
			if len(targets) == 0 && !everything {
				return &protocol.Error{Err: errors.New("no target is allowed"), Hint: "give --allow-target PATTERN, such as 'broker-*:9092', or --allow for any target"}
			}
			if err := checkPatterns(targets); err != nil {
				return err
			}
			if cfg.Dir, err = ownFolder(cfg.Dir, "agent"); err != nil {
				return err
			}
			if err := nats.unused(); err != nil {
				return err
			}
			if nats.URL != "" {
				if cfg.Join != "" {
					return &protocol.Error{Err: errors.New("--join and --nats are two servers"), Hint: "give one of them"}
				}
				cfg.NATS = &nats.NATS
			}
			if traces != "" {
				if err := os.MkdirAll(traces, 0o755); err != nil {
					return cannotWrite("--traces", traces, err, "give a folder that this user may write")
				}
				if traces, err = filepath.Abs(traces); err != nil {
					return err
				}
			}
			return s.agent(cmd.Context(), cfg, fleet.Info{Weight: weight, AllowTargets: targets}, everything, traces)
		}),
	}
	fs := cmd.Flags()
	fs.StringVar(&cfg.Join, "join", "", "`FILE` of carronade fleet token; needed once")
	nats.bind(fs)
	fs.StringArrayVar(&targets, "allow-target", nil, "send to addresses like `PATTERN`, such as 10.0.0.* or broker-*:9092 (repeatable)")
	fs.BoolVar(&everything, "allow", false, "send to any target, and read any file that this user may read")
	fs.StringVar(&cfg.Name, "name", "", "the `NAME` of this machine (default: that of the file, else its host name)")
	fs.IntVar(&weight, "weight", 1, "its share of the clients, beside those of others: `N` times as many as one with 1")
	fs.StringVar(&traces, "traces", "", "write a trace of each run into `FOLDER`: what this machine sent, a row for each batch")
	fs.StringVar(&cfg.Dir, "data", "", "`FOLDER` of its key and of results that were not delivered yet (default: carronade/agent in your data folder)")
	return cmd
}

// checkPatterns checks the values of --allow-target.
func checkPatterns(patterns []string) error {
	for _, p := range patterns {
		if _, err := filepath.Match(p, ""); err != nil || p == "" || strings.ContainsAny(p, "/, ") {
			return &protocol.Error{Err: fmt.Errorf("--allow-target: %q is not a pattern of addresses", p), Hint: "it is HOST or HOST:PORT without a protocol, such as 10.0.0.* or broker-*:9092"}
		}
	}
	return nil
}

// agent runs an agent until the context ends.
func (s *session) agent(ctx context.Context, cfg bus.AgentConfig, info fleet.Info, everything bool, traces string) error {
	a, end, err := s.openAgent(ctx, cfg, info, everything, 0)
	if err != nil {
		return err
	}
	defer end()
	a.Traces = traces
	if !everything {
		if err := s.confineAgent(cfg, info.AllowTargets, a.Bus.(*bus.Agent).Server(), traces); err != nil {
			return err
		}
	}
	s.note("walls around runs: %s", wallsText(everything))
	fmt.Fprintf(s.out, "agent %s is connected\n", a.Info.Name)
	return fleet.Serve(ctx, a)
}

// openAgent connects an agent, and has this process send to nothing else than its targets. Results
// that have not been fetched for longer than keep are deleted; 0 keeps them. The returned function
// ends it.
func (s *session) openAgent(ctx context.Context, cfg bus.AgentConfig, info fleet.Info, everything bool, keep time.Duration) (fleet.AgentConfig, func(), error) {
	cfg.Logf = s.logLine
	b, err := bus.ConnectAgent(ctx, cfg)
	if err != nil {
		return fleet.AgentConfig{}, nil, err
	}
	files := agentFiles(cfg.Dir)
	if err := os.MkdirAll(files, 0o700); err != nil {
		b.Close()
		return fleet.AgentConfig{}, nil, &protocol.Error{Err: fmt.Errorf("cannot make %s: %s", files, cmdutil.Reason(err)), Hint: "give --data FOLDER that this user may write"}
	}
	spool, err := fleet.OpenSpool(filepath.Join(cfg.Dir, "runs"))
	if err != nil {
		b.Close()
		return fleet.AgentConfig{}, nil, &protocol.Error{Err: err, Hint: "does another agent use " + cfg.Dir + "? give --data FOLDER"}
	}
	if keep > 0 {
		removed, err := spool.RemoveOlder(time.Now().Add(-keep))
		if len(removed) > 0 {
			s.logLine("results that were not fetched in %s are deleted: run %s", units.FormatDuration(keep), strings.Join(removed, ", "))
		}
		if err != nil { // it is tried again at the next start
			s.logLine("old results cannot be deleted: %v", err)
		}
	}
	info.Name = b.Name()
	rules := &serve.Rules{Agent: true, Everything: everything, Folder: files, Targets: info.AllowTargets}
	if !everything { // also those that a system announces
		conn.Restrict(func(addr string) error {
			if rules.Address(addr) == nil {
				return nil
			}
			return conn.NotAllowed(fmt.Errorf("agent %s may not connect to %s", b.Name(), addr), "start the agent with --allow-target for this address too")
		})
	}
	a := fleet.AgentConfig{Bus: b, Spool: spool, Info: thisProcess(info), Kinds: s.Kinds, Host: host.Describe(), Others: s.Others, Logf: s.logLine}
	a.Allow = func(settings []workload.Entry) error {
		err := rules.Document(s.Kinds, settings)
		if r, ok := errors.AsType[*serve.Refusal](err); ok { // the operator prints the text alone
			err = fmt.Errorf("%w: %s", err, r.Way)
		}
		return err
	}
	return a, func() {
		spool.Close()
		b.Close()
	}, nil
}

// thisProcess completes what an agent says of itself.
func thisProcess(info fleet.Info) fleet.Info {
	info.Version, info.Layout = fleetVersion(), measure.Layout
	info.Incarnation, info.Processors = rand.Text(), load.Processors()
	return info
}

// fleetVersion is the version that all machines of a fleet must have. Their platforms may
// differ.
func fleetVersion() string { return strings.Fields(version())[0] }
