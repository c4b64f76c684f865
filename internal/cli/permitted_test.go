package cli

import (
	"strings"
	"sync"
	"testing"

	"carronade/target/all"
)

func TestLoads(t *testing.T) {
	s := &session{Program: &Program{Kinds: all.Kinds()}}
	s.pprof.cpu = "own" // of this process, whatever is parsed
	var work sync.WaitGroup
	for line, want := range map[string]bool{
		"run null://": true, "run null:// --schema=false": true, "run --cpuprofile x null://": true, "--cpuprofile x run null://": true,
		"find x": true, "scenario a.js": true, "scenario a.js --check=false": true, "compare --run a b": true, "topics create x": true,
		"report replay last": true, "system build .": true, "run null:// --note --help": true,
		"as sangrenel": true, "as hey-apm test 1s 1 1 1 1": true, "as hey-apm -requests 1 dump -x": true, "as hey-apm -E dump test 1s 1 1 1 1": true,
		"as hey-apm dump body 1 1 1": false, "as hey-apm --system-git . dump body 1 1 1": true, "as --help": false, "as": false,
		"run --help": false, "run --help-all": false, "run -h": false, "run null:// --schema": false, "scenario a.js --check": false,
		"compare a b": false, "compare --run=false a b": false, "report list": false, "topics list x": false, "collate rate": false,
		"help run": false, "run --unknown": false, "unknown": false, "": false,
	} {
		work.Go(func() {
			if got := s.loads(strings.Fields(line)); got != want {
				t.Errorf("%q: %v", line, got)
			}
		})
	}
	work.Wait()
	if s.pprof.cpu != "own" {
		t.Errorf("the session's own flags changed: %q", s.pprof.cpu)
	}
}
