package bench

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	Hook()
	os.Exit(m.Run())
}

// BenchmarkSpeed makes the table. It fails if a line misses its bound or could not
// be measured.
func BenchmarkSpeed(b *testing.B) {
	s, err := FromEnv()
	if err != nil {
		b.Fatal(err)
	}
	u := NewSuite(b, s)
	u.Measure(b)
	text := u.Document(b)
	fmt.Print("\n", text, "\n")
	if s.Out != "" {
		if err := Publish(s.Out, text); err != nil {
			b.Fatal(err)
		}
	}
	for _, f := range u.Failed() {
		b.Error(f)
	}
}
