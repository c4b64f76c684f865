package kafkatest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// A format is what Kafka's storage tool writes equally to every data directory: the
// first records of the metadata, with features and users. The tool needs its own
// JVM, so it runs only once.
type format struct {
	once       sync.Once
	err        error
	checkpoint []byte
}

var plainFormat, secureFormat format

// make runs the tool for a node with the settings in a file.
func (f *format) make(jars, settings string, users ...string) error {
	dir, err := os.MkdirTemp("", "carronade-kafka-format-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	text, err := os.ReadFile(settings)
	if err != nil {
		return err
	}
	// If a setting is there twice, the last one applies.
	server := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(server, fmt.Appendf(text, "log.dirs=%s\n", filepath.Join(dir, "data")), 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	args := append([]string{"format", "-t", newID(), "-c", server}, users...)
	out, err := exec.CommandContext(ctx, "java", javaArgs(shortLived, jars, "256m", "kafka.tools.StorageTool", args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	f.checkpoint, err = os.ReadFile(filepath.Join(dir, "data", "bootstrap.checkpoint"))
	return err
}

// write formats the storage of a node.
func (f *format) write(n *Node) error {
	if err := os.MkdirAll(n.DataDir(), 0o755); err != nil {
		return err
	}
	meta := fmt.Sprintf("cluster.id=%s\ndirectory.id=%s\nnode.id=%d\nversion=1\n", n.cluster.id, newID(), n.id)
	if err := os.WriteFile(filepath.Join(n.DataDir(), "meta.properties"), []byte(meta), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(n.DataDir(), "bootstrap.checkpoint"), f.checkpoint, 0o644)
}

// newID returns a random id in Kafka's format.
func newID() string {
	var id [16]byte
	rand.Read(id[:])
	id[0] &= 0x7f // no id begins with a dash, which the tools take for a flag
	return base64.RawURLEncoding.EncodeToString(id[:])
}
