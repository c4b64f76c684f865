package kafkatest

import (
	"sync"
	"testing"
)

// Clusters shared by the tests of one binary: started at first use, ended by
// Main. sharedMu guards the list.
var (
	sharedMu     sync.Mutex
	sharedOnes   []*Cluster
	sharedPlain  = sync.OnceValues(func() (*Cluster, error) { return startShared(Config{}) })
	sharedSecure = sync.OnceValues(func() (*Cluster, error) { return startShared(Config{Secure: true}) })
	sharedThree  = sync.OnceValues(func() (*Cluster, error) { return startShared(Config{Nodes: 3}) })
)

func startShared(cfg Config) (*Cluster, error) {
	c, err := start(cfg)
	if err == nil {
		sharedMu.Lock()
		sharedOnes = append(sharedOnes, c)
		sharedMu.Unlock()
	}
	return c, err
}

// Shared returns a plaintext node which all tests of the binary share. Tests
// use topics of their own and leave the node running and unhurt.
func Shared(t testing.TB) *Cluster { return mustShare(t, sharedPlain) }

// SharedSecure is Shared with a secure node, see [Config].
func SharedSecure(t testing.TB) *Cluster { return mustShare(t, sharedSecure) }

// SharedThree is Shared with three plaintext nodes.
func SharedThree(t testing.TB) *Cluster { return mustShare(t, sharedThree) }

func mustShare(t testing.TB, get func() (*Cluster, error)) *Cluster {
	t.Helper()
	c, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Main runs the tests, then ends the shared clusters and removes their data.
// A test binary that shares clusters calls it from its TestMain.
func Main(m *testing.M) int {
	code := m.Run()
	EndShared()
	return code
}

// EndShared ends the shared clusters; for a TestMain that has more to do.
func EndShared() {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	for _, c := range sharedOnes {
		c.close(false)
	}
	sharedOnes = nil
}
