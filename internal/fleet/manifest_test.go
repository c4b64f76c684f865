package fleet

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestFiles compares the base that is shipped with the output. tools/release
// checks the same files with Kubernetes's own types.
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

// checkObjects checks that the objects are the usual ones, and that the target is one
// argument of the agents.
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
	if want := []string{"agent", "--join", "/join/fleet.join", "--data", "/data", "--allow-target", target}; !cmp.Equal(args, want) {
		t.Errorf("%q: the arguments are %q", target, args)
	}
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
