package standin

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"carronade/internal/secret"
	"carronade/internal/standin"
	"carronade/units"
)

// Options configures a stand-in. The zero value is a server at 127.0.0.1:8200
// that accepts valid events from every client and keeps nothing.
type Options struct {
	Listen  string // address to listen on; port 0 picks a free one
	Discard bool   // accept everything unread and answer 202

	SecretToken Secret   // required from agents when set
	APIKeys     []Secret // "ID:KEY"; one of them is required when set
	NoRUM       bool     // refuse browsers, which otherwise need no token
	V1          bool     // accept documents of v1 too, as servers before 7 do

	MaxEvent int64 // bytes of one line with its end; default the real server's 307,200
	MaxBody  int64 // bytes of one document of v1; default the real server's 30 MiB

	Queue uint64  // most events accepted and not yet indexed; 0: no bound
	Drain float64 // events a second that leave the queue without an index; 0: at once

	Delay  time.Duration // of each answer
	Stall  standin.Stall
	Errors []ErrorRule // for requests with events
	Seed   uint64      // of the random errors

	Capacity standin.CapacityOptions // of the server that serves events

	Index     string // base URL of Elasticsearch or OpenSearch to write documents to; empty: none
	IndexAuth Secret // "USER:PASSWORD", or "ApiKey KEY"
	IndexCA   string // PEM file of the authority that signed its certificate
	Lose      uint64 // number of accepted events that are never indexed

	TLS standin.TLS

	Record string // file for when each request arrived and was answered; empty: none

	Log io.Writer // messages about errors; nil: none
}

// A Secret is never printed.
type Secret string

// String hides it.
func (Secret) String() string { return "" }

// GoString hides it.
func (Secret) GoString() string { return `""` }

// ParseSecret reads the value that "env:NAME" or "file:PATH" refers to. It refuses
// anything else, because the list of processes would show it.
func ParseSecret(s string) (Secret, error) {
	v, referred, err := secret.Read(s)
	switch {
	case !referred:
		return "", errors.New("want env:NAME or file:PATH of the secret")
	case err != nil:
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	if v == "" {
		return "", fmt.Errorf("%s is empty", s)
	}
	return Secret(v), nil
}

func (o Options) withDefaults() Options {
	o.Listen = cmp.Or(o.Listen, "127.0.0.1:8200")
	o.MaxEvent = cmp.Or(o.MaxEvent, 307200)
	o.MaxBody = cmp.Or(o.MaxBody, 30<<20)
	return o
}

// Check reports what is wrong with the options after filling in the defaults.
func (o Options) Check() error {
	o = o.withDefaults()
	if _, _, err := net.SplitHostPort(o.Listen); err != nil {
		return fmt.Errorf("listen address %q: want host:port, such as 127.0.0.1:8200: %w", o.Listen, err)
	}
	switch {
	case o.MaxEvent < 64 || o.MaxEvent > 1<<30 || o.MaxBody < 64 || o.MaxBody > 1<<30:
		return fmt.Errorf("events of at most %d bytes in documents of %d: want 64B to 1GiB", o.MaxEvent, o.MaxBody)
	case o.Drain < 0 || o.Drain > 0 && o.Queue == 0:
		return errors.New("a queue with a drain rate needs a limit")
	case o.Drain > 0 && o.Index != "":
		return errors.New("a queue is drained by indexing or at a rate, not by both")
	case o.Index == "" && (o.IndexAuth != "" || o.IndexCA != "" || o.Lose > 0):
		return errors.New("nothing is indexed: want the URL of Elasticsearch or OpenSearch too")
	case o.Discard && o.Capacity.On():
		return errors.New("discard reads no events, so no server can serve them; leave out discard or server")
	case o.Discard && (o.SecretToken != "" || len(o.APIKeys) > 0 || o.Index != "" || o.Queue > 0 || len(o.Errors) > 0 || o.NoRUM):
		return errors.New("discard reads nothing, so it cannot be combined with a token, queue, index or error; leave out discard")
	}
	if o.Index != "" {
		u, err := url.Parse(o.Index)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return errors.New("the address to index at: want one such as http://127.0.0.1:9200")
		}
		if u.User != nil {
			return errors.New("the address to index at has a password in it: give it by reference instead")
		}
	}
	for _, k := range o.APIKeys {
		if id, key, _ := strings.Cut(string(k), ":"); id == "" || key == "" {
			return errors.New("an API key: want ID:KEY where it is kept")
		}
	}
	if a := string(o.IndexAuth); a != "" && !strings.Contains(a, ":") && !strings.HasPrefix(a, "ApiKey ") {
		return errors.New("the login of the index: want USER:PASSWORD or ApiKey KEY where it is kept")
	}
	if err := o.Capacity.Check(); err != nil {
		return err
	}
	requests, events := o.rules()
	if err := standin.CheckRules(o.Delay, requests, events); err != nil {
		return err
	}
	if err := standin.CheckRecord(o.Record, o.TLS); err != nil {
		return err
	}
	return o.TLS.Check()
}

// rules splits the error rules into those for requests and those for the events
// in them.
func (o Options) rules() (requests, events []ErrorRule) {
	for _, r := range o.Errors {
		if r.What == standin.StatusEvent {
			events = append(events, r)
		} else {
			requests = append(requests, r)
		}
	}
	return requests, events
}

// An ErrorRule answers a share of the requests with an HTTP status, or applies
// one of the actions below to a share of the requests or of their events.
type ErrorRule = standin.StatusRule

// ParseErrorRule parses "queue-full@1%" or "503@1%": an answer and the share of
// the requests that get it. "event@1%" refuses a share of the events instead, and
// "reset@1%" closes the connection.
func ParseErrorRule(s string) (ErrorRule, error) { return standin.ParseStatusRule(s, "event") }

// Bind adds the flags of a stand-in to fs. Parsing sets o; its values at the time
// of the call are the defaults that help shows.
func (o *Options) Bind(fs *pflag.FlagSet) {
	*o = o.withDefaults()
	secret := func(to *Secret) *standin.Value[Secret] {
		return &standin.Value[Secret]{To: to, Parse: ParseSecret, Format: Secret.String, Kind: "secret"}
	}
	fs.StringVar(&o.Listen, "listen", o.Listen, "address to listen on; port 0 picks a free one")
	fs.BoolVar(&o.Discard, "discard", o.Discard, "answer 202 without reading events, as fast as possible")
	fs.Var(secret(&o.SecretToken), "secret-token", "require this token from agents; env:NAME or file:PATH, a `REFERENCE`")
	fs.Var(&standin.List[Secret]{To: &o.APIKeys, Parse: ParseSecret, Format: Secret.String, Kind: "secret"}, "api-key", "accept this API key, ID:KEY; env:NAME or file:PATH, a `REFERENCE` (repeatable)")
	fs.BoolVar(&o.NoRUM, "no-rum", o.NoRUM, "refuse browsers, which otherwise need no token")
	fs.BoolVar(&o.V1, "v1", o.V1, "accept the documents of v1, which servers before 7 do, too")
	fs.Var(standin.SizeValue(&o.MaxEvent), "max-event", "largest line accepted, with its end, a `SIZE`")
	fs.Var(standin.SizeValue(&o.MaxBody), "max-body", "largest document of v1 accepted, a `SIZE`")
	fs.Var(&standin.Value[uint64]{To: &o.Queue, Parse: units.ParseCount, Format: units.FormatCount, Kind: "count"}, "queue", "maximum of events accepted and not yet indexed; beyond it, the answer is 503 (default: no limit)")
	fs.Var(&standin.Value[float64]{To: &o.Drain, Parse: units.ParseRate, Format: units.FlagRate, Kind: "rate"}, "drain", "take events from the queue only at this `RATE`, like a slow output")
	standin.BindFaults(fs, &o.Delay, &o.Stall)
	o.Capacity.Bind(fs)
	standin.BindRecord(fs, &o.Record)
	fs.Var(&standin.List[ErrorRule]{To: &o.Errors, Parse: ParseErrorRule, Format: ErrorRule.String, Kind: "rule"}, "error", "answer a share of the requests with an error, `NAME@SHARE` such as queue-full@1%; event@1% refuses events (repeatable)")
	fs.Uint64Var(&o.Seed, "seed", o.Seed, "seed of the random errors")
	fs.StringVar(&o.Index, "index", o.Index, "write documents to Elasticsearch or OpenSearch at this `URL`")
	fs.Var(secret(&o.IndexAuth), "index-auth", "its login, USER:PASSWORD or ApiKey KEY; env:NAME or file:PATH, a `REFERENCE`")
	fs.StringVar(&o.IndexCA, "index-ca", o.IndexCA, "trust certificates signed by this PEM `FILE`")
	fs.Var(&standin.Value[uint64]{To: &o.Lose, Parse: units.ParseCount, Format: units.FormatCount, Kind: "count"}, "lose", "accept this number of events and never index them")
	o.TLS.Bind(fs, "speak TLS, with the certificate in this PEM `FILE`")
}
