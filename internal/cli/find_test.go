//go:build unix

package cli_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"carronade/internal/standin"
)

// answer is what the tests read of the JSON of find.
type answer struct {
	Schema string   `json:"schema"`
	ID     string   `json:"id"`
	Ending string   `json:"ending"`
	Why    string   `json:"why"`
	Limits []string `json:"limits"`
	Holds  float64  `json:"holds"`
	Trials []struct {
		Role    string  `json:"role"`
		Rate    float64 `json:"rate"`
		Report  string  `json:"report"`
		Verdict *struct {
			Result string `json:"result"`
		} `json:"verdict"`
	} `json:"trials"`
}

// findBudget is enough for the trials that the tests wait for, also if the machine stops for
// some seconds in all.
const findBudget = "12s"

// startFind starts a short search against a stand-in, with reports in a store of its own.
func startFind(t *testing.T) (p *process, server *standin.Child, store string) {
	t.Helper()
	server, err := standin.Spawn(t.Context(), carronade(t), "apm", "--listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	store = filepath.Join(t.TempDir(), "reports.db")
	return start(t, "find", "apm+http://"+server.Addr(), "--slo", "p99<20ms", "--budget", findBudget, "--store", store, "--json"), server, store
}

func (p *process) answer(t *testing.T) (a answer) {
	t.Helper()
	if err := json.Unmarshal(p.out.Bytes(), &a); err != nil {
		t.Fatalf("%v\n%s\n%s", err, p.out.String(), p.said.String())
	}
	if a.Schema != "carronade.find/1" || len(a.Limits) != 1 || a.Limits[0] != "p99 < 20 ms" {
		t.Errorf("got %+v", a)
	}
	return a
}

// A search ends with an answer, and each of its trials is a report.
func TestFind(t *testing.T) {
	t.Parallel()
	p, _, store := startFind(t)
	switch code := p.end(t); code { // what a busy machine holds is not known
	case 0, 3, 4:
	default:
		t.Fatalf("exit code %d; it said:\n%s", code, p.said.String())
	}
	a := p.answer(t)
	if len(a.Trials) < 5 {
		t.Fatalf("got %+v", a)
	}
	probes := 0
	for _, one := range a.Trials {
		if one.Role == "probe" {
			probes++
		} else if one.Rate <= 0 {
			t.Errorf("a trial has no rate: %+v", one)
		}
	}
	if probes < 2 || a.Trials[probes].Role != "warm-up" || a.Trials[probes+1].Verdict == nil {
		t.Errorf("got %+v", a.Trials)
	}
	out, err := exec.Command(carronade(t), "report", "list", "label.find="+a.ID, "--store", store, "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range a.Trials {
		if one.Report == "" || !strings.Contains(string(out), one.Report) {
			t.Errorf("trial %+v is not in the store", one)
		}
	}
}

// Ctrl-C ends a search with what is known.
func TestFindInterrupted(t *testing.T) {
	t.Parallel()
	p, _, _ := startFind(t)
	p.until(t, "trial 4")
	p.interrupt(t)
	if got := p.end(t); got != 130 {
		t.Errorf("exit code: got %d, want 130; it said:\n%s", got, p.said.String())
	}
	if a := p.answer(t); a.Ending != "stopped" || a.Why != "interrupted" || len(a.Trials) != 3 {
		t.Errorf("got %+v", a)
	}
}

// A system that is gone ends a search.
func TestFindOfASystemThatDies(t *testing.T) {
	t.Parallel()
	p, server, _ := startFind(t)
	p.until(t, "trial 4")
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := p.end(t); got != 2 {
		t.Errorf("exit code: got %d, want 2; it said:\n%s", got, p.said.String())
	}
	if a := p.answer(t); a.Ending != "died" || !strings.Contains(a.Why, "refused") {
		t.Errorf("got %+v", a)
	}
}

// A search that was killed goes on where it was.
func TestFindResumed(t *testing.T) {
	t.Parallel()
	p, server, store := startFind(t)
	p.until(t, "trial 5")
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
	out, err := exec.Command(carronade(t), "report", "list", "--columns", "label.find", "--store", store, "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`label\.find": *"(s[0-9a-z]{7})"`).FindStringSubmatch(string(out))
	if found == nil {
		t.Fatalf("no trial has a label:\n%s", out)
	}
	id := found[1]
	again := func(args ...string) *process {
		return start(t, append([]string{"find", "apm+http://" + server.Addr(), "--slo", "p99<20ms", "--budget", findBudget, "--store", store, "--json"}, args...)...)
	}
	p = again("--resume", id)
	switch code := p.end(t); code {
	case 0, 3, 4:
	default:
		t.Fatalf("exit code %d; it said:\n%s", code, p.said.String())
	}
	if a := p.answer(t); a.ID != id || len(a.Trials) < 5 || !strings.Contains(p.said.String(), "resumed after 4 trials\ntrial 5") {
		t.Errorf("got %+v; it said:\n%s", a, p.said.String())
	}
	p = again("--resume", id, "--gzip", "5")
	if got := p.end(t); got != 2 || !strings.Contains(p.said.String(), "has another gzip") {
		t.Errorf("exit code %d; it said:\n%s", got, p.said.String())
	}
	p = again("--resume", "12345678")
	if got := p.end(t); got != 2 || !strings.Contains(p.said.String(), `no trials of a search "12345678"`) {
		t.Errorf("exit code %d; it said:\n%s", got, p.said.String())
	}
}

// What a search cannot answer, it says before its trials or after the first one.
func TestFindOfOtherTargets(t *testing.T) {
	t.Parallel()
	spawn := func(args ...string) string {
		server, err := standin.Spawn(t.Context(), carronade(t), args...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Stop() })
		return server.Addr()
	}
	kafka := "kafka://" + spawn("kafka", "--listen", "127.0.0.1:0", "--topic", "empty") + "/empty"
	tests := []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"reading what is empty", []string{kafka, "--op", "consume", "--budget", "12s"}, 4, []string{"trial 1, warm-up: full speed for 1 s", "nothing was read", "1 trial in"}},
		{"reading with a small budget", []string{kafka, "--op", "consume", "--budget", "11s"}, 4, []string{"no confirmed ceiling: the budget does not suffice: reading takes 12 trials"}},
		{"reading at a rate", []string{kafka, "--op", "consume", "--from", "10k/s"}, 2, []string{"--from: reading has no rate"}},
		{"a response time of reading", []string{kafka, "--op", "consume", "--slo", "p99<1s"}, 2, []string{"a run that only reads has no such result"}},
		{"nothing is acknowledged", []string{kafka, "--acks", "0", "--budget", "6s"}, 2, []string{"nothing is acknowledged", "--slo not-found=0"}},
		{"a limit on a response time where nothing is acknowledged", []string{kafka, "--acks", "0", "--budget", "6s", "--slo", "p99<20ms", "--slo", "not-found=0"}, 2, []string{"p99 < 20 ms: nothing is acknowledged"}},
		{"a limit on the rate", []string{kafka, "--slo", "throughput>=1k/s"}, 2, []string{"the rate is what is searched for", "--at-least"}},
		{"a budget that no rate fits", []string{kafka, "--slo", "p99<1s", "--budget", "20s"}, 4, []string{"no confirmed ceiling (p99 < 1 s): the budget does not suffice: with these limits a search takes"}},
		{"topics", []string{kafka, "--op", "create"}, 2, []string{"operations on topics have no reports", "carronade topics create"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, append(append([]string{"find"}, tt.args...), "--store", filepath.Join(t.TempDir(), "reports.db"))...)
			code := p.end(t)
			said := strings.Join(strings.Fields(p.out.String()+p.said.String()), " ")
			for _, want := range tt.says {
				if !strings.Contains(said, want) {
					t.Errorf("%q is missing in\n%s%s", want, p.out.String(), p.said.String())
				}
			}
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
		})
	}
}

// Where nothing is acknowledged, a search looks for the highest rate without losses.
func TestFindOfLosses(t *testing.T) {
	t.Parallel()
	server, err := standin.Spawn(t.Context(), carronade(t), "kafka", "--listen", "127.0.0.1:0", "--topic", "t:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	p := start(t, "find", "kafka://"+server.Addr()+"/t", "--acks", "0", "--slo", "not-found=0", "--from", "2k/s", "--budget", "1m", "--store", filepath.Join(t.TempDir(), "reports.db"), "--json")
	p.until(t, "trial 2, search: 2 k/s")
	p.interrupt(t)
	if got := p.end(t); got != 130 {
		t.Errorf("exit code: got %d, want 130; it said:\n%s", got, p.said.String())
	}
	var a answer
	if err := json.Unmarshal(p.out.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	if len(a.Limits) != 1 || a.Limits[0] != "not-found = 0" || len(a.Trials) != 1 || a.Trials[0].Role != "warm-up" || !strings.Contains(p.said.String(), " achieved\nplan: ") {
		t.Errorf("got %+v; it said:\n%s", a, p.said.String())
	}
}
