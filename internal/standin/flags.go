package standin

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"carronade/units"
)

// Bind adds the flags of a Kafka stand-in to fs; parsing sets o, whose values
// at the time of the call are the defaults shown.
func (o *KafkaOptions) Bind(fs *pflag.FlagSet) {
	retain, batch := o.Retain, o.BatchEvents
	*o = o.withDefaults()
	o.Retain, o.BatchEvents = retain, batch // their defaults depend on other flags
	fs.StringVar(&o.Listen, "listen", o.Listen, "address to listen on; port 0 takes a free one")
	fs.StringVar(&o.Advertise, "advertise", o.Advertise, "address told to clients (default: the one listened on)")
	fs.BoolVar(&o.Discard, "discard", o.Discard, "keep nothing and serve made-up events, as fast as can be")
	fs.IntVar(&o.Partitions, "partitions", o.Partitions, "partitions of topics made on demand")
	fs.Var(&list[Topic]{&o.Topics, ParseTopic, "topic"}, "topic", "make topic `NAME[:PARTITIONS]` at the start (repeatable)")
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir, "where the broker keeps its data (default: a temporary folder, removed at the end)")
	fs.BoolVar(&o.InMemory, "in-memory", o.InMemory, "keep the data in memory instead")
	fs.Var(size(&o.Retain), "retain", "`SIZE` kept per partition (default: 1 GiB, in memory 128 MiB)")
	fs.Var(size(&o.MaxMessage), "max-message", "largest record batch taken, a `SIZE`")
	fs.Var(&value[uint64]{&o.Events, units.ParseCount, units.FormatCount, "count"}, "events", "with --discard: made-up events in each partition at the start")
	fs.Var(&value[int]{&o.EventSize, parseEventSize, func(n int) string { return units.FormatSize(int64(n)) }, "size"}, "event-size", "with --discard: size of each made-up event")
	fs.IntVar(&o.BatchEvents, "batch-events", o.BatchEvents, "with --discard: made-up events in a batch (default: 1000, fewer when they are large)")
	fs.Var(&value[time.Duration]{&o.Delay, units.ParseDuration, formatDelay, "duration"}, "delay", "hold each answer back for so long")
	fs.Var(&value[Stall]{&o.Stall, ParseStall, Stall.String, "stall"}, "stall", "neither read nor answer, `EVERY/LENGTH` such as 10s/1s")
	fs.Var(&list[ErrorRule]{&o.Errors, ParseErrorRule, "rule"}, "error", "refuse a share of what is produced, `NAME@SHARE` such as timeout@1% (repeatable)")
	fs.Uint64Var(&o.Seed, "seed", o.Seed, "of the draw of errors")
	fs.StringVar(&o.TLSCert, "tls-cert", o.TLSCert, "speak TLS, with the certificate in this PEM `FILE`")
	fs.StringVar(&o.TLSKey, "tls-key", o.TLSKey, "the certificate's key, a PEM `FILE`")
	fs.StringVar(&o.TLSClientCA, "tls-client-ca", o.TLSClientCA, "want client certificates signed by this PEM `FILE`")
	fs.Var(&list[Login]{&o.SASL, ParseLogin, "login"}, "sasl", "want a login, `MECHANISM:USER:PASSWORD`; the password may be env:NAME or file:PATH (repeatable)")
}

// value is a flag of one value.
type value[T any] struct {
	v      *T
	parse  func(string) (T, error)
	format func(T) string
	kind   string
}

func (f *value[T]) Set(s string) error {
	v, err := f.parse(s)
	if err == nil {
		*f.v = v
	}
	return err
}
func (f *value[T]) Type() string   { return f.kind }
func (f *value[T]) String() string { return f.format(*f.v) }

// size is a flag of bytes; 0, which asks for the default, is not shown.
func size(v *int64) *value[int64] {
	return &value[int64]{v, units.ParseSize, func(n int64) string {
		if n == 0 {
			return ""
		}
		return units.FormatSize(n)
	}, "size"}
}

func parseEventSize(s string) (int, error) {
	n, err := units.ParseSize(s)
	if err == nil && n > 64<<20 {
		return 0, fmt.Errorf("size %q: want at most 64 MiB", s)
	}
	return int(n), err
}

// formatDelay shows no delay as none.
func formatDelay(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return units.FormatDuration(d)
}

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
