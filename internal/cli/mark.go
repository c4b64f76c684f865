package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/layout"
	"carronade/internal/live"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/verdict/fault"
	"carronade/protocol"
	"carronade/units"
)

// programBegan is when this program began: what a mark notes was done before.
var programBegan = time.Now()

const markLong = `Puts a mark on the time axis of a run in progress: a fault (something was just
broken), a heal (it was just repaired) or a note. The report then has a score of
what followed: when the fault was noticed, for how long nothing was acked, when
the limit on response holds again, and when the queue was gone, for the whole
run and for the worst partition.

RUN is the id of the run, which it prints when it begins, or last if only one
run of yours is in progress. The run must have been started with --marks, or
with a limit such as --slo 'outage<30s', which turns it on. It must be yours,
and on this machine.

The mark is at the middle of the time between the start of this command and its
arrival at the run, and half of that time is its bound.

It is for people who break a system by hand, or by another tool, and want to
know what that cost. A fault is compared with the ten seconds of the measurement
before it, so let the run measure for 10 s first.`

// markCommand puts marks on runs in progress.
func (s *session) markCommand() *cobra.Command {
	return &cobra.Command{
		Use: "mark RUN fault|heal|note NAME", Short: "a fault on the time axis of a run, scored",
		Long:    markLong,
		Example: markExample,
		Args:    cmdutil.Args(3, 3, "a run, fault or heal or note, and a name"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return live.Alive(s.rules.Owner()), cobra.ShellCompDirectiveNoFileComp
			case 1:
				return []string{fault.MarkFault, fault.MarkHeal, fault.MarkNote}, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: cmdutil.Run(func(_ *cobra.Command, args []string) error {
			kind, name := args[1], strings.TrimSpace(args[2])
			if err := checkMark(kind, name); err != nil {
				return err
			}
			id := args[0]
			if id == "last" {
				alive := live.Alive(s.rules.Owner())
				if len(alive) != 1 {
					return noSuchRun(id, alive)
				}
				id = alive[0]
			}
			atS, boundS, err := live.SendMark(s.rules.Owner(), id, kind, name, programBegan)
			switch {
			case errors.Is(err, live.ErrNoRun):
				return noSuchRun(id, live.Alive(s.rules.Owner()))
			case err != nil:
				return &protocol.Error{Err: fmt.Errorf("mark run %s: %w", id, err), Hint: "carronade report show " + id + " shows its report when it has ended"}
			}
			fmt.Fprintf(s.out, "%s %s at %s (± %s) of run %s\n", kind, layout.Clean(name), units.FormatDuration(units.Seconds(atS)), units.FormatDuration(units.Seconds(boundS)), id)
			return nil
		}),
	}
}

// checkMark checks the kind and the name of a mark.
func checkMark(kind, name string) error {
	switch {
	case kind != fault.MarkFault && kind != fault.MarkHeal && kind != fault.MarkNote:
		return &protocol.Error{Err: fmt.Errorf("a mark is a fault, a heal or a note, not %q", kind), Hint: "carronade mark RUN fault NAME"}
	case name == "" || len(name) > live.MostMarkName:
		return &protocol.Error{Err: fmt.Errorf("the name of a mark has 1 to %d bytes", live.MostMarkName), Hint: "such as carronade mark RUN fault 'kill broker 2'"}
	}
	return nil
}

// noSuchRun is the error of a run that cannot be marked.
func noSuchRun(id string, alive []string) error {
	w := &protocol.Error{Err: fmt.Errorf("no run of yours in progress here has the id %s and takes marks", id), Hint: "start it with --marks"}
	switch {
	case id == "last" && len(alive) > 1:
		w.Err = fmt.Errorf("%d runs of yours are in progress", len(alive))
		w.Hint = "give the id of one: " + strings.Join(alive[:min(len(alive), 8)], ", ")
	case id == "last":
		w.Err = errors.New("no run of yours in progress here takes marks")
	case len(alive) > 0:
		w.Hint = "these are: " + strings.Join(alive[:min(len(alive), 8)], ", ")
	}
	return w
}

// takeMarks lets other processes of the user mark a run. It returns what ends that.
func (s *session) takeMarks(id uint64, m *run.Marker, say func(format string, args ...any)) func() {
	name := report.IDOf(id)
	socket, err := live.ListenForMarks(s.rules.Owner(), name, marking("mark", m.Mark))
	if err != nil {
		say("marks of other processes cannot be taken: %v", err)
		return func() {}
	}
	say("carronade mark %s fault NAME marks this run", name)
	return socket.Close
}

// takeMarks lets requests to the live page mark a run. It returns what ends that.
func (v *viewers) takeMarks(id string, m *run.Marker) func() {
	if v == nil {
		return func() {}
	}
	return v.page.TakeMarks(id, marking("web", m.MarkRemote))
}

// marking checks a mark and makes it. by is how it comes to the run.
func marking(by string, mark func(kind, name, by string, from, to time.Time) (fault.Mark, error)) live.MarkFunc {
	return func(kind, name string, from, to time.Time) (atS, boundS float64, err error) {
		if err := checkMark(kind, name); err != nil {
			return 0, 0, err
		}
		made, err := mark(kind, layout.Clean(name), by, from, to)
		return made.AtS, made.BoundS, err
	}
}

// markText names a mark for viewers.
func markText(m *fault.Mark) string { return m.Kind + " " + m.Name }
