package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/cli/reports"
	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/live"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/workload"
	"carronade/protocol"
)

const runLong = `Sends events to the target, or reads from it, and reports the result.

Without --rate, --shape or --concurrency it sends as fast as the in-flight limit
allows. Without --for, --count or --bytes it runs until Ctrl-C, which stops,
drains and reports; another Ctrl-C, a second later or more, exits at once.

The report goes to stdout and progress to stderr. The report is also kept, with
its intervals as they are measured, in your store (carronade report list) or the
one that --store names.

A file may contain a list of workloads; they run in order, each with a report.

With --vary it runs several values of one or more settings, repeated and in
random order, and reports what each setting changes, with intervals.
--vary acks=1,all --vary batch-size=16KiB,256KiB runs all combinations, at most
32; system-flag.NAME=4,8 is a flag of the system under test, and \, a comma
within a value. The same command with --resume ID continues an interrupted
series.`

// runCommand returns the command run.
func (s *session) runCommand() *cobra.Command {
	var (
		t      cmdutil.Settings
		file   string
		schema bool
		v      varying
	)
	cmd := &cobra.Command{
		Use: "run [TARGET] [-f FILE]", Short: "one workload, one report",
		Long: runLong, Example: runExample,
		Args:              cmdutil.Args(0, 1, "at most one target"),
		Annotations:       map[string]string{settingsPage: "all"},
		ValidArgsFunction: cmdutil.CompleteTarget(s.Kinds),
		RunE: cmdutil.Run(func(cmd *cobra.Command, args []string) error {
			if schema {
				_, err := s.out.Write(workload.Schema(s.Kinds))
				return err
			}
			if varied, err := v.check(); err != nil {
				return err
			} else if varied {
				return s.vary(cmd.Context(), &v, &t, nil, args, file)
			} else if v.resume != "" {
				return &protocol.Error{Err: errors.New("--resume belongs to --vary"), Hint: varyHint}
			}
			ws, err := cmdutil.Await(cmd.Context(), func() ([]*workload.Workload, error) { return s.resolve(&t, args, file) })
			if err != nil {
				return err
			}
			o, end, err := s.prepare(cmd.Context(), &t, dropin.Observer{}, ws...)
			if err != nil {
				return err
			}
			defer end()
			return s.runTasks(cmd.Context(), o)
		}),
	}
	t.Bind(cmd.Flags(), s.Kinds)
	v.bind(cmd.Flags())
	cmd.Flags().StringVar(&v.resume, "resume", "", "with --vary: continue the series `ID`")
	cmd.Flags().StringVarP(&file, "file", "f", "", "read the workload from this `FILE`; - is stdin")
	cmd.Flags().BoolVar(&schema, "schema", false, "print the JSON schema of workload files and exit")
	s.bindHelpAll(cmd.Flags())
	return cmd
}

// resolve makes workloads of the command line and the file: one, or those of a list. It checks
// all of them before any runs.
func (s *session) resolve(t *cmdutil.Settings, args []string, path string) ([]*workload.Workload, error) {
	if len(args) > 0 {
		t.Doc.Add("target", "target", args[0])
	}
	files := []*workload.Document{nil}
	if path != "" {
		var err error
		if files, err = s.readWorkloads(path); err != nil {
			return nil, err
		}
	}
	return s.resolveAll(t, files)
}

// resolveAll makes a workload of each file, nil meaning none. The command line overrides the
// file, and the file the configuration.
func (s *session) resolveAll(t *cmdutil.Settings, files []*workload.Document) ([]*workload.Workload, error) {
	var (
		ws     []*workload.Workload
		faults []error
	)
	typed := slices.Clone(t.Doc.Entries)
	for _, file := range files {
		t.Doc.Entries = slices.Clone(typed)
		file, err := s.withConfiguration(t, file)
		if err != nil {
			return nil, err
		}
		w, err := workload.Resolve(s.Kinds, &t.Doc, file)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		s.warnOnce(w)
		ws = append(ws, w)
	}
	return ws, errors.Join(faults...)
}

// warnOnce prints the warnings of a workload that no other one had.
func (s *session) warnOnce(w *workload.Workload) {
	for _, text := range w.Warnings {
		if !slices.Contains(s.warned, text) {
			s.warned = append(s.warned, text)
			s.warn(text)
		}
	}
}

// readWorkloads reads a workload file; "-" is stdin.
func (s *session) readWorkloads(path string) ([]*workload.Document, error) {
	if path == "-" {
		return workload.Read("stdin", s.In)
	}
	return workload.ReadFile(path)
}

