//go:build unix && !linux

package javatest

import "syscall"

// Nothing ties a child to its parent here: only cleanups end it.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
