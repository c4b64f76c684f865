//go:build unix && !linux

package system

import "syscall"

// DiesWithParent: see child_linux.go.
const DiesWithParent = false

// tieToParent does nothing: these systems have no such feature.
func tieToParent(*syscall.SysProcAttr) {}
