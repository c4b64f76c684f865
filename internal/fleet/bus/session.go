package bus

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"
)

// A session is a connection of an agent or an operator whose key was checked.
type session struct {
	conn        *tls.Conn
	agent       agentEntry // zero for an operator
	incarnation string
	address     string
	since       time.Time
	ticket      string
	ended       chan struct{} // when nothing of it arrives any more
}

func (one *session) end() { one.conn.NetConn().Close() } // a goodbye by TLS could wait for a peer that does not read

// A gate lets connections of sessions into NATS. A session has a ticket, which its client presents
// once; nothing else counts there.
type gate struct {
	mu      sync.Mutex
	tickets map[[sha256.Size]byte]*nats.User
}

func newGate() *gate { return &gate{tickets: map[[sha256.Size]byte]*nats.User{}} }

// ticket makes a ticket for a user.
func (g *gate) ticket(user *nats.User) string {
	raw := make([]byte, tokenBytes)
	rand.Read(raw)
	ticket := base64.RawURLEncoding.EncodeToString(raw)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tickets[sha256.Sum256([]byte(ticket))] = user
	return ticket
}

// take returns the user of a ticket, which is not valid any more.
func (g *gate) take(ticket string) (*nats.User, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	hash := sha256.Sum256([]byte(ticket))
	user, ok := g.tickets[hash]
	delete(g.tickets, hash)
	return user, ok
}

// Check implements nats.Authentication.
func (g *gate) Check(c nats.ClientAuthentication) bool {
	user, ok := g.take(c.GetOpts().Token)
	if ok {
		c.RegisterUser(user)
	}
	return ok
}

// The subjects of an agent, and what its operator and it may do with them.
func upSubject(agent string) string   { return "f." + agent + ".up" }
func downSubject(agent string) string { return "f." + agent + ".down" }

// agentOf is the agent of an up subject.
func agentOf(subject string) string {
	name, _ := strings.CutSuffix(subject, ".up")
	name, _ = strings.CutPrefix(name, "f.")
	return name
}

func user(name, publish, subscribe string) *nats.User {
	return &nats.User{Username: name, Permissions: &nats.Permissions{
		Publish:   &nats.SubjectPermission{Allow: []string{publish}},
		Subscribe: &nats.SubjectPermission{Allow: []string{subscribe}},
	}}
}

// serve looks at a new connection, and moves its bytes until it ends.
func (s *Server) serve(raw net.Conn, host string) {
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(unknownFor))
	conn := tls.Server(raw, s.tls)
	h, err := s.hear(conn)
	if !s.known(raw) {
		return
	}
	if err != nil {
		s.cfg.Logf("%s: refused: %v", raw.RemoteAddr(), err)
		return
	}
	one, a := s.decide(conn, h, host)
	if one != nil {
		defer s.leave(one)
	}
	if err := a.err(); err != nil {
		who := h.Role
		if h.Role == roleAgent && ValidName(h.Name) {
			who += " " + h.Name
		}
		s.cfg.Logf("%s: %s refused: %v", raw.RemoteAddr(), clean(who), err)
	}
	data, err := json.Marshal(a)
	if err != nil || writeFrame(conn, data) != nil || one == nil {
		conn.Close() // says goodbye
		return
	}
	raw.SetDeadline(time.Time{})
	s.carry(one)
}

// hear does the TLS handshake and reads the hello.
func (s *Server) hear(conn *tls.Conn) (hello, error) {
	err := conn.Handshake()
	if head, ok := errors.AsType[tls.RecordHeaderError](err); ok && head.Conn != nil {
		// As NATS says errors, and readable for a user who tries by hand.
		fmt.Fprint(head.Conn, "-ERR 'this port is a fleet's, with TLS 1.3'\r\n")
		return hello{}, errors.New("it does not speak TLS")
	}
	if err != nil {
		return hello{}, reason(err)
	}
	if conn.ConnectionState().NegotiatedProtocol != protocol {
		return hello{}, errors.New("it is not an agent or operator of this version")
	}
	h, err := hearHello(conn)
	if err != nil {
		err = reason(err)
	}
	return h, err
}

// decide answers a hello. The session is nil if there is none.
func (s *Server) decide(conn *tls.Conn, h hello, host string) (*session, answer) {
	switch h.Role {
	case roleAgent:
		return s.decideAgent(conn, h, host)
	case roleOperator, roleControl:
		if h.Key != s.operator.publicSign {
			return nil, refusal(ErrNoToken)
		}
		if h.Role == roleControl {
			return nil, s.control(h.Request)
		}
		one := &session{conn: conn, address: conn.RemoteAddr().String(), since: s.cfg.now(), ended: make(chan struct{})}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed || len(s.others) >= MaxOperators {
			return nil, refusal(detail(ErrFull, "%d operators are connected", MaxOperators))
		}
		s.others[one] = true
		one.ticket = s.gate.ticket(user("operator", downSubject("*"), upSubject("*")))
		return one, answer{Ticket: one.ticket}
	}
	return nil, refusal(errBroken)
}

// decideAgent answers an agent's hello: with its key it is let in, with a token it registers first.
func (s *Server) decideAgent(conn *tls.Conn, h hello, host string) (*session, answer) {
	agent, known := s.registry.byKey(h.Key)
	if !known {
		var err error
		if agent, err = s.join(h, host); err != nil {
			return nil, refusal(err)
		}
	}
	one := &session{conn: conn, agent: agent, incarnation: h.Incarnation, address: conn.RemoteAddr().String(), since: s.cfg.now(), ended: make(chan struct{})}
	if err := s.enter(one); err != nil {
		return nil, refusal(err)
	}
	s.cfg.Logf("%s: agent %s connected", one.address, agent.Name)
	one.ticket = s.gate.ticket(user(agent.Name, upSubject(agent.Name), downSubject(agent.Name)))
	return one, answer{Name: agent.Name, Operator: s.operator.publicSeal, Ticket: one.ticket}
}

