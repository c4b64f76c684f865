//go:build unix

package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carronade/internal/sandbox"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// A testFleet is the server of a fleet with its agents, as processes.
type testFleet struct {
	data   string
	agents map[string]*process
}

// startFleet starts a server and agents with these flags. The first flag of each is its name.
func startFleet(t *testing.T, agents ...[]string) *testFleet {
	t.Helper()
	f := &testFleet{data: t.TempDir(), agents: map[string]*process{}}
	start(t, "fleet", "start", "--listen", "127.0.0.1:0", "--data", f.data)
	for _, flags := range agents {
		name := flags[0]
		join := filepath.Join(t.TempDir(), "join")
		f.ask(t, join, "fleet", "token", "--name", name, "-o", join, "--data", f.data)
		own := []string{"--data", t.TempDir()}
		if slices.Contains(flags, "--data") {
			own = nil
		}
		f.agents[name] = start(t, append(append([]string{"agent", "--join", join}, own...), flags[1:]...)...)
	}
	for name := range f.agents {
		f.ask(t, name+" ready ", "fleet", "status", "--data", f.data)
	}
	return f
}

// ask runs a command until its output has a text: another process is starting.
func (f *testFleet) ask(t *testing.T, text string, args ...string) {
	t.Helper()
	var out []byte
	for range 200 {
		out, _ = exec.Command(carronade(t), args...).CombinedOutput()
		if strings.Contains(strings.Join(strings.Fields(string(out)), " "), text) {
			return
		}
	}
	t.Fatalf("carronade %s never said %q, but:\n%s", strings.Join(args, " "), text, out)
}

func (f *testFleet) run(t *testing.T, args ...string) *process {
	t.Helper()
	return start(t, f.args(args)...)
}

func (f *testFleet) args(args []string) []string {
	return append([]string{"run", "--json", "--fleet=" + filepath.Join(f.data, "operator.json")}, args...)
}

// doubts reports whether a reason not to trust a report has a text.
func (r *fleetReport) doubts(text string) bool {
	return !r.Trust.OK && strings.Contains(strings.Join(r.Trust.Reasons, "\n"), text)
}

// A fleetReport is what the tests read of a report.
type fleetReport struct {
	ID     string
	Totals measure.Counts
	Trust  measure.Trust
	Ledger *measure.Ledger
	Fleet  struct {
		SkewUS float64 `json:"skew_us"`
		Bound  float64 `json:"end_to_end_bound_us"`
		Agents []struct {
			Name, State string
			From, To    int
			Reads       bool
			measure.Counts
			ClockBoundUS float64 `json:"clock_bound_us"`
		}
	}
}

func reportOf(t *testing.T, p *process) (r fleetReport) {
	t.Helper()
	assert.OK(t, json.Unmarshal(p.out.Bytes(), &r), "%s\n%s", p.out.String(), p.said.String())
	c := r.Totals
	assert.True(t, c.Offered == c.Sent+c.Dropped+c.Unsent && c.Sent == c.Acked+c.Failed+c.Unknown, "the counts do not add up: %+v", c)
	return r
}

