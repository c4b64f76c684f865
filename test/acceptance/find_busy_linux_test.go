//go:build conformance

package acceptance

import (
	"os"
	"strconv"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestFindBusy: on a machine whose processors other programs use, no search is wrong. It ends with an
// interval that has the ceiling, or says that it cannot tell, and does not exit with 0 then.
// CARRONADE_TEST_SEARCHES is the number of searches, 30 without it.
func TestFindBusy(t *testing.T) {
	testkit.OnlyConformance(t, "takes 20 minutes")
	n := 30
	if text := os.Getenv("CARRONADE_TEST_SEARCHES"); text != "" {
		n = assert.Value(strconv.Atoi(text))(t)
	}
	// With events due evenly and exponential service at 1,000 a second, p99<100ms holds up to 976.8 a second.
	const ceiling, within = 976.8, 0.02
	stop := startHogs(t, 8)
	defer stop()
	endings := map[string]int{}
	for i := range n {
		server := startStandin(t, "riemann", "--listen", "127.0.0.1:0", "--server", "rate=1000/s,seed="+strconv.Itoa(i))
		e := start(t, "find", "riemann://"+server.addr, "--slo", "p99<100ms", "--budget", "40s", "--batch-events", "1", "--max-in-flight", "10000", "--json", "--quiet").
			wait(10 * time.Minute)
		server.kill()
		var a struct {
			Ending         string
			Holds, Fails   float64
			HoldsConfirmed bool `json:"holds_confirmed"`
			Why            string
		}
		decode(t, e.stdout, &a)
		endings[a.Ending]++
		t.Logf("%d: exit %d after %v: %+v", i, e.code, e.elapsed.Round(time.Second), a)
		switch a.Ending {
		case "found":
			assert.True(t, e.code == 0 && a.Holds <= ceiling*(1+within) && a.Fails >= ceiling*(1-within), "search %d: exit %d, %+v, want an interval around %v", i, e.code, a, ceiling)
		case "busy", "at least", "stopped", "irregular":
			assert.True(t, (e.code == 3 || e.code == 4) && (!a.HoldsConfirmed || a.Holds <= ceiling*(1+within)), "search %d: exit %d, %+v, the ceiling is %v", i, e.code, a, ceiling)
		default:
			t.Errorf("search %d: exit %d, %+v", i, e.code, a)
		}
	}
	t.Logf("%d searches: %v", n, endings)
}
