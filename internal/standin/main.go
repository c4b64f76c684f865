package standin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
)

// A Server is a stand-in with its options, before it runs.
type Server interface {
	// Bind adds the flags to fs. Parsing sets the options; their values at the
	// time of the call are the defaults that help shows.
	Bind(fs *pflag.FlagSet)
	// Serve runs the stand-in until ctx ends. When it is ready, it prints one
	// line to out: "listening on ADDR", and after commas its other addresses,
	// each "NAME ADDR". To log it writes errors of connections and, when it
	// ends, its counts.
	Serve(ctx context.Context, out, log io.Writer) error
}

// A Kind is one of the stand-ins.
type Kind struct {
	Name    string // of the protocol, as in `carronade standin NAME`
	Short   string // one line of help
	Long    string // the full help, without how the stand-in reports readiness and ends
	Example string // command lines, indented by two spaces
	New     func() Server
}

// All returns all stand-ins, in the order of help.
func All() []Kind {
	return []Kind{
		{
			Name: "kafka", Short: "a Kafka broker, or with --discard a sink that only answers",
			Long: `A Kafka broker in this process: a small one that keeps what it receives, or with
--discard one that keeps nothing and is as fast as possible, so that the limits
of clients can be measured against the same server.

It removes its data when it stops, unless it has --data-dir. There acked events
survive kill -9: the next broker on the folder serves them. It cuts off a batch
that was not written completely, with a line on stderr. A power failure may cost
the last seconds, unless --fsync flushes each batch to the disk before the ack.`,
			Example: `  carronade standin kafka
  carronade standin kafka --discard --listen 127.0.0.1:0
  carronade standin kafka --delay 5ms --stall 10s/1s --error timeout@1%
  carronade standin kafka --server rate=1000/s,service=constant --collapse`,
			New: newKafka,
		},
		{
			Name: "riemann", Short: "a Riemann server, or with --discard a sink that only acknowledges",
			Long: `A Riemann server in this process: a small one with an index and the whole query
language, over TCP, TLS, UDP, WebSocket and HTTP; or with --discard one that
counts and acknowledges messages as fast as possible, so that the limits of
clients can be measured against the same server.

Addresses other than TCP's follow on the same line, as in ", udp ADDR".`,
			Example: `  carronade standin riemann
  carronade standin riemann --udp 127.0.0.1:5555 --ws 127.0.0.1:5556
  carronade standin riemann --discard --listen 127.0.0.1:0
  carronade standin riemann --delay 5ms --error overloaded@1% --drop 0.1%
  carronade standin riemann --server rate=1000/s --warm 10s`,
			New: newRiemann,
		},
		{
			Name: "apm", Short: "an APM Server that validates events, or with --discard a sink that only answers",
			Long: `An Elastic APM Server in this process: it takes intake v2, RUM v2 and v3 and the
documents of v1, validates each event by Elastic's published schemas, answers
and counts like the real server, and with --index writes documents to
Elasticsearch or OpenSearch. With --discard it reads nothing and only answers,
as fast as possible, so that the limits of clients can be measured against the
same server.`,
			Example: `  carronade standin apm
  carronade standin apm --discard --listen 127.0.0.1:0
  carronade standin apm --index http://127.0.0.1:9200 --index-auth env:ES_LOGIN
  carronade standin apm --queue 10000 --drain 2k/s --error event@1%
  carronade standin apm --server rate=1000/s --credits 60s@2000/s`,
			New: newAPM,
		},
	}
}

// Main is a plain form of `carronade standin ARGS`. Spawn's child process runs it
// if the program is not carronade but, for example, a test. It returns the exit
// code.
func Main(args []string) int {
	var names []string
	for _, k := range All() {
		if len(args) > 0 && args[0] == k.Name {
			return run(k, args[1:])
		}
		names = append(names, k.Name)
	}
	fmt.Fprintf(os.Stderr, "error: no such stand-in\nhint: the stand-ins are: %s\n", strings.Join(names, ", "))
	return 2
}

func run(k Kind, args []string) int {
	s := k.New()
	fs := pflag.NewFlagSet("standin "+k.Name, pflag.ContinueOnError)
	s.Bind(fs)
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return 0
		}
		fmt.Fprintln(os.Stderr, "error:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx = EndWithParent(ctx)
	if err := s.Serve(ctx, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 2
	}
	return 0
}
