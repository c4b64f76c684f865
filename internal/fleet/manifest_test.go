package fleet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"carronade/internal/null"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestFiles compares the base that is shipped with the output. tools/release checks the same files with Kubernetes's own types.
func TestManifestFiles(t *testing.T) {
	const dir = "../../packaging/kubernetes"
	files := assert.Value(manifestFiles(ManifestOptions{}))(t)
	for _, f := range files {
		testkit.Golden(t, filepath.Join(dir, f.Name), string(f.Data))
	}
	there, err := filepath.Glob(dir + "/*")
	assert.True(t, err == nil && len(there) == len(files), "got %d files in %s and %v, want %d", len(there), dir, err, len(files))
}

// TestManifest compares the output for the options of testdata.
func TestManifest(t *testing.T) {
	for name, o := range map[string]ManifestOptions{
		"all options": {
			Agents: 3, Image: "registry.example:5000/load/carronade:v1.2.3@sha256:" + strings.Repeat("ab", 32), Namespace: "load",
			AllowTargets: []string{"b1:9092", "b2:9093", "riemann.monitoring.svc:5555", "apm.elastic.svc:8200"},
		},
		"strange texts": {Image: "3", Namespace: "1", AllowTargets: []string{`a:"b"#{c}`, "broker-*", "'y'${agents}"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := assert.Value(Manifest(o))(t)
			testkit.Golden(t, filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".yaml"), string(got))
		})
	}
}

var texts = []string{"yes", "1e3", "null", "~", "a:b", "a#b", "x:", "'", `"`, `\`, "{a}", "[a]", "*a", "&a", "!a", "%a", "@a", "`a", "-", "0x10", "a-b", "${agents}", "é"}

func TestTextsAreQuoted(t *testing.T) {
	for _, text := range texts {
		out, err := Manifest(ManifestOptions{AllowTargets: []string{text}})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		checkObjects(t, text, out)
	}
}

// FuzzTargets checks that no target changes the objects.
func FuzzTargets(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if out, err := Manifest(ManifestOptions{AllowTargets: []string{text}}); err == nil {
			checkObjects(t, text, out)
		}
	})
}

// checkObjects checks that the objects are the usual ones, and that the target is one argument of the agents.
func checkObjects(t *testing.T, target string, manifest []byte) {
	t.Helper()
	kinds, args := "", []string(nil)
	for d := yaml.NewDecoder(bytes.NewReader(manifest)); ; {
		var object struct {
			Kind string `yaml:"kind"`
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct {
							Args []string `yaml:"args"`
						} `yaml:"containers"`
					} `yaml:"spec"`
				} `yaml:"template"`
			} `yaml:"spec"`
		}
		err := d.Decode(&object)
		if errors.Is(err, io.EOF) {
			break
		}
		assert.OK(t, err, "%q", target)
		kinds += object.Kind + " "
		if object.Kind == "StatefulSet" {
			args = object.Spec.Template.Spec.Containers[0].Args
		}
	}
	want := "Secret PersistentVolumeClaim Service Job StatefulSet NetworkPolicy NetworkPolicy "
	assert.Equal(t, kinds, want, "objects of %q", target)
	assert.True(t, cmp.Equal(args, []string{"agent", "--join", "/join/fleet.join", "--data", "/data", "--allow-target", target}), "%q: the arguments are %q", target, args)
}

func TestManifestRefuses(t *testing.T) {
	for want, o := range map[string]ManifestOptions{
		"-1 agents":                 {Agents: -1},
		"name of an image":          {Image: "carronade latest"},
		"name of a namespace":       {Namespace: "Load"},
		"63 at most":                {Namespace: strings.Repeat("a", 64)},
		"65 agents: want 1 to 64":   {Agents: 65},
		`"\xff" is not a pattern`:   {AllowTargets: []string{"\xff"}},
		"pattern of addresses":      {AllowTargets: []string{"a:1", "a\nb"}},
		`"kafka://a:1" is not`:      {AllowTargets: []string{"kafka://a:1"}},
		`"" is not a pattern`:       {AllowTargets: []string{""}},
		"would replace $(...)":      {AllowTargets: []string{"$(HOME):1"}},
		`"a b" is not a pattern`:    {AllowTargets: []string{"a b"}},
		`"\x1b[m" is not a pattern`: {AllowTargets: []string{"\x1b[m"}},
	} {
		_, err := Manifest(o)
		assert.ErrorHas(t, err, want, "%+v", o)
	}
}

func TestPorts(t *testing.T) {
	for target, want := range map[string][]port{
		"b:9094":        {{9094, "TCP"}},
		"b":             {{0, "TCP"}},
		"[::1]:5555":    {{5555, "TCP"}, {5555, "UDP"}},
		"[::1]":         {{0, "TCP"}},
		"broker-*:9092": {{9092, "TCP"}},
		"10.0.0.*":      {{0, "TCP"}},
		"b:*":           {{0, "TCP"}},
		"b:65536":       {{0, "TCP"}},
	} {
		got := ports(target)
		assert.True(t, cmp.Equal(got, want, cmp.AllowUnexported(port{})), "%s: got %v, want %v", target, got, want)
	}
}

