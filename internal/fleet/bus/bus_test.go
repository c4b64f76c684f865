package bus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"carronade/internal/advice"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// longEnough bounds waiting in tests for what takes milliseconds.
const longEnough = time.Minute

// A testBus is a real server on loopback with its operator and what it logged.
type testBus struct {
	*Server
	t        *testing.T
	cfg      ServerConfig
	operator *Operator
	clock    *clock
	log      *logged
}

// A clock is the server's, which tests move.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// A logged collects lines.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) logf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// start starts a server and its operator, which end with the test.
func start(t *testing.T) *testBus {
	t.Helper()
	b := &testBus{t: t, clock: &clock{}, log: &logged{}}
	b.cfg = ServerConfig{Listen: "127.0.0.1:0", Dir: t.TempDir(), Logf: b.log.logf, now: b.clock.now, first: time.Minute}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log:\n%s", b.log.text())
		}
	})
	b.serve()
	b.operator = b.connectOperator()
	return b
}

// serve starts the server, again on the same port.
func (b *testBus) serve() {
	b.t.Helper()
	s := assert.Value(Serve(b.cfg))(b.t)
	b.t.Cleanup(func() { s.Close() })
	b.Server, b.cfg.Listen = s, s.Addr()
}

func (b *testBus) connectOperator() *Operator {
	b.t.Helper()
	o := assert.Value(ConnectOperator(b.t.Context(), filepath.Join(b.cfg.Dir, OperatorFile)))(b.t)
	b.t.Cleanup(func() { o.Close() })
	return o
}

// join makes a join file.
func (b *testBus) join(name string) string {
	b.t.Helper()
	j := assert.Value(b.operator.Token(b.t.Context(), name, 0))(b.t)
	path := filepath.Join(b.t.TempDir(), "join.json")
	assert.OK(b.t, j.Write(path))
	return path
}

// agent connects a new agent.
func (b *testBus) agent(name string) *Agent {
	b.t.Helper()
	return b.connect(AgentConfig{Join: b.join(name), Dir: b.t.TempDir()})
}

func (b *testBus) connect(cfg AgentConfig) *Agent {
	b.t.Helper()
	if cfg.Logf == nil {
		cfg.Logf = b.log.logf
	}
	a := assert.Value(ConnectAgent(b.t.Context(), cfg))(b.t)
	b.t.Cleanup(func() { a.Close() })
	return a
}

// refused expects that an agent is refused, with a hint.
func (b *testBus) refused(cfg AgentConfig, want error) *advice.Error {
	b.t.Helper()
	a, err := ConnectAgent(b.t.Context(), cfg)
	if err == nil {
		a.Close()
		b.t.Fatalf("the agent was let in, want %v", want)
	}
	e, ok := errors.AsType[*advice.Error](err)
	assert.Must(b.t, errors.Is(err, want) && ok && e.Hint != "", "%T %v, want %v with a hint", err, err, want)
	return e
}

// mail collects what is received.
type mail struct {
	t    *testing.T
	came chan letter
}

func (b *testBus) operatorMail() *mail {
	m := &mail{b.t, make(chan letter, 1<<16)}
	b.operator.Receive(func(agent string, message []byte, at time.Time) { m.came <- letter{agent, message, at} })
	return m
}

func agentMail(t *testing.T, a *Agent) *mail {
	m := &mail{t, make(chan letter, 1<<16)}
	a.Receive(func(message []byte, at time.Time) { m.came <- letter{"", message, at} })
	return m
}

func (m *mail) next() letter {
	m.t.Helper()
	select {
	case l := <-m.came:
		return l
	case <-time.After(longEnough):
		m.t.Fatal("no message came")
		return letter{}
	}
}

// want expects a message.
func (m *mail) want(agent, text string) {
	m.t.Helper()
	if l := m.next(); l.agent != agent || string(l.data) != text {
		m.t.Fatalf("got %.40q of %q, want %.40q of %q", l.data, l.agent, text, agent)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	assert.OK(t, err)
}

func TestMessages(t *testing.T) {
	t.Parallel()
	b := start(t)
	o := b.operatorMail()
	one, two := b.agent("one"), b.agent("two")
	m1, m2 := agentMail(t, one), agentMail(t, two)
	before := time.Now()
	must(t, b.operator.Send("one", []byte("to one")))
	must(t, b.operator.Send("two", []byte("to two")))
	l := m1.next()
	assert.Equal(t, string(l.data), "to one", "%q for one", l.data)
	if after := time.Now(); l.at.Before(before) || l.at.After(after) || !strings.Contains(l.at.String(), " m=") {
		t.Errorf("it arrived at %v, want between %v and %v with a monotonic reading", l.at, before, after)
	}
	m2.want("", "to two")
	must(t, one.Send([]byte("from one")))
	o.want("one", "from one")
	must(t, two.Send(nil))
	o.want("two", "")
	if err := b.operator.Send("a.b", nil); !errors.Is(err, ErrName) {
		t.Errorf("a name with a dot: %v", err)
	}
	all, err := b.operator.Agents(t.Context())
	must(t, err)
	for i := range all {
		assert.True(t, all[i].Key != "" && !all[i].Since.IsZero() && all[i].Address != "", "%+v has no key, time or address", all[i])
		all[i] = Registered{Name: all[i].Name, Connected: all[i].Connected}
	}
	assert.Same(t, []Registered{{Name: "one", Connected: true}, {Name: "two", Connected: true}}, all, "agents")
	must(t, two.Close())
	testkit.Until(t, "two is disconnected", func() bool {
		all, err := b.operator.Agents(t.Context())
		return err == nil && len(all) == 2 && !all[1].Connected
	})
	err = two.Send(nil)
	assert.True(t, errors.Is(err, ErrClosed), "send after close: %v", err)
}

// What the operator sends after ConnectAgent and before Receive is not lost, and what an agent sends just before it closes.
func TestEarlyAndLate(t *testing.T) {
	t.Parallel()
	b := start(t)
	o := b.operatorMail()
	a := b.agent("a")
	for i := range 100 {
		must(t, b.operator.Send("a", fmt.Append(nil, i)))
	}
	m := agentMail(t, a)
	for i := range 100 {
		m.want("", fmt.Sprint(i))
	}
	for i := range 100 {
		must(t, a.Send(fmt.Append(nil, i)))
	}
	must(t, a.Close())
	for i := range 100 {
		o.want("a", fmt.Sprint(i))
	}
}

// The time of arrival is not when a slow function gets the message.
func TestArrivalOfWaiting(t *testing.T) {
	t.Parallel()
	b := start(t)
	a := b.agent("a")
	came, next := make(chan time.Time), make(chan bool)
	a.Receive(func(_ []byte, at time.Time) { came <- at; <-next })
	must(t, b.operator.Send("a", nil))
	<-came
	must(t, b.operator.Send("a", nil)) // waits for the function
	waiting := func(n int) func() bool {
		return func() bool {
			a.link.in.mu.Lock()
			defer a.link.in.mu.Unlock()
			return len(a.link.in.letters) == n
		}
	}
	testkit.Until(t, "the second message is there", waiting(1))
	there := time.Now()
	must(t, b.operator.Send("a", nil)) // time passes, and bytes come
	testkit.Until(t, "the third message is there", waiting(2))
	next <- true
	if at := <-came; at.After(there) {
		t.Errorf("the message came at %v, %v after it was there", at, at.Sub(there))
	}
	next <- true
	<-came
	next <- true
}

func TestManyInOrder(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	b := start(t)
	o := b.operatorMail()
	const each = 500 // more in all than any queue of a fixed length has
	var agents []*Agent
	for i := range MaxAgents {
		agents = append(agents, b.agent(fmt.Sprintf("a%d", i)))
	}
	e := b.refused(AgentConfig{Join: b.join("more"), Dir: t.TempDir()}, ErrFull)
	assert.True(t, strings.Contains(e.Error(), "64 agents are connected"), "%v does not say how many", e)
	var all sync.WaitGroup
	for _, a := range agents {
		all.Go(func() {
			for i := range each {
				err := a.Send(fmt.Append(nil, i))
				assert.True(t, err == nil, "%v", err)
			}
		})
	}
	next := map[string]int{}
	for range MaxAgents * each {
		l := o.next()
		got, want := string(l.data), fmt.Sprint(next[l.agent])
		assert.Must(t, got == want, "agent %s: got %s, want %s", l.agent, got, want)
		next[l.agent]++
	}
	all.Wait()
	var mails []*mail
	for _, a := range agents {
		mails = append(mails, agentMail(t, a))
	}
	for i := range each {
		for _, a := range agents {
			must(t, b.operator.Send(a.Name(), fmt.Append(nil, i)))
		}
	}
	for _, m := range mails {
		for i := range each {
			m.want("", fmt.Sprint(i))
		}
	}
	// All come back at once, from one address.
	must(t, b.Close())
	b.serve()
	testkit.Until(t, "all are back", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.sessions) == MaxAgents && b.operator.Connected()
	})
	for i, a := range agents {
		testkit.Until(t, "it knows", a.Connected)
		must(t, a.Send(nil))
		l := o.next()
		assert.Must(t, l.agent == a.Name(), "agent %d is %s, want %s", i, l.agent, a.Name())
	}
}

