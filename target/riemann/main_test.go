package riemann

import (
	"os"
	"testing"

	"carronade/internal/standin"
)

func TestMain(m *testing.M) {
	standin.Hook() // a benchmark's sink is this program
	os.Exit(m.Run())
}
