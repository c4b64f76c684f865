package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/advice"
	"carronade/internal/cli/cmdutil"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/scenario"
	"carronade/internal/workload"
	"carronade/protocol"
)

const asLong = `Runs an old tool's command line and prints the tool's lines with correct
numbers; --strict reproduces its errors. Every run is kept as a report: every
tool accepts --store, --no-store and --label. A link to carronade that has a
tool's name behaves like the tool.`

// asCommand returns the command that runs the drop-ins for old tools.
func (s *session) asCommand() *cobra.Command {
	return &cobra.Command{
		Use: "as [TOOL [ARGS]]", Short: "run as an old tool, with its flags and output",
		Long: asLong, Example: asExample,
		DisableFlagParsing: true, // they are the tool's
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			for _, tool := range oldTools() {
				names = append(names, tool.Name+"\t"+tool.Short)
			}
			return names, cobra.ShellCompDirectiveDefault
		},
		RunE: cmdutil.Run(func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return s.listTools()
			case args[0] == "--help" || args[0] == "-h":
				return cmd.Help()
			}
			tool, ok := dropin.Find(oldTools(), args[0])
			if !ok {
				return unknownTool(args[0])
			}
			return s.as(cmd.Context(), tool, args[0], args[1:])
		}),
	}
}

func (s *session) listTools() error {
	for _, tool := range oldTools() {
		if _, err := fmt.Fprintf(s.out, "%-30s %s\n", tool.Name, tool.Short); err != nil {
			return err
		}
	}
	return nil
}

func unknownTool(name string) error {
	var names []string
	for _, tool := range oldTools() {
		names = append(names, tool.Name)
	}
	return &protocol.Error{Err: fmt.Errorf("unknown tool %q", name), Hint: advice.DidYouMean(name, names, "%s", "carronade as lists the tools")}
}

// called returns the command line for a program that was started under a tool's name.
func called(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	if dropin.RunsOthers(args[0]) {
		return append([]string{"as"}, args[1:]...)
	}
	if tool, ok := dropin.Find(oldTools(), args[0]); ok {
		return append([]string{"as", tool.Name}, args[1:]...)
	}
	return args[1:]
}

// as returns the tool as a function of its command line.
func (s *session) as(ctx context.Context, tool *dropin.Tool, name string, args []string) error {
	own, common, err := tool.Split(args)
	if err != nil {
		return &protocol.Error{Err: err, Hint: "such as --report-json report.json or --label host=new"}
	}
	p := &dropin.Program{
		Called: name, Args: own, Strict: common.Strict, Generation: common.Generation, In: s.In, Out: s.out, Err: s.Err, Color: s.style().Color,
		Run: func(ctx context.Context, doc *workload.Document, observer dropin.Observer) (*report.Document, error) {
			return s.fireAs(ctx, tool, doc, common, observer, nil)
		},
		Node: s.node,
		Nodes: func(ctx context.Context, o dropin.NodesOptions) (*dropin.Nodes, error) {
			return s.nodes(ctx, tool, common, o)
		},
		RunTogether: func(ctx context.Context, docs []*workload.Document) ([]*report.Document, error) {
			return s.fireTogether(ctx, tool, docs, common)
		},
	}
	p.Resolve = func(doc *workload.Document) error {
		_, err := s.resolveAll(&cmdutil.Settings{Doc: *doc}, []*workload.Document{nil})
		return err
	}
	p.Scenario = func(ctx context.Context, o scenario.Options) (scenario.Reason, *scenario.Fault, error) {
		return s.asScenario(ctx, tool, common, o)
	}
	p.Find = func(ctx context.Context, doc *workload.Document, budget time.Duration) (*report.Document, error) {
		return s.findAs(ctx, tool, doc, common, budget)
	}
	p.Serve = s.serveAs
	if k, load := s.topicLoads(tool.Kind); load != nil {
		p.Topics = func(ctx context.Context, doc *workload.Document, l dropin.TopicLoad) (*dropin.TopicResult, error) {
			if err := tryFile("--report-json", common.ReportJSON); err != nil {
				return nil, err
			}
			return s.topicsAs(ctx, tool, load, k, doc, common, l)
		}
	}
	code, err := tool.Main(ctx, p)
	if err != nil && code == host.ExitOK {
		code = host.ExitFailed
	}
	code = common.ExitCode(code, err)
	if s.unwritten.Load() && code != host.ExitInterrupted { // like run; also with --strict, since the flag is carronade's
		code = host.ExitFailed
	}
	if code == host.ExitOK {
		return nil
	}
	return exitCode{Code: code, Err: err}
}

