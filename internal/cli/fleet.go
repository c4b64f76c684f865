package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/dropin"
	"carronade/internal/fleet"
	"carronade/internal/fleet/bus"
	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/units"
)

const fleetLong = `Several machines that generate load as one. carronade fleet start starts the
server to which they connect; carronade agent makes a machine one of them; run
and find with --fleet make them all fire one schedule, and report as a single
machine with all their clients would.`

const fleetExample = `
  carronade fleet start --listen 0.0.0.0:8236 --advertise load-1
  carronade fleet token -o agent.join
  carronade agent --join agent.join --allow-target 'broker-*:9092'
  carronade fleet status
  carronade run TARGET --rate 500k/s --for 60s --fleet`

// fleetCommand returns the command fleet.
func (s *session) fleetCommand() *cobra.Command {
	g := cmdutil.Group("fleet", "several machines that generate load as one", fleetLong,
		s.fleetStart(), s.fleetToken(), s.fleetStatus(), s.fleetStop(), s.fleetRemove(), s.fleetRecover(), s.fleetManifest(),
		s.onFleet("run", "run a workload on all machines: carronade run --fleet"),
		s.onFleet("find", "search for a ceiling with all machines: carronade find --fleet"),
		s.onFleet("scenario", "run a scenario on all machines: carronade scenario --fleet"))
	g.Example = fleetExample
	return g
}

// bindFleetData defines --data, the folder of a fleet's server.
func bindFleetData(fs *pflag.FlagSet, data *string) {
	fs.StringVar(data, "data", "", "`FOLDER` of the server's key and agents (default: carronade/fleet in your data folder)")
}

// ownFolder returns a folder that was given, or the one of this name in the user's data folder.
func ownFolder(given, name string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	dir, err := host.DataDir()
	if err != nil {
		return "", &protocol.Error{Err: fmt.Errorf("cannot find your data folder: %w", err), Hint: "give --data FOLDER"}
	}
	return filepath.Join(dir, "carronade", name), nil
}

// logLine prints a line about what a server did.
func (s *session) logLine(format string, args ...any) {
	s.errLines.Lock()
	defer s.errLines.Unlock()
	fmt.Fprintf(s.Err, "%s %s\n", time.Now().Format(time.TimeOnly), layout.Clean(fmt.Sprintf(format, args...)))
}

// operator connects as the operator of a fleet, with the file given by --fleet or the one in
// the server's folder.
func operator(ctx context.Context, file, data string) (*bus.Operator, error) {
	if file == "" || file == "local" {
		folder, err := ownFolder(data, "fleet")
		if err != nil {
			return nil, err
		}
		file = filepath.Join(folder, bus.OperatorFile)
	}
	o, err := bus.ConnectOperator(ctx, file)
	return o, err
}

// withOperator makes the function of a command that talks to the server.
func (s *session) withOperator(data *string, f func(ctx context.Context, o *bus.Operator, args []string) error) func(*cobra.Command, []string) error {
	return cmdutil.Run(func(cmd *cobra.Command, args []string) error {
		if s.rules != nil {
			return &protocol.Error{Err: errors.New("a job of a server may not manage a fleet"), Hint: "do it on the machine itself"}
		}
		o, err := operator(cmd.Context(), "", *data)
		if err != nil {
			return err
		}
		defer o.Close()
		return f(cmd.Context(), o, args)
	})
}

