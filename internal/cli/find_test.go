//go:build unix

package cli_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"carronade/internal/cli"
	"carronade/internal/standin"
	"carronade/internal/workload"
	"carronade/test/testkit/assert"
)

// answer is what the tests read of the JSON of find.
type answer struct {
	Schema string   `json:"schema"`
	ID     string   `json:"id"`
	Ending string   `json:"ending"`
	Why    string   `json:"why"`
	Limits []string `json:"limits"`
	Trials []tried  `json:"trials"`
}

// tried is a trial of an answer.
type tried struct {
	Role     string        `json:"role"`
	Rate     float64       `json:"rate"`
	Achieved float64       `json:"achieved"`
	Report   string        `json:"report"`
	Elapsed  time.Duration `json:"elapsed_ns"`
	Times    any           `json:"times"`
	Verdict  any           `json:"verdict"`
}

// longSearch is a search that no test waits for: however slow the machine is, it has not ended when
// a test interrupts it. It begins with a rate, so its second trial is judged.
var longSearch = []string{"--from", "200/s", "--budget", "1m"}

// startFind starts a search against a stand-in, with reports in a store of its own. again starts
// the same search with further flags.
func startFind(t *testing.T, flags ...string) (p *process, server *standin.Child, store string, again func(args ...string) *process) {
	t.Helper()
	server = child(t, "apm")
	store = filepath.Join(t.TempDir(), "reports.db")
	again = func(args ...string) *process {
		all := append([]string{"find", "apm+http://" + server.Addr(), "--slo", "p99<20ms", "--store", store, "--json"}, flags...)
		return startTrusted(t, append(all, args...)...)
	}
	return again(), server, store, again
}

func (p *process) answer(t *testing.T) (a answer) {
	t.Helper()
	assert.OK(t, json.Unmarshal(p.out.Bytes(), &a), "%s\n%s", p.out.String(), p.said.String())
	assert.True(t, a.Schema == "carronade.find/1" && len(a.Limits) == 1 && a.Limits[0] == "p99 < 20 ms", "got %+v", a)
	return a
}

// reported is what the tests read of a stored trial.
type reported struct {
	StartedAt time.Time         `json:"started_at"`
	EndedAt   time.Time         `json:"ended_at"`
	Partial   bool              `json:"partial"`
	Labels    map[string]string `json:"labels"`
	Totals    struct {
		Achieved float64 `json:"events_per_s"`
	} `json:"totals"`
}

// compareTrials compares the trials of an answer with their reports, one by one.
func compareTrials(t *testing.T, store string, a *answer) {
	t.Helper()
	for i, one := range a.Trials {
		out := assert.Value(exec.Command(carronade(t), "report", "export", one.Report, "--as", "json", "--store", store).Output())(t, "trial %d, %+v", i+1, one)
		var d reported
		assert.OK(t, json.Unmarshal(out, &d))
		assert.True(t, d.Labels["find"] == a.ID && d.Labels["find-role"] == one.Role && !d.Partial && d.Totals.Achieved == one.Achieved && d.EndedAt.Sub(d.StartedAt) == one.Elapsed,
			"trial %d: got %+v, its report says %+v", i+1, one, d)
	}
}

// A search ends with an answer, and each of its trials is a report.
func TestFind(t *testing.T) {
	t.Parallel()
	p, _, store, _ := startFind(t, "--budget", "12s")
	switch code := p.end(t); code { // what a busy machine holds is not known
	case 0, 1, 3, 4:
	default:
		t.Fatalf("exit code %d; it said:\n%s", code, p.said.String())
	}
	a := p.answer(t)
	assert.Must(t, len(a.Trials) != 0 && a.Trials[0].Role == "probe", "got %+v", a)
	for i, one := range a.Trials {
		if probe := one.Role == "probe"; probe && (i > 0 && a.Trials[i-1].Role != "probe" || one.Verdict != nil) || !probe && one.Rate <= 0 {
			t.Errorf("trial %d: got %+v", i+1, one)
		}
		judged := one.Role == "search" || one.Role == "confirm"
		assert.True(t, !judged || one.Verdict != nil, "trial %d is not judged: %+v", i+1, one)
	}
	compareTrials(t, store, &a)
}

