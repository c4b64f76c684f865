//go:build conformance

package acceptance

import (
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestFindCeiling finds the ceiling of a stand-in that serves as a queue. With events due evenly
// and exponential service at 1,000 a second, p99<50ms holds up to 953.2 a second: there the
// response time is exponential with a mean of 50 ms/ln 100.
func TestFindCeiling(t *testing.T) {
	testkit.OnlyConformance(t, "takes six minutes")
	const ceiling, within = 953.2, 0.05
	server := startStandin(t, "riemann", "--listen", "127.0.0.1:0", "--server", "rate=1000/s,service=exponential")
	e := start(t, "find", "riemann://"+server.addr, "--slo", "p99<50ms", "--budget", "6m", "--batch-events", "1", "--max-in-flight", "10000", "--json", "--quiet").
		wait(10*time.Minute).want(t, 0)
	var answer struct {
		Ending       string
		Holds, Fails float64
		Why          string
	}
	decode(t, e.stdout, &answer)
	t.Logf("%+v in %v", answer, e.elapsed)
	assert.True(t, answer.Ending == "found" && answer.Holds <= ceiling*(1+within) && answer.Fails >= ceiling*(1-within),
		"got %+v, want an interval around %v", answer, ceiling)
}
