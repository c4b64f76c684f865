package cli

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"carronade/internal/fleet"
	"carronade/internal/fleet/bus"
	"carronade/internal/serve"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestLoads(t *testing.T) {
	s := &session{Program: &Program{Kinds: Kinds()}}
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
		work.Go(func() { assert.Equal(t, s.loads(strings.Fields(line)), want, "%q", line) })
	}
	work.Wait()
	assert.Equal(t, s.pprof.cpu, "own", "the session's own flags")
}

// TestCheckLine: what is wrong with a command line shows before it runs, in its own words.
func TestCheckLine(t *testing.T) {
	s := &session{Program: &Program{Kinds: Kinds()}}
	secret := filepath.Join(t.TempDir(), "x.properties")
	assert.OK(t, os.WriteFile(secret, []byte("no property\n"), 0o600))
	for line, want := range map[string]string{
		// The server reads no file that a job names.
		"run kafka://h/t --client-config " + secret:                      "",
		"run kafka://h/t --client-config a.properties":                   "",
		"run kafka://h/t --client-property ssl.truststore.location=/etc": "",
		"rnu null:// --rate 5":                                           "unknown command \"rnu\"",
		"run null:// --rat 5":                                            "unknown flag --rat",
		"run null:// --rate abc":                                         "--rate: ",
		"run null:// --count 1 --count 2":                                "--count is given twice",
		"run null:// --label a=b --label c=d":                            "",
		"run kafka://h/t --create-topic partitons=3":                     "read the topic's settings",
		"run nul://":                            "target: ",
		"find null://x --vary size=1,2 --bogus": "unknown flag --bogus",
		"topics frobnicate kafka://h":           "unknown",
		"run null:// --for 1s":                  "",
		"scenario x.js":                         "", "as sangrenel -x": "", "run --help": "", "run -f x.yaml --rate 5": "",
	} {
		what, way := s.checkLine(strings.Fields(line))
		assert.True(t, want == "" && what == "" || want != "" && strings.HasPrefix(what, want), "%q: %q (%s), want %q", line, what, way, want)
	}
}

// TestHintsForFlagsOfOtherTools: a flag of another tool has a hint that names ours.
func TestHintsForFlagsOfOtherTools(t *testing.T) {
	s := &session{Program: &Program{Kinds: Kinds()}}
	for flag, want := range map[string]string{
		"--topic": inTarget, "--bootstrap-server": inTarget, "--num-records": "did you mean --count?", "-n": "did you mean --count?",
		"--record-size": "did you mean --size?", "--timeout": "did you mean --request-timeout?", "--workers": "did you mean --concurrency?",
		"--vus": "did you mean --concurrency?", "--duration": "did you mean --for?", "-z": "did you mean --for?",
	} {
		what, way := s.checkLine([]string{"run", "kafka://h/t", flag, "5"})
		assert.True(t, what == "unknown flag "+flag && way == want, "%s: %q (%s), want the hint %q", flag, what, way, want)
	}
}

// harmless are the words in help for values that are neither a file, an address, a command nor a
// secret. A new word must be added here, or to the rules.
const harmless = ",SIZE|N|TIME,N, REGEXP,ARG,DURATION,DELAY,FORMAT,K=TEXT,K=V,KEYS,KIND,KIND=N,...,LIMIT,NAME,NAME,...,NUMBER,N,N|N-N,P,P,PORTS,PREFIX,RATE,REGEXP,REMOTE,REV,RING,SHAPE,SHARE,SIZE,SPEC,TEXT,TEXT,...,TIME,TIME|N,WEIGHTS,WHEN,WHERE,WORD=N,...,OP,ID,"

// Each setting whose value can be a file, an address, a command or a secret refuses one that is not allowed.
func TestRulesKnowEverySetting(t *testing.T) {
	r := &serve.Rules{Folder: t.TempDir(), Targets: []string{"127.0.0.1"}, Store: "/var/reports.db"}
	bad := map[string]string{
		"FILE": "/etc/passwd", "DIR": "/etc", "CMD": "id", "IMAGE": "x", "PID": "1", "ADDR": "10.0.0.1:80", "URL": "http://10.0.0.1", "HOST:PORT": "10.0.0.1:80",
		"PLACE": "/etc/x.db", "REF": "env:HOME", "K=REF": "a=env:HOME", "K: V": "a: env:HOME", "FAULT": "1s:kill=pid:4711",
	}
	kinds := Kinds()
	refused := 0
	for _, k := range kinds {
		for _, s := range workload.Table(k) {
			value, known := bad[s.Placeholder()]
			switch {
			case s.Secret:
				value = "env:HOME"
			case known:
			case len(s.Choices) > 0 || s.Type != protocol.String && s.Type != protocol.List || strings.Contains(harmless, ","+s.Placeholder()+","):
				continue
			default:
				t.Errorf("%s %s: the word %q is in neither list", k.Name(), s.Name, s.Placeholder())
				continue
			}
			refused++
			err := r.Document(kinds, []workload.Entry{{Name: s.Name, Values: []string{value}, Where: "--" + s.Name}})
			if no := (*serve.Refusal)(nil); !errors.As(err, &no) || no.Way == "" || !strings.Contains(err.Error(), "--"+s.Name) {
				t.Errorf("%s %s %s: %v", k.Name(), s.Name, value, err)
			}
		}
	}
	assert.True(t, refused >= 50, "only %d settings were tried", refused)
}

// A server looks at command lines and completes them as long as it runs, and keeps no memory of it.
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

// TestManifestTarget checks that agents which may load the default target may also connect to what the brokers there announce.
func TestManifestTarget(t *testing.T) {
	rules := &serve.Rules{Agent: true, Targets: []string{fleet.DefaultTarget}}
	for address, want := range map[string]bool{
		"kafka://my-cluster-kafka-bootstrap.kafka.svc:9092/orders":     true,
		"my-cluster-kafka-0.my-cluster-kafka-brokers.kafka.svc:9092":   true,
		"kafka://my-cluster-kafka-bootstrap.elsewhere.svc:9092/orders": false,
		"my-cluster-kafka-0.my-cluster-kafka-brokers.kafka.svc:9093":   false,
	} {
		err := rules.Address(address)
		assert.True(t, (err == nil) == want, "%s: got %v, want allowed: %v", address, err, want)
	}
}

// TestManifestAgents checks that a manifest may have as many agents as can be connected to a coordinator.
func TestManifestAgents(t *testing.T) {
	for agents, want := range map[int]bool{bus.MaxAgents: true, bus.MaxAgents + 1: false} {
		_, err := fleet.Manifest(fleet.ManifestOptions{Agents: agents})
		assert.True(t, (err == nil) == want, "%d agents: got %v, want allowed: %v", agents, err, want)
	}
}

// TestCompletionsOfALine: what a session of the shell offers for carronade's own commands.
func TestCompletionsOfALine(t *testing.T) {
	s := &session{Program: &Program{Kinds: Kinds()}}
	for _, tt := range testkit.Table[struct {
		Line string
		Want []string // those that begin with the last word
	}](t, "testdata/completions.yaml") {
		t.Run(tt.Line, func(t *testing.T) {
			words := strings.Split(tt.Line, " ")
			got := s.completions(words)
			got = slices.DeleteFunc(got, func(c string) bool { return !strings.HasPrefix(c, words[len(words)-1]) })
			assert.True(t, slices.Equal(got, tt.Want), "got %q, want %q", got, tt.Want)
		})
	}
}
