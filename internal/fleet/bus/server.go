package bus

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"carronade/internal/advice"
	"carronade/internal/door"
	"carronade/internal/host"
)

// Bounds of a bus.
const (
	MaxMessage   = 1 << 20 // bytes of one message
	MaxAgents    = 64      // connected at once
	MaxOperators = 8       // connected at once
)

// DefaultListen is where a server listens if nothing is said.
const DefaultListen = "127.0.0.1:8236"

// OperatorFile is the name of the operator file in a server's data folder.
const OperatorFile = "operator.json"

// A ServerConfig is what a Server needs.
type ServerConfig struct {
	Listen    string               // HOST:PORT; "" is DefaultListen; port 0 is any free one
	Advertise string               // HOST or HOST:PORT in join files; "" is Listen, which then must name a host
	Dir       string               // data folder, made if missing: key, certificate, registered agents, operator file
	Key       string               // file with the certificate and the operator's keys, in place of those in Dir; see MakeKey
	Logf      func(string, ...any) // who connects, registers, is refused, one line each; nil for none; called concurrently

	now   func() time.Time // of tests
	first time.Duration    // of tests, which a slow machine must not fail: in place of door.FirstExchange
}

// A Server is the bus of a fleet. Its methods may be called concurrently.
type Server struct {
	cfg       ServerConfig
	lock      *os.File // of the data folder
	listener  net.Listener
	advertise string // HOST:PORT of join files
	pin       string
	tls       *tls.Config
	operator  keys
	registry  *registry
	limiter   limiter
	door      *door.Door // connections are known when they have shown a key or a token

	mu       sync.Mutex
	closed   bool
	sessions map[string]*session // of agents, by key
	others   map[*session]bool   // of operators
	running  sync.WaitGroup
}

// Serve starts a server, which runs until Close. It writes the operator file OperatorFile into the
// data folder, unless it has a key file. Errors are of type *advice.Error: the port is taken, the data folder cannot be written, is
// damaged, or is in use by another server.
func Serve(cfg ServerConfig) (*Server, error) {
	cfg.Listen = cmp.Or(cfg.Listen, DefaultListen)
	if cfg.Logf == nil {
		cfg.Logf = func(string, ...any) {}
	}
	if cfg.now == nil {
		cfg.now = time.Now
	}
	s := &Server{cfg: cfg, door: door.New(door.Places), sessions: map[string]*session{}, others: map[*session]bool{}}
	if err := s.open(); err != nil {
		s.release()
		return nil, err
	}
	s.running.Go(s.accept)
	return s, nil
}

// open gets all that a server has, in the order in which errors are the most useful.
func (s *Server) open() error {
	host, err := splitAddress(s.cfg.Listen)
	if err != nil {
		return &advice.Error{Doing: "listen on " + s.cfg.Listen, Err: err, Hint: "an address is HOST:PORT, such as " + DefaultListen}
	}
	if s.cfg.Advertise == "" && (host == "" || net.ParseIP(host).IsUnspecified()) {
		return &advice.Error{Doing: "listen on " + s.cfg.Listen, Err: errors.New("join files need an address that agents can connect to"), Hint: "say under which address other machines reach this one"}
	}
	if err := s.openFolder(); err != nil {
		return err
	}
	if s.listener, err = net.Listen("tcp", s.cfg.Listen); err != nil {
		hint := "choose an address of this machine"
		if errors.Is(err, syscall.EADDRINUSE) {
			hint = "another program listens there, perhaps another server of a fleet: end it, or choose another port"
		}
		return &advice.Error{Doing: "listen on " + s.cfg.Listen, Err: reason(err), Hint: hint}
	}
	_, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		return &advice.Error{Doing: "listen on " + s.cfg.Listen, Err: err}
	}
	s.advertise = s.cfg.Advertise
	switch _, err := splitAddress(s.advertise); {
	case s.advertise == "":
		s.advertise = net.JoinHostPort(host, port)
	case err != nil: // a host alone
		s.advertise = net.JoinHostPort(strings.Trim(s.advertise, "[]"), port)
	}
	if err := s.writeOperatorFile(host, port); err != nil {
		return s.folderError(err)
	}
	return nil
}