// Ctrl-C ends a search with what is known.
func TestFindInterrupted(t *testing.T) {
	t.Parallel()
	p, _, store, _ := startFind(t, longSearch...)
	p.until(t, "trial 2")
	p.interrupt(t)
	p.exits(t, 130)
	a := p.answer(t)
	assert.True(t, a.Ending == "stopped" && a.Why == "interrupted" && len(a.Trials) != 0, "got %+v", a)
	compareTrials(t, store, &a)
}

// A system that is gone ends a search.
func TestFindOfASystemThatDies(t *testing.T) {
	t.Parallel()
	p, server, _, _ := startFind(t, longSearch...)
	p.until(t, "trial 2")
	assert.OK(t, server.Stop())
	p.exits(t, 2)
	// It may stop before a trial connects, or while one does.
	a := p.answer(t)
	assert.True(t, a.Ending == "died" && (strings.Contains(a.Why, "refused") || strings.Contains(a.Why, "EOF")), "got %+v", a)
}

// A search that was killed goes on where it was, and every trial that is taken from the store is what it was when it ran.
func TestFindResumed(t *testing.T) {
	t.Parallel()
	p, _, store, again := startFind(t, longSearch...)
	p.until(t, "trial 2")
	assert.OK(t, p.Process.Kill())
	_ = p.Wait()
	id := searchID(t, store)
	resume := func(runs int) answer {
		t.Helper()
		p := again("--resume", id)
		p.until(t, "resumed after ")
		for range runs {
			p.until(t, "trial ")
		}
		p.interrupt(t)
		p.exits(t, 130)
		a := p.answer(t)
		assert.True(t, a.ID == id, "got %+v; it said:\n%s", a, p.said.String())
		compareTrials(t, store, &a)
		return a
	}
	lived := resume(2) // at least a trial that was stored, and one that ran
	replayed := resume(1)
	assert.Must(t, len(lived.Trials) >= 2 && len(replayed.Trials) >= len(lived.Trials), "got %+v\nand %+v", lived, replayed)
	for i := range lived.Trials {
		a, b := lived.Trials[i], replayed.Trials[i]
		assert.True(t, reflect.DeepEqual(a, b), "trial %d: got %+v\nreplayed %+v", i+1, a, b)
	}
	p = again("--resume", id, "--gzip", "5")
	p.exits(t, 2, "has another gzip")
	p = again("--resume", "12345678")
	p.exits(t, 2, `no trials of a search "12345678"`)
}

// searchID is the id of the search whose trials are in a store.
func searchID(t *testing.T, store string) string {
	t.Helper()
	out := assert.Value(exec.Command(carronade(t), "report", "list", "--columns", "label.find", "--store", store, "--json").Output())(t)
	found := regexp.MustCompile(`label\.find": *"(s[0-9a-z]{7})"`).FindStringSubmatch(string(out))
	assert.Must(t, found != nil, "no trial has a label:\n%s", out)
	return found[1]
}

