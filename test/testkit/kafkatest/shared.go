package kafkatest

import (
	"sync"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// Clusters that the tests of one binary share. The first use starts them, Main ends
// them. sharedMu guards the list.
var (
	sharedMu     sync.Mutex
	sharedList   []*Cluster
	sharedPlain  = shared{cfg: Config{}}
	sharedSecure = shared{cfg: Config{Secure: true}}
	sharedThree  = shared{cfg: Config{Nodes: 3}}
)

// A shared is a cluster that its first use starts.
type shared struct {
	cfg  Config
	once sync.Once
	c    *Cluster
	err  error
}

func (s *shared) get(t testing.TB) (*Cluster, error) {
	s.once.Do(func() {
		if s.c, s.err = start(s.cfg.forTest(t)); s.err == nil {
			sharedMu.Lock()
			sharedList = append(sharedList, s.c)
			sharedMu.Unlock()
		}
	})
	return s.c, s.err
}

// One returns a plaintext node that all tests of the binary share. Tests use their own topics,
// and leave the node running and undamaged. make test starts it in one package,
// test/acceptance; the tests of other packages call Shared.
func One(t testing.TB) *Cluster {
	t.Helper()
	testkit.Need(t, "a real Kafka")
	return mustShare(t, &sharedPlain)
}

// Shared is One for tests of make conformance.
func Shared(t testing.TB) *Cluster { return inConformance(t, &sharedPlain) }

// SharedSecure is Shared with a secure node, see [Config].
func SharedSecure(t testing.TB) *Cluster { return inConformance(t, &sharedSecure) }

// SharedThree is Shared with three plaintext nodes.
func SharedThree(t testing.TB) *Cluster { return inConformance(t, &sharedThree) }

func inConformance(t testing.TB, s *shared) *Cluster {
	t.Helper()
	testkit.OnlyConformance(t, "a real Kafka")
	return mustShare(t, s)
}

func mustShare(t testing.TB, s *shared) *Cluster {
	t.Helper()
	c, err := s.get(t)
	assert.OK(t, err)
	return c
}

// Main runs the tests, then ends the shared clusters and removes their data.
// A test binary that shares clusters calls it from its TestMain.
func Main(m *testing.M) int {
	code := m.Run()
	EndShared()
	return code
}

// EndShared ends the shared clusters, for a TestMain that does not use Main.
func EndShared() {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	for _, c := range sharedList {
		c.close(false)
	}
	sharedList = nil
}
