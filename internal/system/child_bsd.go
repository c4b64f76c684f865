//go:build unix && !linux

package system

import "syscall"

// tieToParent has nothing to tie with here.
func tieToParent(*syscall.SysProcAttr) {}
