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
	for { //nolint:staticcheck // its purpose is to use a processor
	}
}
