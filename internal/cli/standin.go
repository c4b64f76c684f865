package cli

import (
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"carronade/internal/standin"
)

const standinExample = `
  carronade standin kafka
  carronade standin kafka --discard --listen 127.0.0.1:0
  carronade standin kafka --delay 5ms --stall 10s/1s --error timeout@1%`

func (s *session) standinCommand() *cobra.Command {
	var opts standin.KafkaOptions
	kafka := &cobra.Command{
		Use: "kafka", Short: "a Kafka broker, or with --discard a sink that only answers",
		Long: `A Kafka broker in this process: a small one that keeps what it is sent, or with
--discard one that keeps nothing and is as fast as can be, so that the limit of
any client can be measured against the same thing.

It prints "listening on ADDR" when it is ready, and ends on Ctrl-C or TERM.`,
		Example: standinExample,
		Args:    args(0, 0, "nothing"),
		RunE: s.run(func(cmd *cobra.Command, _ []string) error {
			ctx := standin.EndWithParent(cmd.Context())
			if err := standin.Serve(ctx, opts, s.out, s.Err); err != nil {
				w := &words{err: fmt.Errorf("the stand-in could not run: %w", err)}
				if op := (*net.OpError)(nil); errors.As(err, &op) {
					w.hint = listenHint(opts.Listen)
				}
				return w
			}
			return nil
		}),
	}
	opts.Bind(kafka.Flags())
	return group("standin", "an embedded server to point other tools at",
		"An embedded server to point other tools at. It binds loopback by default, and\nits contents end with it.", kafka)
}

func listenHint(addr string) string {
	return fmt.Sprintf("is something else at %s? --listen 127.0.0.1:0 takes a free port", addr)
}
