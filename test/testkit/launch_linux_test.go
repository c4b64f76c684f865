package testkit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"carronade/test/testkit/assert"
)

// parentEnv makes the test's binary a parent that launches a child, prints its
// process id, and waits to be killed.
const parentEnv = "TESTKIT_PARENT"

// init makes the test's binary such a parent.
func init() {
	if os.Getenv(parentEnv) == "" {
		return
	}
	cmd := exec.Command("sleep", "600")
	if err := Launch(cmd); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(cmd.Process.Pid)
	select {}
}

// TestLaunchEndsWithParent kills a parent: its child, in its own process group, must end too.
func TestLaunchEndsWithParent(t *testing.T) {
	Program(t, "sleep")
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"=1")
	parent.Stderr = os.Stderr
	out := assert.Value(parent.StdoutPipe())(t)
	assert.OK(t, parent.Start())
	var child int
	assert.Value(fmt.Fscan(out, &child))(t)
	if group, err := syscall.Getpgid(child); err != nil || group != child {
		t.Errorf("got group %d, %v; want its own, %d", group, err, child)
	}
	assert.OK(t, parent.Process.Kill())
	_ = parent.Wait() // its error is that it was killed
	t.Cleanup(func() {
		if t.Failed() {
			_ = syscall.Kill(child, syscall.SIGKILL)
		}
	})
	Until(t, "the child has ended, as its parent has", func() bool { return gone(child) })
}

// gone reports whether a process has ended, even if its new parent has not waited for it yet.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	var n int
	var name, state string
	_, _ = fmt.Sscan(string(stat), &n, &name, &state)
	return err != nil || state == "Z"
}
