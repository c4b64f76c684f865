//go:build unix && !linux

package testkit

import "syscall"

// These systems do not end a child with its parent: only cleanups end it.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
