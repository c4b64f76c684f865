package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/fleet/bus"
	"carronade/protocol"
)

// fleetStart returns the command that runs the server of a fleet.
func (s *session) fleetStart() *cobra.Command {
	var cfg bus.ServerConfig
	var nats natsFlags
	var agents []string
	cmd := &cobra.Command{
		Use: "start", Short: "the server at which the machines meet",
		Long: `The server passes messages between the machines, and generates no load itself.
It listens on one port, with TLS, on this machine alone unless --listen gives
another address. Machines join with a file of carronade fleet token. Ctrl-C or
TERM ends it; a run in progress then ends too.

With --nats the machines meet at a NATS server that is there already. The
command then starts nothing: it tries the server, and writes the operator file
for it. docs/fleet.md has the permissions that each machine needs there.`,
		Args: cmdutil.Args(0, 0, "nothing"),
		RunE: cmdutil.Run(func(cmd *cobra.Command, _ []string) (err error) {
			if s.rules != nil {
				return &protocol.Error{Err: errors.New("a job of a server may not be a server"), Hint: "start it yourself"}
			}
			if cfg.Dir, err = ownFolder(cfg.Dir, "fleet"); err != nil {
				return err
			}
			if nats.URL != "" {
				if len(agents) == 0 {
					return &protocol.Error{Err: errors.New("--nats: a NATS server does not know which agents there are"), Hint: "name each with --agent NAME"}
				}
				if err := bus.UseNATS(cmd.Context(), cfg.Dir, nats.NATS, agents); err != nil {
					return err
				}
				fmt.Fprintf(s.out, "the fleet meets at %s\n", nats.URL)
				return nil
			}
			if err := nats.unused(); err != nil {
				return err
			}
			if len(agents) > 0 {
				return &protocol.Error{Err: errors.New("--agent is for a NATS server"), Hint: "give --nats URL too; otherwise agents join with a file of carronade fleet token"}
			}
			cfg.Logf = s.logLine
			server, err := bus.Serve(cfg)
			if err != nil {
				return err
			}
			fmt.Fprintf(s.out, "listening on %s\n", server.Addr())
			<-cmd.Context().Done()
			return server.Close()
		}),
	}
	fs := cmd.Flags()
	fs.StringVar(&cfg.Listen, "listen", bus.DefaultListen, "`HOST:PORT` for the machines; port 0 picks a free one")
	fs.StringVar(&cfg.Advertise, "advertise", "", "`HOST` or HOST:PORT under which the machines reach it (default: that of --listen)")
	nats.bind(fs)
	fs.StringArrayVar(&agents, "agent", nil, "with --nats: an agent with this `NAME` may take part (repeatable)")
	bindFleetData(fs, &cfg.Dir)
	return cmd
}

// natsFlags are the flags of an existing NATS server.
type natsFlags struct{ bus.NATS }

func (n *natsFlags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&n.URL, "nats", "", "meet at this NATS server: `URL`, tls://HOST:PORT or nats://HOST:PORT")
	fs.StringVar(&n.Creds, "nats-creds", "", "`FILE` of credentials for it (a JWT and a seed)")
	fs.StringVar(&n.NKeySeedFile, "nats-nkey", "", "`FILE` with an nkey's seed for it")
	fs.StringVar(&n.CA, "nats-ca", "", "`FILE` of the authority that signed its certificate (default: those of this system)")
}

// unused returns an error if something was given without a server.
func (n *natsFlags) unused() error {
	if n.URL == "" && n.Creds+n.NKeySeedFile+n.CA != "" {
		return &protocol.Error{Err: errors.New("--nats-creds, --nats-nkey and --nats-ca are for a NATS server"), Hint: "give --nats URL too"}
	}
	return nil
}
