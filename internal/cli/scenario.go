package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/dropin"
	"carronade/internal/dropin/mongoose"
	"carronade/internal/host"
	"carronade/internal/scenario"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/units"
)

const scenarioLong = `Runs the steps that a script in JavaScript asks for: runs and searches, one
after the other or side by side, with limits on their results. The script is an
ES module that imports its functions from "carronade" (docs/scenarios.md).

The scenario is one report with its steps inside. Each step has a report of its
own as well, with the label scenario=ID. The exit code is that of the worst
step or check, and 2 if the script fails.

ARGS go to the script. Settings of a workload given as flags override those of
all steps; --for ends the whole scenario. Ctrl-C stops the steps in progress,
which report, and ends the script.

The script runs in a process of its own, without files and network. It may
compute for --script-time between two steps, in --script-memory.`

// scenarioSets are the settings that each step has of its own, or that a scenario has no use for.
var scenarioSets = []string{"repeat", "hdr", "trace", "trace-events"}

// scenarioChild is the hidden command of the process that runs a script.
const scenarioChild = "scenario-script"

// A scenarioFlags are the flags of the command that are not settings of steps.
type scenarioFlags struct {
	settings cmdutil.Settings
	check    bool
	types    bool
	time     string // of the whole scenario
	compute  string
	memory   string
	steps    int
	depth    int
}

func (s *session) scenarioCommand() *cobra.Command {
	var f scenarioFlags
	cmd := &cobra.Command{
		Use: "scenario FILE.js [ARGS]", Short: "several runs and searches, as a script says",
		Long: scenarioLong, Example: scenarioExample,
		Args:        cobra.ArbitraryArgs,
		Annotations: map[string]string{settingsPage: "all"},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return []string{"js"}, cobra.ShellCompDirectiveFilterFileExt
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: cmdutil.Run(func(cmd *cobra.Command, args []string) error {
			if f.types {
				_, err := s.out.Write(scenario.Typings(s.Kinds, s.findWords()))
				return err
			}
			if len(args) == 0 {
				return &protocol.Error{Err: errors.New("no script was given"), Hint: "carronade scenario FILE.js; docs/scenarios.md has examples"}
			}
			return s.scenario(cmd.Context(), &f, args[0], args[1:])
		}),
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.check, "check", false, "print what each step would do, and send nothing")
	fs.StringVar(&f.time, "for", "", "end the scenario after this `TIME`")
	fs.IntVar(&f.steps, "max-steps", scenario.DefaultSteps, "end the scenario after this `NUMBER` of steps")
	fs.StringVar(&f.compute, "script-time", units.FlagDuration(scenario.DefaultCompute), "`TIME` that the script may compute between two steps")
	fs.StringVar(&f.memory, "script-memory", units.FlagSize(scenario.DefaultMemory), "`SIZE` of the memory that the script may need")
	fs.IntVar(&f.depth, "call-depth", scenario.DefaultDepth, "`NUMBER` of calls that the script may nest")
	fs.BoolVar(&f.types, "types", false, "print TypeScript declarations for scripts, and exit")
	for _, setting := range cmdutil.AllSettings(s.Kinds) {
		if fs.Lookup(setting.Name) == nil { // for is of the scenario
			f.settings.BindSetting(fs, &setting)
		}
	}
	for _, name := range scenarioSets {
		fs.Lookup(name).Hidden = true // given, it is an error that says why
	}
	s.bindHelpAll(fs)
	return cmd
}

// scenarioChildCommand is the process of a script. Only the program itself starts it, by scenarioChildLine.
func (s *session) scenarioChildCommand() *cobra.Command {
	return &cobra.Command{
		Use: scenarioChild, Hidden: true, Args: cmdutil.Args(0, 0, "nothing"),
		RunE: func(*cobra.Command, []string) error {
			if code := scenario.Main(s.In, s.Program.Out, map[string]scenario.Language{mongoose.Language: mongoose.RunScript}); code != host.ExitOK {
				return exitCode{Code: code}
			}
			return nil
		},
	}
}

// scenarioChildLine is the command line of the process of a script.
func scenarioChildLine() ([]string, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the running program: %w", err)
	}
	return []string{exe, scenarioChild}, nil
}

