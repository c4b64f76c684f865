package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/advice"
	"carronade/internal/cli/cmdutil"

	"carronade/internal/host"
	"carronade/internal/verdict/trust"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/units"
)

const doctorLong = `Checks, before a run, what on this machine and at the target would disturb a
measurement. Each finding has its effect on the numbers, and the command or
setting that changes it. It sends no event and changes nothing.

Without a target it checks the machine alone: processors, other load, clocks,
memory, limits, the loopback. With one, also the network path to it, its
addresses, TLS and login, versions and settings. The flags of connections are
those of run; --clients is the number of clients that the run would have.

The exit code is 0 if nothing would disturb a measurement, 1 if there are
warnings or errors, and 2 if the target could not be checked because it does not
answer, or the command line is wrong.`

// doctorTimeout bounds the checks of a target. Those of the machine take less.
const doctorTimeout = "1.5s"

// examining holds the flags of the command doctor.
type examining struct {
	cmdutil.Settings
	file    string
	timeout string
	json    bool
	full    bool
	clients int // without a target; 0: not given
}

// doctorCommand returns the command doctor.
func (s *session) doctorCommand() *cobra.Command {
	var x examining
	cmd := &cobra.Command{
		Use: "doctor [TARGET] [-f FILE]", Short: "what would disturb a measurement, on this machine and at a target",
		Long: doctorLong, Example: doctorExample,
		Args:              cmdutil.Args(0, 1, "at most one target"),
		ValidArgsFunction: cmdutil.CompleteTarget(s.Kinds),
		RunE: cmdutil.Run(func(cmd *cobra.Command, args []string) error {
			return s.doctor(cmd.Context(), &x, args)
		}),
	}
	fs := cmd.Flags()
	fs.BoolVar(&x.json, "json", false, "the findings as JSON on stdout")
	fs.BoolVar(&x.full, "full", false, "print all findings, also what is fine")
	fs.StringVarP(&x.file, "file", "f", "", "take the target and its settings from the workload in this `FILE`; - is stdin")
	fs.StringVar(&x.timeout, "timeout", doctorTimeout, "give up on what the target does not answer within this `DURATION`")
	x.bindInspected(fs, s.Kinds)
	return cmd
}

// bindInspected makes flags of the settings that have an effect on the checks.
func (x *examining) bindInspected(fs *pflag.FlagSet, kinds []protocol.Kind) {
	x.BindOne(fs, "op")
	for _, k := range kinds {
		in := k.Capabilities().Inspector
		if in == nil {
			continue
		}
		for _, o := range workload.Table(k) {
			if o.Kind != "" && in.Inspects(&o.Option) && fs.Lookup(o.Name) == nil {
				x.BindSetting(fs, &o)
			}
		}
	}
}

// doctor checks the machine and the target, at the same time.
func (s *session) doctor(ctx context.Context, x *examining, args []string) error {
	timeout, err := units.ParseDuration(x.timeout)
	if err != nil || timeout < 10*time.Millisecond || timeout > time.Minute {
		return &protocol.Error{Err: fmt.Errorf("--timeout: %q is not a duration between 10ms and 1m", x.timeout), Hint: "write it as 5s"}
	}
	w, err := cmdutil.Await(ctx, func() (*workload.Workload, error) { return s.examined(x, args) })
	if err != nil {
		return err
	}
	r := &trust.Examination{Schema: trust.ExaminationSchema, Version: version(), At: time.Now().UTC().Truncate(time.Second), Findings: []trust.ExaminationEntry{}}
	began := time.Now()
	files := host.OpenFiles() + protocol.OtherFiles // before the target is connected to
	machine := make(chan trust.MachineFacts, 1)
	go func() { machine <- trust.ReadMachine(ctx) }()
	var found examination
	if w != nil {
		r.Target = w.Target()
		found = examine(ctx, w, timeout)
	}
	facts := <-machine
	if ctx.Err() != nil {
		return context.Canceled
	}
	facts.Clients, facts.OtherFiles = x.clients, files
	found.describe(&facts, w)
	facts.Measured = len(keptCalibrations()) > 0
	r.Add(trust.AboutMachine, trust.MachineFindings(&facts))
	r.Add(trust.AboutTarget, found.Findings)
	r.Answered = w != nil && !found.failed
	r.Seconds = time.Since(began).Seconds()
	if x.json {
		err = cmdutil.WriteJSON(s.out, r)
	} else {
		err = r.Text(s.out, s.style(), s.console().Columns, x.full)
	}
	switch {
	case err != nil:
		return err
	case found.failed:
		return exitCode{Code: host.ExitFailed}
	case r.Spoils():
		return exitCode{Code: host.ExitBroken}
	}
	return nil
}

