package kafkatest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// Config describes the cluster to start. The zero Config is one plaintext node.
type Config struct {
	Nodes      int               // 1 when zero; with three, topics get three replicas and need two in sync
	Secure     bool              // SASL_SSL (SCRAM, PLAIN, OAUTHBEARER) and mTLS listeners, and an authorizer that by default allows only Admin
	Heap       string            // of each node, as in -Xmx; 1g for one node, 512m for several when empty
	Address    string            // of this machine, at which clients find the nodes without security; 127.0.0.1 when empty
	Properties map[string]string // of the brokers; they override those set here

	measured bool // for a benchmark: JVM options as in production
}

// A Cluster is one or several running nodes, numbered from 1. Its methods are safe
// for concurrent use, except those that start and stop nodes.
type Cluster struct {
	cfg   Config
	jvm   []string // options of the nodes
	jars  string
	id    string
	dir   string
	nodes []*Node
	pki   *pki // nil without security

	mu    sync.Mutex
	admin *kadm.Client
}

// readyTimeout bounds a start. A start takes 5 s on two idle cores, and longer on
// busy ones.
const readyTimeout = 4 * time.Minute

// Start starts a cluster that ends with the test. If the test fails, the nodes'
// logs are kept and their location is logged.
func Start(t testing.TB, cfg Config) *Cluster {
	t.Helper()
	testkit.OnlyConformance(t, "a real Kafka")
	c, err := start(cfg.forTest(t))
	assert.OK(t, err)
	t.Cleanup(func() {
		c.close(t.Failed())
		if t.Failed() {
			t.Logf("the nodes' logs are kept: %s", filepath.Join(c.dir, "node-*.log"))
		}
	})
	return c
}

// forTest returns the configuration for a test or a benchmark.
func (cfg Config) forTest(t testing.TB) Config {
	_, cfg.measured = t.(*testing.B)
	return cfg
}

func start(cfg Config) (*Cluster, error) {
	if cfg.measured {
		return startWith(cfg, []string{"-XX:+UseG1GC"})
	}
	if _, err := jars(); err != nil {
		return nil, err
	}
	return startWith(cfg, quick())
}

// startWith starts a cluster whose nodes have these options of the JVM.
func startWith(cfg Config, jvm []string) (_ *Cluster, err error) {
	cfg.Nodes = cmp.Or(cfg.Nodes, 1)
	if cfg.Heap == "" {
		cfg.Heap = "1g"
		if cfg.Nodes > 1 {
			cfg.Heap = "512m"
		}
	}
	c := &Cluster{cfg: cfg, jvm: jvm}
	if c.jars, err = jars(); err != nil {
		return nil, err
	}
	if c.dir, err = os.MkdirTemp("", "carronade-kafka-"); err != nil {
		return nil, fmt.Errorf("kafkatest: make a directory for the nodes: %w", err)
	}
	defer func() {
		if err != nil {
			c.close(false)
		}
	}()
	c.id = newID()
	if cfg.Secure {
		if c.pki, err = newPKI(filepath.Join(c.dir, "pki")); err != nil {
			return nil, err
		}
	}
	for i := range cfg.Nodes {
		n := &Node{cluster: c, id: i + 1, dir: filepath.Join(c.dir, fmt.Sprintf("node-%d", i+1))}
		for _, port := range []*int{&n.port, &n.mtlsPort, &n.controllerPort} {
			if *port, err = freePort(); err != nil {
				return nil, err
			}
		}
		c.nodes = append(c.nodes, n)
	}
	for _, n := range c.nodes {
		if err = n.format(); err != nil {
			return nil, err
		}
	}
	for _, n := range c.nodes {
		if err = n.launch(); err != nil {
			return nil, err
		}
	}
	if err = c.await(); err != nil {
		return nil, err
	}
	return c, nil
}