// TestFleet: agents fire one schedule by their weights, and refuse what they do not allow.
func TestFleet(t *testing.T) {
	t.Parallel()
	f := startFleet(t, []string{"a", "--allow"}, []string{"b", "--allow-target", "127.0.0.1:*", "--weight", "2"})
	p := startTrusted(t, f.args([]string{"null://", "--rate", "3k/s", "--for", "2s", "--warmup", "500ms"})...)
	p.exits(t, 0)
	r := reportOf(t, p)
	assert.True(t, r.Totals.Offered == 6000 && r.Totals.Acked == 6000, "offered %d, acked %d, want 6000", r.Totals.Offered, r.Totals.Acked)
	assert.Must(t, len(r.Fleet.Agents) == 2 && r.Fleet.SkewUS > 0, "fleet: %+v", r.Fleet)
	for i, want := range []struct {
		name     string
		from, to int
		sent     uint64
	}{{"a", 0, 1, 2000}, {"b", 1, 3, 4000}} {
		a := r.Fleet.Agents[i]
		assert.True(t, a.Name == want.name && a.From == want.from && a.To == want.to && a.Sent == want.sent &&
			a.State == "complete" && a.ClockBoundUS > 0, "got %+v, want %+v", a, want)
	}
	refused := f.run(t, "kafka://192.0.2.1:9092/t", "--rate", "1k/s", "--for", "1s", "--fleet-agents", "b")
	refused.exits(t, failed, "--allow-target")
	elsewhere := child(t, "kafka", "--in-memory", "--topic", "t:1", "--advertise", "192.0.2.1:9092")
	announced := f.run(t, "kafka://"+elsewhere.Addr()+"/t", "--rate", "1k/s", "--for", "1s", "--fleet-agents", "b")
	announced.exits(t, failed, "agent b may not connect to 192.0.2.1:9092")
	for _, c := range []struct{ flags, want string }{
		{"--clients 1", "1 clients are too few for 2 agents"},
		{"--concurrency 1", "a concurrency of 1 is too low"},
		{"--fleet-agents c", `agent "c" is not connected`},
		{"--for 9s --fault 1s:stop=pid:1,1s", "agents stop no processes"},
		{"--for 9s --at 1s --exec true --allow-exec", "run no commands"},
		{"--trace x.parquet", "--trace keeps what this program sent"},
	} {
		args := append([]string{"null://"}, strings.Fields(c.flags)...)
		if !slices.Contains(args, "--for") {
			args = append(args, "--for", "1s")
		}
		p := f.run(t, args...)
		p.exits(t, failed, c.want)
	}
	f.ask(t, "", "fleet", "remove", "b", "--data", f.data)
	f.agents["b"].exits(t, failed, "revoked")
}

// TestFleetLost: a run whose agent is killed ends, and says what is missing; with
// --keep-going the others go on, and the share of the lost one is unsent.
func TestFleetLost(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		f := startFleet(t, []string{"a", "--allow"}, []string{"b", "--allow"})
		args := []string{"null://", "--rate", "2k/s", "--for", "5m"}
		if keep {
			args = []string{"null://", "--rate", "2k/s", "--for", "20s", "--keep-going"}
		}
		p := f.run(t, args...)
		p.until(t, "measurement  2 s")
		assert.OK(t, f.agents["b"].Process.Kill())
		p.until(t, "agent b is lost")
		p.exits(t, failed)
		r := reportOf(t, p)
		assert.True(t, r.doubts("agent b: no message came from it") && len(r.Fleet.Agents) == 2 &&
			r.Fleet.Agents[1].State == "aborted", "keep going %v: %+v %+v", keep, r.Trust, r.Fleet)
		assert.True(t, !keep || r.Totals.Offered == 40_000 && r.Fleet.Agents[0].Sent == 20_000 && r.Totals.Unsent >= 6000,
			"the other did not go on: %+v, %+v", r.Totals, r.Fleet)
		assert.True(t, keep || r.Totals.Offered < 600_000, "the run did not end early: %+v", r.Totals)
	}
}

// TestFleetVerified: one agent reads what two others send, and the ledger joins both.
func TestFleetVerified(t *testing.T) {
	t.Parallel()
	f := startFleet(t, []string{"a", "--allow"}, []string{"b", "--allow"}, []string{"c", "--allow"})
	record := filepath.Join(t.TempDir(), "record.csv")
	broker := child(t, "kafka", "--in-memory", "--topic", "t:4", "--record", record)
	target := "kafka://" + broker.Addr() + "/t"
	var acked, unknown uint64
	for _, c := range []struct {
		args     string
		consumed uint64
	}{{"--op roundtrip --verify --rate 2k/s --for 2s --linger 5ms", 4000}, {"--verify --count 3000", 0}} {
		p := f.run(t, append(append([]string{target}, strings.Fields(c.args)...), "--fleet-reader", "c")...)
		if code := p.end(t); code != 0 && code != 3 { // a busy machine is not trusted
			t.Fatalf("%s: exit code %d:\n%s", c.args, code, p.said.String())
		}
		r := reportOf(t, p)
		acked += r.Totals.Acked
		l := r.Ledger
		if l == nil || !l.Complete || l.Acked != r.Totals.Acked || l.Read != l.Acked || l.Acked < 3000 || l.Lost+l.Unread+l.Inexact+l.Reordered+l.Duplicated+l.Corrupted+l.Foreign > 0 {
			t.Errorf("%s: acked %d, ledger %+v", c.args, r.Totals.Acked, l)
		}
		assert.True(t, r.Totals.Consumed == c.consumed && (r.Fleet.Bound > 0) == (c.consumed > 0),
			"%s: consumed %d, want %d; bound %v us", c.args, r.Totals.Consumed, c.consumed, r.Fleet.Bound)
		a, b, reader := r.Fleet.Agents[0], r.Fleet.Agents[1], r.Fleet.Agents[2]
		assert.True(t, a.Sent != 0 && b.Sent != 0 && a.Sent+b.Sent == r.Totals.Sent && reader.Sent == 0 &&
			reader.Reads && reader.State == "complete", "%s: agents %+v", c.args, r.Fleet.Agents)
	}
	p := f.run(t, target, "--rate", "1k/s", "--for", "30s", "--verify", "--fleet-reader", "c")
	p.until(t, "measurement  2 s")
	assert.OK(t, f.agents["c"].Process.Kill())
	p.until(t, "agent c is lost")
	p.exits(t, failed)
	r := reportOf(t, p)
	acked, unknown = acked+r.Totals.Acked, r.Totals.Unknown
	if l := r.Ledger; l == nil || l.Complete || l.Lost > 0 || l.Unread == 0 || l.Acked != r.Totals.Acked || !r.doubts("agent c: no message came from it") {
		t.Errorf("without the agent that reads: ledger %+v, acked %d, %+v", l, r.Totals.Acked, r.Trust)
	}
	for _, c := range []struct{ args, want string }{
		{target + " --verify --for 1s", "give --fleet-reader NAME"},
		{target + " --for 1s --fleet-reader b", "--fleet-reader reads what the others send"},
		{target + " --for 1s --verify --fleet-reader x", `agent "x" does not take part`},
		{target + " --for 1s --op roundtrip --fleet-reader b", "needs --rate"},
		{"riemann://127.0.0.1:1 --rate 1 --for 1s --verify --fleet-reader b", "another machine cannot read"},
	} {
		p := f.run(t, strings.Fields(c.args)...)
		p.exits(t, failed, c.want)
	}
	assert.OK(t, broker.Stop())
	produced, _ := recorded(t, record)
	assert.True(t, uint64(produced) >= acked && uint64(produced) <= acked+unknown,
		"the broker took %d events, the reports have %d acked and %d unknown", produced, acked, unknown)
}

// TestFleetStop: fleet stop ends a run that another program commands.
func TestFleetStop(t *testing.T) {
	t.Parallel()
	f := startFleet(t, []string{"a", "--allow"}, []string{"b", "--allow"})
	f.ask(t, "no run is in progress", "fleet", "stop", "--data", f.data)
	p := f.run(t, "null://", "--rate", "1k/s", "--for", "5m")
	p.until(t, "measurement  1 s")
	f.ask(t, "stopped on a, b", "fleet", "stop", "--data", f.data)
	p.exits(t, 130)
	r := reportOf(t, p)
	assert.True(t, r.Totals.Acked >= 1000 && r.Totals.Acked == r.Totals.Sent &&
		r.doubts("not every agent fired all of its share"), "%+v %+v", r.Totals, r.Trust)
}

