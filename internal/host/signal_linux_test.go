package host

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"carronade/test/testkit/assert"
)

// TestSignalsReachOnlyTheMember: if another process has a member's former
// number, neither it nor its group gets the signal.
func TestSignalsReachOnlyTheMember(t *testing.T) {
	old := startRole(t, "wait", "")
	old.line(t)
	tree := openTree(t, old.cmd.Process.Pid, "")
	old.in.Close()
	_ = old.cmd.Wait()

	// The leader of its own group, as a shell makes one for each command.
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), roleEnv+"=wait")
	other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in := assert.Value(other.StdinPipe())(t)
	assert.OK(t, other.Start())
	tree.members[0].pid = other.Process.Pid // as if the number had been reused for it
	tree.Signal(other.Process.Pid, true)
	killGroup(other.Process, false) // as after the end of a leader of that number
	in.Close()
	assert.OK(t, other.Wait(), "the other process gets no signal")
}

func TestTreeSignal(t *testing.T) {
	for _, test := range []struct {
		name string
		kill bool
		want string
	}{{"TERM", false, "terminated"}, {"KILL", true, "killed"}} {
		t.Run(test.name, func(t *testing.T) {
			p := startRole(t, "wait", "")
			p.line(t)
			openTree(t, p.cmd.Process.Pid, "").Signal(p.cmd.Process.Pid, test.kill)
			assert.ErrorHas(t, p.cmd.Wait(), test.want)
		})
	}
}
