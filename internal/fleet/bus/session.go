package bus

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"carronade/internal/door"
)

// A session is a connection of an agent or an operator whose key was checked.
type session struct {
	*peer
	agent       agentEntry // zero for an operator
	incarnation string
	address     string
	since       time.Time
	left        chan struct{} // closed when nothing of it arrives any more
}

func (s *Server) newSession(conn *tls.Conn) *session {
	return &session{peer: newPeer(conn), address: conn.RemoteAddr().String(), since: s.cfg.now(), left: make(chan struct{})}
}

// String says whose session it is, in the log.
func (one *session) String() string {
	if one.agent.Name == "" {
		return one.address + ": operator"
	}
	return one.address + ": agent " + one.agent.Name
}

// serve looks at a new connection, and passes on its messages until it ends.
func (s *Server) serve(guest *door.Guest) {
	defer guest.Close()
	guest.SetDeadline(time.Now().Add(cmp.Or(s.cfg.first, door.FirstExchange)))
	conn := tls.Server(guest, s.tls)
	h, err := s.hear(conn)
	if err != nil {
		if !errors.Is(err, net.ErrClosed) { // it made room for another, or the server ends
			s.cfg.Logf("%s: refused: %v", guest.RemoteAddr(), err)
		}
		return
	}
	one, a := s.decide(conn, h, guest)
	var why error
	if one != nil {
		defer func() { s.leave(one, why) }()
	}
	if err := a.err(); err != nil {
		who := h.Role
		if h.Role == roleAgent && ValidName(h.Name) {
			who += " " + h.Name
		}
		s.cfg.Logf("%s: %s refused: %v", guest.RemoteAddr(), clean(who), err)
	}
	guest.SetDeadline(time.Now().Add(cmp.Or(s.cfg.first, door.FirstExchange))) // also after a slow disk
	data, err := json.Marshal(a)
	if err != nil || writeFrame(conn, data) != nil || one == nil {
		conn.Close() // says goodbye
		return
	}
	why = one.run(func(agent string, message []byte) error { return s.route(one, agent, message) })
}

// hear does the TLS handshake and reads the hello.
func (s *Server) hear(conn *tls.Conn) (hello, error) {
	err := conn.Handshake()
	if head, ok := errors.AsType[tls.RecordHeaderError](err); ok && head.Conn != nil {
		fmt.Fprint(head.Conn, "this port is a fleet's, with TLS 1.3\r\n") // for a user who tries by hand
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
func (s *Server) decide(conn *tls.Conn, h hello, guest *door.Guest) (*session, answer) {
	switch h.Role {
	case roleAgent:
		return s.decideAgent(conn, h, guest)
	case roleOperator, roleControl:
		if h.Key != s.operator.publicSign {
			return nil, refusal(ErrNoToken)
		}
		if !guest.Known() {
			return nil, refusal(errNoPlace)
		}
		if h.Role == roleControl {
			return nil, s.control(h.Request)
		}
		one := s.newSession(conn)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed || len(s.others) >= MaxOperators {
			return nil, refusal(detail(ErrFull, "%d operators are connected", MaxOperators))
		}
		s.others[one] = true
		return one, answer{}
	}
	return nil, refusal(errBroken)
}

// errNoPlace is the answer to a connection with a key if all places are taken, or the server ends.
var errNoPlace = detail(ErrFull, "too many connections are open, or the server is ending")

// decideAgent answers an agent's hello: with its key it is let in, with a token it registers first.
func (s *Server) decideAgent(conn *tls.Conn, h hello, guest *door.Guest) (*session, answer) {
	agent, known := s.registry.byKey(h.Key)
	if !known {
		var err error
		if agent, err = s.join(h, guest.Host()); err != nil {
			return nil, refusal(err)
		}
	}
	if !guest.Known() {
		return nil, refusal(errNoPlace)
	}
	one := s.newSession(conn)
	one.agent, one.incarnation = agent, h.Incarnation
	if err := s.enter(one); err != nil {
		return nil, refusal(err)
	}
	s.cfg.Logf("%v connected", one)
	return one, answer{Name: agent.Name, Operator: s.operator.publicSeal}
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
		old.end(nil)
		s.mu.Unlock()
		<-old.left
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

// leave removes a session that has ended, and why it did.
func (s *Server) leave(one *session, why error) {
	s.mu.Lock()
	delete(s.others, one)
	if s.sessions[one.agent.Key] == one {
		delete(s.sessions, one.agent.Key)
	}
	s.mu.Unlock()
	switch {
	case why != nil && !errors.Is(why, io.EOF):
		s.cfg.Logf("%v disconnected: %v", one, why)
	case one.agent.Name != "":
		s.cfg.Logf("%v disconnected", one)
	}
	close(one.left)
}

// disconnect ends the session of a key, if there is one, and waits for its end.
func (s *Server) disconnect(key string) {
	s.mu.Lock()
	one := s.sessions[key]
	s.mu.Unlock()
	if one != nil {
		one.end(nil)
		<-one.left
	}
}

// route passes a message of a session on: an agent's to all operators, an operator's to the agent that it names.
// Without a receiver the message is lost.
func (s *Server) route(from *session, agent string, message []byte) error {
	isAgent := from.agent.Name != ""
	if isAgent != (agent == "") {
		return errors.New("a message with the wrong kind of address")
	}
	frame := messageFrame(from.agent.Name, message)
	s.mu.Lock()
	defer s.mu.Unlock()
	if isAgent {
		for one := range s.others {
			one.put(frame)
		}
		return nil
	}
	for _, one := range s.sessions {
		if one.agent.Name == agent {
			one.put(frame)
		}
	}
	return nil
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
