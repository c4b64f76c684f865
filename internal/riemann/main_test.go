package riemann

import (
	"os"
	"testing"

	embedded "carronade/internal/riemann/standin"
	"carronade/internal/standin"
	"carronade/test/testkit"
)

func TestMain(m *testing.M) {
	standin.Hook(embedded.Kind) // a benchmark's sink is this program
	testkit.MostlyWaiting()
	os.Exit(m.Run())
}
