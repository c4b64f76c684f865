//go:build unix && !linux

package kafkatest

import "syscall"

// endWithParent does nothing here: only cleanups and Main end the children.
func endWithParent(*syscall.SysProcAttr) {}
