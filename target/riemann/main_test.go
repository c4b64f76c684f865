package riemann

import (
	"os"
	"testing"

	"carronade/internal/standin"
	embedded "carronade/internal/standin/riemann"
	"carronade/internal/testkit"
)

func TestMain(m *testing.M) {
	standin.Hook(embedded.Kind) // a benchmark's sink is this program
	testkit.MostlyWaiting()
	os.Exit(m.Run())
}
