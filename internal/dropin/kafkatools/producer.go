// Package kafkatools has the drop-ins for Kafka's own performance tools: those of producers,
// consumers, share groups and end-to-end latency, with the grammars of their command lines.
package kafkatools

import (
	"context"
	"errors"
	"fmt"
	"os"

	"carronade/internal/dropin"
	"carronade/internal/host"
)

// Producer is kafka-producer-perf-test.
var Producer = dropin.Tool{
	Name: "kafka-producer-perf-test", Aliases: []string{"ProducerPerformance", "org.apache.kafka.tools.ProducerPerformance"},
	Short: "Kafka: producer throughput and latency (2018, 4.1 and 4.3)", Kind: "kafka",
	Main: runProducer,
}

func runProducer(ctx context.Context, p *dropin.Program) (int, error) {
	read, err := readProducer(p.Generation, p.Args)
	if err != nil {
		return 1, err
	}
	g := read.lines
	given, wrong := parseArgparse(g.flags(), p.Args)
	switch {
	case len(p.Args) == 0:
		writeProducerHelp(p.Out, g)
		return 0, nil
	case wrong == nil && hasProducerFlag(given, "--help"):
		writeProducerHelp(p.Out, g)
		if p.Strict {
			return 1, nil
		}
		return 0, nil
	}
	if wrong == nil {
		wrong = missingProducerFlag(g.flags(), given)
	}
	var o *producerOptions
	if wrong == nil {
		o, wrong = read.options(given, p.Strict)
	}
	if wrong != nil {
		wrong.write(p.Err, g)
		return 1, nil
	}
	if read.note != "" {
		fmt.Fprintln(p.Err, read.note)
	}
	if err := o.begin(p); err != nil {
		fmt.Fprintln(p.Err, err)
		return 1, nil
	}
	l := newProducerLines(o, p)
	d, err := p.Run(ctx, o.workload(), dropin.Observer{Interval: l.interval})
	switch {
	case errors.Is(ctx.Err(), context.Canceled) && d == nil:
		return host.ExitInterrupted, nil
	case err != nil:
		return 0, err // exits with 2: nothing was sent; 1 is for wrong usage
	}
	return l.end(d), nil
}

// begin prints the tool's messages before it connects.
func (o *producerOptions) begin(p *dropin.Program) error {
	if o.generation == of43 {
		for _, old := range [][2]string{{"--producer-props", "--command-property"}, {"--producer.config", "--command-config"}} {
			if o.propsFlag == old[0] || o.configFlag == old[0] {
				fmt.Fprintf(p.Out, "Option %s has been deprecated and will be removed in a future version. Use %s instead.\n", old[0], old[1])
			}
		}
	}
	if err := checkProducerTopic(o.topic); err != nil {
		return err
	}
	if o.fromFile {
		delimiter, err := dropin.JavaRegexp(o.delimiter, false)
		if err != nil {
			return fmt.Errorf("--payload-delimiter: %w", err)
		}
		o.delimiter = delimiter
		fmt.Fprintf(p.Out, "Reading payloads from: %s\n", absolutePath(o.file))
		if info, err := os.Stat(o.file); err != nil || info.Size() == 0 {
			return &dropin.Exception{Class: "java.lang.IllegalArgumentException", Text: "File does not exist or empty file provided."}
		}
		n, err := o.values()
		if err != nil {
			return err
		}
		fmt.Fprintf(p.Out, "Number of %s read: %d\n", o.generation.events(), n)
	}
	if err := o.read(); err != nil {
		return err
	}
	if o.warmup > 0 {
		fmt.Fprintf(p.Out, "Warmup first %d records. Steady state results will print after the complete test summary.\n", o.warmup)
	}
	o.client.warn(p.Err, "produce")
	for _, text := range o.remarks {
		fmt.Fprintln(p.Err, "warning:", text)
	}
	return nil
}
