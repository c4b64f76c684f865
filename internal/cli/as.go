package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"carronade/internal/command"
	"carronade/internal/compat"
	"carronade/internal/report"
	"carronade/internal/workload"
)

const asLong = `Takes an old tool's command line, runs it and prints the tool's lines with right
numbers; --strict gives its quirks. Every such run is kept as a report like any
other. A link to carronade that has a tool's name behaves as the tool.`

// asCommand stands in for old tools.
func (s *session) asCommand() *cobra.Command {
	return &cobra.Command{
		Use: "as [TOOL [ARGS]]", Short: "be an old tool: its flags, its lines",
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
		RunE: command.Run(func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return s.listTools()
			case args[0] == "--help" || args[0] == "-h":
				return cmd.Help()
			}
			tool, ok := compat.Find(oldTools(), args[0])
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
	w := &words{Err: fmt.Errorf("carronade stands in for no %q", name), Hint: "carronade as lists the tools"}
	var names []string
	for _, tool := range oldTools() {
		names = append(names, tool.Name)
	}
	if near := workload.Nearest(name, names); near != "" {
		w.Hint = fmt.Sprintf("did you mean %s?", near)
	}
	return w
}

// called makes the command line of a program that was called by a tool's name.
func called(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	if tool, ok := compat.Find(oldTools(), args[0]); ok {
		return append([]string{"as", tool.Name}, args[1:]...)
	}
	return args[1:]
}

// as is a tool for one command line.
func (s *session) as(ctx context.Context, tool *compat.Tool, name string, args []string) error {
	own, ours, err := compat.Split(args)
	if err != nil {
		return &words{Err: err, Hint: "such as --report-json report.json or --generation 2018"}
	}
	p := &compat.Program{
		Called: name, Args: own, Strict: ours.Strict, Generation: ours.Generation, In: s.In, Out: s.out, Err: s.Err,
		Fire: func(ctx context.Context, doc *workload.Document, eyes compat.Eyes) (*report.Document, error) {
			return s.fireAs(ctx, tool, doc, ours, eyes)
		},
	}
	if k, load := s.topicLoads(tool.Kind); load != nil {
		p.Topics = func(ctx context.Context, doc *workload.Document, l compat.TopicLoad) (*compat.TopicResult, error) {
			r, err := load(ctx, s.console(), k, doc, l)
			if err == nil && ours.ReportJSON != "" {
				s.writeAs(ours.ReportJSON, func(w io.Writer) error { return command.WriteJSON(w, r.JSON) })
			}
			return r, err
		}
	}
	code, err := tool.Main(ctx, p)
	if err != nil && code == exitOK {
		code = exitFailed
	}
	if code == exitOK {
		return nil
	}
	return exitCode{Code: code, Err: err}
}

// fireAs runs the workload of a tool.
func (s *session) fireAs(ctx context.Context, tool *compat.Tool, doc *workload.Document, ours compat.Ours, eyes compat.Eyes) (*report.Document, error) {
	t := &command.Settings{Doc: *doc}
	t.Doc.Add("quiet", "carronade as", "true")
	t.Doc.Add("label", "carronade as", "as="+tool.Name)
	if ours.ReportJSON != "" {
		t.Doc.Add("json-file", "--report-json", ours.ReportJSON)
	}
	ws, err := s.resolveAll(t, []*workload.Document{nil})
	if err != nil {
		return nil, err
	}
	o, err := s.outputs(ctx, t, ws...)
	if err != nil {
		return nil, err
	}
	defer o.keep.close()
	if o.hub, err = s.publisher(t); err != nil {
		return nil, err
	}
	defer s.unpublish(o.hub)
	o.eyes = eyes
	d, err := s.execute(ctx, o, 0)
	if err != nil {
		return nil, err
	}
	if path := o.tasks[0].file; path != "" {
		s.writeAs(path, d.WriteJSON)
	}
	s.kept(o.keep, d, o.tasks[0].kept)
	return d, nil
}

// writeAs writes the file of --report-json.
func (s *session) writeAs(path string, write func(io.Writer) error) {
	if err := command.WriteFile(path, write); err != nil {
		s.say(fmt.Errorf("--report-json: cannot write %s: %s", path, command.Reason(err)))
	}
}
