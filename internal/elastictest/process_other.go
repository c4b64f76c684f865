//go:build !linux

package elastictest

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }
