//go:build unix && !linux

package host

import "syscall"

// DiesWithParent: see child_linux.go.
const DiesWithParent = false

// tieToParent does nothing: these systems have no such feature.
func tieToParent(*syscall.SysProcAttr) {}
