package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/serve"
	"carronade/internal/serve/shell"
	"carronade/protocol"
	"carronade/units"
)

const serveLong = `A server for a team on one load machine. Jobs wait in a queue for each system
under test, so that no two of them load one system at the same time. The queue
is kept in a folder: a job that was accepted is not lost, whatever happens.

It has two ports: text, for carronade shell, nc or telnet, and HTTP, for the
page and the API (GET /api/v1/openapi.json). Both are on this machine alone,
unless --listen gives another address; then both need a token (carronade serve
token add NAME) and TLS.

A job may only name files in the server's folder for files. It may not start
programs, except those of repositories below an --allow-build folder. --allow
lifts these limits for all users.

Ctrl-C or TERM ends it: running jobs drain and keep their reports, and waiting
jobs stay in the queue.`

const serveExample = `
  carronade serve
  carronade serve --allow-build ~/src --parallel 2
  carronade serve token add ann
  carronade serve --listen 0.0.0.0 --tls-cert cert.pem --tls-key key.pem`

// The default ports. The first is that of the shell whose language this one has.
const (
	textPort = 8234
	httpPort = 8235
)

// leastJobMemory is what the smallest job needs, its program included.
const leastJobMemory = 64 << 20

// leastJobDisk is what the report and the files of a small job need.
const leastJobDisk = 1 << 20

// unknownDisk is what jobs may take of a disk whose space is not known.
const unknownDisk = 10 << 30

// serving holds the flags of serve.
type serving struct {
	data            string
	listen          string
	textPort        uint16
	httpPort        uint16
	socket          string
	parallel        int
	everything      bool
	color           bool // sessions over TCP have colors
	targets, builds []string
	tlsCert, tlsKey string
	behindProxy     bool
	store           string
	host            []string // names of the server besides its address
	jobMemory       string   // of all jobs that run at once; "": half of the machine's
	jobDisk         string   // of the folder files; "": half of the space on its disk
	ports           []uint16 // of the open server on this machine's loopback
}

// serveCommand returns the command serve.
func (s *session) serveCommand() *cobra.Command {
	var v serving
	cmd := &cobra.Command{
		Use: "serve", Short: "a server for a team: one queue for each system, a shell and a page",
		Long: serveLong, Example: serveExample,
		Args: cmdutil.Args(0, 0, "nothing"),
		RunE: cmdutil.Run(func(cmd *cobra.Command, _ []string) error { return s.serve(cmd.Context(), &v) }),
	}
	v.bind(cmd.Flags())
	cmd.AddCommand(s.tokenCommand())
	return cmd
}

func (v *serving) bind(fs *pflag.FlagSet) {
	bindData(fs, &v.data)
	fs.StringVar(&v.listen, "listen", "127.0.0.1", "the `HOST` of both ports; another one than loopback needs tokens and TLS")
	fs.Uint16Var(&v.textPort, "text-port", textPort, "`PORT` of the shell; 0 picks a free one")
	fs.Uint16Var(&v.httpPort, "http-port", httpPort, "`PORT` of the page and the API; 0 picks a free one")
	fs.StringVar(&v.socket, "socket", "", "a Unix socket for the shell at `PATH`, for its owner alone, in place of the text port")
	fs.BoolVar(&v.color, "color", false, "sessions over the text port have colors, as telnet shows them, unless NO_COLOR is set")
	fs.IntVar(&v.parallel, "parallel", 1, "jobs that run at once, for different systems: they share this machine, so `N` above 1 makes results less certain")
	fs.StringVar(&v.jobMemory, "job-memory", "", "memory that the jobs which run at once may take together, a `SIZE` (default: half of this machine's)")
	fs.StringVar(&v.jobDisk, "job-disk", "", "what the files of all jobs may take together, a `SIZE` (default: half of the space on their disk)")
	fs.BoolVar(&v.everything, "allow", false, "jobs may do what this user may: files, programs, all addresses")
	fs.StringArrayVar(&v.targets, "allow-target", nil, "jobs may only connect to addresses like `PATTERN`, such as 10.0.0.* or broker-*:9092 (repeatable; default: all)")
	fs.StringArrayVar(&v.builds, "allow-build", nil, "jobs may build and start what is in repositories below `FOLDER` (repeatable; default: none)")
	fs.StringVar(&v.tlsCert, "tls-cert", "", "PEM `FILE` of the server's certificate, for both ports")
	fs.StringVar(&v.tlsKey, "tls-key", "", "PEM `FILE` of its private key")
	fs.BoolVar(&v.behindProxy, "behind-proxy", false, "a proxy does TLS, so this server may do without")
	fs.StringArrayVar(&v.host, "host", nil, "a `NAME` under which browsers reach the page, besides its address (repeatable)")
	fs.StringVar(&v.store, "store", "", "the store of all reports at `PLACE`, a file or an address (default: your own)")
}

// bindData defines --data, the folder of a server.
func bindData(fs *pflag.FlagSet, data *string) {
	fs.StringVar(data, "data", "", "`FOLDER` of the queue, files and tokens (default: carronade/serve in your data folder)")
}

// check finds faults in the flags before anything begins.
func (v *serving) check() error {
	_, _, hasPort := strings.Cut(v.listen, ":")
	if ip := net.ParseIP(v.listen); ip != nil {
		hasPort = false
	}
	switch {
	case hasPort || v.listen == "":
		return &protocol.Error{Err: fmt.Errorf("--listen: %q is not a host: the ports have flags of their own", v.listen), Hint: "such as --listen 0.0.0.0 --text-port 8234 --http-port 8235"}
	case v.parallel < 1 || v.parallel > 64:
		return &protocol.Error{Err: fmt.Errorf("--parallel: must be between 1 and 64, not %d", v.parallel), Hint: "1 keeps jobs from disturbing each other"}
	case (v.tlsCert == "") != (v.tlsKey == ""):
		return &protocol.Error{Err: errors.New("--tls-cert and --tls-key belong together"), Hint: "give both, or neither"}
	case v.everything && len(v.targets)+len(v.builds) > 0:
		return &protocol.Error{Err: errors.New("--allow allows everything, so --allow-target and --allow-build have no effect"), Hint: "leave out --allow"}
	}
	if err := checkPatterns(v.targets); err != nil {
		return err
	}
	if v.jobMemory != "" {
		if n, err := units.ParseSize(v.jobMemory); err != nil || n < leastJobMemory {
			return &protocol.Error{Err: fmt.Errorf("--job-memory: %q is not a size of %s or more", v.jobMemory, units.FlagSize(leastJobMemory)), Hint: "such as --job-memory 4GiB"}
		}
	}
	if v.jobDisk != "" {
		if n, err := units.ParseSize(v.jobDisk); err != nil || n < leastJobDisk {
			return &protocol.Error{Err: fmt.Errorf("--job-disk: %q is not a size of %s or more", v.jobDisk, units.FlagSize(leastJobDisk)), Hint: "such as --job-disk 10GiB"}
		}
	}
	for i, b := range v.builds {
		path, err := filepath.Abs(b)
		if info, statErr := os.Stat(path); err != nil || statErr != nil || !info.IsDir() {
			return &protocol.Error{Err: fmt.Errorf("--allow-build: %s is not a folder", b), Hint: "give the folder that has the repositories"}
		}
		v.builds[i] = path
	}
	return nil
}

// rules are what jobs of the server may do.
func (v *serving) rules(files, store string) *serve.Rules {
	if v.everything {
		return &serve.Rules{Everything: true, Folder: files, Store: store, Memory: v.memory()}
	}
	return &serve.Rules{Folder: files, Store: store, Targets: v.targets, Builds: v.builds, Memory: v.memory(), Ports: v.ports}
}

// memory is how many bytes of memory one job may take; 0: that is not limited. check has read the flag.
func (v *serving) memory() int64 {
	all := int64(min(host.AllMemory(), math.MaxInt64)) / 2
	if v.jobMemory != "" {
		all, _ = units.ParseSize(v.jobMemory)
	}
	return all / int64(v.parallel)
}

// disk is how many bytes the folder with the files of jobs may have; 0: that is not limited. check has read the flag.
// Half of what its disk has for it: what is used by it counts as free, so that each start of a server finds the same
// limit.
func (v *serving) disk(files string, used int64) int64 {
	if v.everything {
		return 0 // jobs write elsewhere, too
	}
	if v.jobDisk != "" {
		n, _ := units.ParseSize(v.jobDisk)
		return n
	}
	if free := host.FreeDisk(files); free > 0 {
		return (int64(min(free, math.MaxInt64/2)) + used) / 2
	}
	return unknownDisk
}

// serve runs the server until the context ends.
func (s *session) serve(ctx context.Context, v *serving) error {
	if s.rules != nil { // it would have rules of its own
		return &protocol.Error{Err: errors.New("a job of a server may not be a server"), Hint: "start it yourself"}
	}
	if err := v.check(); err != nil {
		return err
	}
	config, err := v.tls()
	if err != nil {
		return err
	}
	data, err := ownFolder(v.data, "serve")
	if err != nil {
		return err
	}
	tokens := serve.OpenTokens(data)
	text, web, err := v.open()
	if err != nil {
		return err
	}
	defer text.Close()
	defer web.Close()
	for _, l := range []net.Listener{text, web} {
		if at, ok := l.Addr().(*net.TCPAddr); ok {
			v.ports = append(v.ports, uint16(at.Port)) //nolint:gosec // a port
		}
	}
	public := isPublic(text) || isPublic(web)
	if _, err := tokens.List(); err != nil {
		return &protocol.Error{Err: fmt.Errorf("cannot read the tokens: %s", cmdutil.Reason(err)), Hint: "if the file is damaged, rename it and add the tokens again"}
	}
	if err := v.checkPublic(public, tokens); err != nil {
		return err
	}
	m, err := s.openMachine(ctx, v)
	if err != nil {
		return err
	}
	defer m.close(s)

	user := userName()
	options := shell.Options{Color: v.color && colors()}
	if !v.everything { // the process of each command checks what it may do
		options.Allow = &shell.Permit{Folders: v.builds, Address: m.rules.Address, Command: func([]string) error { return nil }}
	}
	port := &serve.TextPort{User: user, Session: m.session(s, options)}
	if isPublic(text) {
		port.Tokens = tokens
	}
	site := serve.NewSite(serve.SiteOptions{API: m.api(s), Hub: m.hub, Tokens: tokens, TLS: config, Host: v.listen, Names: v.host})
	s.note("walls around jobs: %s", m.walls())
	fmt.Fprintf(s.out, "listening on %s for the shell\nlistening on %s for the page and the API\n", text.Addr(), web.Addr())
	scheme := "http"
	if config != nil {
		scheme = "https"
	}
	if public {
		fmt.Fprintf(s.out, "page: %s://HOST:%d/#token=TOKEN, with the name of this machine and a user's token\n", scheme, web.Addr().(*net.TCPAddr).Port)
	} else {
		fmt.Fprintf(s.out, "page: %s://%s/#token=%s\n", scheme, web.Addr(), tokens.AddOwn(user))
	}
	if config != nil {
		text = overTLS(text, config)
	}
	return serve.Run(ctx,
		func(ctx context.Context) error { return port.Serve(ctx, text) },
		func(ctx context.Context) error { return site.Serve(ctx, web) })
}

// serveAs is the server of a tool's shell. It builds and starts what is in the user's home, as the
// tool did everywhere.
func (s *session) serveAs(ctx context.Context) error {
	v := serving{color: true, listen: "127.0.0.1", textPort: textPort, httpPort: httpPort, parallel: 1}
	if home, err := os.UserHomeDir(); err == nil {
		v.builds = []string{home}
	}
	return s.serve(ctx, &v)
}

