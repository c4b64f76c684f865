package cli

import (
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/conn"
	"carronade/internal/standin"
	"carronade/protocol"
)

const standinEnds = `

It prints "listening on ADDR" when it is ready, and ends on Ctrl-C or TERM.`

func (s *session) standinCommand() *cobra.Command {
	var kinds []*cobra.Command
	for _, k := range standins() {
		server := k.New()
		cmd := &cobra.Command{
			Use: k.Name, Short: k.Short, Long: k.Long + standinEnds, Example: "\n" + k.Example,
			Args: cmdutil.Args(0, 0, "nothing"),
			RunE: cmdutil.Run(func(cmd *cobra.Command, _ []string) error {
				if err := checkListening(cmd.Flags()); err != nil {
					return err
				}
				ctx := standin.EndWithParent(cmd.Context())
				if err := server.Serve(ctx, s.out, s.Err); err != nil {
					w := &protocol.Error{Err: fmt.Errorf("the stand-in could not run: %w", err)}
					if op, ok := errors.AsType[*net.OpError](err); ok {
						w.Hint = listenHint(op, cmd.Flags())
					}
					return w
				}
				return nil
			}),
		}
		server.Bind(cmd.Flags())
		kinds = append(kinds, cmd)
	}
	return cmdutil.Group("standin", "an embedded server, for any tool",
		"An embedded server, for Carronade or another tool. It binds loopback by default,\nand removes its data when it stops, unless it was given a folder for them.", kinds...)
}

// checkListening checks the flags with addresses to listen on.
func checkListening(flags *pflag.FlagSet) error {
	for _, name := range []string{"listen", "udp", "tls-listen", "ws"} {
		f := flags.Lookup(name)
		if f == nil || f.Value.String() == "" {
			continue
		}
		if _, _, err := conn.ListenAddress(f.Value.String()); err != nil {
			return &protocol.Error{Err: fmt.Errorf("--%s: %s: %w", name, f.Value, err), Hint: fmt.Sprintf("such as --%s 127.0.0.1:0, which picks a free port", name)}
		}
	}
	return nil
}

// listenHint names the flag of the address that could not be opened.
func listenHint(op *net.OpError, flags *pflag.FlagSet) string {
	flag, addr := "listen", flags.Lookup("listen").Value.String()
	flags.VisitAll(func(f *pflag.Flag) {
		if op.Addr != nil && f.Value.String() == op.Addr.String() {
			flag, addr = f.Name, op.Addr.String()
		}
	})
	return fmt.Sprintf("is the address %s in use? --%s 127.0.0.1:0 picks a free port", addr, flag)
}
