package host

import "golang.org/x/sys/unix"

func describe(h *Host) {
	h.Kernel, _ = unix.Sysctl("kern.osrelease")
	h.CPU, _ = unix.Sysctl("machdep.cpu.brand_string")
	h.Memory, _ = unix.SysctlUint64("hw.memsize")
}
