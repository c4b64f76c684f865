package kafkaconsumer

import (
	"context"
	"fmt"
	"io"
	"time"

	"carronade/internal/compat"
	"carronade/internal/compat/jopt"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
)

// Tool is kafka-consumer-perf-test.
var Tool = compat.Tool{
	Name: "kafka-consumer-perf-test", Aliases: []string{"ConsumerPerformance", "org.apache.kafka.tools.ConsumerPerformance", "kafka.tools.ConsumerPerformance"},
	Short: "Kafka: records consumed in a group (2018, 4.1 and 4.3)", Kind: "kafka",
	Main: mainAt(time.Now),
}

const differs = `
Here exactly the requested number of records is consumed, the wait for the
timeout is not part of the time, every interval has a row, including the last,
and a run with too few records exits with 1 (--strict: like the tool). Bytes
include record headers. See docs/coming-from/kafka-consumer-tools.md.
`

// version is the version of the replaced tool.
const version = "4.3.1"

// A clock gives the times of rows before there is a report.
type clock func() time.Time

// mainAt returns the tool's main function with a clock.
func mainAt(now clock) func(context.Context, *compat.Program) (int, error) {
	return func(ctx context.Context, p *compat.Program) (int, error) { return run(ctx, p, now) }
}

func run(ctx context.Context, p *compat.Program, now clock) (int, error) {
	generation := compat.KafkaGeneration(p.Generation)
	switch generation {
	case "", of2018, of41, of43:
	default:
		return 1, fmt.Errorf("--generation %s: this tool has 2018, 4.1 and 4.3 (4.2 is the same)", p.Generation)
	}
	known := knownIn(generation)
	usage := func(text string) (int, error) {
		fmt.Fprintf(p.Err, "%s\n%s\n%s%s", text, jopt.Usage(known), compat.CommonHelp, differs)
		return 1, nil
	}
	if len(p.Args) == 0 {
		return usage("This tool is used to verify the consumer performance.")
	}
	v, err := jopt.Parse(knownIn(""), p.Args)
	if err != nil {
		return usage(err.Error())
	}
	switch {
	case v.Has("help"):
		return usage("This tool is used to verify the consumer performance.")
	case v.Has("version"):
		fmt.Fprintln(p.Out, version)
		return 0, nil
	}
	if generation == "" {
		if generation, err = generationOf(v); err != nil {
			return usage(err.Error())
		}
	}
	if err := check(generation, v); err != nil {
		return usage(err.Error())
	}
	s, err := read(generation, v)
	if err != nil {
		fmt.Fprintln(p.Err, err)
		return 1, nil
	}
	s.warn(p.Err, v)
	if generation == of43 && v.Has("messages") {
		fmt.Fprintln(p.Out, "Warning: --messages is deprecated. Use --num-records instead.")
	}
	if generation == of43 && v.Has("consumer.config") {
		fmt.Fprintln(p.Out, "Warning: --consumer.config is deprecated. Use --command-config instead.")
	}
	l := &lines{s: s, w: p.Out, strict: p.Strict}
	l.header()
	if s.count <= 0 {
		fmt.Fprintln(p.Err, "no records were requested, so nothing was run")
		l.started = now()
		l.end(&report.Document{})
		return 0, nil
	}
	_, code, err := runAndPrint(ctx, p, &s.workload(p.Strict).Document, l, now)
	return code, err
}

// A printer prints a tool's lines about a run.
type printer interface {
	begun(at time.Time) // called again when the time is known better
	interval(s load.Snapshot)
	end(d *report.Document)
	metrics(w io.Writer, d *report.Document)
}

// runAndPrint runs a workload and prints its lines. Without a report, d is
// nil, and the code and the error say why.
func runAndPrint(ctx context.Context, p *compat.Program, w *workload.Document, t printer, now clock) (d *report.Document, code int, err error) {
	began := now()
	t.begun(began)
	d, err = p.Run(ctx, w, compat.Observer{Opened: func() { t.begun(now()) }, Interval: t.interval})
	if err != nil {
		if ctx.Err() != nil {
			return nil, report.ExitInterrupted, nil //nolint:nilerr // an interrupt is not an error
		}
		return nil, 0, err // carronade sets the exit code
	}
	t.begun(startOf(d, began))
	if d.Stopped == load.Interrupted && p.Strict {
		return nil, report.ExitInterrupted, nil // the tool printed nothing
	}
	t.end(d)
	t.metrics(p.Out, d)
	compat.WriteProblems(p.Err, d)
	return d, exit(d, p.Strict), nil
}

// exit is the exit code of a run. The tool exited with 0 unless there was an
// exception.
func exit(d *report.Document, strict bool) int {
	switch code := d.ExitCode(); {
	case !strict || code == report.ExitInterrupted:
		return code
	case d.Stopped == load.ByTarget:
		return 1
	}
	return 0
}

// startOf is the tool's start time. If the topic never existed, it is the time
// before the wait for the topic.
func startOf(d *report.Document, began time.Time) time.Time {
	if d.Facts["absent"] == true {
		return began
	}
	return d.StartedAt
}

// tooFew reports whether the run ended by --timeout: no further record arrived, or
// the topic did not exist.
func tooFew(d *report.Document) bool {
	return d.Totals.Missing > 0 && (d.Stopped == load.ByIdle || d.Stopped == load.ByEnd)
}
