package host

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"carronade/test/testkit/assert"
)

// The limits of the groups above the process's own hold too, and the lowest one counts.
func TestCgroupParents(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		name      string
		files     map[string]string
		cpu       float64
		memory    uint64     // the lowest limit
		tightest  groupLimit // of memory
		tasks     groupLimit
		throttled uint64
	}{
		{
			name: "version 2", cpu: 0.5, memory: 100 * mib, tightest: groupLimit{200 * mib, 190 * mib}, tasks: groupLimit{100, 90}, throttled: 7000,
			files: map[string]string{
				"proc/self/cgroup":                           "0::/a/b/c\n",
				"sys/fs/cgroup/cgroup.controllers":           "cpu memory pids\n", // the root has no limits
				"sys/fs/cgroup/a/cgroup.controllers":         "cpu memory pids\n",
				"sys/fs/cgroup/a/b/cgroup.controllers":       "cpu memory pids\n",
				"sys/fs/cgroup/a/b/c/cgroup.controllers":     "cpu memory pids\n",
				"sys/fs/cgroup/a/cpu.max":                    "50000 100000\n",
				"sys/fs/cgroup/a/b/cpu.max":                  "max 100000\n",
				"sys/fs/cgroup/a/b/c/cpu.max":                "200000 100000\n",
				"sys/fs/cgroup/a/memory.max":                 "209715200\n", // the larger limit is nearly used up, by other groups
				"sys/fs/cgroup/a/memory.current":             "199229440\n",
				"sys/fs/cgroup/a/b/memory.max":               "max\n",
				"sys/fs/cgroup/a/b/c/memory.max":             "104857600\n",
				"sys/fs/cgroup/a/b/c/memory.current":         "10485760\n",
				"sys/fs/cgroup/a/pids.max":                   "max\n",
				"sys/fs/cgroup/a/b/pids.max":                 "100\n",
				"sys/fs/cgroup/a/b/pids.current":             "90\n",
				"sys/fs/cgroup/a/b/c/pids.max":               "50\n",
				"sys/fs/cgroup/a/b/c/pids.current":           "7\n",
				"sys/fs/cgroup/a/cpu.stat":                   "throttled_usec 5\n",
				"sys/fs/cgroup/a/b/c/cpu.stat":               "usage_usec 9\nthrottled_usec 2\n",
				"sys/fs/cgroup/a/b/other/cgroup.controllers": "cpu\n",
				"sys/fs/cgroup/a/b/other/cpu.max":            "1000 100000\n", // of another group
			},
		},
		{
			name: "version 1", cpu: 0.25, memory: 50 * mib, tightest: groupLimit{100 * mib, 10 * mib}, tasks: groupLimit{20, 5}, throttled: 12,
			files: map[string]string{
				"proc/self/cgroup":                                "4:memory:/x/y\n3:pids:/x\n2:cpu,cpuacct:/x/y\n",
				"sys/fs/cgroup/cpu,cpuacct/x/cpu.stat":            "throttled_time 5\n",
				"sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us":    "25000\n",
				"sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us":   "100000\n",
				"sys/fs/cgroup/cpu,cpuacct/x/y/cpu.stat":          "throttled_time 7\n",
				"sys/fs/cgroup/cpu,cpuacct/x/y/cpu.cfs_quota_us":  "-1\n",
				"sys/fs/cgroup/cpu,cpuacct/x/y/cpu.cfs_period_us": "100000\n",
				"sys/fs/cgroup/memory/x/memory.limit_in_bytes":    "104857600\n",
				"sys/fs/cgroup/memory/x/memory.usage_in_bytes":    "10485760\n",
				"sys/fs/cgroup/memory/x/y/memory.limit_in_bytes":  "9223372036854771712\n",
				"sys/fs/cgroup/memory/x/y/memory.stat":            "hierarchical_memory_limit 52428800\n", // of a group that cannot be seen
				"sys/fs/cgroup/pids/x/pids.max":                   "20\n",
				"sys/fs/cgroup/pids/x/pids.current":               "5\n",
			},
		},
		{
			name: "a path outside the mount", cpu: 2, throttled: 0,
			files: map[string]string{
				"proc/self/cgroup":                 "0::/../../a\n",
				"sys/fs/cgroup/cgroup.controllers": "cpu\n",
				"sys/fs/cgroup/cpu.max":            "200000 100000\n",
			},
		},
		{name: "no groups", files: map[string]string{"proc/self/cgroup": ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := tree(tt.files)
			g := findCgroup(root)
			assert.Equal(t, g.cpuLimit(root), tt.cpu, "processors")
			assert.Equal(t, g.memoryLimit(root, 1<<40), tt.memory, "memory")
			assert.Equal(t, tightest(g.memoryLimits(root, 1<<40)), tt.tightest, "memory that is left")
			assert.Equal(t, tightest(g.taskLimits(root)), tt.tasks, "tasks")
			assert.Equal(t, g.throttled(root), tt.throttled, "throttled")
		})
	}
}

// A file that exists stays, and on a file system without hard links one is made, too.
func TestMakeFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	none := func(string, string) error { return errors.ErrUnsupported }
	for i, link := range []func(string, string) error{none, os.Link} {
		assert.OK(t, makeFile(path, []byte{byte(i)}, link))
	}
	got, err := os.ReadFile(path)
	assert.True(t, err == nil && string(got) == "\x00", "the file has %q, %v", got, err)
	left, err := os.ReadDir(dir)
	assert.True(t, err == nil && len(left) == 1, "the folder has %v, %v", left, err)
}
