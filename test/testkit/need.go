package testkit

import (
	"os/exec"
	"testing"
)

// Need is called by a test that needs more than Go and a moment. It says what. With -short the
// test is skipped, so that the others pass quickly where only Go is installed, and without a
// network.
func Need(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		t.Skip("with -short: this test needs " + what)
	}
}

// OnlyConformance skips a test, or a part of one, that takes long by nature, or needs real
// servers or a quiet machine: make conformance runs it, make test does not. why says what it
// needs, and what make test has instead. Benchmarks are not skipped.
func OnlyConformance(t testing.TB, why string) {
	t.Helper()
	if _, bench := t.(*testing.B); !Conformance && !bench {
		t.Skip("with -tags conformance: " + why)
	}
}

// Program returns the path of a program that a test runs. If it is missing, the test fails;
// with -short it is skipped.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if testing.Short() {
		t.Skip("with -short: " + name + " is not installed")
	}
	t.Fatalf("%s is missing, install it or run scripts/deps as root: %v", name, err)
	return ""
}

// Cases is how many cases of many a test tries: all, or with -short only a few.
func Cases(all, few int) int {
	if testing.Short() {
		return few
	}
	return all
}
