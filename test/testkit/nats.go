package testkit

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// natsModule is the NATS server, a program that tests build. It is not a dependency.
const natsModule = "github.com/nats-io/nats-server/v2@v2.15.2"

// NATSServer starts a NATS server on a free port of loopback, with more of its configuration, and returns its
// address, HOST:PORT. It ends with the test. The first call on a machine builds it.
func NATSServer(t testing.TB, config string) (addr string) {
	t.Helper()
	exe, err := Make("nats-server-"+path.Base(strings.Replace(natsModule, "@", "/", 1)), func(file string) error {
		cmd := exec.Command("go", "install", natsModule)
		cmd.Dir = filepath.Dir(file)
		cmd.Env = append(os.Environ(), "GOBIN="+cmd.Dir, "GOFLAGS=-trimpath", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", natsModule, err, out)
		}
		return os.Rename(filepath.Join(cmd.Dir, "nats-server"), file)
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(file, []byte("listen: 127.0.0.1:-1\nports_file_dir: "+dir+"\n"+config), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(exe, "-c", file)
	cmd.Stdout, cmd.Stderr = log, log
	if err := Launch(cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended                //nolint:errcheck // it was killed
	})
	Until(t, "the NATS server listens", func() bool {
		select {
		case err := <-ended:
			ended <- err
			said, _ := os.ReadFile(log.Name())
			t.Fatalf("the NATS server has ended: %v\n%s", err, said)
		default:
		}
		var ports struct {
			NATS []string `json:"nats"`
		}
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%s_%d.ports", filepath.Base(exe), cmd.Process.Pid)))
		if err != nil || json.Unmarshal(text, &ports) != nil || len(ports.NATS) == 0 {
			return false
		}
		_, addr, _ = strings.Cut(ports.NATS[0], "://")
		return addr != ""
	})
	return addr
}
