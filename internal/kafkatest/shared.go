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
	sharedPlain  = shared{cfg: Config{}}
	sharedSecure = shared{cfg: Config{Secure: true}}
	sharedThree  = shared{cfg: Config{Nodes: 3}}
)

// A shared is a cluster that is started when it is first asked for.
type shared struct {
	cfg  Config
	once sync.Once
	c    *Cluster
	err  error
}

func (s *shared) get(t testing.TB) (*Cluster, error) {
	s.once.Do(func() {
		if s.c, s.err = start(s.cfg.of(t)); s.err == nil {
			sharedMu.Lock()
			sharedOnes = append(sharedOnes, s.c)
			sharedMu.Unlock()
		}
	})
	return s.c, s.err
}

// Shared returns a plaintext node which all tests of the binary share. Tests
// use topics of their own and leave the node running and unhurt.
func Shared(t testing.TB) *Cluster { return mustShare(t, &sharedPlain) }

// SharedSecure is Shared with a secure node, see [Config].
func SharedSecure(t testing.TB) *Cluster { return mustShare(t, &sharedSecure) }

// SharedThree is Shared with three plaintext nodes.
func SharedThree(t testing.TB) *Cluster { return mustShare(t, &sharedThree) }

func mustShare(t testing.TB, s *shared) *Cluster {
	t.Helper()
	c, err := s.get(t)
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
