package profile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/advice"
	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/place"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/units"
)

const profileLong = `Reads a sample of real traffic and writes a workload file that fits it, for
carronade run -f FILE. The traffic is a Kafka topic, the index of a Riemann
server, or a file: records or logs as JSON, one a line, or requests of APM
agents or of OTLP (JSON).

The workload goes to stdout, or to -o FILE. Its comments say what each value
came from, and how far it is off. A summary goes to stderr. Names of headers are
in it. Keys, values and values of headers are not, unless --keep-samples is
given.

A topic is read from --from to the end that it has now, but not more than ten
million records. If the whole topic was read, the number of keys and their skew
are exact; otherwise they are lower bounds.`

const profileExample = `
  carronade profile kafka://127.0.0.1:9092/orders -o orders.yaml
  carronade profile kafka://127.0.0.1:9092/orders --from latest --for 1m
  carronade profile records.ndjson --check-fit > fitted.yaml
  carronade profile riemann://127.0.0.1:5555 -o events.yaml
  kcat -C -J -e -b 127.0.0.1 -t orders | carronade profile - > orders.yaml`

// Tools is what the command needs of the program.
type Tools struct {
	cmdutil.Console
	Topics protocol.Kind // whose topics are read; nil: this program cannot read topics
	Index  protocol.Kind // whose index is read; nil: this program cannot read one
	// Recorded are the kinds that read recorded traffic.
	Recorded []protocol.Kind
	Err      io.Writer // the summary
	// Broker starts a stand-in to fire at, in a process of its own, and returns its address.
	Broker func(ctx context.Context) (addr string, stop func() error, err error)
	// Fire runs a workload without keeping a report, and returns the number of its events that
	// were acked.
	Fire func(ctx context.Context, w *workload.Workload) (acked uint64, err error)
}

// profileFlags are the command's.
type profileFlags struct {
	cmdutil.Settings
	to       string
	out      string
	format   string
	keep     string
	checkFit bool
	json     bool
}

// defaultRecords limits the records of a sample if no number is given.
const defaultRecords = 10_000_000

// Command returns the command profile: it reads a sample of real traffic, fits a workload to it, and
// prints the workload as a file. What is fitted to recorded traffic, and how, is in package traffic. No key, value of a record or value of a header gets into what it prints, unless
// samples were requested.
func Command(t Tools) *cobra.Command {
	f := &profileFlags{}
	cmd := &cobra.Command{
		Use: "profile TARGET|FILE", Short: "a workload file fitted to real traffic",
		Long: profileLong, Example: profileExample,
		Args:              cmdutil.Args(1, 1, "a topic, such as kafka://127.0.0.1:9092/orders, an index of Riemann, or a file"),
		ValidArgsFunction: t.complete,
		RunE: cmdutil.Run(func(cmd *cobra.Command, args []string) error {
			return t.profile(cmd.Context(), f, args[0])
		}),
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.out, "output", "o", "", "write the workload to `FILE` instead of stdout")
	fs.StringVar(&f.to, "to", "", "the `TARGET` of the workload (default: a local one, never the source)")
	fs.StringVar(&f.format, "format", "", "`KIND` of the file: "+strings.Join(t.sampleFormatNames(), ", ")+" (default: by its contents)")
	fs.StringVar(&f.keep, "keep-samples", "", "keep up to 10,000 values in `FILE`, for the workload to send")
	fs.BoolVar(&f.checkFit, "check-fit", false, "run the workload against a stand-in of Kafka, and compare; exit code 1 beyond 5%")
	fs.BoolVar(&f.json, "json", false, "the parameters, with the workload, as JSON on stdout")
	for _, name := range []string{"count", "for"} {
		f.BindOne(fs, name)
	}
	for _, k := range []protocol.Kind{t.Topics, t.Index} {
		if k == nil {
			continue
		}
		for _, o := range workload.Table(k) {
			if o.Kind != "" && reads(k == t.Topics, &o) && fs.Lookup(o.Name) == nil {
				f.BindSetting(fs, &o)
			}
		}
	}
	fs.Lookup("count").Usage = "read at most this many records (default: 10M)"
	fs.Lookup("for").Usage = "stop reading after this time"
	return cmd
}

