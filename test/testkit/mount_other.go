//go:build !linux

package testkit

import "testing"

// Mount skips the test: only Linux mounts a small file system here.
func Mount(t testing.TB, _ string) string { t.Skip("needs Linux"); return "" }

// Fill is called only after Mount.
func Fill(testing.TB, string) string { panic("Mount skips the test") }

// Seal is called only after Mount.
func Seal(testing.TB, string) { panic("Mount skips the test") }
