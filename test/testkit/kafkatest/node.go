package kafkatest

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// A Node is one broker, which is also a controller.
type Node struct {
	cluster *Cluster
	id      int
	dir     string // settings and data
	port    int    // of the listener for clients

	mtlsPort, controllerPort int

	process *process // nil before the first start
	down    bool     // ended on request
}

// ID returns the node's id, from 1.
func (n *Node) ID() int { return n.id }

// Addr returns the address of the node's listener for clients, host:port.
func (n *Node) Addr() string {
	return fmt.Sprintf("%s:%d", cmp.Or(n.cluster.cfg.Address, "127.0.0.1"), n.port)
}

// MTLSAddr returns the address of a secure node's listener that requires a client
// certificate and no password.
func (n *Node) MTLSAddr() string { return fmt.Sprintf("127.0.0.1:%d", n.mtlsPort) }

// DataDir returns the directory with the node's partitions.
func (n *Node) DataDir() string { return filepath.Join(n.dir, "data") }

// PID returns the process id of the node's JVM.
func (n *Node) PID() int { return n.process.cmd.Process.Pid }

func (n *Node) logFile() string { return n.dir + ".log" }

// settings writes the node's properties and returns the file's name.
func (n *Node) settings() (string, error) {
	c := n.cluster
	voters := make([]string, len(c.nodes))
	for i, o := range c.nodes {
		voters[i] = fmt.Sprintf("%d@127.0.0.1:%d", o.id, o.controllerPort)
	}
	replicas, inSync := "1", "1"
	if len(c.nodes) >= 3 {
		replicas, inSync = "3", "2"
	}
	p := map[string]string{
		"process.roles":                            "broker,controller",
		"node.id":                                  fmt.Sprint(n.id),
		"controller.quorum.voters":                 strings.Join(voters, ","),
		"controller.listener.names":                "CONTROLLER",
		"listeners":                                fmt.Sprintf("PLAINTEXT://%s,CONTROLLER://127.0.0.1:%d", n.Addr(), n.controllerPort),
		"listener.security.protocol.map":           "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"inter.broker.listener.name":               "PLAINTEXT",
		"log.dirs":                                 n.DataDir(),
		"num.partitions":                           "1",
		"auto.create.topics.enable":                "true",
		"default.replication.factor":               replicas,
		"min.insync.replicas":                      inSync,
		"offsets.topic.replication.factor":         replicas,
		"offsets.topic.num.partitions":             "4",
		"transaction.state.log.replication.factor": replicas,
		"transaction.state.log.min.isr":            inSync,
		"transaction.state.log.num.partitions":     "4",
		// For share groups (KIP-932).
		"share.coordinator.state.topic.replication.factor": replicas,
		"share.coordinator.state.topic.min.isr":            inSync,
		"share.coordinator.state.topic.num.partitions":     "4",
		"group.initial.rebalance.delay.ms":                 "0",
		// A dead node is detected after 4 s instead of 9 s.
		"broker.session.timeout.ms":    "4000",
		"broker.heartbeat.interval.ms": "500",
		// A test that produces too much must not fill the disk.
		"log.segment.bytes":               "268435456",
		"log.retention.bytes":             "4294967296",
		"log.retention.check.interval.ms": "5000",
		"log.segment.delete.delay.ms":     "1000",
	}
	if c.pki != nil {
		maps.Copy(p, c.pki.brokerProperties(n))
	}
	maps.Copy(p, c.cfg.Properties)
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&b, "%s=%s\n", k, p[k])
	}
	name := filepath.Join(n.dir, "server.properties")
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return "", err
	}
	return name, os.WriteFile(name, []byte(b.String()), 0o600)
}

// format prepares the data directory for the cluster.
func (n *Node) format() error {
	file, err := n.settings()
	if err != nil {
		return fmt.Errorf("kafkatest: write the settings of node %d: %w", n.id, err)
	}
	f, users := &plainFormat, []string(nil)
	if n.cluster.pki != nil {
		f, users = &secureFormat, scramUsers()
	}
	f.once.Do(func() { f.err = f.make(n.cluster.jars, file, users...) })
	if err = f.err; err == nil {
		err = f.write(n)
	}
	if err != nil {
		return fmt.Errorf("kafkatest: format the storage of node %d: %w", n.id, err)
	}
	return nil
}

// command is the command line of the node.
func (n *Node) command() []string {
	return append([]string{"java"}, javaArgs(append([]string{"-Dorg.apache.logging.log4j.level=INFO"}, n.cluster.jvm...),
		n.cluster.jars, n.cluster.cfg.Heap, "kafka.Kafka", filepath.Join(n.dir, "server.properties"))...)
}

// Command returns the command line of the node in quotes, for a program that starts it after Stop.
func (n *Node) Command() string { return "'" + strings.Join(n.command(), "' '") + "'" }

func (n *Node) launch() (err error) {
	args := n.command()
	n.process, err = launch(n.logFile(), args[0], args[1:]...)
	n.down = false
	if err != nil {
		return fmt.Errorf("kafkatest: start node %d: %w", n.id, err)
	}
	return nil
}

// Kill ends the node at once, without a shutdown (kill -9).
func (n *Node) Kill() {
	n.down = true
	n.process.kill()
}

// Ended reports whether the node is not running, also if others ended it.
func (n *Node) Ended() bool { return n.process.ended() }

// Stop shuts the node down in order.
func (n *Node) Stop(t testing.TB) {
	t.Helper()
	n.down = true
	assert.OK(t, n.process.stop(time.Minute))
}

// Start starts the node again after Kill or Stop, with the data on its disk, and
// waits until all nodes that should be up are up.
func (n *Node) Start(t testing.TB) {
	t.Helper()
	n.StartOnly(t)
	assert.OK(t, n.cluster.await())
}

// StartOnly is Start without the waiting.
func (n *Node) StartOnly(t testing.TB) {
	t.Helper()
	assert.Must(t, n.process.ended(), "kafkatest: node %d runs already", n.id)
	assert.OK(t, n.launch())
}

// Freeze stops the node without ending it (SIGSTOP): its connections stay open but
// it does not answer.
func (n *Node) Freeze(t testing.TB) {
	t.Helper()
	assert.OK(t, freeze(n.process.cmd.Process), "kafkatest: freeze node %d", n.id)
}

// Thaw continues a frozen node (SIGCONT).
func (n *Node) Thaw(t testing.TB) {
	t.Helper()
	assert.OK(t, thaw(n.process.cmd.Process), "kafkatest: thaw node %d", n.id)
}

// FreezeFor freezes the node for about d, and returns for how long at least and at
// most. The two differ if the caller itself lost its processor at the wrong moment.
func (n *Node) FreezeFor(t testing.TB, d time.Duration) (least, most time.Duration) {
	t.Helper()
	before := time.Now()
	n.Freeze(t)
	frozen := time.Now()
	<-time.After(d)
	thawing := time.Now()
	n.Thaw(t)
	return thawing.Sub(frozen), time.Since(before)
}

// WipeRecords removes every record from a stopped node's disk, as the loss of a data
// disk would, but keeps the cluster's metadata: after the next start, the topics
// still exist and are empty.
func (n *Node) WipeRecords(t testing.TB) {
	t.Helper()
	assert.Must(t, n.process.ended(), "kafkatest: node %d runs: stop it before wiping it", n.id)
	entries, err := os.ReadDir(n.DataDir())
	assert.OK(t, err, "kafkatest: wipe node %d", n.id)
	for _, e := range entries {
		switch e.Name() {
		case "__cluster_metadata-0", "meta.properties", "bootstrap.checkpoint":
			continue
		}
		assert.OK(t, os.RemoveAll(filepath.Join(n.DataDir(), e.Name())), "kafkatest: wipe node %d", n.id)
	}
}

// Wipe removes everything from a stopped node's disk and formats it again. A single
// node loses its topics by this.
func (n *Node) Wipe(t testing.TB) {
	t.Helper()
	assert.Must(t, n.process.ended(), "kafkatest: node %d runs: stop it before wiping it", n.id)
	assert.OK(t, os.RemoveAll(n.DataDir()), "kafkatest: wipe node %d", n.id)
	assert.OK(t, n.format())
}