// openFolder opens the data folder and what is in it.
func (s *Server) openFolder() error {
	if err := os.MkdirAll(s.cfg.Dir, 0o700); err != nil {
		return s.folderError(err)
	}
	lock, err := os.OpenFile(filepath.Join(s.cfg.Dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return s.folderError(err)
	}
	s.lock = lock
	if ok, err := host.TryLock(lock, false); err != nil {
		return s.folderError(err)
	} else if !ok {
		return &advice.Error{Doing: "use the data folder " + s.cfg.Dir, Err: errors.New("another server uses it"), Hint: "end that one, or choose another folder"}
	}
	own, err := s.certificate()
	if err != nil {
		return err
	}
	s.pin, s.tls = pinOf(own.Certificate[0]), serverTLS(own)
	s.registry, err = openRegistry(filepath.Join(s.cfg.Dir, "agents.json"), s.cfg.now)
	if err != nil {
		return &advice.Error{Doing: "read " + filepath.Join(s.cfg.Dir, "agents.json"), Err: host.Reason(err), Hint: "restore the file, or remove it: then all agents have to join again"}
	}
	return nil
}

// certificate returns the server's certificate. With a key file it also sets the operator's keys.
func (s *Server) certificate() (tls.Certificate, error) {
	if s.cfg.Key == "" {
		own, err := certificate(s.cfg.Dir)
		if err != nil {
			return own, s.folderError(err)
		}
		return own, nil
	}
	f, err := openKey(s.cfg.Key)
	if err != nil {
		return tls.Certificate{}, err
	}
	if s.operator, err = keysOf(f.Seed, f.Seal); err != nil {
		return tls.Certificate{}, &advice.Error{Doing: "read the key file " + s.cfg.Key, Err: err}
	}
	return f.certificate()
}

func (s *Server) folderError(err error) error {
	return &advice.Error{Doing: "use the data folder " + s.cfg.Dir, Err: host.Reason(err), Hint: "make the folder writable for this user, or choose another one"}
}

// writeOperatorFile writes the operator file with this server's address. Its keys stay the same.
// With a key file there is none.
func (s *Server) writeOperatorFile(name, port string) error {
	if s.cfg.Key != "" {
		return nil
	}
	path := filepath.Join(s.cfg.Dir, OperatorFile)
	f, err := readFile(path, parseOperatorFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if f.Seed, f.Seal, err = newSeeds(); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("%s: %w", OperatorFile, err)
	}
	if s.operator, err = f.keys(); err != nil {
		return err
	}
	// The operator is a process of this machine, unless the file is copied.
	if name == "" || net.ParseIP(name).IsUnspecified() {
		name = "127.0.0.1"
	}
	f.Address, f.Pin = net.JoinHostPort(name, port), s.pin
	return host.ReplaceFile(path, text(f))
}

// Join makes a token with which one agent of this name can register, for a minute; see
// AgentConfig.Given.
func (s *Server) Join(agent string) (Join, error) {
	token, expires, err := s.registry.token(agent, time.Minute)
	return Join{Address: s.advertise, Pin: s.pin, Token: token, Agent: agent, Expires: expires}, err
}

// Addr is the address that the server listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends the server and all connections. Agents and operators go on trying to reconnect.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for _, one := range s.sessions {
		one.end(nil)
	}
	for one := range s.others {
		one.end(nil)
	}
	s.mu.Unlock()
	s.door.Close()
	s.listener.Close()
	s.running.Wait()
	s.release()
	return nil
}

// release gives back what open got.
func (s *Server) release() {
	if s.listener != nil {
		s.listener.Close()
	}
	if s.lock != nil {
		_ = host.CloseLocked(s.lock)
	}
}

// accept accepts connections until the listener is closed.
func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of files: connections that end give some back
			s.cfg.Logf("accept a connection: %v", reason(err))
			time.Sleep(100 * time.Millisecond)
			continue
		}
		guest := s.door.Enter(conn)
		s.running.Go(func() { s.serve(guest) })
	}
}

// reason is a network error without what the message already has.
func reason(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return host.Reason(err)
}