// close kills all nodes at once: a node that stops in order waits for the others.
func (c *Cluster) close(keepLogs bool) {
	c.mu.Lock()
	if c.admin != nil {
		c.admin.Close()
		c.admin = nil
	}
	c.mu.Unlock()
	for _, n := range c.nodes {
		if n.process != nil {
			n.process.kill()
		}
	}
	if !keepLogs {
		os.RemoveAll(c.dir)
		return
	}
	for _, n := range c.nodes {
		os.RemoveAll(n.dir)
	}
}

// await waits until every node that should be up answers and knows all the others
// and a controller.
func (c *Cluster) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	up := 0
	for _, n := range c.nodes {
		if !n.down {
			up++
		}
	}
	for _, n := range c.nodes {
		if n.down {
			continue
		}
		if err := poll(ctx, 100*time.Millisecond, func() error { return n.ready(ctx, up) }); err != nil {
			return fmt.Errorf("kafkatest: wait for node %d: %w\n%s", n.id, err, tail(n.logFile(), 3000))
		}
	}
	return nil
}

// ready asks the node with a new client: an existing client would answer from its
// cache, or ask other nodes.
func (n *Node) ready(ctx context.Context, up int) error {
	if n.process.ended() {
		return permanentError{fmt.Errorf("it ended: %w", n.process.err)}
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(append(n.cluster.ClientOpts(), kgo.SeedBrokers(n.Addr()), kgo.RequestRetries(0))...)
	if err != nil {
		return permanentError{err}
	}
	defer cl.Close()
	m, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	if len(m.Brokers) < up || m.ControllerID < 0 {
		return fmt.Errorf("%d of %d nodes are up, the controller is %d", len(m.Brokers), up, m.ControllerID)
	}
	return nil
}

// Bootstrap returns the addresses of all nodes, host:port joined by commas: the
// SASL_SSL listener when the cluster is secure.
func (c *Cluster) Bootstrap() string {
	addrs := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addrs[i] = n.Addr()
	}
	return strings.Join(addrs, ",")
}

// Node returns a node by its id, from 1.
func (c *Cluster) Node(id int) *Node { return c.nodes[id-1] }

// client returns the administrator's client, which the first call makes.
func (c *Cluster) client() (*kadm.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.admin == nil {
		cl, err := kgo.NewClient(c.ClientOpts()...)
		if err != nil {
			return nil, fmt.Errorf("kafkatest: make a client: %w", err)
		}
		c.admin = kadm.NewClient(cl)
	}
	return c.admin, nil
}

// ClientOpts are a franz-go client's options for speaking to the cluster with
// all rights.
func (c *Cluster) ClientOpts() []kgo.Opt {
	opts := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(c.Bootstrap(), ",")...),
		kgo.DisableClientMetrics(),
		kgo.RetryTimeout(10 * time.Second),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}
	if c.pki != nil {
		opts = append(opts, c.pki.clientOpts()...)
	}
	return opts
}

// FreePort returns an unused port of 127.0.0.1 for a server that a test starts: see
// freePort.
func FreePort(t testing.TB) string {
	t.Helper()
	port, err := freePort()
	assert.OK(t, err)
	return strconv.Itoa(port)
}

var usedPorts sync.Map // returned already, perhaps without a listener yet

// freePort picks a port below the range of ephemeral ports, which the kernel uses
// for clients and listeners on port 0. So none of them uses it while its server is
// not up yet, or down.
func freePort() (int, error) {
	const low, high = 12000, 32000
	for range 200 {
		var b [4]byte
		rand.Read(b[:])
		port := low + int(binary.NativeEndian.Uint32(b[:])%(high-low))
		if _, taken := usedPorts.LoadOrStore(port, true); taken {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		l.Close()
		return port, nil
	}
	return 0, errors.New("kafkatest: found no free port on 127.0.0.1")
}

// A permanentError is an error after which poll does not try again.
type permanentError struct{ error }

// poll calls f until it succeeds, returns a permanentError or the context ends. The
// context's error is then joined with f's last.
func poll(ctx context.Context, every time.Duration, f func() error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		err := f()
		var permanent permanentError
		if err == nil || errors.As(err, &permanent) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-ticker.C:
		}
	}
}
