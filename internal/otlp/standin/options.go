package standin

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/spf13/pflag"

	"carronade/internal/standin"
)

// Options configures a stand-in. The zero value is a receiver at 127.0.0.1:4318 and 127.0.0.1:4317 that
// accepts valid requests from every client.
type Options struct {
	Listen     string // address for HTTP; port 0 picks a free one
	GRPCListen string // address for gRPC; empty: port 4317 at the host of Listen, or a free one if Listen has port 0
	Discard    bool   // accept everything unread
	MaxBody    int64  // bytes of a request after decompression; default the Collector's 20 MiB

	Delay      time.Duration // of each answer
	Stall      standin.Stall
	Errors     []ErrorRule
	Seed       uint64        // of the random errors
	RetryAfter time.Duration // that refusals for a while ask for; 0: none

	Capacity standin.CapacityOptions // of the server that serves events
	TLS      standin.TLS
	Record   string // file for when each request arrived and was answered; empty: none

	Log io.Writer // messages about errors; nil: none
}

func (o Options) withDefaults() Options {
	o.Listen = cmp.Or(o.Listen, "127.0.0.1:4318")
	if host, port, err := net.SplitHostPort(o.Listen); err == nil && o.GRPCListen == "" {
		if port != "0" {
			port = "4317"
		}
		o.GRPCListen = net.JoinHostPort(host, port)
	}
	o.MaxBody = cmp.Or(o.MaxBody, 20<<20)
	return o
}

// Check reports what is wrong with the options after filling in the defaults.
func (o Options) Check() error {
	o = o.withDefaults()
	for _, addr := range []string{o.Listen, o.GRPCListen} {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return fmt.Errorf("listen address %q: want host:port, such as 127.0.0.1:4318: %w", addr, err)
		}
	}
	switch {
	case o.MaxBody < 64 || o.MaxBody > 1<<30:
		return fmt.Errorf("requests of at most %d bytes: want 64B to 1GiB", o.MaxBody)
	case o.RetryAfter < 0 || o.RetryAfter > time.Hour:
		return errors.New("a time to retry after: want 0s to 1h")
	case o.Discard && (o.Capacity.On() || len(o.Errors) > 0):
		return errors.New("discard reads nothing, so it cannot be combined with a server or an error; leave out discard")
	}
	if err := o.Capacity.Check(); err != nil {
		return err
	}
	if err := standin.CheckRules(o.Delay, o.Errors); err != nil {
		return err
	}
	if err := standin.CheckRecord(o.Record, o.TLS); err != nil {
		return err
	}
	return o.TLS.Check()
}

// An ErrorRule answers a share of the requests with an HTTP status, or its code of gRPC.
type ErrorRule = standin.StatusRule

// ParseErrorRule parses "queue-full@1%" or "503@1%": an answer and the share of the requests that get it.
// "partial@1%" rejects one event of a share of the requests, and "reset@1%" closes the connection.
func ParseErrorRule(s string) (ErrorRule, error) { return standin.ParseStatusRule(s, "partial") }

// Bind adds the flags of a stand-in to fs. Parsing sets o; its values at the time of the call are the
// defaults that help shows.
func (o *Options) Bind(fs *pflag.FlagSet) {
	given := o.GRPCListen
	*o = o.withDefaults()
	o.GRPCListen = given
	fs.StringVar(&o.Listen, "listen", o.Listen, "address to listen on for HTTP; port 0 picks a free one")
	fs.StringVar(&o.GRPCListen, "grpc-listen", o.GRPCListen, "address to listen on for gRPC (default: port 4317 next to --listen, or a free one if that has port 0)")
	fs.BoolVar(&o.Discard, "discard", o.Discard, "accept requests without reading them, as fast as possible")
	fs.Var(standin.SizeValue(&o.MaxBody), "max-body", "largest request accepted, decompressed, a `SIZE`")
	standin.BindFaults(fs, &o.Delay, &o.Stall)
	o.Capacity.Bind(fs)
	standin.BindRecord(fs, &o.Record)
	fs.Var(&standin.List[ErrorRule]{To: &o.Errors, Parse: ParseErrorRule, Format: ErrorRule.String, Kind: "rule"}, "error", "answer a share of the requests with an error, `NAME@SHARE` such as queue-full@1%; partial@1% rejects an event (repeatable)")
	fs.Var(standin.DurationValue(&o.RetryAfter), "retry-after", "`TIME` that clients are asked to wait by throttled and queue-full")
	fs.Uint64Var(&o.Seed, "seed", o.Seed, "seed of the random errors")
	o.TLS.Bind(fs, "speak TLS, with the certificate in this PEM `FILE`")
}
