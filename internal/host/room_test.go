package host

import (
	"testing"

	"carronade/test/testkit/assert"
)

// TestFreeMemory: of the machine and the groups, whatever has the least left counts.
func TestFreeMemory(t *testing.T) {
	const mib = 1 << 20
	const machine = "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\nSwapFree: 102400 kB\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  MemoryRoom
	}{
		{"machine", map[string]string{"proc/meminfo": machine}, MemoryRoom{Bytes: 612 * mib}},
		{"version 2", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cgroup.controllers": "memory\n",
			"sys/fs/cgroup/a/memory.max": "209715200\n", "sys/fs/cgroup/a/memory.current": "52428800\n", "sys/fs/cgroup/a/memory.stat": "inactive_file 10485760\n",
		}, MemoryRoom{Bytes: 160 * mib, Container: true}},
		{"version 1", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "4:memory:/x\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "209715200\n", "sys/fs/cgroup/memory/x/memory.usage_in_bytes": "52428800\n",
		}, MemoryRoom{Bytes: 150 * mib, Container: true}},
		{"version 1, a group that cannot be seen", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "4:memory:/x\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/x/memory.stat": "hierarchical_memory_limit 52428800\n",
		}, MemoryRoom{Bytes: 50 * mib, Container: true}},
		{"a limit above what is free", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cgroup.controllers": "memory\n",
			"sys/fs/cgroup/a/memory.max": "943718400\n", "sys/fs/cgroup/a/memory.current": "0\n",
		}, MemoryRoom{Bytes: 612 * mib}},
		{"nothing is known", nil, MemoryRoom{}},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, freeMemory(tree(tt.files)), tt.want) })
	}
}
