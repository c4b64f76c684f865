package arch

import (
	"encoding/xml"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
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
	own := assert.Value(os.ReadFile("../../go.mod"))(t)
	example := assert.Value(os.ReadFile("../../examples/lines/go.mod"))(t)
	first, _, _ := strings.Cut(string(example), "\n")
	name := strings.TrimPrefix(first, "module ")
	assert.True(t, name != Module && !strings.HasPrefix(name, Module+"/"), "the example's module is %s, which may import internal packages of %s", name, Module)
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
				"go.mod":   {Data: []byte("module x\n\ngo 1.26\n\n" + tt.mod)},
				"x.go":     {Data: []byte("package x\nimport _ \"a.org/b/c\"\n")},
				"y/go.mod": {Data: []byte("module y\n")},
				"y/y.go":   {Data: []byte("package y\nimport _ \"a.org/c\"\n")},
			}))(t)
			assert.Same(t, got, tt.want)
		})
	}
}

const document = "../../docs/architecture.md"

// TestSentences checks that the document says of each package what it is for, or says it of its folder.
func TestSentences(t *testing.T) {
	data := assert.Value(os.ReadFile(document))(t)
	_, rest, _ := strings.Cut(string(data), "## The floor plan\n")
	sentences, _, ok := strings.Cut(rest, "\n## ")
	assert.Must(t, ok, "%s has no floor plan", document)
	for _, r := range Packages {
		if r.Name == "." || strings.ContainsAny(r.Name, "*.") {
			continue
		}
		name := r.Name
		for name != "." && !strings.Contains(sentences, "`"+name+"`") {
			name = path.Dir(name)
		}
		assert.True(t, name != ".", "%s has no sentence about %s", document, r.Name)
	}
}

// Pictures in documents exist and are small. SVG pictures are valid XML without scripts and references.
func TestPicturesOfDocuments(t *testing.T) {
	const limit = 100 << 10
	image := regexp.MustCompile(`!\[([^\]]*)\]\(([^)\s]+)\)`)
	texts := assert.Value(filepath.Glob("../../docs/*.md"))(t)
	found := 0
	for _, path := range append(texts, "../../README.md") {
		text := assert.Value(os.ReadFile(path))(t)
		for _, m := range image.FindAllStringSubmatch(string(text), -1) {
			found++
			if strings.TrimSpace(m[1]) == "" {
				t.Errorf("%s: %s has no alternative text", path, m[2])
			}
			data, err := os.ReadFile(filepath.Join(filepath.Dir(path), m[2]))
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if len(data) > limit {
				t.Errorf("%s: %s has %d bytes, want at most %d", path, m[2], len(data), limit)
			}
			if filepath.Ext(m[2]) != ".svg" {
				continue
			}
			d := xml.NewDecoder(strings.NewReader(string(data)))
			for {
				token, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Errorf("%s: %v", m[2], err)
					break
				}
				if e, ok := token.(xml.StartElement); ok {
					for _, a := range e.Attr {
						if a.Name.Local == "href" || e.Name.Local == "script" {
							t.Errorf("%s: %s has a reference or a script: %s", m[2], e.Name.Local, a.Value)
						}
					}
				}
			}
		}
	}
	assert.True(t, found != 0, "no document contains a picture")
}
