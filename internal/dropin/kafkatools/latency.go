package kafkatools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
)

// Latency is kafka-e2e-latency.
var Latency = dropin.Tool{
	Name: "kafka-e2e-latency", Aliases: []string{"EndToEndLatency", "org.apache.kafka.tools.EndToEndLatency", "kafka.tools.EndToEndLatency"},
	Short: "Kafka: round trips of single messages (2018, 4.1 and 4.3)", Kind: "kafka",
	Main: runLatency,
}

const aboutLatency = "This tool measures end-to-end latency in Kafka by sending messages and timing their reception."

const latencyDiffers = `
Six positional arguments mean the same, as in 2018 and 4.1: bootstrap-server
topic num-records producer-acks record-size [command-config].

Here percentiles are nearest ranks, rounded to milliseconds, not truncated
(--strict: like the tool), payloads are letters that differ, and a run with lost
or altered messages exits with 1. See docs/coming-from/kafka-consumer-tools.md.
`

const positionalDeprecated = "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0. Please use named arguments instead: --bootstrap-server, --topic, --num-records, --producer-acks, --record-size, --command-config"

func runLatency(ctx context.Context, p *dropin.Program) (int, error) {
	g, err := askedGeneration(p.Generation, of2018)
	if err != nil {
		return 1, err
	}
	early := g == of2018 || g == of41 // positional arguments only
	usage := func(text string) (int, error) {
		return joptUsage(p, text, latencyOptions, latencyDiffers)
	}
	args := p.Args
	switch byName := latencyNamed(args); {
	case len(args) == 0 || len(args) == 1 && (args[0] == "--help" || args[0] == "-h"):
		return usage(aboutLatency)
	case len(args) == 1 && args[0] == "--version":
		fmt.Fprintln(p.Out, kafkaVersion)
		return 0, nil
	case early && (byName || len(args) != 5 && len(args) != 6):
		fmt.Fprintln(p.Err, "USAGE: java org.apache.kafka.tools.EndToEndLatency broker_list topic num_messages producer_acks message_size_bytes [optional] properties_file")
		return 1, nil
	case !byName && len(args) != 5 && len(args) != 6:
		fmt.Fprintf(p.Err, "Invalid number of arguments. Expected 5 or 6 positional arguments, but got %d. Usage: bootstrap-server topic num-records producer-acks record-size [optional] command-config\n", len(args))
		return 1, nil
	case early:
		if err := checkEarly(g, args); err != nil {
			fmt.Fprintln(p.Err, err)
			return 1, nil
		}
		args = fromPositional(args)
	case !byName:
		if g == of43 {
			fmt.Fprintln(p.Out, positionalDeprecated)
		}
		args = fromPositional(args)
	}
	v, err := parseJopt(latencyOptions, args)
	if err != nil {
		return usage(err.Error())
	}
	if v.has("help") {
		return usage(aboutLatency)
	}
	var bare errParse
	switch err := checkLatency(v); {
	case errors.As(err, &bare):
		fmt.Fprintln(p.Err, err)
		return 1, nil
	case err != nil:
		return usage(err.Error())
	}
	s, err := readLatency(v)
	if err != nil {
		fmt.Fprintln(p.Err, err)
		return 1, nil
	}
	s.warn(p.Err, v.rest)
	l := &latencyLines{s: s, w: p.Out, strict: p.Strict}
	d, err := p.Run(ctx, &s.workload().Document, dropin.Observer{Found: l.found, RoundTrip: l.roundTrip})
	if err != nil {
		return dropin.NoReport(ctx, 0, err) // carronade sets the exit code
	}
	dropin.WriteProblems(p.Err, d)
	if d.Stopped == load.Interrupted && p.Strict {
		return host.ExitInterrupted, nil // the tool printed nothing
	}
	l.end(d)
	return latencyExit(d, p.Strict), nil
}

// latencyExit is the exit code of a run. The tool exited with 1 at the first message that
// did not come back unchanged.
func latencyExit(d *report.Document, strict bool) int {
	code := d.ExitCode()
	if !strict || code == host.ExitInterrupted {
		return code
	}
	if d.Stopped == load.ByTarget || d.Totals.Consumed < d.Totals.Acked {
		return 1
	}
	return 0
}

// latencyLines prints a run's lines.
type latencyLines struct {
	s      *latencySettings
	w      io.Writer
	strict bool

	n     int
	total time.Duration
	ms    []int32 // of each message, for --strict
}

// found prints that the topic was created, if it was.
func (l *latencyLines) found(facts map[string]any) {
	topic, _ := facts["topic"].(map[string]any)
	if _, made := topic["created_by"]; made {
		fmt.Fprintf(l.w, "Topic \"%s\" does not exist. Will create topic with 1 partition(s) and replication factor = 1\n", l.s.topic)
	}
}

// roundTrip records the time of a message and prints every thousandth.
func (l *latencyLines) roundTrip(d time.Duration) {
	if l.n%1000 == 0 {
		fmt.Fprintf(l.w, "%d\t%s\n", l.n, dropin.JavaDouble(float64(d)/1e3/1e3))
	}
	l.n++
	l.total += d
	if l.strict {
		l.ms = append(l.ms, int32(d.Milliseconds()))
	}
}

// end prints the mean and the percentiles.
func (l *latencyLines) end(d *report.Document) {
	if l.n == 0 || d.EndToEnd == nil || d.EndToEnd.Count == 0 {
		return
	}
	mean, p50, p99, p999 := d.EndToEnd.Mean/1e3, rounded(d.EndToEnd, 50), rounded(d.EndToEnd, 99), rounded(d.EndToEnd, 99.9)
	if l.strict {
		slices.Sort(l.ms)
		at := func(p float64) int { return int(l.ms[int(p*float64(len(l.ms)))]) }
		mean, p50, p99, p999 = float64(l.total)/float64(l.n)/1e6, at(0.5), at(0.99), at(0.999)
	}
	fmt.Fprintf(l.w, "Avg latency: %.4f ms\nPercentiles: 50th = %d, 99th = %d, 99.9th = %d\n", mean, p50, p99, p999)
}

// rounded is a percentile rounded to milliseconds.
func rounded(s *measure.Summary, p float64) int {
	for _, v := range s.Percentiles {
		if v.P == p {
			return int(v.D.Round(time.Millisecond).Milliseconds())
		}
	}
	return 0
}