// readOneWorkload reads a file with one workload; nil without a file. rule says who takes one.
func (s *session) readOneWorkload(path, rule string) (*workload.Document, error) {
	if path == "" {
		return nil, nil
	}
	files, err := s.readWorkloads(path)
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		return nil, &protocol.Error{Err: fmt.Errorf("%s has %d workloads, but %s", path, len(files), rule), Hint: "put each into a separate file"}
	}
	return files[0], nil
}

// outputs holds the runs of a command and where their output goes.
type outputs struct {
	// permit looks at the system before anything is sent; see run.Job. May be nil.
	permit func(facts map[string]any) error

	json  bool
	full  bool // print the whole report
	quiet bool
	warns bool // say what else uses the machine: unless the user wants quiet
	// allowExec permits the commands of --exec.
	allowExec bool
	// marker is called with what marks a run, when it has begun, and returns what ends that. May be nil.
	marker func(m *run.Marker) (end func())
	// beside adds to a run at full speed how fast this machine generates its workload without a
	// system.
	beside   bool
	tasks    []task
	note     string          // the note in the reports
	keep     *keeping        // where reports are stored
	exporter *live.Exporter  // exports metrics of a run; nil: none
	viewers  *viewers        // who sees the frames of a run; nil: none
	fleet    *fleetRuns      // other machines that generate the load; nil: this one
	observer dropin.Observer // of the drop-in, if any
}

// A task is one execution of a workload.
type task struct {
	w        *workload.Workload
	i, of    int // repetition i of this number, from 0
	attached []report.Attachment
	cell     string     // with --vary, its values
	search   *searching // with find --vary; nil: a run
	trial    *trialView // of a search; nil: none

	file, hdr, trace string // "" for none

	// replaces is the report of the same repetition that was not trusted; "": none.
	replaces string

	fits bool  // nothing spoke against it before the run began
	kept error // why the report could not be stored
}

// prepare sets up what runs need, as flags and configuration in t say: files, the store, and
// the export of metrics. The caller closes it when all runs are done.
func (s *session) prepare(ctx context.Context, t *cmdutil.Settings, observer dropin.Observer, ws ...*workload.Workload) (o outputs, end func(), err error) {
	if t.Last("fleet") == "" { // else its agents have to have the room
		if err := s.fit(ws...); err != nil {
			return o, nil, err
		}
	}
	if o, err = s.outputs(ctx, t, ws...); err != nil {
		return o, nil, err
	}
	if o.exporter, err = s.openExporter(t, observer); err != nil {
		o.keep.close()
		return o, nil, err
	}
	if o.viewers, err = s.openViewers(t); err != nil {
		o.keep.close()
		o.exporter.Close(ctx)
		return o, nil, err
	}
	if o.fleet, err = s.openFleet(ctx, t); err != nil {
		o.keep.close()
		o.exporter.Close(ctx)
		o.viewers.close()
		return o, nil, err
	}
	for _, w := range ws {
		if err := o.fleet.fit(w); err != nil {
			o.keep.close()
			o.exporter.Close(ctx)
			o.viewers.close()
			o.fleet.close()
			return o, nil, err
		}
	}
	o.observer = observer
	return o, func() {
		o.fleet.close()
		page := o.viewers.lingers(t)
		if page.text == "" {
			o.viewers.close()
		}
		s.flushExporter(o.exporter)
		o.keep.close()
		s.linger(ctx, metricsLinger(t, o.exporter), page)
		if page.text != "" {
			o.viewers.close()
		}
		o.exporter.Close(context.Background())
	}, nil
}

// attachmentKey returns the key for the hashes of attached files, if there are any. Without
// one, reports are compared by what they show of the files.
func (s *session) attachmentKey(needed bool) []byte {
	if !needed {
		return nil
	}
	key, err := run.AttachmentKey()
	if err != nil {
		s.note("the report has no hash of what was attached: %v", err)
	}
	return key
}

// outputs reads the flags about output, and checks the files before the run: a disk that
// cannot be written should be found first.
func (s *session) outputs(ctx context.Context, t *cmdutil.Settings, ws ...*workload.Workload) (o outputs, err error) {
	o = outputs{json: t.Bool("json"), full: t.Bool("full"), quiet: t.Bool("quiet"), warns: !t.Bool("quiet") || t.Where("quiet") == byAs, allowExec: t.Bool("allow-exec"), beside: !t.Bool("no-calibrate"), note: t.Last("note")}
	key := s.attachmentKey(len(t.All("attach")) > 0)
	for _, w := range ws {
		attached, err := run.Attach(w, t.All("attach"), key)
		if err != nil {
			return o, err
		}
		for i := range w.Repeat() {
			o.tasks = append(o.tasks, task{w: w, i: i, of: w.Repeat(), attached: attached, file: t.Last("json-file"), hdr: w.HDR(), trace: w.Trace()})
		}
	}
	if err := o.tryFiles(cmp.Or(t.Where("json-file"), "--json-file")); err != nil {
		return o, err
	}
	o.keep, err = s.keeping(ctx, t, o.quiet)
	return o, err
}

// tryFiles checks that the files of the tasks can be written. It creates none, since a run may
// fail before it has a result. json is the file of the reports.
func (o *outputs) tryFiles(json string) error {
	for flag, of := range map[string]func(*task) *string{
		json:      func(k *task) *string { return &k.file },
		"--hdr":   func(k *task) *string { return &k.hdr },
		"--trace": func(k *task) *string { return &k.trace },
	} {
		for _, path := range o.number(of) {
			if err := tryFile(flag, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// tryFile checks that the file of a flag can be written, if there is one.
func tryFile(flag, path string) error {
	if path == "" {
		return nil
	}
	if err := cmdutil.TryFile(path); err != nil {
		return cannotWrite(flag, path, err, "give a file in a writable folder")
	}
	return nil
}

// cannotWrite is the error of a flag's file that could not be written.
func cannotWrite(flag, path string, err error, hint string) *protocol.Error {
	return &protocol.Error{Err: fmt.Errorf("%s: cannot write %s: %s", flag, path, cmdutil.Reason(err)), Hint: hint}
}

// number adds a number before the extension of a file that several tasks would write, and
// returns all files.
func (o *outputs) number(of func(*task) *string) []string {
	var all []string
	uses, next := map[string]int{}, map[string]int{}
	for i := range o.tasks {
		uses[*of(&o.tasks[i])]++
	}
	for i := range o.tasks {
		path := of(&o.tasks[i])
		if *path == "" {
			continue
		}
		if uses[*path] > 1 {
			next[*path]++
			ext := filepath.Ext(*path)
			*path = fmt.Sprintf("%s.%d%s", strings.TrimSuffix(*path, ext), next[*path], ext)
		}
		all = append(all, *path)
	}
	return all
}

// deliver prints a finished run and writes it to the requested files. The error has the exit
// code.
func (s *session) deliver(d *report.Document, o outputs, i int) error {
	var problems []error
	if path := o.tasks[i].file; path != "" {
		if err := cmdutil.WriteFile(path, d.WriteJSON); err != nil {
			problems = append(problems, cannotWrite("--json-file", path, err, "carronade report export last --as json writes it from the store"))
		}
	}
	var err error
	switch {
	case o.json && len(o.tasks) > 1:
		err = writeLine(s.out, d)
	case o.json:
		err = d.WriteJSON(s.out)
	default:
		if i > 0 {
			fmt.Fprintln(s.out)
		}
		err = s.print(d, o, o.tasks[i].kept)
	}
	if err != nil {
		problems = append(problems, fmt.Errorf("writing the report: %w", err))
	}
	s.reportStored(o.keep, d, o.tasks[i].kept, o.json || o.full)
	code := d.ExitCode()
	if len(problems) > 0 && code != host.ExitInterrupted {
		code = host.ExitFailed
	}
	for _, p := range d.Problems {
		problems = append(problems, errors.New(p))
	}
	if code == host.ExitOK {
		return nil
	}
	return exitCode{Code: code, Err: errors.Join(problems...)}
}

// print writes a report as text: the first page, and where to see more.
func (s *session) print(d *report.Document, o outputs, kept error) error {
	switch {
	case o.full || o.keep.lost || kept != nil: // otherwise the rest would be lost
		return d.Text(s.out, s.style())
	case o.keep.store == nil:
		return d.Brief(s.out, s.style(), report.Condition{Name: "report", Text: "not kept; --full prints everything"})
	}
	return d.Brief(s.out, s.style(), reports.More(d, " in "+o.keep.store.Place(), storeFlag(o.keep.at))...)
}

// writeLine writes a report as one line of JSON, for a stream of several.
func writeLine(w io.Writer, d *report.Document) error {
	var whole, line bytes.Buffer
	if err := d.WriteJSON(&whole); err != nil {
		return err
	}
	if err := json.Compact(&line, whole.Bytes()); err != nil {
		return err
	}
	line.WriteByte('\n')
	_, err := w.Write(line.Bytes())
	return err
}

// worst returns the outcome whose exit code takes precedence.
func worst(a, b error) error {
	if first := exitCodeOf(a); host.WorseExit(first, exitCodeOf(b)) != first {
		return b
	}
	return a
}

func exitCodeOf(err error) int {
	var c exitCode
	switch {
	case err == nil:
		return host.ExitOK
	case !errors.As(err, &c):
		return host.ExitFailed
	}
	return c.Code
}
