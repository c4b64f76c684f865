package scenario

import (
	"os"
	"testing"
)

// childEnv marks the processes that run the scripts of these tests.
const childEnv = "SCENARIO_TEST_CHILD"

// languages are those of these tests, besides our own API.
var languages = map[string]Language{}

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(Main(os.Stdin, os.Stdout, languages))
	}
	_ = os.Setenv(childEnv, "1") // of the children
	os.Exit(m.Run())
}
