package apm

import (
	"testing"

	"carronade/internal/standin"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A connection takes little memory: buffers are borrowed while they are in use.
func TestConnectionMemory(t *testing.T) {
	testkit.Need(t, "some seconds")
	cert, key := testkit.NewAuthority("test").Files(t)
	t.Run("TCP", func(t *testing.T) {
		s := spawnStandin(t)
		protocoltest.System{Kind: Kind{}, URL: "apm+http://" + s.Addr()}.Memory(t, 300, 1300, 16<<10)
	})
	t.Run("TLS", func(t *testing.T) {
		s := spawnStandin(t, "--tls-cert", cert, "--tls-key", key)
		protocoltest.System{Kind: Kind{}, URL: "apm+https://" + s.Addr(), Options: map[string]string{"tls-ca": cert}}.Memory(t, 50, 250, 48<<10)
	})
}

// spawnStandin starts a discarding stand-in in a process of its own, since the memory of
// this one is measured.
func spawnStandin(t *testing.T, args ...string) *standin.Child {
	t.Helper()
	child, err := standin.Spawn(t.Context(), "", append([]string{"apm", "--discard", "--listen", "127.0.0.1:0"}, args...)...)
	assert.OK(t, err)
	t.Cleanup(func() { assert.OK(t, child.Stop()) })
	return child
}