// What a search cannot answer, it says before its trials or after the first one.
func TestFindOfOtherTargets(t *testing.T) {
	t.Parallel()
	kafka := "kafka://" + spawn(t, "kafka", "--topic", "empty") + "/empty"
	for _, tt := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"reading what is empty", []string{kafka, "--op", "consume", "--budget", "12s"}, 4, []string{"trial 1, warm-up: full speed for 1 s", "nothing was read", "1 trial in"}},
		{"reading with a small budget", []string{kafka, "--op", "consume", "--budget", "11s"}, 2, []string{"error: --budget: the budget does not suffice: reading takes 12 trials", "hint: give a larger --budget"}},
		{"reading at a rate", []string{kafka, "--op", "consume", "--from", "10k/s"}, 2, []string{"--from: reading has no rate"}},
		{"reading below a rate", []string{kafka, "--op", "consume", "--to", "10k/s"}, 2, []string{"--to: reading has no rate"}},
		{"reading for long", []string{kafka, "--op", "consume", "--confirm", "30m"}, 2, []string{"--confirm: reading has no rate"}},
		{"a response time of reading", []string{kafka, "--op", "consume", "--slo", "p99<1s"}, 2, []string{"a run that only reads has no such result"}},
		{"nothing is acknowledged", []string{kafka, "--acks", "0", "--budget", "6s"}, 2, []string{"nothing is acknowledged", "--slo not-found=0"}},
		{"a limit on a response time where nothing is acknowledged", []string{kafka, "--acks", "0", "--budget", "6s", "--slo", "p99<20ms", "--slo", "not-found=0"}, 2, []string{"p99 < 20 ms: nothing is acknowledged"}},
		{"a limit on the rate", []string{kafka, "--slo", "throughput>=1k/s"}, 2, []string{"the rate is what is searched for", "--at-least"}},
		{"a budget that no rate fits", []string{kafka, "--slo", "p99<1s", "--budget", "20s"}, 2, []string{"error: --budget: the budget does not suffice: with these limits a search takes", "hint: give a larger --budget, or a limit on a shorter time"}},
		{"topics", []string{kafka, "--op", "create"}, 2, []string{"operations on topics have no reports", "carronade topics create"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, append(append([]string{"find"}, tt.args...), "--store", filepath.Join(t.TempDir(), "reports.db"))...)
			code := p.end(t)
			said := strings.Join(strings.Fields(p.out.String()+p.said.String()), " ")
			for _, want := range tt.says {
				assert.True(t, strings.Contains(said, want), "%q is missing in\n%s%s", want, p.out.String(), p.said.String())
			}
			assert.Equal(t, code, tt.code, "exit code")
		})
	}
}

// Where nothing is acknowledged, a search looks for the highest rate without losses.
func TestFindOfLosses(t *testing.T) {
	t.Parallel()
	server := child(t, "kafka", "--topic", "t:1")
	p := start(t, "find", "kafka://"+server.Addr()+"/t", "--acks", "0", "--slo", "not-found=0", "--from", "2k/s", "--budget", "1m", "--store", filepath.Join(t.TempDir(), "reports.db"), "--json")
	p.until(t, "trial 2, search: 2 k/s")
	p.interrupt(t)
	p.exits(t, 130)
	var a answer
	assert.OK(t, json.Unmarshal(p.out.Bytes(), &a))
	assert.True(t, len(a.Limits) == 1 && a.Limits[0] == "not-found = 0" && len(a.Trials) != 0 && a.Trials[0].Role == "warm-up" && strings.Contains(p.said.String(), " achieved\nplan: "),
		"got %+v; it said:\n%s", a, p.said.String())
}

// A kind knows which of its runs are never acknowledged.
func TestUnacknowledged(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		settings map[string]string
		want     bool
	}{
		{map[string]string{"target": "kafka://a:1/t", "acks": "0"}, true},
		{map[string]string{"target": "kafka://a:1/t", "acks": "1"}, false},
		{map[string]string{"target": "kafka://a:1/t"}, false},
		{map[string]string{"target": "kafka://a:1/t", "op": "consume"}, false},
		{map[string]string{"target": "riemann+udp://a:1"}, true},
		{map[string]string{"target": "riemann://a:1"}, false},
		{map[string]string{"target": "riemann+ws://a:1"}, false},
		{map[string]string{"target": "apm+http://a:1"}, false},
	} {
		var d workload.Document
		for name, value := range tt.settings {
			d.Add(name, name, value)
		}
		w := assert.Value(workload.Resolve(cli.Kinds(), &d, nil))(t)
		assert.Equal(t, w.Unacknowledged(), tt.want, "%v", tt.settings)
	}
}