// scenario runs a script and delivers the report of the scenario.
func (s *session) scenario(ctx context.Context, f *scenarioFlags, path string, args []string) error {
	options, err := f.options(path, args)
	if err != nil {
		return err
	}
	if err := s.fitScript(options.Memory); err != nil {
		return err
	}
	if options.Command, err = scenarioChildLine(); err != nil {
		return err
	}
	r := &scenarioRun{s: s, t: &f.settings, ctx: ctx, began: time.Now(), script: &options.Script, id: newSeries()}
	options.Runner, options.Print, options.Warn, options.Mark = r, r.print, r.warn, r.mark
	if f.check {
		return r.dryRun(&options)
	}
	if err := s.configuredOutputs(&f.settings); err != nil {
		return err
	}
	if err := tryFile("--json-file", f.settings.Last("json-file")); err != nil {
		return err
	}
	o, end, err := s.prepare(ctx, &f.settings, dropin.Observer{})
	if err != nil {
		return err
	}
	defer end()
	o.beside = false
	r.o = &o
	if err := r.begin(); err != nil {
		return err
	}
	reason, fault, err := scenario.Run(ctx, options)
	if err != nil {
		return err
	}
	return r.deliver(reason, fault)
}

// options checks the flags and reads the script.
func (f *scenarioFlags) options(path string, args []string) (o scenario.Options, err error) {
	for _, name := range scenarioSets {
		if where := f.settings.Where(name); where != "" {
			return o, &protocol.Error{Err: fmt.Errorf("%s: each step of a scenario has its own", where), Hint: "put it into the options of a step; the script repeats a step with a loop"}
		}
	}
	fail := func(flag string, err error, hint string) error {
		return &protocol.Error{Err: fmt.Errorf("--%s: %w", flag, err), Hint: hint}
	}
	if o.Compute, err = units.ParseDuration(f.compute); err != nil || o.Compute <= 0 {
		return o, fail("script-time", orAbove0(err), "give a time such as 10s")
	}
	if f.time != "" {
		if o.For, err = units.ParseDuration(f.time); err != nil || o.For <= 0 {
			return o, fail("for", orAbove0(err), "give a time such as 10m")
		}
	}
	if o.Memory, err = units.ParseSize(f.memory); err == nil && o.Memory < scenario.LeastMemory {
		err = fmt.Errorf("an interpreter needs %s", units.FlagSize(scenario.LeastMemory))
	}
	if err != nil {
		return o, fail("script-memory", err, "give a size such as 256MiB")
	}
	if f.steps < 1 {
		return o, fail("max-steps", errAbove0, "give a number such as 100")
	}
	if f.depth < 1 {
		return o, fail("call-depth", errAbove0, "give a number such as 1000")
	}
	o.MaxSteps = f.steps
	source, err := readScript(path)
	if err != nil {
		return o, err
	}
	seed, err := f.seed()
	if err != nil {
		return o, err
	}
	o.Script = scenario.Script{Path: path, Source: source, Args: args, Seed: seed, Depth: f.depth, Dry: f.check}
	return o, nil
}

var errAbove0 = errors.New("must be above 0")

// orAbove0 is the error of a value that is not above 0, if it has no other.
func orAbove0(err error) error {
	if err == nil {
		return errAbove0
	}
	return err
}

// seed is the seed of the scenario: that of its runs, unless a step has another.
func (f *scenarioFlags) seed() (uint64, error) {
	text := f.settings.Last("seed")
	if text == "" {
		table := workload.Table(nil)
		i := slices.IndexFunc(table, func(s workload.Setting) bool { return s.Name == "seed" })
		text = table[i].Default
	}
	n, err := units.ParseCount(text)
	if err != nil {
		return 0, &protocol.Error{Err: fmt.Errorf("--seed: %w", err), Hint: "give a number"}
	}
	return n, nil
}

// findWords are the options that searches have besides settings, with the help of their flags.
func (s *session) findWords() []scenario.TypedOption {
	flags := s.findCommand().Flags()
	out := make([]scenario.TypedOption, len(findOptions))
	for i, o := range findOptions {
		out[i] = scenario.TypedOption{Name: o.name, Help: strings.ReplaceAll(flags.Lookup(o.name).Usage, "`", "")}
	}
	return out
}

// readScript reads a script.
func readScript(path string) (string, error) {
	text, err := scenario.ReadSource(path)
	if err == nil {
		return text, nil
	}
	hint := "give the path of a file with JavaScript"
	if errors.Is(err, scenario.ErrLarge) {
		hint = "a script composes steps; data belongs to the target"
	}
	return "", &protocol.Error{Err: fmt.Errorf("cannot read the script %s: %w", path, err), Hint: hint}
}

// configuredOutputs adds what the configuration says about output and stores. The rest of it is
// of the workloads, and depends on the target.
func (s *session) configuredOutputs(t *cmdutil.Settings) error {
	conf, err := s.configuration()
	if err != nil {
		return err
	}
	table := workload.Table(nil)
	var flags []workload.Entry
	for _, e := range conf.Entries {
		if slices.ContainsFunc(table, func(s workload.Setting) bool { return s.Name == e.Name && s.FlagOnly }) {
			flags = append(flags, e)
		}
	}
	t.Doc.Entries = append(flags, t.Doc.Entries...)
	return nil
}