// fleetToken returns the command that makes a join file.
func (s *session) fleetToken() *cobra.Command {
	var data, name, out, valid string
	cmd := &cobra.Command{
		Use: "token", Short: "make a file with which one machine may join",
		Long: `The file has the server's address, the hash of its certificate, and a token
that is good for one machine and a short time. Copy it to that machine, for
carronade agent --join. A user who has it may join in the machine's place.`,
		Args: cmdutil.Args(0, 0, "nothing"),
		RunE: s.withOperator(&data, func(ctx context.Context, o *bus.Operator, _ []string) error {
			if _, err := os.Lstat(out); err == nil && out != "-" { // before a token is made in vain
				return &protocol.Error{Err: fmt.Errorf("--output: %s exists", out), Hint: "give another file, or remove this one"}
			}
			within, err := units.ParseDuration(valid)
			if err != nil {
				return &protocol.Error{Err: fmt.Errorf("--valid: %w", err), Hint: "such as 15m"}
			}
			j, err := o.Token(ctx, name, within)
			if err != nil {
				return err
			}
			if out == "-" {
				return json.NewEncoder(s.out).Encode(j)
			}
			if err := j.Write(out); err != nil {
				return cannotWrite("--output", out, err, "give a file in a writable folder")
			}
			fmt.Fprintf(s.out, "%s: for one machine, until %s\n", out, j.Expires.Local().Format(time.TimeOnly))
			return nil
		}),
	}
	fs := cmd.Flags()
	fs.StringVarP(&out, "output", "o", "agent.join", "the `FILE` to write; - is stdout")
	fs.StringVar(&name, "name", "", "the `NAME` that the machine gets (default: its own choice, else its host name)")
	fs.StringVar(&valid, "valid", units.FormatDuration(bus.DefaultValid), "the `TIME` in which it must join")
	bindFleetData(fs, &data)
	return cmd
}

// fleetStatus returns the command that lists the machines.
func (s *session) fleetStatus() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use: "status", Short: "the machines, and what they do",
		Args: cmdutil.Args(0, 0, "nothing"),
		RunE: s.withOperator(&data, func(ctx context.Context, o *bus.Operator, _ []string) error {
			known, err := o.Agents(ctx)
			if err != nil {
				return err
			}
			if len(known) == 0 {
				fmt.Fprintln(s.out, "no machine has joined: carronade fleet token makes a file for one")
				return nil
			}
			var connected []string
			for _, a := range known {
				if a.Connected {
					connected = append(connected, a.Name)
				}
			}
			f := fleet.Fleet{Bus: o, Config: fleet.Config{Logf: s.logLine}}
			infos := f.Look(ctx, connected)
			rows := [][]string{{"agent", "state", "cpus", "weight", "version", "may connect to"}}
			for _, a := range known {
				row := []string{a.Name, "not connected", "", "", "", ""}
				if a.Connected {
					row[1] = "does not answer"
				}
				if i := slices.IndexFunc(infos, func(i fleet.Info) bool { return i.Name == a.Name }); i >= 0 {
					info := infos[i]
					row = []string{a.Name, "ready", fmt.Sprint(info.Processors), fmt.Sprint(max(1, info.Weight)), info.Version, cmp.Or(strings.Join(info.AllowTargets, " "), "any target")}
					if info.Busy != "" {
						row[1] = "run " + info.Busy
					}
				}
				rows = append(rows, row)
			}
			printRows(s, rows)
			return nil
		}),
	}
	cmd.Long = sentence(cmd.Short)
	bindFleetData(cmd.Flags(), &data)
	return cmd
}

// fleetStop returns the command that ends the run in progress.
func (s *session) fleetStop() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use: "stop", Short: "end the run that the machines take part in",
		Long: `The machines send nothing more, wait for answers, and deliver what they
measured. The program that commands the run reports it as interrupted.`,
		Args: cmdutil.Args(0, 0, "nothing"),
		RunE: s.withOperator(&data, func(ctx context.Context, o *bus.Operator, _ []string) error {
			names, err := connected(ctx, o)
			if err != nil {
				return err
			}
			f := fleet.Fleet{Bus: o, Config: fleet.Config{Logf: s.logLine}}
			stopped, err := f.Stop(ctx, names)
			if err != nil {
				return &protocol.Error{Err: err, Hint: "carronade fleet status says what the agents do"}
			}
			if len(stopped) == 0 {
				fmt.Fprintln(s.out, "no run is in progress")
				return nil
			}
			fmt.Fprintf(s.out, "stopped on %s\n", strings.Join(stopped, ", "))
			return nil
		}),
	}
	bindFleetData(cmd.Flags(), &data)
	return cmd
}

// connected returns the names of the agents that are connected.
func connected(ctx context.Context, o *bus.Operator) (names []string, err error) {
	known, err := o.Agents(ctx)
	for _, a := range known {
		if a.Connected {
			names = append(names, a.Name)
		}
	}
	return names, err
}

// printRows prints a table of texts.
func printRows(s *session, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], len([]rune(text)))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, text := range row {
			fmt.Fprintf(&line, "%-*s  ", widths[i], layout.Clean(text))
		}
		fmt.Fprintln(s.out, strings.TrimRight(line.String(), " "))
	}
}

