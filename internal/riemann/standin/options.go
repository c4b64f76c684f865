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
	"carronade/units"
)

// Options configures a stand-in. The zero value is an indexing server at
// 127.0.0.1:5555 over TCP.
type Options struct {
	Listen    string // for TCP; default 127.0.0.1:5555. Port 0 picks a free one, here and below
	TLSListen string // for TCP with TLS; empty: none
	UDP       string // for datagrams; empty: none
	Web       string // for WebSocket, HTTP and server-sent events; empty: none

	Discard bool // count and acknowledge messages, keep nothing

	MaxMessage  int64         // largest message accepted over a connection, in bytes; default 16 MiB
	MaxDatagram int64         // largest datagram accepted, in bytes; default the real server's 16384
	MaxIndex    int64         // approximate memory limit of the index, in bytes; default 512 MiB
	Interval    time.Duration // between its events about itself; default 10 s

	Delay  time.Duration // of each answer
	Stall  standin.Stall
	Errors []ErrorRule // for messages with events
	Drop   float64     // share of events that are acknowledged and not kept
	Seed   uint64      // seed of the random errors and drops

	Capacity standin.CapacityOptions // of the server that serves events

	TLS standin.TLS // for TLSListen; with ClientCA set, mutual like the real server's

	Record string // file for when each message arrived over TCP or WebSocket and was answered; empty: none

	Log io.Writer // messages about connections that ended with an error; nil: none
}

func (o Options) withDefaults() Options {
	o.Listen = cmp.Or(o.Listen, "127.0.0.1:5555")
	o.MaxMessage = cmp.Or(o.MaxMessage, 16<<20)
	o.MaxDatagram = cmp.Or(o.MaxDatagram, 16384)
	o.MaxIndex = cmp.Or(o.MaxIndex, 512<<20)
	o.Interval = cmp.Or(o.Interval, 10*time.Second)
	return o
}

// addresses are the addresses to listen on, with their names in the line that the
// stand-in prints.
func (o Options) addresses() []struct{ name, addr string } {
	return []struct{ name, addr string }{{"tcp", o.Listen}, {"tls", o.TLSListen}, {"udp", o.UDP}, {"ws", o.Web}}
}

// Check reports what is wrong with the options after filling in the defaults.
func (o Options) Check() error {
	o = o.withDefaults()
	for _, a := range o.addresses() {
		if a.addr == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(a.addr); err != nil {
			return fmt.Errorf("address %q for %s: want host:port, such as 127.0.0.1:5555: %w", a.addr, a.name, err)
		}
	}
	switch {
	case o.TLSListen != "" && o.TLS.Cert == "":
		return errors.New("listening for TLS needs a certificate and its key")
	case o.TLSListen == "" && o.TLS.Cert != "":
		return errors.New("a certificate needs an address to listen on for TLS")
	case o.MaxMessage < 1 || o.MaxMessage > 1<<30:
		return fmt.Errorf("messages of at most %d bytes: want 1B to 1GiB", o.MaxMessage)
	case o.MaxDatagram < 1 || o.MaxDatagram > 65507:
		return fmt.Errorf("datagrams of at most %d bytes: want 1 to 65507", o.MaxDatagram)
	case o.MaxIndex < 1:
		return fmt.Errorf("an index of at most %d bytes: want more than 0", o.MaxIndex)
	case o.Interval < time.Millisecond:
		return fmt.Errorf("events about itself every %v: want 1ms at least", o.Interval)
	case o.Drop < 0 || o.Drop > 1:
		return fmt.Errorf("dropping %s of the events: want 0%% to 100%%", units.FormatPercent(o.Drop))
	case o.Discard && o.Capacity.On():
		return errors.New("discard reads no events, so no server can serve them; leave out discard or server")
	}
	if err := o.Capacity.Check(); err != nil {
		return err
	}
	if err := standin.CheckRecord(o.Record, o.TLS); err != nil {
		return err
	}
	if err := o.TLS.Check(); err != nil {
		return err
	}
	return standin.CheckRules(o.Delay, o.Errors)
}

// An ErrorRule refuses a share of the messages with events; its name is the error
// text sent to the client.
type ErrorRule = standin.Rule[struct{}]

// ParseErrorRule parses "disk full@1%": the text, and the share of messages
// that are refused with it.
func ParseErrorRule(s string) (ErrorRule, error) {
	return standin.ParseRule(s, "TEXT@SHARE, such as overloaded@1%", func(text string) (ErrorRule, error) {
		return ErrorRule{Name: text}, nil
	})
}

// Bind adds the flags of a stand-in to fs. Parsing sets o; its values at the time
// of the call are the defaults that help shows.
func (o *Options) Bind(fs *pflag.FlagSet) {
	*o = o.withDefaults()
	fs.StringVar(&o.Listen, "listen", o.Listen, "address to listen on for TCP; port 0 picks a free one")
	fs.StringVar(&o.UDP, "udp", o.UDP, "`ADDR` to listen on for UDP too")
	fs.StringVar(&o.TLSListen, "tls-listen", o.TLSListen, "`ADDR` to listen on for TLS too")
	fs.StringVar(&o.Web, "ws", o.Web, "`ADDR` to listen on for WebSocket and HTTP too: /events and /index")
	fs.BoolVar(&o.Discard, "discard", o.Discard, "count and acknowledge messages as fast as possible, and keep no events")
	fs.Var(standin.SizeValue(&o.MaxMessage), "max-message", "largest message accepted, a `SIZE`")
	fs.Var(standin.SizeValue(&o.MaxDatagram), "max-datagram", "largest datagram accepted, a `SIZE`; larger ones are lost, as with the real server")
	fs.Var(standin.SizeValue(&o.MaxIndex), "max-index", "approximate memory limit of the index, a `SIZE`; beyond it, new events are refused")
	fs.Var(standin.DurationValue(&o.Interval), "interval", "interval of the events about the server itself")
	standin.BindFaults(fs, &o.Delay, &o.Stall)
	o.Capacity.Bind(fs)
	standin.BindRecord(fs, &o.Record)
	fs.Var(&standin.List[ErrorRule]{To: &o.Errors, Parse: ParseErrorRule, Format: ErrorRule.String, Kind: "rule"}, "error",
		"refuse a share of the messages, `TEXT@SHARE` such as overloaded@1% (repeatable)")
	fs.Var(&standin.Value[float64]{To: &o.Drop, Parse: units.ParseShare, Format: units.FormatPercent, Kind: "share"}, "drop",
		"acknowledge and lose this `SHARE` of the events, so that a check can find it")
	fs.Uint64Var(&o.Seed, "seed", o.Seed, "seed of the random errors and drops")
	o.TLS.Bind(fs, "the certificate for TLS, a PEM `FILE`")
}
