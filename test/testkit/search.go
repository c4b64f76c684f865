package testkit

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// A SearchNode is a running OpenSearch. Its methods may be called from several
// goroutines.
type SearchNode struct {
	// URL is its address, such as "http://127.0.0.1:9201".
	URL string

	release *release
	dir     string
	cmd     *exec.Cmd
	done    chan struct{}
	proxy   *httptest.Server // nil: none
}

var (
	sharedMu  sync.Mutex
	sharedOne *SearchNode
	shared    = sync.OnceValues(func() (*SearchNode, error) {
		r, err := chosen()
		if err != nil {
			return nil, err
		}
		n, err := startSearch(r)
		if err == nil {
			sharedMu.Lock()
			sharedOne = n
			sharedMu.Unlock()
		}
		return n, err
	})
)

// SharedSearch returns a node that all tests of the binary share. Each uses its own indices
// and leaves the node running and intact.
func SharedSearch(t testing.TB) *SearchNode {
	t.Helper()
	OnlyConformance(t, "a real OpenSearch")
	n, err := shared()
	assert.OK(t, err)
	return n
}

// StartSearch starts a node of another release, given by the beginning of its name, for one
// test.
func StartSearch(t testing.TB, name string) *SearchNode {
	t.Helper()
	OnlyConformance(t, "a real OpenSearch or Elasticsearch")
	r, err := releaseOf(name)
	assert.OK(t, err)
	n, err := startSearch(r)
	assert.OK(t, err)
	t.Cleanup(n.close)
	return n
}

// SearchMain runs the tests, then ends the shared node and removes its data. A test
// binary that shares a node calls it from its TestMain.
func SearchMain(m *testing.M) int {
	code := m.Run()
	EndSharedSearch()
	return code
}

// EndSharedSearch ends the shared node, for a TestMain that does not call Main.
func EndSharedSearch() {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if sharedOne != nil {
		sharedOne.close()
		sharedOne = nil
	}
}

var indices atomic.Int64

// SearchIndex returns a name for an index that no other test of the process uses, beginning
// with the prefix.
func SearchIndex(t testing.TB, prefix string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(t.Name()))
	return fmt.Sprintf("%s-%.100s-%d", prefix, name, indices.Add(1))
}

// Add creates an index with this number of documents, or adds them, and makes them
// visible.
func (n *SearchNode) Add(t testing.TB, index string, documents int) {
	t.Helper()
	const piece = 5000
	for documents > 0 {
		k := min(documents, piece)
		documents -= k
		var b bytes.Buffer
		for range k {
			b.WriteString(`{"create":{}}` + "\n" + `{"@timestamp":"2026-11-21T00:00:00Z","service":{"name":"test"}}` + "\n")
		}
		res, err := http.Post(n.URL+"/"+index+"/_bulk?refresh=true", "application/x-ndjson", &b)
		assert.OK(t, err)
		res.Body.Close()
		assert.Must(t, res.StatusCode == http.StatusOK, "testkit: index into %s: %s", index, res.Status)
	}
}

// searchReadyTimeout bounds a start. It takes 5 s on two idle cores, but may share them with
// other tests.
const searchReadyTimeout = 4 * time.Minute

// searchSettings replace those that the runner would write: without discovery of other
// nodes, and without a limit for a full disk.
const searchSettings = `discovery.type: single-node
network.host: 127.0.0.1
cluster.routing.allocation.disk.threshold_enabled: false
`

// searchClient waits for an answer a bit longer than the node is asked to, so that a request
// to a node that accepts a connection and never answers is repeated.
var searchClient = &http.Client{Timeout: 40 * time.Second}

var searchPublished = regexp.MustCompile(`HttpServerTransport\s*\] publish_address \{([0-9.]+:\d+)\}`)

// errPort: the runner chooses a free port first and binds it later.
var errPort = errors.New("another process took its port")

// startSearch starts a node. It tries again if another process took the port in between.
func startSearch(r *release) (*SearchNode, error) {
	for try := 1; ; try++ {
		if n, err := startSearchOnce(r); try == 5 || !errors.Is(err, errPort) {
			return n, err
		}
	}
}

func startSearchOnce(r *release) (*SearchNode, error) {
	java, err := java(r.java)
	if err != nil {
		return nil, err
	}
	dir, err := r.fetch()
	if err != nil {
		return nil, err
	}
	n := &SearchNode{release: r, done: make(chan struct{})}
	if n.dir, err = os.MkdirTemp("", "testkit-search-*"); err != nil {
		return nil, fmt.Errorf("testkit: make a directory: %w", err)
	}
	if r.runner == "" {
		n.cmd, err = n.command(java, dir)
	} else {
		n.cmd, err = n.runnerCommand(java, dir)
	}
	if err != nil {
		os.RemoveAll(n.dir)
		return nil, fmt.Errorf("testkit: prepare %s: %w", r.name, err)
	}
	log, err := os.Create(filepath.Join(n.dir, "log"))
	if err != nil {
		return nil, fmt.Errorf("testkit: make the log: %w", err)
	}
	defer log.Close()
	n.cmd.Stdout, n.cmd.Stderr = log, log
	if err := Launch(n.cmd); err != nil {
		return nil, fmt.Errorf("testkit: start Java: %w", err)
	}
	go func() {
		_ = n.cmd.Wait() // the log says how it ended
		close(n.done)
	}()
	if err := n.await(log.Name()); err != nil {
		text, _ := os.ReadFile(log.Name())
		n.close()
		if inUse(text) {
			err = errPort
		}
		return nil, fmt.Errorf("testkit: start %s: %w\n%s", r.name, err, text[max(0, len(text)-4000):])
	}
	return n, nil
}

// runnerCommand prepares the process of a node that a runner starts in n.dir.
func (n *SearchNode) runnerCommand(java, jars string) (*exec.Cmd, error) {
	config := filepath.Join(n.dir, "node_1", "config")
	if err := os.MkdirAll(config, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(config, n.release.config), []byte(searchSettings), 0o644); err != nil {
		return nil, err
	}
	// The runner looks for a free port from the base port up to 9299. The cluster's
	// name is different from those of other processes, so that the nodes stay apart.
	return exec.Command(java, "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(jars, "*"),
		n.release.runner, "-basePath", n.dir, "-numOfNode", "1",
		"-clusterName", fmt.Sprintf("testkit-%d-%d", os.Getpid(), clusters.Add(1)), "-baseHttpPort", fmt.Sprint(9200+rand.IntN(80))), nil
}

// clusters is the number of clusters that this process has started.
var clusters atomic.Int64

// await waits until the node answers.
func (n *SearchNode) await(log string) error {
	deadline := time.NewTimer(searchReadyTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-n.done:
			return errors.New("it ended")
		case <-deadline.C:
			return fmt.Errorf("it was not ready within %v", searchReadyTimeout)
		case <-tick.C:
		}
		text, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		if inUse(text) {
			return errPort
		}
		if n.release.runner != "" {
			m := searchPublished.FindSubmatch(text)
			if m == nil {
				continue
			}
			n.URL = "http://" + string(m[1])
		}
		res, err := searchClient.Get(n.URL + "/_cluster/health?wait_for_status=yellow&timeout=30s")
		if err != nil {
			continue
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			continue
		}
		if n.release.runner == "" {
			return n.startProxy()
		}
		return nil
	}
}

func inUse(log []byte) bool { return bytes.Contains(log, []byte("Address already in use")) }

func (n *SearchNode) close() {
	if n.proxy != nil {
		n.proxy.Close()
	}
	if n.cmd != nil && n.cmd.Process != nil {
		_ = n.cmd.Process.Kill() // it may have ended
		<-n.done
	}
	os.RemoveAll(n.dir)
}
