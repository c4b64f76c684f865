//go:build conformance

package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// A lan is machines of one network: network namespaces, each with an address of its own, on a bridge of this one.
type lan struct {
	t    *testing.T
	name string
	net  string // the first three numbers of its addresses
	next int
}

// newLAN makes a network. It skips the test where this is not allowed.
func newLAN(t *testing.T) *lan {
	t.Helper()
	id := os.Getpid() % 1000
	l := &lan{t: t, name: fmt.Sprintf("crn%d", id), net: fmt.Sprintf("10.%d.%d", 200+id/250, id%250), next: 2}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("the command ip is not installed (package iproute2): no networks can be made")
	}
	if out, err := exec.Command("ip", "link", "add", l.name, "type", "bridge").CombinedOutput(); err != nil {
		t.Skipf("networks cannot be made here: %v: %s", err, out)
	}
	t.Cleanup(func() { l.ip("link", "del", l.name) })
	l.ip("addr", "add", l.address(1)+"/24", "dev", l.name)
	l.ip("link", "set", l.name, "up")
	return l
}

func (l *lan) address(n int) string { return fmt.Sprintf("%s.%d", l.net, n) }

func (l *lan) ip(args ...string) {
	l.t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	assert.True(l.t, err == nil, "ip %s: %v: %s", strings.Join(args, " "), err, out)
}

// A machine is a network namespace with an address.
type machine struct {
	lan           *lan
	name, address string
}

// machine adds a machine. Its packets are late, and some are lost, where the kernel can do that.
func (l *lan) machine() *machine {
	l.t.Helper()
	m := &machine{lan: l, name: fmt.Sprintf("%s-%d", l.name, l.next), address: l.address(l.next)}
	link := fmt.Sprintf("%sv%d", l.name, l.next)
	l.next++
	l.ip("netns", "add", m.name)
	l.t.Cleanup(func() { l.ip("netns", "del", m.name) })
	l.ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", m.name)
	l.ip("link", "set", link, "master", l.name, "up")
	for _, args := range [][]string{{"addr", "add", m.address + "/24", "dev", "eth0"}, {"link", "set", "lo", "up"}, {"link", "set", "eth0", "up"}} {
		l.ip(append([]string{"-n", m.name}, args...)...)
	}
	if out, err := exec.Command("ip", "netns", "exec", m.name, "tc", "qdisc", "add", "dev", "eth0", "root", "netem", "delay", "1ms", "200us", "loss", "0.1%").CombinedOutput(); err != nil {
		l.t.Logf("%s has no delay and no loss: the kernel has no netem: %s", m.name, strings.TrimSpace(string(out)))
	}
	return m
}

func (m *machine) start(home string, args ...string) *session {
	m.lan.t.Helper()
	s := prepare(m.lan.t, args...)
	s.cmd = exec.Command("ip", append([]string{"netns", "exec", m.name, program}, args...)...)
	s.cmd.Stdout = &s.stdout
	s.home = home
	s.begin()
	return s
}

// A generator is an agent on a machine of its own.
type generator struct {
	*machine
	home, name string
	agent      *session
}

// join starts the agent again, as its machine does after a failure.
func (g *generator) join(more ...string) {
	g.lan.t.Helper()
	g.agent = g.start(g.home, append([]string{"agent", "--name", g.name, "--allow-target", g.lan.net + ".*:*"}, more...)...)
	g.agent.awaitStdout(1, "is connected")
}

// TestFleetVerified has three agents and an operator on machines of their own: two produce into
// Kafka, one reads and verifies. An agent is killed, stopped for three seconds and for eight; in
// the end the operator and the server are killed, and the run is recovered.
func TestFleetVerified(t *testing.T) {
	testkit.OnlyConformance(t, "takes two minutes, and makes networks: The tests of internal/cli have a fleet on one machine")
	l := newLAN(t)
	cluster := kafkatest.Start(t, kafkatest.Config{Address: l.address(1)})
	operator, home := l.machine(), t.TempDir()
	listen := operator.address + ":8236"
	server := operator.start(home, "fleet", "start", "--listen", listen)
	server.awaitStdout(1, "listening on")
	agents := map[string]*generator{}
	for _, name := range []string{"a", "b", "c"} {
		g := &generator{machine: l.machine(), name: name, home: t.TempDir()}
		file := filepath.Join(g.home, "join")
		operator.start(home, "fleet", "token", "--name", name, "-o", file).wait(runTimeout).want(t, 0)
		g.join("--join", file)
		agents[name] = g
	}
	fire := func(topic string, more ...string) *session {
		args := []string{"run", "kafka://" + cluster.Bootstrap() + "/" + topic, "--rate", "2k/s", "--verify", "--fleet", "--fleet-reader", "c", "--json"}
		return operator.start(home, append(args, more...)...)
	}
	// checked is what every report must have: nothing is lost, and the topic has what was acked.
	checked := func(e ended, topic string) *document {
		t.Helper()
		d := e.document(t)
		if v := d.Ledger; v == nil || v.Lost+v.Duplicated+v.Reordered+v.Corrupted+v.Foreign > 0 || v.Acked != d.Totals.Acked {
			t.Errorf("%d acked, ledger %+v\n%s", d.Totals.Acked, v, e.stderr)
		}
		n := cluster.EndSum(t, topic)
		assert.True(t, n >= int64(d.Totals.Acked), "%d acked, and the topic has %d", d.Totals.Acked, n)
		return d
	}
	doubts := func(d *document, text string) {
		t.Helper()
		assert.True(t, !*d.Trust.OK && strings.Contains(strings.Join(d.Trust.Reasons, "\n"), text),
			"the reasons not to trust are %q, want %q", d.Trust.Reasons, text)
	}

	t.Log("a whole run, verified")
	topic := cluster.CreateTopic(t, 4, 1)
	d := checked(fire(topic, "--op", "roundtrip", "--for", "10s").wait(runTimeout).succeeded(t), topic)
	assert.True(t, d.Totals.Acked == 20_000 && d.Ledger.Read == 20_000 && d.Totals.Consumed == 20_000 && d.EndToEnd != nil,
		"totals %+v, ledger %+v, end to end %v", d.Totals, d.Ledger, d.EndToEnd)

	t.Log("an agent is stopped for three seconds")
	topic = cluster.CreateTopic(t, 4, 1)
	s := fire(topic, "--for", "10s")
	s.awaitStderr("measurement  1 s")
	agents["a"].agent.signal(syscall.SIGSTOP)
	s.awaitStderr("agent a: nothing was heard")
	agents["a"].agent.signal(syscall.SIGCONT)
	s.awaitStderr("agent a is back")
	d = checked(s.wait(runTimeout).wantOneOf(t, 0, 3), topic)
	assert.True(t, d.Totals.Acked == 20_000 && d.Ledger.Read == 20_000, "totals %+v, ledger %+v", d.Totals, d.Ledger)

	t.Log("an agent is stopped until it is lost")
	topic = cluster.CreateTopic(t, 4, 1)
	s = fire(topic, "--for", "40s")
	s.awaitStderr("measurement  1 s")
	agents["a"].agent.signal(syscall.SIGSTOP)
	s.awaitStderr("agent a is lost")
	agents["a"].agent.signal(syscall.SIGCONT)
	agents["a"].agent.awaitStderr("heard nothing of the operator")
	doubts(checked(s.wait(runTimeout).want(t, 3), topic), "agent a: no message came from it")

	t.Log("an agent is killed, and the others go on")
	topic = cluster.CreateTopic(t, 4, 1)
	s = fire(topic, "--for", "15s", "--keep-going")
	s.awaitStderr("measurement  2 s")
	agents["b"].agent.signal(syscall.SIGKILL)
	s.awaitStderr("agent b is lost")
	d = checked(s.wait(runTimeout).want(t, 3), topic)
	doubts(d, "agent b: no message came from it")
	assert.True(t, d.Totals.Offered == 30_000 && d.Totals.Acked >= 15_000 && d.Totals.Unsent >= 5000, "totals %+v", d.Totals)
	agents["b"].join()

	t.Log("the operator and the server are killed, and the run is recovered")
	topic = cluster.CreateTopic(t, 4, 1)
	s = fire(topic, "--for", "60s")
	s.awaitStderr("measurement  3 s")
	s.signal(syscall.SIGKILL)
	server.signal(syscall.SIGKILL)
	operator.start(home, "fleet", "start", "--listen", listen).awaitStdout(1, "listening on")
	ready := func(status string) bool { // agents connect again, and are free once they have ended
		text := strings.Join(strings.Fields(status), " ")
		return strings.Contains(text, "a ready ") && strings.Contains(text, "b ready ") && strings.Contains(text, "c ready ")
	}
	for end := time.Now().Add(time.Minute); !ready(operator.start(home, "fleet", "status").wait(runTimeout).stdout); {
		assert.Must(t, !time.Now().After(end), "the agents did not come back in a minute")
		pause(t, 200*time.Millisecond)
	}
	d = checked(operator.start(home, "fleet", "recover", "last", "--fleet-reader", "c", "--json").wait(runTimeout).want(t, 3), topic)
	doubts(d, "recovered from the agents")
	assert.True(t, d.Totals.Acked >= 6000 && d.Totals.Acked <= 40_000, "totals %+v", d.Totals)
}
