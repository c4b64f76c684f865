package bus

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"carronade/internal/advice"
	"carronade/internal/host"
)

// An AgentConfig is what an Agent needs.
type AgentConfig struct {
	Join  string               // path of the join file; may be "" after the first contact
	Given *Join                // its content in place of a file
	NATS  *NATS                // an existing NATS server instead of a join file
	Dir   string               // folder of the agent's key and of what it knows of the server, made if missing
	Name  string               // "" is the join file's, or else the name of this host
	Logf  func(string, ...any) // when the connection is lost, refused and made again; nil for none; called concurrently
}

// AgentFile is the name of the file in an agent's folder that has its keys. It is a secret.
const AgentFile = "agent.json"

// An Agent is a generator's connection. It reconnects by itself. Its methods may be called
// concurrently.
type Agent struct {
	link     *link
	name     string
	server   string // HOST:PORT; "" for a NATS server
	keys     keys
	operator string // public curve key; "" is any
}

// ConnectAgent connects an agent. The first time it makes a key in the folder and registers it with
// the token of the join file; from then on it needs only the folder. If both are given, and the join
// file is for another server than the folder's, the agent registers there with its key and replaces
// what it knew. It tries once; from then on the agent reconnects by itself. Errors are of type
// *advice.Error.
func ConnectAgent(ctx context.Context, cfg AgentConfig) (*Agent, error) {
	path := filepath.Join(cfg.Dir, AgentFile)
	f, err := openAgentFile(path)
	if err != nil {
		return nil, &advice.Error{Doing: "use the agent's file " + path, Err: err, Hint: "make the folder writable for this user, or choose another one"}
	}
	own, err := keysOf(f.Seed, f.Seal)
	if err != nil {
		return nil, &advice.Error{Doing: "use the agent's file " + path, Err: err}
	}
	if cfg.Name != "" && !ValidName(cfg.Name) {
		return nil, &advice.Error{Doing: fmt.Sprintf("use the name %q", clean(cfg.Name)), Err: ErrName, Hint: "choose another name"}
	}
	if cfg.NATS != nil {
		return connectAgentNATS(ctx, cfg, own)
	}
	h := hello{Role: roleAgent, Name: cfg.Name, Incarnation: rand.Text()}
	to, err := cfg.server(f, &h)
	if err != nil {
		return nil, err
	}
	at := &stamp{}
	dial := func(ctx context.Context) (*tls.Conn, answer, error) {
		return connect(ctx, to.Address, to.Pin, h, own, at)
	}
	conn, a, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	if cfg.Name != "" && a.Name != cfg.Name {
		conn.Close()
		return nil, &advice.Error{Doing: "connect as agent " + cfg.Name, Err: detail(ErrWrongName, "the key in %s is registered as %s", cfg.Dir, clean(a.Name)), Hint: "leave out --name, or give --data FOLDER: each agent of a machine has a folder of its own"}
	}
	to.Name, to.Operator = a.Name, a.Operator
	if to != f {
		if err := host.ReplaceFile(path, text(to)); err != nil {
			conn.Close()
			return nil, &advice.Error{Doing: "write the agent's file " + path, Err: host.Reason(err), Hint: "make the folder writable for this user"}
		}
	}
	h.Token, h.Name = "", ""
	l := newLink("agent "+a.Name, at, true, cfg.Logf)
	l.openLine(conn, ErrRevoked, dial)
	return &Agent{link: l, name: a.Name, server: to.Address, keys: own, operator: a.Operator}, nil
}

// server decides which server to connect to, and completes the hello.
func (cfg AgentConfig) server(f agentFile, h *hello) (agentFile, error) {
	if cfg.Join == "" && cfg.Given == nil {
		if f.Address == "" {
			return f, &advice.Error{Doing: "connect to a fleet", Err: ErrNotJoined, Hint: "give the join file that `carronade fleet token` made"}
		}
		return f, nil
	}
	join, err := cfg.join()
	if errors.Is(err, fs.ErrNotExist) && f.Address != "" {
		return f, nil // it was needed only once
	}
	if err != nil {
		return f, err
	}
	if f.Pin != join.Pin {
		f.Name, f.Operator = "", ""
	}
	f.Address, f.Pin = join.Address, join.Pin
	h.Token = join.Token
	if host, err := os.Hostname(); err == nil {
		h.Host = host
	}
	return f, nil
}

func (cfg AgentConfig) join() (Join, error) {
	if cfg.Given != nil {
		return *cfg.Given, nil
	}
	return ReadJoin(cfg.Join)
}

// openAgentFile reads the agent's file, or makes one with new keys.
func openAgentFile(path string) (agentFile, error) {
	f, err := readFile(path, parseAgentFile)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if f.Seed, f.Seal, err = newSeeds(); err != nil {
		return f, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return f, host.Reason(err)
	}
	// The key is on the disk before a server knows it: a token is not used up for a key that is lost.
	if err := host.CreateFile(path, text(f)); err != nil {
		return f, host.Reason(err)
	}
	return f, nil
}

// Name is the name under which the agent is registered.
func (a *Agent) Name() string { return a.name }

// Server is the address of the server, HOST:PORT; "" for a NATS server.
func (a *Agent) Server() string { return a.server }

// Send sends a message of at most MaxMessage bytes to the operator, at once; it keeps no reference
// to the message. ErrDown without a connection to the server: nothing is kept for later. No
// error does not say that an operator has got it.
func (a *Agent) Send(message []byte) error { return a.link.send("", message) }

// Receive calls f with each message of the operator, one call at a time, in order; those that came
// since ConnectAgent too. at has a monotonic clock reading: it is when the message arrived, before
// it was queued for f. f owns the message. A later call replaces f. Messages that come while 64 MiB
// wait for f are lost.
func (a *Agent) Receive(f func(message []byte, at time.Time)) {
	a.link.in.receive(func(l letter) { f(l.data, l.at) })
}

// Open decrypts what Operator.Seal sealed for this agent.
func (a *Agent) Open(sealed []byte) ([]byte, error) { return a.keys.open(sealed, a.operator) }

// Connected reports whether there is a connection to the server now.
func (a *Agent) Connected() bool { return a.link.connected() }

// Done is closed when the agent will not reconnect any more: after Close, or when the server has
// revoked it. Err then says why.
func (a *Agent) Done() <-chan struct{} { return a.link.quit }

// Err is nil until Done is closed; then ErrClosed or why the agent gave up, such as ErrRevoked.
func (a *Agent) Err() error { return a.link.err() }

// Close sends what was not sent yet and ends the connection. No call of the function given to
// Receive begins after it has returned; one may still run.
func (a *Agent) Close() error {
	a.link.close()
	return nil
}
