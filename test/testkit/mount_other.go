//go:build !linux

package testkit

import "testing"

// Mount skips the test: only Linux mounts a small file system here.
func Mount(t testing.TB, _ string) string { t.Skip("needs Linux"); return "" }

// Fill is not called without Mount.
func Fill(testing.TB, string) string { panic("there is no Mount") }

// Seal is not called without Mount.
func Seal(testing.TB, string) { panic("there is no Mount") }
