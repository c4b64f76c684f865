package mongoose

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
)

// Tool is mongoose.
var Tool = dropin.Tool{
	Name: "mongoose", Aliases: []string{"mongoose-base", "mongoose-storage-driver-kafka"},
	Short: "Kafka: records and topics as items, by --a-b-c=value (4.2 and 4.3)", Kind: "kafka",
	Main: run,
}

const differs = `
This drop-in has no Java. Reads
continue where they stopped and read each record once; topics can also be
deleted and listed; headers are sent. Mean rates are over the elapsed time
(--strict: its whole seconds). Means, extremes and quantiles are of all
operations that succeeded (--strict: not those whose latency is 0 or their
duration). See docs/coming-from/mongoose.md.
`

func run(ctx context.Context, p *dropin.Program) (int, error) {
	for _, arg := range p.Args {
		if arg == "--help" || arg == "-h" || arg == "-help" {
			help(p)
			return host.ExitOK, nil
		}
	}
	warn := warner(p)
	args, nodes, err := splitNode(p.Args)
	if err != nil {
		return host.ExitFailed, err
	}
	args, flags, err := splitScenario(args)
	if err != nil {
		return host.ExitFailed, err
	}
	v, err := parse(args, warn)
	var wrong *usageError
	switch {
	case errors.As(err, &wrong):
		text := wrong.text
		if wrong.list {
			text += "\nThe list of all possible args:\n" + list()
		}
		logf(p.Out, 'F', "", "%s", text)
		return host.ExitFailed, nil
	case err != nil:
		return host.ExitFailed, err
	}
	if v.key = nodes.key; v.flag("run-node") {
		if v.text("run-scenario") != "" || flags.first != "" {
			return host.ExitFailed, errors.New("--run-node: a node runs what others send it, and no scenario of its own")
		}
		return runNode(ctx, p, v, &nodes)
	}
	if nodes.first != "" {
		return host.ExitFailed, fmt.Errorf("%s belongs to a node: --run-node", nodes.first)
	}
	if v.text("run-scenario") == "" && flags.first != "" {
		return host.ExitFailed, fmt.Errorf("%s belongs to a scenario: --run-scenario=FILE", flags.first)
	}
	return withAPI(ctx, p, v, &nodes, func(ctx context.Context) (int, error) {
		if v.text("run-scenario") != "" {
			return runScenario(ctx, p, v, flags)
		}
		return runStep(ctx, p, v)
	})
}

// runStep runs the step of a command line.
func runStep(ctx context.Context, p *dropin.Program, v *values) (int, error) {
	began := time.Now()
	s, err := newStep(v, p.Strict, p.Generation, began, warner(p))
	if err != nil {
		return host.ExitFailed, err
	}
	return s.fire(ctx, p, p.Args, v.confined != "", began) // the API has made the folder
}

// fire runs a step with its lines and files, and returns the exit code. If expected is set, the
// step's files may exist without a message.
func (s *step) fire(ctx context.Context, p *dropin.Program, args []string, expected bool, began time.Time) (int, error) {
	f, t, err := s.outputs(p, args, expected)
	if err != nil {
		return host.ExitFailed, err
	}
	names := s.namer()
	var code int
	if s.work == onTopics {
		code, err = s.topics(ctx, p, f, t, names)
	} else {
		code, err = s.records(ctx, p, f, t, names)
	}
	if all := f.exit(p, code); !s.strict {
		code = all
	}
	return code, err
}

// records runs a step on records and returns the exit code.
func (s *step) records(ctx context.Context, p *dropin.Program, f *files, t *table, names *namer) (int, error) {
	run, hangUp, err := s.runner(ctx, p)
	if err != nil {
		return dropin.NoReport(ctx, host.ExitFailed, err)
	}
	defer hangUp()
	watched := apiOf(ctx).watch(s)
	defer watched.end()
	m, above := newMeter(s), newThreshold(s, f, p.Out)
	observer := dropin.Observer{Interval: func(iv load.Snapshot) {
		m.interval(iv)
		watched.look(m)
		if iv.Phase != measure.Drain {
			above.interval(iv)
			m.rows(t, f)
		}
	}}
	if (s.work == writeRecords || s.single()) && s.concurrency == 0 && len(s.nodes) == 0 {
		m.batches = &batches{service: measure.NewHistogram()}
		observer.Completed = m.batches.completed
	}
	var rows *translation
	if s.work == writeRecords && len(s.nodes) == 0 && (s.trace || s.v.text("item-output-file") != "" || s.strict) {
		rows = s.translation(f, names, nil, &observer)
	}
	w := s.workload(rows != nil)
	if s.work == readRecords && !s.single() {
		m.polls = newPolls(s.readCount)
		observer.Arrived = m.polls.arrived
	}
	d, err := run(ctx, w, observer)
	var written error
	if rows != nil {
		written = rows.end()
	}
	if err != nil {
		return dropin.NoReport(ctx, host.ExitFailed, err)
	}
	above.end()
	if m.batches != nil { // batches completed while the last interval closed
		left := m.batches.take()
		m.latency.Merge(left)
		if s.rate == 0 {
			m.duration.Merge(left)
		}
	}
	if m.polls != nil { // likewise
		left := m.polls.take()
		m.latency.Merge(left)
		m.duration.Merge(left)
	}
	last := m.last(d)
	watched.show(last)
	if rows != nil {
		f.keepError(written)
		if written == nil && s.strict {
			q, l := last.duration.quantiles, last.latency.quantiles // mongoose's quantiles cover all operations, too
			last.duration, last.latency = s.timingOf(rows.duration), s.timingOf(rows.latency)
			last.duration.quantiles, last.latency.quantiles = q, l
		}
	}
	switch d.Stopped {
	case load.ByFailures:
		s.printFailureLimit(p.Out, last.fail)
	case load.ByFailureRate:
		logf(p.Out, 'W', "LoadStepContextImpl", "%s: failures rate (%s failures/sec) is more than success rate (%s op/sec), stopping the step",
			s.id, dropin.JavaDouble(float64(last.fail)/max(last.elapsed.Seconds(), 1e-3)), dropin.JavaDouble(last.meanRate))
	}
	s.end(p, f, t, last)
	printWarnings(p, d)
	code := d.ExitCode()
	if s.strict && code != host.ExitInterrupted {
		return host.ExitOK, nil
	}
	return s.withFailures(code, last.fail), nil
}

// printWarnings writes to stderr the report's failures and warnings, which no line
// shows.
func printWarnings(p *dropin.Program, d *report.Document) {
	var lines []string
	for _, f := range d.Failures {
		lines = append(lines, fmt.Sprintf("%d records failed (%s): %s", f.Events, f.Class, f.Text))
	}
	lines = append(lines, d.Against()...)
	warn := warner(p)
	for _, text := range lines {
		warn("%s", text)
	}
}

// printFailureLimit prints that the limit of failures ended the step.
func (s *step) printFailureLimit(w io.Writer, failed uint64) {
	logf(w, 'W', "LoadStepContextImpl", "%s: failure count (%d) is more than the configured limit (%d), stopping the step", s.id, failed, s.maxFailed)
}

// end writes the last row, the results and the total row.
func (s *step) end(p *dropin.Program, f *files, t *table, last *metrics) {
	t.row(last)
	s.summary(p.Out, last)
	f.total(last)
}

// list lists all options with their types.
func list() string {
	text := ""
	for _, o := range options {
		text += "\t--" + o.name + "=<" + o.kind + ">\n"
	}
	return text[:len(text)-1]
}

func help(p *dropin.Program) {
	fmt.Fprintf(p.Out, "Usage: %s [--A-B-C=VALUE ...]\n\n", p.Called)
	for _, o := range options {
		typed := fmt.Sprintf("--%s=<%s>", o.name, o.kind)
		if o.def != "" {
			typed += " (" + o.def + ")"
		}
		fmt.Fprintln(p.Out, "  "+typed)
		switch o.use {
		case ignored:
			dropin.HelpRow(p.Out, 6, "", "does nothing: "+o.why)
		case refused:
			dropin.HelpRow(p.Out, 6, "", "is refused: "+o.why)
		}
	}
	fmt.Fprintf(p.Out, "\n%s\n%s\n%s%s", scenarioHelp, nodeHelp, dropin.CommonHelp, differs)
}
