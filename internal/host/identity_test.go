package host

import (
	"os/exec"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestIdentity(t *testing.T) {
	me := Self()
	for _, tt := range []struct {
		name         string
		id           Identity
		alive, known bool
	}{
		{"itself", me, true, true},
		{"its number, given again", Identity{Host: me.Host, PID: me.PID, Start: "1"}, false, true},
		{"no process", Identity{Host: me.Host, PID: 1 << 30, Start: "1"}, false, true},
		{"another host", Identity{Host: "elsewhere", PID: me.PID, Start: me.Start}, false, false},
		{"no host", Identity{}, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if alive, known := tt.id.Alive(); alive != tt.alive || known != tt.known {
				t.Errorf("got alive %v, known %v, want %v, %v", alive, known, tt.alive, tt.known)
			}
		})
	}
}

// A process that was killed is not alive.
func TestIdentityOfTheKilled(t *testing.T) {
	cmd := exec.Command(testkit.Program(t, "sleep"), "60")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	id, ok := Identify(cmd.Process.Pid)
	assert.True(t, ok, "a running process was not found")
	alive, known := id.Alive()
	assert.True(t, alive && known, "got alive %v, known %v for a running process, want both", alive, known)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	alive, known = id.Alive()
	assert.True(t, !alive && known, "got alive %v, known %v for a killed process, want false, true", alive, known)
	id, ok = Identify(cmd.Process.Pid)
	assert.True(t, !ok, "got the identity %v of a process that has ended", id)
}