// TestUnreadableInterval: an interval that cannot be decoded marks the run, also if all else of the agent is there.
func TestUnreadableInterval(t *testing.T) {
	var said []string
	r := &firing{
		order:        &run.Order{Logf: func(format string, _ ...any) { said = append(said, format) }, Watch: func(load.Snapshot) {}},
		frames:       map[uint64][]*load.Snapshot{},
		infos:        map[string]Info{},
		participants: []*participant{{row: report.Agent{Name: "a", To: 1}}},
	}
	good := assert.Value(packSnapshot(&load.Snapshot{At: time.Second, Phase: measure.Measurement}, nil))(t)
	result := assert.Value(pack(&run.Measured{Result: &load.Result{}}))(t)
	for i, data := range [][]byte{good, good[:len(good)-3], []byte("x")} {
		r.take(frameOf{Agent: "a", Number: uint64(i + 1), Data: data})
		r.take(intervalClosed{Number: uint64(i + 1)})
	}
	r.take(resultOf{Agent: "a", Data: result})
	r.take(runFinished{Outcome: runOutcome{State: stateComplete, Agents: []agentOutcome{{Name: "a", Result: true}}}})
	g := assert.Value(r.combine())(t)
	assert.True(t, len(g.Faults) == 1 && strings.Contains(g.Faults[0], "agent a: 2 of its intervals cannot be read; the first of them is number 2: not compressed as expected"),
		"faults %q", g.Faults)
	assert.Equal(t, len(said), 2, "said %q", said)
}

// TestOtherProtocol: an agent that speaks another version of the protocol is refused with that reason.
func TestOtherProtocol(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		through, own := Within("a")
		own.Receive(func([]byte, time.Time) {
			_ = own.Send([]byte(`{"protocol":1,"kind":"pong","run":"look","session":"s","incarnation":"i","number":1,"info":{"incarnation":"i"}}`))
		})
		silent, _ := Within("b")
		f := &Fleet{Bus: Routes{"a": {Through: through, Agent: "a"}, "b": {Through: silent, Agent: "b"}}, Agents: []string{"a", "b"}, Config: Config{Logf: t.Logf}}
		infos := f.Look(context.Background(), f.Agents)
		err := f.Silent(f.Agents, infos)
		assert.ErrorHas(t, err, "agent a: it speaks version 1 of the fleet's protocol, this program version 2")
		err = f.Silent([]string{"b"}, infos)
		assert.True(t, err != nil && err.Error() == "b did not answer", "got %v", err)
		assert.True(t, f.Bus.Send("c", nil) != nil, "a message went to an agent that is not there")
	})
}

// TestParse: a plan cannot have an agent run a command or stop a process, even if it allows
// everything, and its clients have to be possible.
func TestParse(t *testing.T) {
	a := &agent{AgentConfig: AgentConfig{Kinds: []protocol.Kind{null.Kind{}}, Allow: func(settings []workload.Entry) error {
		if slices.ContainsFunc(settings, func(e workload.Entry) bool { return e.Name == "payload" }) {
			return errors.New("this agent allows no files")
		}
		return nil
	}}}
	for _, c := range []struct{ name, plan, share, want string }{
		{"good", `{"workload": {"target": "null://", "rate": "1/s", "for": "1s"}, "clients": 2}`, `{"from": 0, "to": 1}`, ""},
		{"reads", `{"workload": {"target": "null://", "rate": "1/s", "for": "1s"}, "clients": 2}`, `{"from": 2, "to": 2, "reads": true}`, ""},
		{"a command", `{"workload": {"target": "null://", "rate": "1/s", "for": "9s", "at": "1s", "exec": "true"}, "clients": 2}`, `{"from": 0, "to": 1}`, "runs no commands"},
		{"a fault", `{"workload": {"target": "null://", "rate": "1/s", "for": "9s", "fault": "1s:stop=pid:1,1s"}, "clients": 2}`, `{"from": 0, "to": 1}`, "makes no faults"},
		{"a file", `{"workload": {"target": "null://", "rate": "1/s", "for": "1s", "payload": "file:/x"}, "clients": 2}`, `{"from": 0, "to": 1}`, "allows no files"},
		{"a file of a part", `{"workload": {"target": "null://", "rate": "1/s", "for": "1s", "parts": [{"weight": "1"}, {"weight": "1", "payload": "file:/x"}]}, "clients": 2}`, `{"from": 0, "to": 1}`, "allows no files"},
		{"no clients", `{"workload": {"target": "null://", "rate": "1/s", "for": "1s"}, "clients": 2}`, `{"from": 1, "to": 1}`, "the plan has the clients 1 to 1 of 2"},
		{"too many clients", `{"workload": {"target": "null://", "rate": "1/s", "for": "1s"}, "clients": 2}`, `{"from": 1, "to": 3}`, "the plan has the clients 1 to 3 of 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, _, err := a.parse([]byte(c.plan), []byte(c.share))
			assert.True(t, (err == nil) == (c.want == "") && (err == nil || strings.Contains(err.Error(), c.want)),
				"got %v, want %q", err, c.want)
		})
	}
}