// complete completes targets, and otherwise files.
func (t *Tools) complete(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || t.Topics == nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	list := []string{t.Topics.Schemes()[0] + "://\ta topic"}
	if t.Index != nil {
		list = append(list, t.Index.Schemes()[0]+"://\tan index")
	}
	return list, cobra.ShellCompDirectiveNoSpace
}

// reads reports whether an option matters for reading a topic, or else an index.
func reads(topic bool, o *workload.Setting) bool {
	if !topic {
		return cmdutil.ForQuery(o)
	}
	if !o.AppliesTo(workload.Consume) {
		return false
	}
	switch o.Group {
	case "security", "connections":
		return o.Name != "clients"
	}
	return slices.Contains([]string{"from", "isolation"}, o.Name)
}

// profile reads, fits and writes.
func (t *Tools) profile(ctx context.Context, f *profileFlags, source string) error {
	if err := f.check(t.sampleFormatNames()); err != nil {
		return err
	}
	for _, path := range []string{f.out, f.keep} {
		if path != "" {
			if place.Same(path, source) {
				return &protocol.Error{Err: fmt.Errorf("cannot write %s: it is the file that is read", path), Hint: "give another file"}
			}
			if err := cmdutil.TryFile(path); err != nil {
				return &protocol.Error{Err: fmt.Errorf("cannot write %s: %s", path, cmdutil.Reason(err)), Hint: "give a file in a writable folder"}
			}
		}
	}
	found, err := t.read(ctx, f, source)
	if err != nil {
		return err
	}
	p, err := cmdutil.Await(fitting(ctx, found), found.make)
	if err != nil {
		return err
	}
	text := p.text()
	d := newDocument(found, text)
	var checked error
	if f.checkFit {
		if d.Check, err = t.check(ctx, found, p); err != nil {
			return err
		}
		if !d.Check.Holds {
			checked = cmdutil.Exit{Code: host.ExitBroken}
		}
	}
	if err := t.write(f, found, p.value("target"), text, d); err != nil {
		return err
	}
	if found.from().Interrupted {
		return cmdutil.Exit{Code: host.ExitInterrupted}
	}
	return checked
}

