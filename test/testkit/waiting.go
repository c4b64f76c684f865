package testkit

import (
	"flag"
	"strconv"
)

// atOnce is how many tests that mostly wait run at the same time.
const atOnce = 8

// MostlyWaiting lets more tests of a package run at the same time than there are processors,
// unless -parallel says how many: they use little of a processor while they wait for answers
// and deadlines of real connections. A TestMain calls it before it runs the tests.
func MostlyWaiting() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(atOnce)) // it exists in every test binary
	}
}
