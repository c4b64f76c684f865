package sangrenel

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"strconv"
	"strings"

	"carronade/internal/compat"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
)

// Tool is sangrenel.
var Tool = compat.Tool{
	Name: "sangrenel", Short: "Kafka: random messages as fast as they are taken (2014 and 2022)", Kind: "kafka",
	Main: run,
}

// options are the flags of both generations.
type options struct {
	brokers, topic string
	noop           bool
	workers        int

	size int // 2014

	messageSize, batch int // 2022
	rate               uint64
	compression, acks  string
	writers            int
	interval           int
	version            string
	tls                bool
	ca, cert, key      string
	insecure           bool
	graphiteIP, prefix string
	graphitePort       string
}

// unlimited is the rate that stands for none.
const unlimited = 100_000_000

// writersPerClient is how many messages a client of 2014 had on the way at
// once: each of five goroutines sends one and waits for its answer.
const writersPerClient = 5

// flags binds them.
func (o *options) flags(name string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.StringVar(&o.brokers, "brokers", "localhost:9092", "Kafka brokers, separated by commas")
	fs.BoolVar(&o.noop, "noop", false, "make messages and send them nowhere")
	fs.IntVar(&o.size, "size", 300, "bytes of a message (2014)")
	fs.StringVar(&o.topic, "topic", "sangrenel", "topic to publish to")
	fs.IntVar(&o.workers, "workers", 1, "Kafka clients")

	fs.IntVar(&o.messageSize, "message-size", 300, "bytes of a message")
	fs.IntVar(&o.batch, "message-batch-size", 500, "messages in a batch")
	fs.Uint64Var(&o.rate, "produce-rate", unlimited, "messages/s of all workers together")
	fs.StringVar(&o.compression, "compression", "none", "none, gzip or snappy; lz4 and zstd, too, here")
	fs.StringVar(&o.acks, "required-acks", "local", "none, local or all")
	fs.IntVar(&o.writers, "writers-per-worker", writersPerClient, "batches on the way at once, a worker")
	fs.IntVar(&o.interval, "interval", 5, "seconds between lines")
	fs.StringVar(&o.version, "api-version", "", "version of Kafka's protocol; brokers are asked here, so it is taken and means nothing")
	fs.BoolVar(&o.tls, "tls", false, "speak TLS")
	fs.StringVar(&o.ca, "tls-ca-cert", "", "file of the authorities to trust")
	fs.StringVar(&o.cert, "tls-cert-file", "", "file of the client's certificate")
	fs.StringVar(&o.key, "tls-key-file", "", "file of its key")
	fs.BoolVar(&o.insecure, "tls-insecure-skip-verify", false, "believe any certificate")
	fs.StringVar(&o.graphiteIP, "graphite-ip", "", "Graphite's address")
	fs.StringVar(&o.graphitePort, "graphite-port", "", "Graphite's port (2003)")
	fs.StringVar(&o.prefix, "graphite-metrics-prefix", "", "begins the series' names (this host's name)")
	return fs
}

// first are the flags of 2014. Any other asks for the lines of 2022.
var first = map[string]bool{"brokers": true, "noop": true, "size": true, "topic": true, "workers": true}

func run(ctx context.Context, p *compat.Program) (int, error) {
	var o options
	fs := o.flags(p.Called)
	var said bytes.Buffer
	fs.SetOutput(&said)
	fs.Usage = func() {
		fmt.Fprintf(&said, "Usage of %s:\n", p.Called)
		fs.PrintDefaults()
	}
	err := fs.Parse(p.Args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(p.Err, "%s\n%s%s", said.String(), compat.OursHelp, differs)
		return 0, nil
	case err != nil:
		p.Err.Write(said.Bytes()) //nolint:errcheck // nobody reads
		return 2, nil
	}
	last := false
	var both []string
	fs.Visit(func(f *flag.Flag) {
		if !first[f.Name] {
			last = true
		}
		if f.Name == "size" {
			both = append(both, f.Name)
		}
	})
	switch p.Generation {
	case "", "2014", "2022":
	default:
		return 1, fmt.Errorf("--generation %s: sangrenel has 2014 and 2022", p.Generation)
	}
	if p.Generation == "2014" && last {
		return 1, errors.New("--generation 2014 has -brokers, -noop, -size, -topic and -workers only")
	}
	last = last || p.Generation == "2022"
	if last && len(both) > 0 {
		return 1, errors.New("-size is of 2014 and another flag is of 2022, where it is called -message-size: give flags of one of them")
	}
	if msg := o.check(last); msg != "" {
		fmt.Fprintln(p.Out, msg)
		return 1, nil
	}
	pr := printer(&lines2014{o: &o, p: p})
	if last {
		pr = &lines2022{o: &o, p: p}
	}
	pr.start()
	d, err := p.Fire(ctx, o.workload(last), compat.Eyes{Opened: pr.opened, Interval: pr.interval})
	if err != nil {
		if ctx.Err() != nil {
			return 0, nil
		}
		return 1, err
	}
	pr.end()
	return exit(d, p.Strict), nil
}

const differs = `
Here -noop measures this machine without a network, "avg latency" is the mean
service time (--strict: of the slowest tenth), failed messages are not counted
as sent, and a rate is kept evenly. See docs/coming-from/sangrenel.md.
`

// A printer prints the lines of a generation.
type printer interface {
	start()
	opened()
	interval(load.Snapshot)
	end()
}

// check returns sangrenel's own words about an option that has no meaning.
func (o *options) check(last bool) string {
	switch {
	case o.workers < 1:
		return fmt.Sprintf("Invalid workers option: %d", o.workers)
	case !last && o.size < 1:
		return fmt.Sprintf("Invalid size option: %d", o.size)
	case !last:
		return ""
	}
	switch o.compression {
	case "none", "gzip", "snappy", "lz4", "zstd":
	default:
		return "Invalid compression option: " + o.compression
	}
	switch o.acks {
	case "none", "local", "all":
	default:
		return "Invalid required-acks option: " + o.acks
	}
	switch {
	case o.messageSize < 1:
		return fmt.Sprintf("Invalid message-size option: %d", o.messageSize)
	case o.batch < 1:
		return fmt.Sprintf("Invalid message-batch-size option: %d", o.batch)
	case o.writers < 1:
		return fmt.Sprintf("Invalid writers-per-worker option: %d", o.writers)
	case o.interval < 1:
		return fmt.Sprintf("Invalid interval option: %d", o.interval)
	case o.rate < 1:
		return "Invalid produce-rate option: 0"
	}
	return ""
}

// workload says it in carronade's words.
func (o *options) workload(last bool) *workload.Document {
	var d compat.Draft
	size, batch, writers := o.size, 1, writersPerClient
	if last {
		size, batch, writers = o.messageSize, o.batch, o.writers
	}
	if o.noop {
		d.Set("target", "-noop", "null://noop")
	} else {
		d.Setf("target", "-brokers", "kafka://%s/%s", trimmed(o.brokers), o.topic)
		d.Set("acks", "-required-acks", map[string]string{"none": "0", "local": "1", "all": "all"}[o.acks])
		d.Set("compression", "-compression", o.compression)
		d.Set("create-topic", "-topic", "partitions=2") // of the broker's own accord, then
	}
	d.Set("size", "-message-size", strconv.Itoa(size))
	d.Set("events-per-shot", "-message-batch-size", strconv.Itoa(batch))
	d.Set("clients", "-workers", strconv.Itoa(o.workers))
	d.Set("max-in-flight", "-writers-per-worker", strconv.Itoa(writers))
	d.Setf("interval", "-interval", "%ds", o.interval)
	switch {
	case last && o.rate < unlimited && !o.noop:
		d.Setf("rate", "-produce-rate", "%d/s", o.rate)
	case !o.noop:
		d.Set("callers", "-writers-per-worker", strconv.Itoa(o.workers*writers))
	}
	if o.tls {
		d.Set("tls", "-tls", "true")
	}
	for _, f := range [][3]string{{"tls-ca", "-tls-ca-cert", o.ca}, {"tls-cert", "-tls-cert-file", o.cert}, {"tls-key", "-tls-key-file", o.key}} {
		if o.tls && f[2] != "" {
			d.Set(f[0], f[1], f[2])
		}
	}
	if o.tls && o.insecure {
		d.Set("tls-insecure-skip-verify", "-tls-insecure-skip-verify", "true")
	}
	if o.graphiteIP != "" {
		d.Set("graphite", "-graphite-ip", net.JoinHostPort(o.graphiteIP, cmp.Or(o.graphitePort, "2003")))
		if o.prefix != "" {
			d.Set("graphite-prefix", "-graphite-metrics-prefix", o.prefix)
		}
	}
	return &d.Document
}

// exit is the exit code of a run: sangrenel is ended by an interrupt, which is
// no failure.
func exit(d *report.Document, strict bool) int {
	code := d.ExitCode()
	if strict || code == report.ExitInterrupted {
		return 0
	}
	return code
}

// trimmed parts a list and leaves blanks out.
func trimmed(list string) string {
	parts := strings.Split(list, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return strings.Join(parts, ",")
}
