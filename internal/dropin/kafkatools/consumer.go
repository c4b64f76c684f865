package kafkatools

import (
	"context"
	"fmt"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
)

// Consumer is kafka-consumer-perf-test.
var Consumer = dropin.Tool{
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
func consumerAt(now clock) func(context.Context, *dropin.Program) (int, error) {
	return func(ctx context.Context, p *dropin.Program) (int, error) { return runConsumer(ctx, p, now) }
}

func runConsumer(ctx context.Context, p *dropin.Program, now clock) (int, error) {
	g, err := askedGeneration(p.Generation, of2018)
	if err != nil {
		return 1, err
	}
	known := consumerOptionsIn(g)
	usage := func(text string) (int, error) {
		return joptUsage(p, text, known, consumerDiffers)
	}
	if len(p.Args) == 0 {
		return usage(aboutConsumer)
	}
	v, err := parseJopt(consumerOptionsIn(guessedGeneration), p.Args)
	if err != nil {
		return usage(err.Error())
	}
	switch {
	case v.has("help"):
		return usage(aboutConsumer)
	case v.has("version"):
		fmt.Fprintln(p.Out, kafkaVersion)
		return 0, nil
	}
	if g == guessedGeneration {
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
	_, code, err := runAndPrint(ctx, p, &s.workload(p.Strict).Document, s.count, l, now)
	return code, err
}

// A consumerPrinter prints a tool's lines about a run.
type consumerPrinter interface {
	begun(at time.Time) // called again when the time is known better
	interval(s load.Snapshot)
	end(d *report.Document)
	metrics(d *report.Document) []*kafkaMetrics // those of --print-metrics
}

// runAndPrint runs a workload for a number of records and prints its lines. Without a
// report, d is nil, and the code and the error say why.
func runAndPrint(ctx context.Context, p *dropin.Program, w *workload.Document, count int64, t consumerPrinter, now clock) (d *report.Document, code int, err error) {
	began := now()
	t.begun(began)
	if count <= 0 {
		fmt.Fprintln(p.Err, "no records were requested, so nothing was run")
		t.end(&report.Document{})
		return nil, 0, nil
	}
	d, err = p.Run(ctx, w, dropin.Observer{Opened: func() { t.begun(now()) }, Interval: t.interval})
	if err != nil {
		code, err = dropin.NoReport(ctx, 0, err) // carronade sets the exit code
		return nil, code, err
	}
	t.begun(startOf(d, began))
	if d.Stopped == load.Interrupted && p.Strict {
		return nil, host.ExitInterrupted, nil // the tool printed nothing
	}
	t.end(d)
	for _, m := range t.metrics(d) {
		m.print(p.Out)
	}
	dropin.WriteProblems(p.Err, d)
	return d, consumerExit(d, p.Strict), nil
}

// consumerExit is the exit code of a run. The tool exited with 0 unless there was an
// exception.
func consumerExit(d *report.Document, strict bool) int {
	switch code := d.ExitCode(); {
	case !strict || code == host.ExitInterrupted:
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