// join registers an agent.
func (s *Server) join(h hello, host string) (agentEntry, error) {
	if h.Token == "" {
		return agentEntry{}, ErrNoToken
	}
	if wait := s.limiter.wait(host, s.cfg.now()); wait > 0 {
		return agentEntry{}, detail(ErrSlow, "wait %v", wait.Round(time.Second))
	}
	agent, replaced, err := s.registry.register(h)
	switch {
	case errors.Is(err, ErrWrongToken):
		s.limiter.failed(host, s.cfg.now())
		return agentEntry{}, err
	case err != nil:
		return agentEntry{}, err
	}
	s.cfg.Logf("%s: agent %s registered with key %s", host, agent.Name, agent.Key)
	if replaced != "" && replaced != agent.Key {
		s.cfg.Logf("agent %s: its old key %s is not valid any more", agent.Name, replaced)
		s.disconnect(replaced)
	}
	return agent, nil
}

// enter adds a session of an agent. Another process with the same key is refused; an older connection
// of the same process, which it has given up, ends first.
func (s *Server) enter(one *session) error {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return detail(ErrFull, "the server is ending")
		}
		old := s.sessions[one.agent.Key]
		if old == nil {
			break
		}
		if old.incarnation != one.incarnation || one.incarnation == "" {
			s.mu.Unlock()
			return detail(ErrSecond, "from %s since %s", old.address, old.since.UTC().Format(time.RFC3339))
		}
		old.end()
		s.mu.Unlock()
		<-old.ended
	}
	defer s.mu.Unlock()
	if len(s.sessions) >= MaxAgents {
		return detail(ErrFull, "%d agents are connected", MaxAgents)
	}
	// It may have been revoked since its key was looked at.
	if _, known := s.registry.byKey(one.agent.Key); !known {
		return ErrNoToken
	}
	s.sessions[one.agent.Key] = one
	return nil
}

// leave removes a session that has ended.
func (s *Server) leave(one *session) {
	s.gate.take(one.ticket) // if it was not used
	s.mu.Lock()
	delete(s.others, one)
	if s.sessions[one.agent.Key] == one {
		delete(s.sessions, one.agent.Key)
	}
	s.mu.Unlock()
	if one.agent.Name != "" {
		s.cfg.Logf("%s: agent %s disconnected", one.address, one.agent.Name)
	}
	close(one.ended)
}

// disconnect ends the session of a key, if there is one, and waits for its end.
func (s *Server) disconnect(key string) {
	s.mu.Lock()
	one := s.sessions[key]
	s.mu.Unlock()
	if one != nil {
		one.end()
		<-one.ended
	}
}

// carry moves the bytes of a session to NATS and back until one side ends.
func (s *Server) carry(one *session) {
	inside, err := s.nats.InProcessConn()
	if err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		move(inside, one.conn, func() error { return one.conn.SetReadDeadline(time.Now().Add(stalledFor)) })
		inside.Close()
	}()
	move(one.conn, inside, func() error { return one.conn.SetWriteDeadline(time.Now().Add(stalledFor)) })
	inside.Close()
	one.end()
	<-done
}

// move copies until an error. The deadline is set before each read and each write: NATS sends pings,
// which are answered, so that a connection is never silent for long.
func move(to io.Writer, from io.Reader, deadline func() error) {
	buf := make([]byte, 16<<10) // one record of TLS
	for deadline() == nil {
		n, err := from.Read(buf)
		if n > 0 {
			if deadline() != nil {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// control does what an operator asks for.
func (s *Server) control(r *request) answer {
	if r == nil {
		return refusal(errBroken)
	}
	switch r.Do {
	case "token":
		if r.Seconds < 1 || r.Seconds > int64(longestValid/time.Second) {
			return refusal(errBroken)
		}
		token, expires, err := s.registry.token(r.Agent, time.Duration(r.Seconds)*time.Second)
		if err != nil {
			return refusal(err)
		}
		s.cfg.Logf("a token was made%s, valid until %s", forAgent(r.Agent), expires.Format(time.RFC3339))
		return answer{Token: &Join{Address: s.advertise, Pin: s.pin, Token: token, Agent: r.Agent, Expires: expires}}
	case "revoke":
		key, err := s.registry.remove(r.Agent)
		if err != nil {
			return refusal(err)
		}
		s.cfg.Logf("agent %s was revoked", r.Agent)
		s.disconnect(key)
		return answer{}
	case "agents":
		var all []Registered
		for _, a := range s.registry.agents() {
			one := Registered{Name: a.Name, Key: a.Key, Since: a.Since}
			s.mu.Lock()
			if on := s.sessions[a.Key]; on != nil {
				one.Connected, one.Address = true, on.address
			}
			s.mu.Unlock()
			all = append(all, one)
		}
		return answer{Agents: all}
	case "key":
		a, ok := s.registry.byName(r.Agent)
		if !ok {
			return refusal(detail(ErrNoAgent, "%s", clean(r.Agent)))
		}
		return answer{Key: a.Seal}
	}
	return refusal(errBroken)
}

func forAgent(name string) string {
	if name == "" {
		return ""
	}
	return " for agent " + name
}
