package cli

import (
	"runtime"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// TestCheckingKeepsNothing: a server looks at command lines and completes them as long as it runs, and
// keeps no memory of it.
func TestCheckingKeepsNothing(t *testing.T) {
	s := &session{Program: &Program{Kinds: Kinds()}}
	look := func(n int) uint64 {
		for range n {
			for _, line := range []string{"nosuch", "run null:// --rate 1/s", "report export --as x"} {
				s.loads(strings.Fields(line))
			}
			s.completions([]string{"run", "null://", "--acks", ""})
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := look(10)
	const most = 8 << 20 // ten trees have as much
	after := look(25)
	assert.True(t, after <= before+most, "100 command lines keep %d MiB", (after-before)>>20)
}
