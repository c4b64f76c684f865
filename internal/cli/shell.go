package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/conn"
	"carronade/internal/host"
	"carronade/internal/secret"
	"carronade/internal/serve/shell"
	"carronade/protocol"
)

const shellLong = `An interactive shell: all commands without the word carronade, and those that
prepare and compare tests of a system: use, switch, test, collate, verify,
define. Commands that generate load wait in a queue, one after the other, while
the prompt takes other commands. help lists the commands.

With ADDR it is a session with a server (carronade serve) at HOST:PORT or
unix:PATH; without a port, 8234. Otherwise the queue is in your data folder, and
ends with the shell: a job that runs then is interrupted, and others wait for
the next shell.

On a terminal it has history and completion. Ctrl-C ends a command that has not
answered yet, such as wait; at the prompt it cancels your running jobs. Ctrl-D
leaves. From a pipe or a file it reads lines, and waits for their jobs at the
end.`

const shellExample = `
  carronade shell
  carronade shell 127.0.0.1
  carronade shell load.example.org --tls --token file:token.txt
  echo 'status' | carronade shell`

// connecting holds the flags of a session with a server.
type connecting struct {
	data  string
	token string
	tls   bool
	ca    string
}

// shellCommand returns the command shell.
func (s *session) shellCommand() *cobra.Command {
	var c connecting
	cmd := &cobra.Command{
		Use: "shell [ADDR]", Short: "an interactive shell, here or with a server",
		Long: shellLong, Example: shellExample,
		Args: cmdutil.Args(0, 1, "at most the address of a server"),
		RunE: cmdutil.Run(func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return s.remoteShell(cmd.Context(), &c, args[0])
			}
			if c.token != "" || c.tls || c.ca != "" {
				return &protocol.Error{Err: errors.New("--token and --tls are for a server"), Hint: "give its address: carronade shell HOST:PORT"}
			}
			return s.localShell(cmd.Context(), c.data)
		}),
	}
	fs := cmd.Flags()
	fs.StringVar(&c.data, "data", "", "`FOLDER` of the queue and your settings, without ADDR (default: carronade/shell in your data folder)")
	fs.StringVar(&c.token, "token", "", "`REF`, env:NAME or file:PATH, of your token for the server")
	fs.BoolVar(&c.tls, "tls", false, "connect with TLS")
	fs.StringVar(&c.ca, "tls-ca", "", "PEM `FILE` of the authority that signed the server's certificate; implies --tls")
	return cmd
}

// localShell runs a shell with a queue of its own.
func (s *session) localShell(ctx context.Context, data string) error {
	if data == "" {
		dir, err := host.DataDir()
		if err != nil {
			return &protocol.Error{Err: fmt.Errorf("cannot find your data folder: %w", err), Hint: "give --data FOLDER"}
		}
		data = filepath.Join(dir, "carronade", "shell")
	}
	m, err := s.openMachine(ctx, &serving{data: data, parallel: 1, everything: true})
	if err != nil {
		return err
	}
	defer m.close(s)
	m.rules.Memory = 0                         // the user's own jobs may take what is free
	if m.files, err = os.Getwd(); err != nil { // files are named from here, as in any other command
		return err
	}
	o := shell.Options{Owner: true}
	in, ok := s.In.(*os.File)
	if !ok {
		return m.session(s, o)(ctx, shell.Script(s.In, s.out), userName())
	}
	return shell.OnTerminal(in, s.Out, func(nc io.ReadWriter, t *shell.Terminal) error {
		o.Terminal, o.Color = t, t != nil && colors()
		return m.session(s, o)(ctx, nc, userName())
	})
}

// colors reports whether a session on a terminal may have colors (https://no-color.org).
func colors() bool { return os.Getenv("NO_COLOR") == "" }

// remoteShell is a session with a server.
func (s *session) remoteShell(ctx context.Context, c *connecting, address string) error {
	nc, err := c.dial(ctx, address)
	if err != nil {
		return err
	}
	defer nc.Close()
	if c.token != "" {
		token, referred, err := secret.Read(c.token)
		if !referred {
			err = errors.New("must be a reference to the token, since others can read the command line")
		}
		if err != nil {
			return &protocol.Error{Err: fmt.Errorf("--token: %w", err), Hint: "give env:NAME or file:PATH"}
		}
		if _, err := fmt.Fprintf(nc, "auth %s\r\n", token); err != nil {
			return fmt.Errorf("cannot send the token: %s", cmdutil.Reason(err))
		}
	}
	if err := shell.Connect(ctx, nc, s.In, s.Out, colors()); err != nil {
		return &protocol.Error{Err: err, Hint: "a server that other machines can reach needs --token; carronade serve token list shows its users"}
	}
	return nil
}

// dial connects to a server.
func (c *connecting) dial(ctx context.Context, address string) (net.Conn, error) {
	hint := "is carronade serve running there?"
	var d net.Dialer
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		nc, err := d.DialContext(ctx, "unix", path)
		if err != nil {
			return nil, &protocol.Error{Err: fmt.Errorf("cannot connect to %s: %s", address, cmdutil.Reason(err)), Hint: hint}
		}
		return nc, nil
	}
	address, err := serverAddress(address)
	if err != nil {
		return nil, err
	}
	var nc net.Conn
	if c.tls || c.ca != "" {
		config := &tls.Config{MinVersion: tls.VersionTLS12}
		if c.ca != "" {
			pem, err := os.ReadFile(c.ca)
			if err != nil {
				return nil, &protocol.Error{Err: fmt.Errorf("--tls-ca: %s", cmdutil.Reason(err)), Hint: "give a PEM file"}
			}
			config.RootCAs = x509.NewCertPool()
			if !config.RootCAs.AppendCertsFromPEM(pem) {
				return nil, &protocol.Error{Err: fmt.Errorf("--tls-ca: %s has no certificate", c.ca), Hint: "give a PEM file"}
			}
		}
		nc, err = (&tls.Dialer{NetDialer: &d, Config: config}).DialContext(ctx, "tcp", address)
	} else {
		if host, _, _ := net.SplitHostPort(address); c.token != "" && !isLoopback(host) {
			return nil, &protocol.Error{Err: errors.New("--token without --tls would send the token in clear text"), Hint: "give --tls"}
		}
		nc, err = d.DialContext(ctx, "tcp", address)
	}
	if err != nil {
		if c.tls || c.ca != "" {
			hint = "does the server use TLS? --tls-ca FILE names the authority of its certificate"
		}
		return nil, &protocol.Error{Err: fmt.Errorf("cannot connect to %s: %s", address, cmdutil.Reason(err)), Hint: hint}
	}
	return nc, nil
}

// serverAddress completes the address of a server with the default port.
func serverAddress(text string) (string, error) {
	address, err := conn.Host(text, strconv.Itoa(textPort))
	if err == nil {
		return address, nil
	}
	if bad, ok := errors.AsType[*net.AddrError](err); ok {
		err = errors.New(bad.Err)
	}
	return "", &protocol.Error{Err: fmt.Errorf("%q is not the address of a server: %w", text, err), Hint: "such as 127.0.0.1 or load.example.org:8234"}
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
