package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/kafkatest"
)

// The peers, by their names in the table.
const (
	producerPerf = "kafka-producer-perf-test"
	consumerPerf = "kafka-consumer-perf-test"
	kcat         = "kcat"
	kgoBare      = "bare kgo.Produce loop"
	clientEngine = "--engine client"
	tcpBare      = "bare TCP writer"
)

// payloadLines returns n lines of text, the format that kafka-producer-perf-test and
// kcat read.
func payloadLines(n, size int) []byte {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 0, n*(size+1))
	for range n {
		for range size {
			text = append(text, letters[random.IntN(len(letters))])
		}
		text = append(text, '\n')
	}
	return text
}

// runProgram runs the program and reads its report as JSON.
func (u *Suite) runProgram(ctx context.Context, what string, args ...string) (*document, *processResult, error) {
	return u.runProgramWatched(ctx, false, what, args...)
}

func (u *Suite) runProgramWatched(ctx context.Context, watch bool, what string, args ...string) (*document, *processResult, error) {
	args = append([]string{"run"}, append(args, "--quiet", "--json")...)
	u.note(what, u.program, args...)
	e, err := runProcess(ctx, watch, u.program, args...)
	if err != nil {
		return nil, nil, err
	}
	d, err := readDocument(e)
	if err != nil {
		return nil, nil, err
	}
	if !d.Trust.OK {
		fmt.Fprintf(u.log, "bench: not trustworthy: %s\n", strings.Join(d.Trust.Reasons, "; "))
	}
	return d, e, nil
}

// producer is the program, producing.
func (u *Suite) producer(name, what string, args ...string) contestant {
	return contestant{name, func(ctx context.Context) (sample, error) {
		d, e, err := u.runProgram(ctx, what, args...)
		if err != nil {
			return nil, err
		}
		return sample{eventsPerS: d.Totals.EventsPS, bytesPerS: d.Totals.BytesPS}.cpu(e, d.Totals.Acked), nil
	}}
}

// java is the command line of a tool as Kafka's scripts make it (kafka-run-class.sh,
// kafka-producer-perf-test.sh and kafka-consumer-perf-test.sh of Kafka 4.3, with
// their heap and collector).
func java(b testing.TB, class string, args ...string) []string {
	return append([]string{
		"java", "-Xmx512M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
		"-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true",
		"-cp", filepath.Join(kafkatest.Jars(b), "*"), "org.apache.kafka.tools." + class,
	}, args...)
}

// The properties with which kafka-producer-perf-test was fastest against the
// discarding stand-in and against a broker (docs/performance.md lists those that were
// tried).
var (
	perfStandin = []string{"acks=1", "batch.size=524288", "linger.ms=50"}
	perfBroker  = []string{"acks=1", "batch.size=262144", "linger.ms=20"}
)

// javaProducer is kafka-producer-perf-test at its steady state: a tenth of the
// records, at least half a million, warms up its JVM.
func (u *Suite) javaProducer(b testing.TB, what, bootstrap, topic string, size, n int, props []string) contestant {
	return contestant{producerPerf, func(ctx context.Context) (sample, error) {
		lines, err := u.write(fmt.Sprintf("payload-%d.txt", size), 10_000, size)
		if err != nil {
			return nil, err
		}
		args := append([]string{
			"--topic", topic, "--num-records", strconv.Itoa(n), "--payload-file", lines, "--throughput", "-1",
			"--warmup-records", strconv.Itoa(max(min(n/2, 500_000), n/10)), "--bootstrap-server", bootstrap, "--command-property",
		}, props...)
		u.note(what, "kafka-producer-perf-test.sh", args...)
		cmd := java(b, "ProducerPerformance", args...)
		e, err := runSuccessfully(ctx, cmd[0], cmd[1:]...)
		if err != nil {
			return nil, err
		}
		rate, err := readProducerPerf(string(e.out))
		if err != nil {
			return nil, err
		}
		return sample{eventsPerS: rate, bytesPerS: rate * float64(size)}.cpu(e, uint64(n)), nil
	}}
}

// javaConsumer is kafka-consumer-perf-test over a whole topic.
func (u *Suite) javaConsumer(b testing.TB, what, bootstrap, topic string, n int) contestant {
	return contestant{consumerPerf, func(ctx context.Context) (sample, error) {
		args := []string{"--topic", topic, "--num-records", strconv.Itoa(n), "--bootstrap-server", bootstrap, "--hide-header"}
		u.note(what, "kafka-consumer-perf-test.sh", args...)
		cmd := java(b, "ConsumerPerformance", args...)
		e, err := runSuccessfully(ctx, cmd[0], cmd[1:]...)
		if err != nil {
			return nil, err
		}
		got, rate, fetchRate, err := readConsumerPerf(string(e.out))
		if err != nil {
			return nil, err
		}
		if got < uint64(n) {
			return nil, fmt.Errorf("it read %d of %d records", got, n)
		}
		return sample{eventsPerS: fetchRate, wholeRate: rate}.cpu(e, got), nil
	}}
}

// kcatProps make kcat fill one batch after the other instead of all of them at once.
// Its defaults are equally fast against the stand-in, but slower against a broker.
var kcatProps = []string{"acks=1", "partitioner=random", "sticky.partitioning.linger.ms=10"}

// kcatProducer is kcat -P reading lines from a file that is in the page cache. It
// reports no rate, so its rate is over its total run time, of which connecting is
// about ten milliseconds.
func (u *Suite) kcatProducer(what, bootstrap, topic string, size, n int) contestant {
	return contestant{kcat, func(ctx context.Context) (sample, error) {
		exe, err := exec.LookPath("kcat")
		if err != nil {
			return nil, fmt.Errorf("kcat is missing; install it: apt-get install kcat, or brew install kcat: %w", err)
		}
		lines, err := u.write(fmt.Sprintf("lines-%d-%d.txt", size, n), n, size)
		if err != nil {
			return nil, err
		}
		args := []string{"-P", "-b", bootstrap, "-t", topic}
		for _, p := range kcatProps {
			args = append(args, "-X", p)
		}
		args = append(args, "-l", lines)
		u.note(what, kcat, args...)
		e, err := runSuccessfully(ctx, exe, args...)
		if err != nil {
			return nil, err
		}
		rate := float64(n) / e.wall.Seconds()
		return sample{eventsPerS: rate, bytesPerS: rate * float64(size)}.cpu(e, uint64(n)), nil
	}}
}

// loop runs one of this package's bare loops: the test binary in another process.
func (u *Suite) loop(ctx context.Context, name string, args ...string) (loopResult, *processResult, error) {
	exe, err := os.Executable()
	if err != nil {
		return loopResult{}, nil, fmt.Errorf("find the running program: %w", err)
	}
	args = append([]string{loopWord, name}, args...)
	u.note("the loop of this package, "+name, exe, args...)
	e, err := runSuccessfully(ctx, exe, args...)
	if err != nil {
		return loopResult{}, nil, err
	}
	r, err := readLoop(e)
	return r, e, err
}

// startSink starts the sink of the bare TCP writer, which runs until b ends.
func startSink(b testing.TB) *server {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal("bench: find the running program: ", err)
	}
	sink, err := serve(b.Context(), exe, loopWord, "tcp-sink")
	if err != nil {
		b.Fatal("bench: start the sink: ", err)
	}
	b.Cleanup(sink.stop)
	return sink
}

// tcpWriter is the writer that only writes, to a sink of its own.
func (u *Suite) tcpWriter(b testing.TB, lasts time.Duration, args ...string) contestant {
	sink := startSink(b)
	return contestant{tcpBare, func(ctx context.Context) (sample, error) {
		r, _, err := u.loop(ctx, "tcp-writer", append([]string{"-to", sink.addr, "-for", lasts.String()}, args...)...)
		if err != nil {
			return nil, err
		}
		return sample{bytesPerS: float64(r.Bytes) / r.seconds()}, nil
	}}
}

// kgoProducer is the bare loop over kgo.Produce.
func (u *Suite) kgoProducer(bootstrap, topic string, size int, lasts time.Duration) contestant {
	return contestant{kgoBare, func(ctx context.Context) (sample, error) {
		r, e, err := u.loop(ctx, "kgo", "-brokers", bootstrap, "-topic", topic, "-size", strconv.Itoa(size), "-for", lasts.String())
		if err != nil {
			return nil, err
		}
		return sample{eventsPerS: float64(r.Events) / r.seconds(), bytesPerS: float64(r.Bytes) / r.seconds()}.cpu(e, r.Events), nil
	}}
}
