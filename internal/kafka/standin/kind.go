package standin

import (
	"io"

	"carronade/internal/standin"
)

// Kind is this stand-in as a command.
var Kind = standin.Kind{
	Name:  "kafka",
	Short: "a Kafka broker, or with --discard a sink that only answers",
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
	New: standin.NewServer((*Options).Bind, func(o *Options) *io.Writer { return &o.Log }, Start, Server.Addr, nil),
}
