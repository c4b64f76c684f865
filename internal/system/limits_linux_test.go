package system

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carronade/protocol/protocoltest"
	"carronade/test/testkit/assert"
)

// fakeGroups imitates the kernel in a folder: groups below it have the files that the kernel creates.
func fakeGroups(t testing.TB, controllers, handed string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"cgroup.controllers": controllers, "cgroup.subtree_control": handed} {
		assert.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	madeGroup = func(dir string) {
		for _, name := range []string{"memory.max", "memory.swap.max", "cpu.max", "cgroup.kill", "memory.events"} {
			_ = os.WriteFile(filepath.Join(dir, name), nil, 0o644)
		}
	}
	t.Cleanup(func() { madeGroup = func(string) {} })
	return dir
}

func TestLimits(t *testing.T) {
	dir := fakeGroups(t, "cpuset cpu io memory pids\n", "cpu\n")
	l := assert.Value(limitsIn(dir, "x", 4<<30, 1.5))(t)
	for name, want := range map[string]string{"x/memory.max": "4294967296", "x/memory.swap.max": "0", "x/cpu.max": "150000 100000", "cgroup.subtree_control": "+memory"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		assert.True(t, err == nil && string(got) == want, "got %q, %v in %s, want %q", got, err, name, want)
	}
	assert.True(t, !l.outOfMemory(), "got out of memory before a process was ended at the limit")
	assert.OK(t, os.WriteFile(filepath.Join(l.dir, "memory.events"), []byte("oom 3\noom_kill 1\n"), 0o644))
	assert.True(t, l.outOfMemory(), "out of memory was not noticed")
	l.kill()
	got, err := os.ReadFile(filepath.Join(l.dir, "cgroup.kill"))
	assert.True(t, err == nil && string(got) == "1", "got %q, %v, want the group ended", got, err)
	for _, f := range []string{"memory.max", "memory.swap.max", "cpu.max", "cgroup.kill", "memory.events"} {
		os.Remove(filepath.Join(l.dir, f))
	}
	l.remove()
	_, err = os.Stat(l.dir)
	assert.True(t, err != nil, "the group is still there")
}

func TestLimitsFail(t *testing.T) {
	for _, test := range []struct {
		name, controllers string
		edit              func(dir string)
		want              string
	}{
		{"no such controller", "hugetlb memory.x\n", nil, "has no controller of memory"},
		{"no group", "", func(dir string) { os.Remove(filepath.Join(dir, "cgroup.controllers")) }, "cannot be read: no such file"},
		{"not delegated", "memory\n", func(dir string) { os.Remove(filepath.Join(dir, "cgroup.subtree_control")) }, "does not delegate memory"},
		{"not writable", "memory\n", func(dir string) {
			_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("memory"), 0o644)
			_ = os.WriteFile(filepath.Join(dir, "x"), nil, 0o644)
		}, "cannot create a group"},
		{"refused", "memory\n", func(string) { madeGroup = func(string) {} }, "does not accept the limit"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := fakeGroups(t, test.controllers, "")
			if test.edit != nil {
				test.edit(dir)
			}
			l, err := limitsIn(dir, "x", 1<<30, 0)
			assert.ErrorHas(t, err, test.want, "got %v", l)
		})
	}
}

func TestParents(t *testing.T) {
	const mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
	assert.Equal(t, unifiedMount(mounts), "/sys/fs/cgroup/unified")
	assert.Equal(t, unifiedMount("1 2 3\n\n - cgroup2 \n"), "", "the mount of invalid lines")
	for _, test := range []struct {
		name, own string
		want      []string
	}{
		{"a session", "1:cpu:/x\n0::/user.slice/user-0.slice/session.scope\n", []string{"/m/user.slice/user-0.slice", "/m/user.slice", "/m"}},
		{"the root", "0::/\n", []string{"/m"}},
		{"out of sight", "0::/../other\n", []string{"/m"}},
		{"version 1 alone", "1:cpu:/x\n", []string{"/m"}},
	} {
		got := parents("/m", test.own)
		assert.True(t, slices.Equal(got, test.want), "%s: got %q, want %q", test.name, got, test.want)
	}
}

// TestGroupHere starts a system in a real group of this machine, without limits: it is in the group from its
// first instruction on, and ends with the group.
func TestGroupHere(t *testing.T) {
	mounts := assert.Value(os.ReadFile("/proc/self/mountinfo"))(t)
	mount := unifiedMount(string(mounts))
	if mount == "" {
		t.Skip("no cgroup of version 2 is mounted")
	}
	l, err := limitsIn(mount, "carronade-test-"+strings.ToLower(rand.Text()), 0, 0)
	if err != nil {
		t.Skip("no group can be created here:", err)
	}
	defer l.remove()
	cmd := exec.Command(os.Args[0], "127.0.0.1:0")
	cmd.Env = append(os.Environ(), roleEnv+"=stubborn")
	l.apply(cmd)
	assert.OK(t, cmd.Start())
	group, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", cmd.Process.Pid))
	assert.True(t, err == nil && strings.Contains(string(group), filepath.Base(l.dir)), "got %q, %v, want it in %s", group, err, l.dir)
	l.kill()
	assert.True(t, cmd.Wait() != nil, "it succeeded, want it killed with its group")
	l.remove()
	_, err = os.Stat(l.dir)
	assert.True(t, err != nil, "the group is still there")
}

// TestLimitsHere sets limits on this machine: they are enforced, or refused with a helpful error.
func TestLimitsHere(t *testing.T) {
	addr := free(t)
	spec := specOf(t, "serve", addr)
	spec.Listen, spec.Memory = []string{addr}, 64<<20
	s, err := Start(t.Context(), spec)
	if err != nil {
		protocoltest.Explained(t, err, "limit the system to 64 MiB", "--system-image")
		return
	}
	defer func() { _ = s.Stop() }()
	go getQuietly(addr, "/hold?mib=256")
	<-s.Died()
	e := s.Exit()
	assert.True(t, e.OutOfMemory, "got %+v, want its end at the limit", e)
}

func TestLimitsOfVersionOne(t *testing.T) {
	err := errors.New("the group has no controller")
	for _, test := range []struct {
		name, own string
		memory    int64
		cpus      float64
		want      bool
	}{
		{"version 2 alone", "0::/user.slice\n", 1, 1, false},
		{"memory of version 1", "4:memory:/\n0::/\n", 1, 0, true},
		{"processors of version 1", "2:cpu,cpuacct:/\n0::/\n", 0, 1, true},
		{"another one of version 1", "3:cpuset:/\n0::/\n", 1, 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := explainVersion1(err, test.own, test.memory, test.cpus)
			assert.True(t, errors.Is(got, err) && strings.Contains(got.Error(), "version 1") == test.want,
				"got %v, want version 1 mentioned: %v", got, test.want)
		})
	}
}