// fitting is the context of the fit. An interrupt that has ended the reading does not end it: what was read
// is fitted.
func fitting(ctx context.Context, found sample) context.Context {
	if found.from().Interrupted {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// write writes the workload, the summary and the document.
func (t *Tools) write(f *profileFlags, found sample, to, text string, d *profileDocument) error {
	s := found.from()
	rows := found.summary()
	if f.out != "" {
		if err := cmdutil.WriteFile(f.out, func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			return &protocol.Error{Err: fmt.Errorf("cannot write %s: %s", f.out, cmdutil.Reason(err)), Hint: "give a file in a writable folder"}
		}
		rows = append(rows, row{"written", f.out + "; carronade run -f " + f.out + " sends it"})
		if f.to == "" {
			rows = append(rows, row{"target", to + ", not the source: --to sets it"})
		}
	}
	if d.Check != nil {
		rows = append(rows, d.Check.rows()...)
	}
	summarize(t.Err, s.title(), rows)
	for _, warning := range s.Warnings {
		t.Warn(warning)
	}
	switch {
	case f.json:
		return cmdutil.WriteJSON(t.Out, d)
	case f.out == "":
		_, err := io.WriteString(t.Out, text)
		return err
	}
	return nil
}

// check checks flags against each other.
func (f *profileFlags) check(formats []string) error {
	if f.to != "" && !place.IsAddress(f.to) {
		return &protocol.Error{Err: fmt.Errorf("--to: %q is not a target", f.to), Hint: "give a URL, such as kafka://127.0.0.1:9092/orders-profile"}
	}
	if f.format != "" && !slices.Contains(formats, f.format) {
		return &protocol.Error{
			Err:  fmt.Errorf("--format: unknown format %q", f.format),
			Hint: advice.DidYouMean(f.format, formats, "--format %s", "the formats are "+strings.Join(formats, ", ")),
		}
	}
	if f.keep != "" && f.keep == f.out {
		return &protocol.Error{Err: errors.New("--keep-samples and --output name the same file"), Hint: "give two files"}
	}
	return nil
}

// limits returns the limits of reading: a number of records, and a time or 0.
func (f *profileFlags) limits() (count uint64, length time.Duration, err error) {
	count = defaultRecords
	if text := f.Last("count"); text != "" {
		if count, err = units.ParseCount(text); err != nil {
			return 0, 0, fmt.Errorf("--count: %w", err)
		}
		if count == 0 {
			return 0, 0, &protocol.Error{Err: errors.New("--count: a sample needs at least one record"), Hint: "leave it out to read up to 10M"}
		}
	}
	if text := f.Last("for"); text != "" {
		if length, err = units.ParseDuration(text); err != nil {
			return 0, 0, fmt.Errorf("--for: %w", err)
		}
	}
	return count, length, nil
}

// read reads a topic, an index or a file.
func (t *Tools) read(ctx context.Context, f *profileFlags, from string) (sample, error) {
	scheme, _, _ := strings.Cut(from, "://")
	if !place.IsAddress(from) {
		for _, e := range f.Doc.Entries {
			if e.Name != "count" && e.Name != "for" {
				return nil, &protocol.Error{Err: fmt.Errorf("%s applies to targets, and %s is a file", e.Where, from), Hint: "leave it out"}
			}
		}
		return t.readFile(ctx, f, from)
	}
	if f.format != "" {
		return nil, &protocol.Error{Err: fmt.Errorf("--format is that of a file, and %s is a target", from), Hint: "leave it out"}
	}
	switch {
	case t.Topics != nil && slices.Contains(t.Topics.Schemes(), scheme):
		return t.readTopic(ctx, f, from)
	case t.Index != nil && slices.Contains(t.Index.Schemes(), scheme):
		return t.readIndex(ctx, f, from)
	}
	return nil, &protocol.Error{Err: fmt.Errorf("cannot read a sample of %s: only topics of Kafka and an index of Riemann can be read", from), Hint: "give kafka://HOST:9092/TOPIC, riemann://HOST:5555, or a file of requests of APM agents or of JSON lines"}
}

// resolve resolves the settings of a target that is read, and others.
func (t *Tools) resolve(k protocol.Kind, f *profileFlags, from string, others ...string) (*workload.Workload, protocol.Spec, error) {
	var doc workload.Document
	for _, e := range f.Doc.Entries {
		if e.Name != "count" && e.Name != "for" {
			doc.Add(e.Name, e.Where, e.Values...)
		}
	}
	doc.Add("target", "target", from)
	for i := 0; i < len(others); i += 2 {
		doc.Add(others[i], others[i], others[i+1])
	}
	w, err := workload.Resolve([]protocol.Kind{k}, &doc, nil)
	if err != nil {
		return nil, protocol.Spec{}, err
	}
	for _, text := range w.Warnings {
		t.Warn(text)
	}
	spec, err := w.Spec()
	return w, spec, err
}

// open opens a file; - is stdin.
func (t *Tools) open(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(t.In), nil
	}
	if info, err := place.Stat(path); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		return &namedPipe{path: path}, nil
	}
	file, err := place.Open(path)
	if err != nil {
		hint := "give a file, or a topic such as kafka://127.0.0.1:9092/orders"
		if errors.Is(err, os.ErrPermission) {
			hint = "give yourself the right to read it, or run as a user who has it"
		}
		return nil, &protocol.Error{Err: fmt.Errorf("cannot read %s: %s", path, cmdutil.Reason(err)), Hint: hint}
	}
	if info, err := file.Stat(); err == nil && info.IsDir() {
		file.Close()
		return nil, &protocol.Error{Err: fmt.Errorf("cannot read %s: it is a folder", path), Hint: "give a file in it"}
	}
	return file, nil
}