// byAs is where the settings of all old tools' runs are from.
const byAs = "carronade as"

// prepareAs prepares the runs of a tool's workloads. The caller ends what it returns.
func (s *session) prepareAs(ctx context.Context, tool *dropin.Tool, docs []*workload.Document, common dropin.Common, observer dropin.Observer) (o outputs, end func(), err error) {
	var (
		ws []*workload.Workload
		t  cmdutil.Settings
	)
	step := stepOf(ctx)
	s.preparing.Lock() // steps of a scenario may start at the same time
	defer s.preparing.Unlock()
	for _, doc := range docs {
		t = cmdutil.Settings{Doc: *doc}
		t.Doc.Add("quiet", byAs, "true")
		t.Doc.Add("label", byAs, "as="+tool.Name)
		for _, l := range step.labels() {
			t.Doc.Add("label", "the label of a step", l)
		}
		if common.ReportJSON != "" && step == nil {
			t.Doc.Add("json-file", "--report-json", common.ReportJSON)
		}
		for _, k := range common.Keep { // after the tool's own, so these count
			t.Doc.Add(k.Name, k.Flag, k.Text)
		}
		w, err := cmdutil.Await(ctx, func() ([]*workload.Workload, error) { return s.resolveAll(&t, []*workload.Document{nil}) })
		if err != nil {
			return o, nil, err
		}
		ws = append(ws, w...)
	}
	if o, end, err = s.prepare(ctx, &t, observer, ws...); err == nil {
		o.beside = false // an additional measurement must not lengthen the tool's run
	}
	return o, end, err
}

// fireAs runs the workload of a tool, on nodes if there are some.
func (s *session) fireAs(ctx context.Context, tool *dropin.Tool, doc *workload.Document, common dropin.Common, observer dropin.Observer, nodes *fleetRuns) (*report.Document, error) {
	o, end, err := s.prepareAs(ctx, tool, []*workload.Document{doc}, common, observer)
	if err != nil {
		return nil, err
	}
	defer end()
	o.fleet = nodes
	return s.deliverAs(ctx, o, 0)
}

// fireTogether runs several workloads of a tool at the same time. Only the first is published.
func (s *session) fireTogether(ctx context.Context, tool *dropin.Tool, docs []*workload.Document, common dropin.Common) ([]*report.Document, error) {
	o, end, err := s.prepareAs(ctx, tool, docs, common, dropin.Observer{Opened: func() {}})
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		reports = make([]*report.Document, len(docs))
		errs    = make([]error, len(docs))
		all     sync.WaitGroup
	)
	for i := range docs {
		own := o
		if i > 0 {
			own.exporter = nil
		}
		all.Go(func() {
			if reports[i], errs[i] = s.deliverAs(ctx, own, i); errs[i] != nil {
				stop()
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
	return reports, errors.Join(errs...)
}

// deliverAs runs one workload, prints remarks on its numbers, and delivers its report.
func (s *session) deliverAs(ctx context.Context, o outputs, i int) (*report.Document, error) {
	d, err := s.execute(ctx, o, i)
	if err != nil {
		return nil, err
	}
	stepOf(ctx).made(d)
	for _, text := range newWarnings(o.tasks[i].w, d) {
		s.warn(text)
	}
	if path := o.tasks[i].file; path != "" {
		s.writeAs(path, d.WriteJSON)
	}
	kept := dropin.Kept{ID: d.ID, Place: s.reportStored(o.keep, d, o.tasks[i].kept, true)}
	switch {
	case kept.Place != "":
	case o.keep.store == nil && !o.keep.lost:
		kept.Why = "the store is turned off (no-store)"
	default:
		kept.Why = "it could not be stored"
	}
	if o.observer.Kept != nil {
		o.observer.Kept(kept)
	}
	return d, nil
}

// newWarnings returns a report's warnings without those that were printed when its workload was
// resolved.
func newWarnings(w *workload.Workload, d *report.Document) []string {
	return slices.DeleteFunc(slices.Clone(d.Warnings), func(text string) bool { return slices.Contains(w.Warnings, text) })
}

// writeAs writes the file of --report-json. A write error is printed at once, and decides the
// exit code when the tool is done.
func (s *session) writeAs(path string, write func(io.Writer) error) {
	if err := cmdutil.WriteFile(path, write); err != nil {
		s.unwritten.Store(true)
		s.printError(cannotWrite("--report-json", path, err, "the tool's own output is complete"))
	}
}
