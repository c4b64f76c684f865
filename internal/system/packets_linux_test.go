package system

import (
	"carronade/internal/testkit/assert"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// apart starts a process with a network namespace of its own.
func apart(t *testing.T) int {
	t.Helper()
	for _, name := range []string{"unshare", "iptables", "nsenter"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only an administrator can drop packets")
	}
	cmd := exec.Command("unshare", "--net", "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	own, err := NetworkOf(os.Getpid())
	assert.OK(t, err)
	for range 1000 {
		if its, err := NetworkOf(cmd.Process.Pid); err == nil && its != own {
			return cmd.Process.Pid
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Skip("a process gets no network of its own here")
	return 0
}

// rules are those for packets that arrive at a process.
func rules(t *testing.T, pid int) string {
	t.Helper()
	out, err := exec.Command("nsenter", "--net=/proc/"+strconv.Itoa(pid)+"/ns/net", "iptables", "-S", "INPUT").CombinedOutput()
	if err != nil {
		t.Skipf("%v: %s", err, out)
	}
	return string(out)
}

func TestPackets(t *testing.T) {
	pid := apart(t)
	before := rules(t, pid)
	p, err := OpenPackets(pid)
	assert.OK(t, err)
	assert.Equal(t, rules(t, pid), before, "opening it changed the rules")
	assert.OK(t, p.Drop(0.05))
	if got := rules(t, pid); !strings.Contains(got, "--probability 0.0") || !strings.Contains(got, "DROP") {
		t.Errorf("the rules are\n%s", got)
	}
	assert.OK(t, p.Close())
	assert.Equal(t, rules(t, pid), before, "after the end the rules are")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestPacketsRefused(t *testing.T) {
	if _, err := OpenPackets(os.Getpid()); !errors.Is(err, ErrSharedNetwork) {
		t.Errorf("got %v, want that the network is shared", err)
	}
	if _, err := OpenPackets(1 << 30); err == nil {
		t.Error("the process does not exist")
	}
	pid := apart(t)
	defer func(was []int) { sharedBy = was }(sharedBy)
	sharedBy = []int{os.Getpid(), pid} // as if it were the first one
	if _, err := OpenPackets(pid); !errors.Is(err, ErrSharedNetwork) {
		t.Errorf("got %v, want that the network is that of the first process", err)
	}
	sharedBy = sharedBy[:1]
	t.Setenv("PATH", t.TempDir())
	if _, err := OpenPackets(pid); err == nil || !strings.Contains(err.Error(), "iptables is not installed") {
		t.Errorf("got %v", err)
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	assert.OK(t, os.WriteFile(filepath.Join(dir, "iptables"), []byte("#!/bin/sh\necho no chain >&2; exit 3\n"), 0o700))
	if _, err := OpenPackets(pid); err == nil || !strings.HasSuffix(err.Error(), "in the network of the system: no chain") {
		t.Errorf("got %v", err)
	}
}

// TestPacketsStay: rules that could not be removed stay known, with the commands that remove them.
func TestPacketsStay(t *testing.T) {
	pid := apart(t)
	before := rules(t, pid)
	p, err := OpenPackets(pid)
	assert.OK(t, err)
	assert.OK(t, p.Drop(0.05))
	program := p.rules[0][0]
	p.rules[0][0] = "/bin/false"
	if err := p.Close(); err == nil || len(p.rules) != 1 {
		t.Fatalf("got %v and %d rules, want an error and the rule that stands", err, len(p.rules))
	}
	p.rules[0][0] = program
	if out, err := exec.Command("sh", "-c", p.ByHand()).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", p.ByHand(), err, out)
	}
	assert.Equal(t, rules(t, pid), before, "after the command the rules are")
	assert.OK(t, p.Drop(0.05))
	p.rules = p.rules[1:]
	if err := p.Close(); err != nil || p.ByHand() != "" {
		t.Errorf("got %v, by hand %q", err, p.ByHand())
	}
	assert.Equal(t, rules(t, pid), before, "after the end the rules are")
}