// The server ends and starts again on its port: everybody is back, and agents stay registered.
func TestRestart(t *testing.T) {
	t.Parallel()
	b := start(t)
	o := b.operatorMail()
	a := b.agent("a")
	m := agentMail(t, a)
	later := b.join("later")
	must(t, b.Close())
	testkit.Until(t, "both know", func() bool { return !a.Connected() && !b.operator.Connected() })
	err := a.Send(nil)
	assert.True(t, errors.Is(err, ErrDown), "send while the server is down: %v", err)
	err = b.operator.Send("a", nil)
	assert.True(t, errors.Is(err, ErrDown), "send of the operator while the server is down: %v", err)
	b.refused(AgentConfig{Join: later, Dir: t.TempDir()}, syscall.ECONNREFUSED)
	b.serve()
	testkit.Until(t, "both are back", func() bool { return a.Connected() && b.operator.Connected() })
	must(t, a.Send([]byte("again")))
	o.want("a", "again")
	must(t, b.operator.Send("a", []byte("and back")))
	m.want("", "and back")
	b.connect(AgentConfig{Join: later, Dir: t.TempDir()})
	assert.OK(t, a.Err(), "the agent gave up")
}

// An agent comes back without its join file, with the key in its folder.
func TestWithoutJoinFile(t *testing.T) {
	t.Parallel()
	b := start(t)
	join, dir := b.join("a"), t.TempDir()
	must(t, b.connect(AgentConfig{Join: join, Dir: dir}).Close())
	for _, path := range []string{"", join} {
		os.Remove(join)
		testkit.Until(t, "the first is gone", func() bool { return !strings.Contains(b.connected(), "a") })
		a := b.connect(AgentConfig{Join: path, Dir: dir})
		assert.Equal(t, a.Name(), "a", "the name")
		must(t, a.Close())
	}
	b.refused(AgentConfig{Dir: t.TempDir()}, ErrNotJoined)
	b.refused(AgentConfig{Join: join, Dir: t.TempDir()}, os.ErrNotExist)
	info, err := os.Stat(filepath.Join(dir, AgentFile))
	must(t, err)
	assert.True(t, info.Mode().Perm()&0o077 == 0, "others may read the key: %v", info.Mode())
}

// connected lists the names of agents that are connected.
func (b *testBus) connected() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var names []string
	for _, one := range b.sessions {
		names = append(names, one.agent.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestSeal(t *testing.T) {
	t.Parallel()
	b := start(t)
	one, two := b.agent("one"), b.agent("two")
	secret := []byte("a password")
	sealed, err := b.operator.Seal("one", secret)
	must(t, err)
	assert.True(t, !strings.Contains(string(sealed), "password"), "the secret is readable")
	got, err := one.Open(sealed)
	assert.True(t, err == nil && string(got) == string(secret), "got %q, %v", got, err)
	got, err = two.Open(sealed)
	assert.True(t, err != nil, "another agent opened it: %q", got)
	// Sealed with another key, for the right agent.
	forged, err := two.keys.sealFor(secret, one.keys.publicSeal)
	must(t, err)
	got, err = one.Open(forged)
	assert.True(t, err != nil, "the agent opened what another one sealed: %q", got)
	for n := range sealed {
		_, err := one.Open(sealed[:n])
		assert.True(t, err != nil, "opened when cut at %d", n)
	}
	_, err = b.operator.Seal("three", secret)
	assert.True(t, errors.Is(err, ErrNoAgent), "for an agent that is not there: %v", err)
}

// A caller that has lost its patience gets its own error, and soon.
func TestContext(t *testing.T) {
	t.Parallel()
	b := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := ConnectOperator(ctx, filepath.Join(b.cfg.Dir, OperatorFile))
	assert.True(t, err != nil, "connected")
	_, err = ConnectAgent(ctx, AgentConfig{Join: b.join(""), Dir: t.TempDir()})
	assert.True(t, err != nil, "connected")
	_, err = b.operator.Agents(ctx)
	assert.True(t, err != nil, "got an answer")
}
