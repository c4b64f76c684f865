package acceptance

import (
	"io"
	"os"
)

const hogEnv = "CARRONADE_TEST_HOG"

// hog spins until its standard input ends.
func hog() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for { //nolint:staticcheck // to take a processor is what it is for
	}
}