// TestFleetRecover: when the program that commands a run is killed, its agents stop by
// themselves, and the report is made of what they kept.
func TestFleetRecover(t *testing.T) {
	t.Parallel()
	f := startFleet(t, []string{"a", "--allow"}, []string{"b", "--allow"})
	store := filepath.Join(t.TempDir(), "reports.db")
	p := f.run(t, "null://", "--rate", "2k/s", "--for", "5m", "--store", store)
	p.until(t, "measurement  2 s")
	assert.OK(t, p.Process.Kill())
	for _, a := range f.agents {
		a.until(t, "has ended")
	}
	recovered := start(t, "fleet", "recover", "last", "--json", "--store", store, "--fleet="+filepath.Join(f.data, "operator.json"))
	recovered.exits(t, 3)
	r := reportOf(t, recovered)
	assert.True(t, r.doubts("recovered from the agents") && len(r.Fleet.Agents) == 2 && r.Totals.Acked >= 4000 &&
		r.Totals.Acked < 600_000, "recovered: %+v %+v %+v", r.Trust, r.Totals, r.Fleet)
	again := start(t, "fleet", "recover", "last~1", "--json", "--store", store, "--fleet="+filepath.Join(f.data, "operator.json"))
	again.exits(t, failed, "its spool has no data of run")
}

// The program that commands a run takes marks, which have no scores; a limit on a score is refused.
func TestFleetMarks(t *testing.T) {
	t.Parallel()
	f := startFleet(t, []string{"a", "--allow"})
	runtime := "XDG_RUNTIME_DIR=" + t.TempDir()
	cmd := exec.Command(carronade(t), f.args([]string{"null://", "--rate", "1k/s", "--for", "5m", "--marks"})...)
	cmd.Env = []string{runtime, "CARRONADE_TEST_UNTRUSTED=none"}
	p := begin(t, cmd)
	p.until(t, "measurement  1 s")
	mark := exec.Command(carronade(t), "mark", "last", "fault", "pull the plug")
	mark.Env = append(os.Environ(), runtime)
	out, err := mark.CombinedOutput()
	assert.Must(t, err == nil && strings.Contains(string(out), "fault pull the plug at "), "%v: %s", err, out)
	p.interrupt(t)
	p.exits(t, 130)
	var r struct {
		Faults struct {
			Marks []struct {
				Kind, Name string
				AtS        float64 `json:"at_s"`
				BoundS     float64 `json:"bound_s"`
			}
			Scores []any
			Notes  []string
		}
	}
	assert.OK(t, json.Unmarshal(p.out.Bytes(), &r))
	got := r.Faults
	assert.True(t, len(got.Marks) == 1 && got.Marks[0].Name == "pull the plug" && got.Marks[0].AtS >= 1 &&
		got.Marks[0].BoundS > 0 && len(got.Scores) == 0 && len(got.Notes) == 1, "faults %+v", got)
	refused := f.run(t, "null://", "--rate", "1k/s", "--for", "1s", "--slo", "outage<1s")
	refused.exits(t, 2, "a fleet takes marks, and has no scores of faults")
}

// TestAgentWalls: an agent opens files of its folder for runs and no others, also by names that are not
// absolute, and confines itself by the system.
func TestAgentWalls(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	t.Chdir(dir)
	const outside, inside = "canary-beside-the-folder", "canary-in-the-folder"
	for path, text := range map[string]string{"outside": outside, filepath.Join(data, "files", "inside"): inside} {
		assert.OK(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	target := listen(t)
	f := startFleet(t, []string{"a", "--allow-target", target.addr, "--data", data})
	for _, file := range []string{"outside", "inside"} {
		p := f.run(t, "apm+http://"+target.addr, "--rate", "1/s", "--for", "1s", "--secret-token", "file:"+file)
		code := p.end(t)
		assert.True(t, code != 0 && (file != "outside" || strings.Contains(p.said.String(), "no such file")), "%s: exit code %d:\n%s", file, code, p.said.String())
	}
	got := target.text()
	assert.True(t, !strings.Contains(got, outside) && strings.Contains(got, inside), "the target was sent %q", got)
	if sandbox.Here().Files {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.agents["a"].Process.Pid))
		assert.True(t, err == nil && strings.Contains(string(status), "NoNewPrivs:\t1") && strings.Contains(string(status), "CapEff:\t0000000000000000"),
			"the agent is not confined: %v\n%s", err, status)
	}
}
