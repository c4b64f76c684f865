//go:build !unix

package testkit

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }
