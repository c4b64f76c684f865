package system

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestSignalsReachNobodyElse: a number that another process has by now is not
// the member's that had it, nor its group's.
func TestSignalsReachNobodyElse(t *testing.T) {
	old := play(t, "wait", "")
	old.line(t)
	tree := openTree(t, old.cmd.Process.Pid, "")
	old.in.Close()
	_ = old.cmd.Wait()

	// A leader of a group of its own, as a shell makes one for each command.
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), roleEnv+"=wait")
	other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	tree.members[0].pid = other.Process.Pid // as though the number had been given to it
	tree.Signal(other.Process.Pid, true)
	killGroup(other.Process, false) // as after the end of a leader of that number
	in.Close()
	if err := other.Wait(); err != nil {
		t.Errorf("got %v, want another's process left alone", err)
	}
}

func TestTreeSignal(t *testing.T) {
	for _, test := range []struct {
		name string
		kill bool
		want string
	}{{"TERM", false, "terminated"}, {"KILL", true, "killed"}} {
		t.Run(test.name, func(t *testing.T) {
			p := play(t, "wait", "")
			p.line(t)
			openTree(t, p.cmd.Process.Pid, "").Signal(p.cmd.Process.Pid, test.kill)
			if err := p.cmd.Wait(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want it %s", err, test.want)
			}
		})
	}
}
