//go:build unix

package bus

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// TestKey: a server with a key file knows a program that has the same file, and no other; the file is made
// once, and only its owner may be able to read it.
func TestKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys", "node.key")
	for range 2 { // the second finds it
		assert.OK(t, MakeKey(path))
	}
	first := assert.Value(openKey(path))(t)
	assert.OK(t, MakeKey(path))
	again, err := openKey(path)
	assert.True(t, err == nil && again == first, "the key was made again: %v", err)
	dir := t.TempDir()
	s := assert.Value(Serve(ServerConfig{Listen: "127.0.0.1:0", Dir: dir, Key: path, Logf: t.Logf}))(t)
	defer s.Close()
	for _, name := range []string{OperatorFile, certificateFile} {
		_, err := os.Stat(filepath.Join(dir, name))
		assert.True(t, err != nil, "the server's folder has %s beside the key file", name)
	}
	join := assert.Value(s.Join("node"))(t)
	a, err := ConnectAgent(t.Context(), AgentConfig{Given: &join, Dir: t.TempDir()})
	assert.Must(t, err == nil && a.Name() == "node", "the agent: %v", err)
	defer a.Close()
	o := assert.Value(ConnectKey(t.Context(), s.Addr(), path))(t)
	o.Close()
	other := filepath.Join(t.TempDir(), "other")
	assert.OK(t, MakeKey(other))
	_, err = ConnectKey(t.Context(), s.Addr(), other)
	assert.True(t, errors.Is(err, ErrPin), "with another key: %v", err)
	assert.OK(t, os.Chmod(other, 0o640))
	_, err = ConnectKey(t.Context(), s.Addr(), other)
	assert.ErrorHas(t, err, "other users can read it", "a key that others can read")
	for name, text := range map[string]string{"no JSON": "x", "no keys": "{}", "no certificate": strings.Replace(string(text(first)), "CERTIFICATE", "X", 4)} {
		damaged := filepath.Join(t.TempDir(), "key")
		assert.OK(t, os.WriteFile(damaged, []byte(text), 0o600))
		_, err := ConnectKey(t.Context(), s.Addr(), damaged)
		assert.True(t, err != nil && !strings.Contains(err.Error(), first.Seed), "%s: %v", name, err)
	}
}
