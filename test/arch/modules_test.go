package arch

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"carronade/test/testkit/assert"
)

// A requirement is a module that a go.mod requires.
type requirement struct {
	version        string
	indirect, used bool
}

// requirements returns those of a go.mod by name.
func requirements(mod []byte) map[string]*requirement {
	of := map[string]*requirement{}
	for line := range strings.Lines(string(mod)) {
		words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(words) >= 2 && strings.HasPrefix(words[1], "v") {
			of[words[0]] = &requirement{version: words[1], indirect: strings.Contains(line, "// indirect")}
		}
	}
	return of
}

// modules compares go.mod with the imports: a module whose packages are imported must not be marked
// "indirect", every other one must be. Folders with a go.mod of their own are other modules.
func modules(tree fs.FS) (findings []string, err error) {
	mod, err := fs.ReadFile(tree, "go.mod")
	if err != nil {
		return nil, err
	}
	known := requirements(mod)
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "dist"):
			return fs.SkipDir
		case d.IsDir() && name != ".":
			if _, err := fs.Stat(tree, path.Join(name, "go.mod")); err == nil {
				return fs.SkipDir
			}
			return nil
		case path.Ext(name) != ".go":
			return nil
		}
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			for of := imported; of != "."; of = path.Dir(of) {
				if m := known[of]; m != nil {
					m.used = true
					break
				}
			}
		}
		return nil
	})
	for name, m := range known {
		switch {
		case m.used && m.indirect:
			findings = append(findings, name+" is imported, and go.mod marks it indirect")
		case !m.used && !m.indirect:
			findings = append(findings, name+" is imported by nothing, and go.mod does not mark it indirect")
		}
	}
	return findings, err
}

func TestModules(t *testing.T) {
	for _, dir := range []string{"../..", "../../tools/release", "../../examples/lines"} {
		findings := assert.Value(modules(os.DirFS(dir)))(t)
		for _, f := range findings {
			t.Errorf("%s/go.mod: %s", dir, f)
		}
	}
}

// The example of a protocol is a module of its own, outside of this one's path, so that the
// compiler refuses it our internal packages. It is built with the same versions.
func TestExampleModule(t *testing.T) {
	own, err := os.ReadFile("../../go.mod")
	assert.OK(t, err)
	example, err := os.ReadFile("../../examples/lines/go.mod")
	assert.OK(t, err)
	first, _, _ := strings.Cut(string(example), "\n")
	if name := strings.TrimPrefix(first, "module "); name == Module || strings.HasPrefix(name, Module+"/") {
		t.Errorf("the example's module is %s, which may import internal packages of %s", name, Module)
	}
	versions := requirements(own)
	for name, r := range requirements(example) {
		if own := versions[name]; name != Module && (own == nil || own.version != r.version) {
			t.Errorf("examples/lines/go.mod wants %s %s, which go.mod does not: go mod tidy there updates it", name, r.version)
		}
	}
}

// TestModulesFindings checks that the rule can fail.
func TestModulesFindings(t *testing.T) {
	for _, tt := range []struct {
		name, mod string
		want      []string
	}{
		{"right", "require (\n\ta.org/b v1.0.0\n\ta.org/c v1.0.0 // indirect\n)\n", nil},
		{"on one line", "require a.org/b v1.0.0\n", nil},
		{"imported", "require (\n\ta.org/b v1.0.0 // indirect\n)\n", []string{"a.org/b is imported, and go.mod marks it indirect"}},
		{"not imported", "require (\n\ta.org/b v1.0.0\n\ta.org/b/d v1.0.0\n)\n", []string{"a.org/b/d is imported by nothing, and go.mod does not mark it indirect"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := assert.Value(modules(fstest.MapFS{
				"go.mod": {Data: []byte("module x\n\ngo 1.26\n\n" + tt.mod)},
				"x.go":   {Data: []byte("package x\nimport _ \"a.org/b/c\"\n")},

				"y/go.mod": {Data: []byte("module y\n")},
				"y/y.go":   {Data: []byte("package y\nimport _ \"a.org/c\"\n")},
			}))(t)
			assert.Same(t, got, tt.want)
		})
	}
}
