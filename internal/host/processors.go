package host

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// cpuVersion returns the first processor's family, model, stepping and microcode
// of /proc/cpuinfo: processors of the same name may differ in them.
func cpuVersion(cpuinfo string) string {
	first, _, _ := strings.Cut(cpuinfo, "\n\n")
	found := make(map[string]string)
	for l := range strings.Lines(first) {
		if k, v, ok := strings.Cut(l, ":"); ok {
			found[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	}
	var parts []string
	for _, f := range [][2]string{{"cpu family", "family"}, {"model", "model"}, {"stepping", "stepping"}, {"microcode", "microcode"}} {
		if v := found[f[0]]; v != "" && v != "unknown" {
			parts = append(parts, f[1]+" "+v)
		}
	}
	return strings.Join(parts, ", ")
}

// caches reads the first processor's caches. Those of the others are not read:
// a large machine has thousands, and they rarely differ.
func caches(root fs.FS) []Cache {
	const base = "sys/devices/system/cpu/cpu0/cache"
	var out []Cache
	for _, name := range names(root, base) {
		at := path.Join(base, name)
		level, err := strconv.Atoi(line(root, path.Join(at, "level")))
		bytes := kibibytes(line(root, path.Join(at, "size")))
		if err != nil || bytes == 0 || len(out) == maxListed {
			continue
		}
		out = append(out, Cache{
			Level: level, Type: strings.ToLower(line(root, path.Join(at, "type"))), Bytes: bytes,
			SharedBy: countList(line(root, path.Join(at, "shared_cpu_list"))),
		})
	}
	return out
}

// kibibytes reads a size such as 30720K; 0 if it is not one.
func kibibytes(s string) uint64 {
	n, err := strconv.ParseUint(strings.TrimSuffix(s, "K"), 10, 40)
	if err != nil || !strings.HasSuffix(s, "K") {
		return 0
	}
	return n << 10
}

// numa reads the nodes with processors or memory.
func numa(root fs.FS) []Node {
	const base = "sys/devices/system/node"
	var out []Node
	for _, name := range names(root, base) {
		number, ok := strings.CutPrefix(name, "node")
		id, err := strconv.Atoi(number)
		if !ok || err != nil {
			continue
		}
		n := Node{ID: id, CPUs: line(root, path.Join(base, name, "cpulist"))}
		if _, after, ok := strings.Cut(text(root, path.Join(base, name, "meminfo")), "MemTotal:"); ok {
			if f := strings.Fields(after); len(f) > 0 {
				kib, _ := strconv.ParseUint(f[0], 10, 50)
				n.Memory = kib << 10
			}
		}
		if n.CPUs != "" || n.Memory > 0 {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b Node) int { return a.ID - b.ID })
	return out[:min(len(out), maxListed)]
}
