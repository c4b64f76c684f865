package host

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"carronade/test/testkit/assert"
)

// The result for an instant is between the clock's own values before and after it.
func TestMonotonicOf(t *testing.T) {
	clock := func() int64 {
		var ts unix.Timespec
		assert.OK(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts))
		return ts.Nano()
	}
	before := clock()
	at := time.Now()
	after := clock()
	const exact = 20_000 // ns
	for _, tt := range []struct {
		name string
		at   time.Time
		add  int64
	}{{"now", at, 0}, {"an hour before", at.Add(-time.Hour), -int64(time.Hour)}} {
		got, ok := MonotonicOf(tt.at)
		assert.True(t, ok && got >= before+tt.add-exact && got <= after+tt.add+exact,
			"%s: got %d, %v; want between %d and %d", tt.name, got, ok, before+tt.add, after+tt.add)
	}
	_, ok := MonotonicOf(at.Round(0))
	assert.True(t, !ok, "got one for a time without a monotonic reading")
}

// Memory of its own counts, and that of a process that does not exist is not known.
func TestResident(t *testing.T) {
	before := Resident(os.Getpid())
	b := assert.Value(syscall.Mmap(-1, 0, 64<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE))(t)
	defer syscall.Munmap(b)
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
	after := Resident(os.Getpid())
	assert.True(t, before > 0 && after >= before+48<<20, "got %d and then %d bytes", before, after)
	assert.Equal(t, Resident(1<<30), 0, "bytes of a process that does not exist")
	for CPUOf(os.Getpid()) == 0 {
	}
	assert.Equal(t, CPUOf(1<<30), 0, "processor time of a process that does not exist")
}

// If another process has a member's former number, neither it nor its group gets the signal.
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
