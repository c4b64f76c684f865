package testkit

import (
	"os"
	"os/exec"
	"testing"
)

// Need is called by a test that needs more than Go and a moment: real servers, browsers,
// other languages, or minutes. It says what. With -short the test is skipped, so that the
// others pass quickly where only Go is installed, and without a network.
func Need(t testing.TB, what string) {
	t.Helper()
	if testing.Short() {
		t.Skip("with -short: this test needs " + what)
	}
}

// OnlyConformance skips a test, or a part of one, that takes long by nature: make
// conformance runs it (CARRONADE_TEST_CONFORMANCE), make test does not. why says how long,
// and what make test has instead.
func OnlyConformance(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CARRONADE_TEST_CONFORMANCE") == "" {
		t.Skip(why + "; set CARRONADE_TEST_CONFORMANCE=1")
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
