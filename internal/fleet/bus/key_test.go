//go:build unix

package bus

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/internal/testkit/assert"
)

// TestKey: a server with a key file knows a program that has the same file, and no other; the file is made
// once, and only its owner may be able to read it.
func TestKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys", "node.key")
	for range 2 { // the second finds it
		assert.OK(t, MakeKey(path))
	}
	first, err := openKey(path)
	assert.OK(t, err)
	assert.OK(t, MakeKey(path))
	if again, err := openKey(path); err != nil || again != first {
		t.Errorf("the key was made again: %v", err)
	}
	dir := t.TempDir()
	s, err := Serve(ServerConfig{Listen: "127.0.0.1:0", Dir: dir, Key: path, Logf: t.Logf})
	assert.OK(t, err)
	defer s.Close()
	for _, name := range []string{OperatorFile, certificateFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("the server's folder has %s beside the key file", name)
		}
	}
	join, err := s.Join("node")
	assert.OK(t, err)
	a, err := ConnectAgent(t.Context(), AgentConfig{Given: &join, Dir: t.TempDir()})
	assert.Must(t, err == nil && a.Name() == "node", "the agent: %v", err)
	defer a.Close()
	o, err := ConnectKey(t.Context(), s.Addr(), path)
	assert.OK(t, err)
	o.Close()

	other := filepath.Join(t.TempDir(), "other")
	assert.OK(t, MakeKey(other))
	if _, err := ConnectKey(t.Context(), s.Addr(), other); !errors.Is(err, ErrPin) {
		t.Errorf("with another key: %v", err)
	}
	assert.OK(t, os.Chmod(other, 0o640))
	if _, err := ConnectKey(t.Context(), s.Addr(), other); err == nil || !strings.Contains(err.Error(), "other users can read it") {
		t.Errorf("a key that others can read: %v", err)
	}
	for name, text := range map[string]string{"no JSON": "x", "no keys": "{}", "no certificate": strings.Replace(string(text(first)), "CERTIFICATE", "X", 4)} {
		damaged := filepath.Join(t.TempDir(), "key")
		assert.OK(t, os.WriteFile(damaged, []byte(text), 0o600))
		if _, err := ConnectKey(t.Context(), s.Addr(), damaged); err == nil || strings.Contains(err.Error(), first.Seed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
