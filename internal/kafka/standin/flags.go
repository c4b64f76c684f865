package standin

import (
	"fmt"

	"github.com/spf13/pflag"

	"carronade/internal/standin"
	"carronade/units"
)

// Bind adds the flags of a stand-in to fs. Parsing sets o; its values at the time
// of the call are the defaults that help shows.
func (o *Options) Bind(fs *pflag.FlagSet) {
	retain, batch := o.Retain, o.BatchEvents
	*o = o.withDefaults()
	o.Retain, o.BatchEvents = retain, batch // their defaults depend on other flags
	fs.StringVar(&o.Listen, "listen", o.Listen, "address to listen on; port 0 picks a free one")
	fs.StringVar(&o.Advertise, "advertise", o.Advertise, "address given to clients (default: the one listened on)")
	fs.BoolVar(&o.Discard, "discard", o.Discard, "keep nothing and serve synthetic events, as fast as possible")
	fs.IntVar(&o.Partitions, "partitions", o.Partitions, "partitions of topics created on demand")
	fs.Var(&standin.List[Topic]{To: &o.Topics, Parse: ParseTopic, Format: Topic.String, Kind: "topic"}, "topic", "create topic `NAME[:PARTITIONS]` at the start (repeatable)")
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir, "keep the data in this `FOLDER`, and serve those of an earlier broker; acked events survive kill -9, but not a power failure (default: a temporary folder, removed at the end)")
	fs.BoolVar(&o.Fsync, "fsync", o.Fsync, "with --data-dir: flush each batch to the disk before the ack, for power failures; slow")
	fs.BoolVar(&o.InMemory, "in-memory", o.InMemory, "keep the data in memory instead")
	fs.Var(standin.SizeValue(&o.Retain), "retain", "`SIZE` kept per partition (default: 1GiB, in memory 128MiB)")
	fs.Var(standin.SizeValue(&o.MaxMessage), "max-message", "largest record batch accepted, a `SIZE`")
	fs.Var(&standin.Value[uint64]{To: &o.Events, Parse: units.ParseCount, Format: units.FormatCount, Kind: "count"}, "events", "with --discard: synthetic events in each partition at the start")
	fs.Var(&standin.Value[int]{To: &o.EventSize, Parse: parseEventSize, Format: func(n int) string { return units.FlagSize(int64(n)) }, Kind: "size"}, "event-size", "with --discard: size of each synthetic event")
	fs.IntVar(&o.BatchEvents, "batch-events", o.BatchEvents, "with --discard: synthetic events in a batch (default: 1000, fewer when they are large)")
	standin.BindFaults(fs, &o.Delay, &o.Stall)
	fs.Var(&standin.List[ErrorRule]{To: &o.Errors, Parse: ParseErrorRule, Format: ErrorRule.String, Kind: "rule"}, "error", "refuse a share of what is produced, `NAME@SHARE` such as timeout@1% (repeatable)")
	o.Capacity.Bind(fs)
	standin.BindRecord(fs, &o.Record)
	fs.Uint64Var(&o.Seed, "seed", o.Seed, "seed of the random errors")
	o.TLS.Bind(fs, "speak TLS, with the certificate in this PEM `FILE`")
	fs.Var(&standin.List[Login]{To: &o.SASL, Parse: ParseLogin, Format: Login.String, Kind: "login"}, "sasl", "require a login, `MECHANISM:USER:PASSWORD`; the password may be env:NAME or file:PATH (repeatable)")
}

func parseEventSize(s string) (int, error) {
	n, err := units.ParseSize(s)
	if err == nil && n > 64<<20 {
		return 0, fmt.Errorf("size %q: want at most 64MiB", s)
	}
	return int(n), err
}