// fleetRemove returns the command that removes a machine.
func (s *session) fleetRemove() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "remove a machine: it needs a new file to join again",
		Args: cmdutil.Args(1, 1, "the name of the agent"),
		RunE: s.withOperator(&data, func(ctx context.Context, o *bus.Operator, args []string) error { return o.Revoke(ctx, args[0]) }),
	}
	cmd.Long = sentence(cmd.Short)
	bindFleetData(cmd.Flags(), &data)
	return cmd
}

// fleetManifest returns the command that prints Kubernetes manifests.
func (s *session) fleetManifest() *cobra.Command {
	var o fleet.ManifestOptions
	cmd := &cobra.Command{
		Use: "manifest", Short: "print the objects of a fleet in Kubernetes",
		Long: `Prints a coordinator, agents that spread over the nodes, and what they need, for
kubectl apply -f -. docs/kubernetes.md says how the agents get their join files.`,
		Args: cmdutil.Args(0, 0, "nothing"),
		RunE: cmdutil.Run(func(*cobra.Command, []string) error {
			if err := checkPatterns(o.AllowTargets); err != nil {
				return err
			}
			if o.Agents == 0 { // the package's word for its default
				return &protocol.Error{Err: errors.New("--agents: 0 agents generate no load"), Hint: fmt.Sprintf("without it there are %d", fleet.DefaultAgents)}
			}
			text, err := fleet.Manifest(o)
			if err != nil {
				return err
			}
			_, err = s.out.Write(text)
			return err
		}),
	}
	fs := cmd.Flags()
	fs.IntVar(&o.Agents, "agents", fleet.DefaultAgents, "`N` agents")
	fs.StringVar(&o.Image, "image", fleet.DefaultImage, "the `IMAGE` with carronade")
	fs.StringVar(&o.Namespace, "namespace", "", "the `NAME` of the namespace (default: none is named)")
	fs.StringArrayVar(&o.AllowTargets, "allow-target", nil, "agents send to addresses like `PATTERN` (repeatable)")
	return cmd
}

// onFleet returns a command that is another one with --fleet.
func (s *session) onFleet(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name + " ARGUMENTS", Short: short, Long: sentence(short) + "\n\nArguments are those of carronade " + name + ".",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.rules != nil { // they would not be checked again
				return &protocol.Error{Err: fmt.Errorf("a job of a server may not use carronade fleet %s", name), Hint: "carronade " + name + " --fleet is the same"}
			}
			root := s.root()
			root.SetArgs(append([]string{name, "--fleet"}, args...))
			return root.ExecuteContext(cmd.Context())
		},
	}
}

const recoverLong = `Collects what agents still have of a run whose program ended before it had all
results, and makes its report again. A run's name is that of its report. An
agent keeps what it measured until it was delivered.`

// fleetRecover returns the command that makes the report of a run whose program ended.
func (s *session) fleetRecover() *cobra.Command {
	var t cmdutil.Settings
	cmd := &cobra.Command{
		Use: "recover REPORT", Short: "make the report of a run whose program ended",
		Long: recoverLong, Args: cmdutil.Args(1, 1, "the report of the run"),
		Annotations: map[string]string{settingsPage: "all"},
		RunE: cmdutil.Run(func(cmd *cobra.Command, args []string) error {
			d, err := s.stored(cmd.Context(), &t, args[0])
			if err != nil {
				return err
			}
			doc, err := replayed(d)
			if err != nil {
				return err
			}
			doc.Entries = slices.DeleteFunc(doc.Entries, func(e workload.Entry) bool { return strings.HasPrefix(e.Name, "system-") })
			if t.Last("fleet") == "" {
				t.Doc.Add("fleet", "--fleet", "local")
			}
			ws, err := s.resolveAll(&t, []*workload.Document{doc})
			if err != nil {
				return err
			}
			o, end, err := s.prepare(cmd.Context(), &t, dropin.Observer{}, ws...)
			if err != nil {
				return err
			}
			defer end()
			o.fleet.Recover = d.ID
			o.tasks[0].replaces = d.ID
			return s.runTasks(cmd.Context(), o)
		}),
	}
	t.Bind(cmd.Flags(), s.Kinds)
	s.bindHelpAll(cmd.Flags())
	return cmd
}