// tls reads the certificate; nil without one.
func (v *serving) tls() (*tls.Config, error) {
	if v.tlsCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(v.tlsCert, v.tlsKey)
	if err != nil {
		return nil, &protocol.Error{Err: fmt.Errorf("--tls-cert %s: %s", v.tlsCert, cmdutil.Reason(err)), Hint: "give PEM files that belong together"}
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// overTLS adds TLS to a port. A Unix socket needs none: it is this user's alone.
func overTLS(l net.Listener, config *tls.Config) net.Listener {
	if l.Addr().Network() == "unix" {
		return l
	}
	return tls.NewListener(l, config)
}

// isPublic reports whether other machines may reach a port.
func isPublic(l net.Listener) bool {
	addr, ok := l.Addr().(*net.TCPAddr)
	return ok && !addr.IP.IsLoopback()
}

// checkPublic refuses a server that other machines can reach without tokens and TLS.
func (v *serving) checkPublic(public bool, tokens *serve.Tokens) error {
	if !public {
		return nil
	}
	if v.tlsCert == "" && !v.behindProxy {
		return &protocol.Error{Err: errors.New("other machines can reach this server, and could read tokens and reports on their way"), Hint: "give --tls-cert and --tls-key, or --behind-proxy if a proxy does TLS"}
	}
	all, err := tokens.List()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return &protocol.Error{Err: errors.New("other machines can reach this server, but no user has a token for it"), Hint: "carronade serve token add NAME" + dataFlag(v.data) + " makes one"}
	}
	return nil
}

// dataFlag repeats --data in a hint.
func dataFlag(data string) string {
	if data == "" {
		return ""
	}
	return " --data " + data
}

// userName is the name of the user of this process, in lists of jobs.
func userName() string {
	for _, name := range []string{"USER", "LOGNAME", "USERNAME"} {
		if text := os.Getenv(name); serve.ValidUser(text) {
			return text
		}
	}
	return "local"
}

// open opens both ports, or takes those that systemd opened.
func (v *serving) open() (text, web net.Listener, err error) {
	given, err := activation.ListenersWithNames()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot take the sockets of systemd: %w", err)
	}
	switch {
	case len(given["text"]) > 0:
		text = given["text"][0]
	case v.socket != "":
		if text, err = host.ListenOwn(v.socket); err != nil {
			return nil, nil, &protocol.Error{Err: fmt.Errorf("--socket %s: %s", v.socket, cmdutil.Reason(err)), Hint: "give a path in a folder of your own; the socket of a server that runs is not replaced"}
		}
	default:
		if text, err = listenOn("--text-port", v.listen, v.textPort); err != nil {
			return nil, nil, err
		}
	}
	if len(given["http"]) > 0 {
		return text, given["http"][0], nil
	}
	if web, err = listenOn("--http-port", v.listen, v.httpPort); err != nil {
		text.Close()
		return nil, nil, err
	}
	return text, web, nil
}

// listenOn opens a port.
func listenOn(flag, host string, port uint16) (net.Listener, error) {
	address := net.JoinHostPort(host, strconv.Itoa(int(port)))
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, &protocol.Error{Err: fmt.Errorf("cannot listen on %s: %s", address, cmdutil.Reason(err)), Hint: fmt.Sprintf("does another server use it? %s 0 picks a free port", flag)}
	}
	return l, nil
}

const tokenLong = `Tokens of users, for a server that other machines can reach and for programs
that use its API. The server stores only a hash of each. A token is shown once.`

// tokenCommand returns the command serve token.
func (s *session) tokenCommand() *cobra.Command {
	var data string
	with := func(f func(tokens *serve.Tokens, args []string) error) func(*cobra.Command, []string) error {
		return cmdutil.Run(func(_ *cobra.Command, args []string) error {
			folder, err := ownFolder(data, "serve")
			if err != nil {
				return err
			}
			if err := f(serve.OpenTokens(folder), args); err != nil {
				return &protocol.Error{Err: err, Hint: "carronade serve token list shows the users"}
			}
			return nil
		})
	}
	add := &cobra.Command{
		Use: "add NAME", Short: "make a token for a user, and print it",
		Args: cmdutil.Args(1, 1, "the name of the user"),
		RunE: with(func(tokens *serve.Tokens, args []string) error {
			secret, err := tokens.Add(args[0])
			if err == nil {
				_, err = fmt.Fprintln(s.out, secret)
			}
			return err
		}),
	}
	list := &cobra.Command{
		Use: "list", Short: "users with a token",
		Args: cmdutil.Args(0, 0, "nothing"),
		RunE: with(func(tokens *serve.Tokens, _ []string) error {
			all, err := tokens.List()
			for _, k := range all {
				fmt.Fprintf(s.out, "%-32s  %s\n", k.User, k.Made.Format(time.DateOnly))
			}
			return err
		}),
	}
	remove := &cobra.Command{
		Use: "remove NAME", Short: "remove all tokens of a user",
		Args: cmdutil.Args(1, 1, "the name of the user"),
		RunE: with(func(tokens *serve.Tokens, args []string) error { return tokens.Remove(args[0]) }),
	}
	for _, cmd := range []*cobra.Command{add, list, remove} {
		bindData(cmd.Flags(), &data)
		cmd.Long = sentence(cmd.Short)
	}
	return cmdutil.Group("token", "tokens of the server's users", tokenLong, add, list, remove)
}