// examined is the workload whose target is checked; nil if none was given.
func (s *session) examined(x *examining, args []string) (*workload.Workload, error) {
	if len(args) > 0 {
		x.Doc.Add("target", "target", args[0])
	}
	file, err := s.readOneWorkload(x.file, "doctor checks one target")
	if err != nil {
		return nil, err
	}
	if len(args) == 0 && file == nil && !slices.ContainsFunc(x.Doc.Entries, func(e workload.Entry) bool { return e.Name != "clients" }) {
		return nil, x.checkClients()
	}
	if file, err = s.withConfiguration(&x.Settings, file); err != nil {
		return nil, err
	}
	w, err := workload.Resolve(s.Kinds, &x.Doc, file)
	if err != nil {
		return nil, err
	}
	s.warnOnce(w)
	spec, err := w.Spec()
	if err == nil {
		err = protocol.Check(w.Kind, spec)
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// checkClients checks the number of clients without a target whose workload does.
func (x *examining) checkClients() error {
	for _, e := range x.Doc.Entries {
		for _, v := range e.Values {
			n, err := units.ParseCount(v)
			if err != nil || n < 1 || n > mostClients {
				return &protocol.Error{Err: fmt.Errorf("%s: %q is not a number of clients", e.Where, v), Hint: fmt.Sprintf("give 1 to %d", mostClients)}
			}
			x.clients = int(n)
		}
	}
	return nil
}

// mostClients limits the clients that the machine's limits are compared with.
const mostClients = 1_000_000

// An examination is what was found out about a target.
type examination struct {
	protocol.Inspection
	routes []host.Route
	failed bool // it does not answer as it should
}

// answerGrace is how long a kind may return after its time is over.
const answerGrace = 200 * time.Millisecond

// examine checks the target of a workload, or those of its parts, within the time.
func examine(ctx context.Context, w *workload.Workload, timeout time.Duration) examination {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	all := []*workload.Workload{w}
	if parts := w.Parts(); len(parts) > 0 {
		all = nil
		for i := range parts {
			p := parts[i].Workload
			if !slices.ContainsFunc(all, func(o *workload.Workload) bool { return o.Target() == p.Target() }) {
				all = append(all, p)
			}
		}
	}
	done := make(chan examination, len(all))
	for _, one := range all {
		go func() { done <- examineOne(ctx, one) }()
	}
	var out examination
	over := time.After(timeout + answerGrace)
	for range all {
		select {
		case one := <-done:
			out.Findings = append(out.Findings, one.Findings...)
			out.Addresses = append(out.Addresses, one.Addresses...)
			out.Connections += one.Connections
			out.routes = append(out.routes, one.routes...)
			out.failed = out.failed || one.failed
		case <-over: // its goroutine ends with the program
			out.failed = true
			out.Findings = append(out.Findings, noAnswer(w, context.DeadlineExceeded))
			return out
		}
	}
	return out
}

func examineOne(ctx context.Context, w *workload.Workload) examination {
	var out examination
	in := w.Kind.Capabilities().Inspector
	if in == nil {
		out.Findings = []protocol.Finding{{Check: "target", Level: protocol.LevelUnknown, Found: "a target of " + w.Kind.Name() + " has nothing to check"}}
		return out
	}
	spec, err := w.Spec()
	if err == nil {
		out.Inspection, err = in.Inspect(ctx, spec)
	}
	// The way to a target is of interest also if it used all the time.
	finding, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerGrace/2)
	defer cancel()
	for _, addr := range out.Addresses {
		if r, err := host.RouteTo(finding, addr); err == nil {
			out.routes = append(out.routes, r)
		}
	}
	if err != nil {
		out.failed = true
		out.Findings = append(out.Findings, noAnswer(w, err))
	}
	return out
}

// noAnswer is the finding about a target that could not be checked.
func noAnswer(w *workload.Workload, err error) protocol.Finding {
	f := protocol.Finding{
		Check: "target", Level: protocol.LevelError, Found: oneLine(err.Error()),
		Effect: "a run fails when it starts", Fix: advice.Hint(err),
	}
	if errors.Is(err, context.DeadlineExceeded) && f.Fix == "" {
		f.Found = w.Target() + " did not answer in time"
		f.Fix = "check the address and the firewall between, or give more --timeout"
	}
	return f
}

// describe adds to the facts about the machine what they are judged for.
func (e *examination) describe(f *trust.MachineFacts, w *workload.Workload) {
	f.Routes, f.Connections = e.routes, e.Connections
	if w == nil {
		return
	}
	// null:// has no addresses, and needs no way to them.
	f.Target = len(e.Addresses) > 0
	f.Clients = int(clientsOf(w))
	if f.Clients == 0 && len(e.Addresses) > 0 {
		f.Clients = (e.Connections + len(e.Addresses) - 1) / len(e.Addresses)
	}
	if spec, err := w.Spec(); err == nil {
		f.SendBuffer, f.RecvBuffer = spec.Options.Size("send-buffer"), spec.Options.Size("recv-buffer")
	}
}
