//go:build !unix

package javatest

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }
