package standin

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// Bind adds the flags of a Kafka stand-in to fs; parsing sets o, whose values
// at the time of the call are the defaults shown.
func (o *KafkaOptions) Bind(fs *pflag.FlagSet) {
	retain := o.Retain
	*o = o.withDefaults()
	o.Retain = retain // its default depends on another flag
	fs.StringVar(&o.Listen, "listen", o.Listen, "address to listen on; port 0 takes a free one")
	fs.StringVar(&o.Advertise, "advertise", o.Advertise, "address told to clients (default: the one listened on)")
	fs.BoolVar(&o.Discard, "discard", o.Discard, "keep nothing and serve made-up events, as fast as can be")
	fs.IntVar(&o.Partitions, "partitions", o.Partitions, "partitions of topics made on demand")
	fs.Var(&list[Topic]{&o.Topics, ParseTopic, "topic"}, "topic", "make topic `NAME[:PARTITIONS]` at the start (repeatable)")
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir, "where the broker keeps its data (default: a temporary folder, removed at the end)")
	fs.BoolVar(&o.InMemory, "in-memory", o.InMemory, "keep the data in memory instead")
	fs.Int64Var(&o.Retain, "retain", o.Retain, "bytes kept per partition (default: 1 GiB, in memory 128 MiB)")
	fs.Int64Var(&o.MaxMessage, "max-message", o.MaxMessage, "largest record batch taken, in bytes")
	fs.Uint64Var(&o.Events, "events", o.Events, "with --discard: made-up events in each partition at the start")
	fs.IntVar(&o.EventSize, "event-size", o.EventSize, "with --discard: bytes of each made-up event")
	fs.IntVar(&o.BatchEvents, "batch-events", o.BatchEvents, "with --discard: made-up events in a batch")
	fs.DurationVar(&o.Delay, "delay", o.Delay, "hold each answer back for so long")
	fs.Var(&single[Stall]{&o.Stall, ParseStall, "stall"}, "stall", "neither read nor answer, `EVERY/LENGTH` such as 10s/1s")
	fs.Var(&list[ErrorRule]{&o.Errors, ParseErrorRule, "rule"}, "error", "refuse a share of what is produced, `NAME@SHARE` such as timeout@1% (repeatable)")
	fs.Uint64Var(&o.Seed, "seed", o.Seed, "of the draw of errors")
	fs.StringVar(&o.TLSCert, "tls-cert", o.TLSCert, "speak TLS, with the certificate in this PEM `FILE`")
	fs.StringVar(&o.TLSKey, "tls-key", o.TLSKey, "the certificate's key, a PEM `FILE`")
	fs.StringVar(&o.TLSClientCA, "tls-client-ca", o.TLSClientCA, "want client certificates signed by this PEM `FILE`")
	fs.Var(&list[Login]{&o.SASL, ParseLogin, "login"}, "sasl", "want a login, `MECHANISM:USER:PASSWORD`; the password may be env:NAME or file:PATH (repeatable)")
}

// single is a flag of one value.
type single[T fmt.Stringer] struct {
	v     *T
	parse func(string) (T, error)
	kind  string
}

func (f *single[T]) Set(s string) (err error) { *f.v, err = f.parse(s); return err }
func (f *single[T]) Type() string             { return f.kind }
func (f *single[T]) String() string           { return (*f.v).String() }

// list is a flag that may be given several times.
type list[T any] struct {
	v     *[]T
	parse func(string) (T, error)
	kind  string
}

func (f *list[T]) Set(s string) error {
	v, err := f.parse(s)
	if err == nil {
		*f.v = append(*f.v, v)
	}
	return err
}
func (f *list[T]) Type() string { return f.kind }

// String shows names, never a Login's password.
func (f *list[T]) String() string {
	var names []string
	for _, v := range *f.v {
		switch v := any(v).(type) {
		case Topic:
			names = append(names, fmt.Sprintf("%s:%d", v.Name, v.Partitions))
		case Login:
			names = append(names, v.Mechanism+":"+v.User)
		case fmt.Stringer:
			names = append(names, v.String())
		}
	}
	return strings.Join(names, ",")
}