// openFleet connects to the agents that --fleet names; nil without the flag.
func (s *session) openFleet(ctx context.Context, t *cmdutil.Settings) (*fleetRuns, error) {
	file := t.Last("fleet")
	if file == "" {
		for _, name := range []string{"fleet-agents", "fleet-reader", "keep-going", "min-agents", "max-clock-error"} {
			if t.Last(name) != "" {
				return nil, &protocol.Error{Err: fmt.Errorf("--%s is for runs of several machines", name), Hint: "give --fleet too"}
			}
		}
		return nil, nil
	}
	o, err := operator(ctx, file, "")
	if err != nil {
		return nil, err
	}
	r := &fleetRuns{bus: o, Fleet: fleet.Fleet{Bus: o, Config: fleet.Config{Version: fleetVersion(), KeepGoing: t.Bool("keep-going"), Logf: s.logLine}}}
	if text := t.Last("max-clock-error"); text != "" {
		if r.MaxClockError, err = units.ParseDuration(text); err != nil {
			o.Close()
			return nil, err
		}
	}
	if text := t.Last("min-agents"); text != "" {
		n, err := units.ParseCount(text)
		if err != nil {
			o.Close()
			return nil, err
		}
		r.MinAgents = int(n)
	}
	err = r.choose(ctx, t.Last("fleet-agents"))
	if r.Reader = t.Last("fleet-reader"); err == nil && r.Reader != "" && !slices.Contains(r.Agents, r.Reader) {
		err = &protocol.Error{Err: fmt.Errorf("--fleet-reader: agent %q does not take part", r.Reader), Hint: "carronade fleet status lists the agents"}
	}
	if err != nil {
		o.Close()
		return nil, err
	}
	return r, nil
}

// fleetRuns are the runs of a command on a fleet; nil: this machine generates the load.
type fleetRuns struct {
	fleet.Fleet
	bus   *bus.Operator // nil for the nodes of a tool
	infos []fleet.Info
}

// choose finds the agents that take part.
func (r *fleetRuns) choose(ctx context.Context, names string) error {
	known, err := r.bus.Agents(ctx)
	if err != nil {
		return err
	}
	for _, a := range known {
		if a.Connected && names == "" {
			r.Agents = append(r.Agents, a.Name)
		}
	}
	for name := range strings.SplitSeq(names, ",") {
		if name == "" || slices.Contains(r.Agents, name) {
			continue
		}
		i := slices.IndexFunc(known, func(a bus.Registered) bool { return a.Name == name })
		if i < 0 || !known[i].Connected {
			return &protocol.Error{Err: fmt.Errorf("--fleet-agents: agent %q is not connected", name), Hint: "carronade fleet status lists the agents"}
		}
		r.Agents = append(r.Agents, name)
	}
	if len(r.Agents) == 0 {
		return &protocol.Error{Err: errors.New("no agent is connected"), Hint: "carronade agent on each machine connects it, and carronade fleet status lists them"}
	}
	r.infos = r.Look(ctx, r.Agents)
	if r.bus.External() && names == "" && len(r.infos) > 0 { // the server does not list the others
		r.Agents = nil
		for _, i := range r.infos {
			r.Agents = append(r.Agents, i.Name)
		}
	}
	if err := r.Silent(r.Agents, r.infos); err != nil {
		return &protocol.Error{Err: err, Hint: "carronade fleet status lists them; --fleet-agents names those that take part"}
	}
	return nil
}

// fit gives a workload the number of clients that it has on the fleet.
func (r *fleetRuns) fit(w *workload.Workload) error {
	if r == nil {
		return nil
	}
	if err := fleet.Check(w, r.Reader); err != nil {
		return &protocol.Error{Err: err, Hint: "docs/fleet.md says what a fleet does not do; or run without --fleet"}
	}
	weights := fleet.Weights(r.infos, r.Reader)
	n, err := fleet.Clients(w, weights)
	if err != nil {
		return &protocol.Error{Err: err, Hint: fmt.Sprintf("give --clients %d or more", len(weights))}
	}
	w.SetClients(n)
	return nil
}

func (r *fleetRuns) close() {
	if r != nil {
		r.bus.Close()
	}
}
