//go:build unix && !linux

package system

import "syscall"

// tieToParent does nothing: these systems have no such feature.
func tieToParent(*syscall.SysProcAttr) {}
