package kafkatools

import (
	"context"
	"fmt"
	"time"

	"carronade/internal/compat"
	"carronade/internal/report"
	"carronade/internal/system"
	"carronade/internal/workload"
	"carronade/load"
)

// Consumer is kafka-consumer-perf-test.
var Consumer = compat.Tool{
	Name: "kafka-consumer-perf-test", Aliases: []string{"ConsumerPerformance", "org.apache.kafka.tools.ConsumerPerformance", "kafka.tools.ConsumerPerformance"},
	Short: "Kafka: records consumed in a group (2018, 4.1 and 4.3)", Kind: "kafka",
	Main: consumerAt(time.Now),
}

const consumerDiffers = `
Here exactly the requested number of records is consumed, the wait for the
timeout is not part of the time, every interval has a row, including the last,
and a run with too few records exits with 1 (--strict: like the tool). Bytes
include record headers. See docs/coming-from/kafka-consumer-tools.md.
`

const aboutConsumer = "This tool is used to verify the consumer performance."

// A clock gives the times of rows before there is a report.
type clock func() time.Time

// consumerAt returns the tool's main function with a clock.
func consumerAt(now clock) func(context.Context, *compat.Program) (int, error) {
	return func(ctx context.Context, p *compat.Program) (int, error) { return runConsumer(ctx, p, now) }
}

func runConsumer(ctx context.Context, p *compat.Program, now clock) (int, error) {
	g, err := askedGeneration(p.Generation, of2018)
	if err != nil {
		return 1, err
	}
	known := consumerOptionsIn(g)
	usage := func(text string) (int, error) {
		fmt.Fprintf(p.Err, "%s\n%s\n%s%s", text, optionTable(known), compat.CommonHelp, consumerDiffers)
		return 1, nil
	}
	if len(p.Args) == 0 {
		return usage(aboutConsumer)
	}
	v, err := parseOptions(consumerOptionsIn(guessed), p.Args)
	if err != nil {
		return usage(err.Error())
	}
	switch {
	case v.has("help"):
		return usage(aboutConsumer)
	case v.has("version"):
		fmt.Fprintln(p.Out, version)
		return 0, nil
	}
	if g == guessed {
		if g, err = consumerGeneration(v); err != nil {
			return usage(err.Error())
		}
	}
	if err := checkConsumer(g, v); err != nil {
		return usage(err.Error())
	}
	s, err := readConsumer(g, v)
	if err != nil {
		fmt.Fprintln(p.Err, err)
		return 1, nil
	}
	s.warn(p.Err, v)
	warnDeprecated(p.Out, g, v)
	l := &consumerLines{s: s, w: p.Out, strict: p.Strict}
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
	metrics(d *report.Document) []*metrics // those of --print-metrics
}

// runAndPrint runs a workload and prints its lines. Without a report, d is
// nil, and the code and the error say why.
func runAndPrint(ctx context.Context, p *compat.Program, w *workload.Document, t printer, now clock) (d *report.Document, code int, err error) {
	began := now()
	t.begun(began)
	d, err = p.Run(ctx, w, compat.Observer{Opened: func() { t.begun(now()) }, Interval: t.interval})
	if err != nil {
		if ctx.Err() != nil {
			return nil, system.ExitInterrupted, nil //nolint:nilerr // an interrupt is not an error
		}
		return nil, 0, err // carronade sets the exit code
	}
	t.begun(startOf(d, began))
	if d.Stopped == load.Interrupted && p.Strict {
		return nil, system.ExitInterrupted, nil // the tool printed nothing
	}
	t.end(d)
	for _, m := range t.metrics(d) {
		m.print(p.Out)
	}
	compat.WriteProblems(p.Err, d)
	return d, consumerExit(d, p.Strict), nil
}

// consumerExit is the exit code of a run. The tool exited with 0 unless there was an
// exception.
func consumerExit(d *report.Document, strict bool) int {
	switch code := d.ExitCode(); {
	case !strict || code == system.ExitInterrupted:
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
