package arch

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// The table of packages is written into two files. There it ends before a line that it
// never contains.
const (
	document     = "../../docs/architecture.md"
	documentHead = "| package | may import |\n|---|---|\n"
	documentEnd  = "\n"

	linter     = "../../.golangci.yml"
	linterHead = "        # From test/arch/table.go; go test ./test/arch -update writes it.\n"
	linterEnd  = "        # The end of the table.\n"
)

// documentText is the table of packages as the document shows it.
func documentText() string {
	var b strings.Builder
	for _, r := range Packages {
		name := r.Name
		if name == "." {
			name = "main.go"
		}
		may := "nothing of ours"
		if len(r.May) > 0 {
			may = quoted(r.May)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, may)
		for _, files := range r.patterns() {
			fmt.Fprintf(&b, "| `%s/%s` | also %s |\n", name, files, quoted(r.Files[files]))
		}
	}
	return b.String()
}

func quoted(names []string) string { return "`" + strings.Join(names, "` `") + "`" }

// linterText is the table of packages as rules of the linter, which shows a forbidden
// import in an editor.
func linterText(packages []Package) string {
	var b strings.Builder
	for _, r := range packages {
		name, all := strings.CutSuffix(r.Name, "/...")
		rule, files := strings.ReplaceAll(name, "/", "-"), "${config-path}/"+name+"/*.go"
		may := r.May
		var apart []string // what has rules of its own
		switch {
		case r.Name == ".":
			rule, files = "main", "${config-path}/*.go"
		case all:
			rule, files = rule+"-others", "${config-path}/"+name+"/**.go"
			may = append([]string{r.Name}, may...)
		}
		var deny []string
		for _, other := range packages {
			if all && other.Name != r.Name && covers(r.Name, other.Name) {
				apart = append(apart, other.Name+"/*.go")
				if !covered(r.May, other.Name) {
					deny = append(deny, other.Name)
				}
			}
		}
		for _, pattern := range r.patterns() {
			apart = append(apart, name+"/"+pattern)
		}
		linterRule(&b, rule, files, apart, deny, may)
		for _, pattern := range r.patterns() {
			of := strings.NewReplacer("*", "", ".go", "", "_", "-").Replace(pattern)
			linterRule(&b, rule+"-"+of, "${config-path}/"+name+"/"+pattern, nil, deny, slices.Concat(may, r.Files[pattern]))
		}
	}
	return b.String()
}

// linterRule writes a rule for files, except those that lie apart: they may import the packages of
// may, and must not import those of deny.
func linterRule(b *strings.Builder, rule, files string, apart, deny, may []string) {
	fmt.Fprintf(b, "        %s:\n          files: [%q, ", rule, files)
	for _, other := range apart {
		fmt.Fprintf(b, "%q, ", "!${config-path}/"+other)
	}
	fmt.Fprintf(b, "\"!$test\"]\n          list-mode: lax\n          deny: [{pkg: %s/, desc: the table of packages does not allow it}", Module)
	for _, other := range deny {
		fmt.Fprintf(b, ", {pkg: %s/%s$, desc: the table of packages does not allow it}", Module, other)
	}
	b.WriteString("]\n")
	var allow []string
	for _, to := range may {
		if top, all := strings.CutSuffix(to, "/..."); all {
			allow = append(allow, Module+"/"+top+"/")
			to = top
		}
		allow = append(allow, Module+"/"+to+"$")
	}
	if len(allow) > 0 {
		fmt.Fprintf(b, "          allow: [%s]\n", strings.Join(allow, ", "))
	}
}

// TestDocument compares the table in the document and in the linter's settings with the
// one that is enforced.
func TestDocument(t *testing.T) {
	for _, tt := range []struct{ file, head, end, want string }{
		{document, documentHead, documentEnd, documentText()},
		{linter, linterHead, linterEnd, linterText(Packages)},
	} {
		data, err := os.ReadFile(tt.file)
		assert.OK(t, err)
		before, rest, ok := strings.Cut(string(data), tt.head)
		assert.Must(t, ok, "%s has no table of packages", tt.file)
		end := strings.Index("\n"+rest, "\n"+tt.end)
		assert.Must(t, end >= 0, "the table in %s has no end", tt.file)
		if testkit.Update() {
			assert.OK(t, os.WriteFile(tt.file, []byte(before+tt.head+tt.want+rest[end:]), 0o644))
			continue
		}
		if diff := cmp.Diff(rest[:end], tt.want); diff != "" {
			t.Errorf("the table in %s differs from test/arch/table.go; go test ./test/arch -update updates it (-file +table):\n%s", tt.file, diff)
		}
	}
}

// TestLinterText checks a rule of each form.
func TestLinterText(t *testing.T) {
	got := linterText([]Package{{Name: "."}, {Name: "a/b", May: []string{"c"}}, {Name: "d/...", May: []string{"e/..."}}, {Name: "d/x"}, {Name: "f", May: []string{"c"}, Files: map[string][]string{"x*.go": {"g", "h/..."}, "y_z.go": {"g"}}}})
	const want = `        main:
          files: ["${config-path}/*.go", "!$test"]
          list-mode: lax
          deny: [{pkg: carronade/, desc: the table of packages does not allow it}]
        a-b:
          files: ["${config-path}/a/b/*.go", "!$test"]
          list-mode: lax
          deny: [{pkg: carronade/, desc: the table of packages does not allow it}]
          allow: [carronade/c$]
        d-others:
          files: ["${config-path}/d/**.go", "!${config-path}/d/x/*.go", "!$test"]
          list-mode: lax
          deny: [{pkg: carronade/, desc: the table of packages does not allow it}, {pkg: carronade/d/x$, desc: the table of packages does not allow it}]
          allow: [carronade/d/, carronade/d$, carronade/e/, carronade/e$]
        d-x:
          files: ["${config-path}/d/x/*.go", "!$test"]
          list-mode: lax
          deny: [{pkg: carronade/, desc: the table of packages does not allow it}]
        f:
          files: ["${config-path}/f/*.go", "!${config-path}/f/x*.go", "!${config-path}/f/y_z.go", "!$test"]
          list-mode: lax
          deny: [{pkg: carronade/, desc: the table of packages does not allow it}]
          allow: [carronade/c$]
        f-x:
          files: ["${config-path}/f/x*.go", "!$test"]
          list-mode: lax
          deny: [{pkg: carronade/, desc: the table of packages does not allow it}]
          allow: [carronade/c$, carronade/g$, carronade/h/, carronade/h$]
        f-y-z:
          files: ["${config-path}/f/y_z.go", "!$test"]
          list-mode: lax
          deny: [{pkg: carronade/, desc: the table of packages does not allow it}]
          allow: [carronade/c$, carronade/g$]
`
	assert.Same(t, got, want)
}

// TestSentences checks that the document says of each package what it is for, or says it
// of its folder.
func TestSentences(t *testing.T) {
	data, err := os.ReadFile(document)
	assert.OK(t, err)
	_, rest, _ := strings.Cut(string(data), "| package | one sentence |\n")
	sentences, _, ok := strings.Cut(rest, "\n\n")
	assert.Must(t, ok, "%s has no table of sentences", document)
	for _, r := range Packages {
		if r.Name == "." || strings.HasSuffix(r.Name, "/...") {
			continue
		}
		name := r.Name
		for name != "." && !strings.Contains(sentences, "`"+name+"`") {
			name = path.Dir(name)
		}
		assert.True(t, name != ".", "%s has no sentence about %s", document, r.Name)
	}
}
