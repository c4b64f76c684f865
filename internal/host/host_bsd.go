//go:build freebsd || netbsd || openbsd

package host

import "golang.org/x/sys/unix"

func describe(h *Host) {
	h.Kernel, _ = unix.Sysctl("kern.osrelease")
	h.CPU, _ = unix.Sysctl("hw.model")
	h.Memory, _ = unix.SysctlUint64("hw.physmem")
}
