package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A Finding is one violation of the rules.
type Finding struct {
	File string // slash-separated, below the root
	Line int    // 1-based; 0 for the whole file
	Text string
}

// String is the form that editors can jump to.
func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text) }

// An Edge is an import: a file of a package of the tree uses another one.
type Edge struct {
	From, To string // directories below the root
	File     string // its name, without the directory
}

// Test reports whether the file is a test.
func (e Edge) Test() bool { return strings.HasSuffix(e.File, "_test.go") }

// A Result is what Check found in a tree.
type Result struct {
	Findings []Finding // in the order of the files
	Files    int       // Go files that were read
	Edges    map[Edge]bool
}

// Check reads every file of the tree.
func Check(tree fs.FS, packages []Package) (Result, error) {
	r := Result{Edges: map[Edge]bool{}}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".ci" || d.Name() == "testdata" || d.Name() == "dist") {
				return fs.SkipDir
			}
			return nil
		}
		if !isText(name) {
			return nil
		}
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		r.Findings = append(r.Findings, checkWords(name, src)...)
		if path.Ext(name) != ".go" {
			return nil
		}
		r.Files++
		r.Findings = append(r.Findings, checkProtocolNames(name, src)...)
		r.Findings = append(r.Findings, checkOnce(name, src)...)
		found, err := goFile(name, src, packages, r.Edges)
		r.Findings = append(r.Findings, found...)
		return err
	})
	return r, err
}

// Unused returns a finding for each entry of the table that no import needs, so that the
// table never allows more than the tree does.
func Unused(edges map[Edge]bool, packages []Package) (findings []Finding) {
	byRow := map[string][]Edge{}
	for e := range edges {
		if r, ok := packageOf(e.From, packages); ok {
			byRow[r.Name] = append(byRow[r.Name], e)
		}
	}
	add := func(format string, args ...any) {
		findings = append(findings, Finding{"test/arch/table.go", 0, fmt.Sprintf(format, args...)})
	}
	for _, r := range packages {
		if slices.Contains(open, r.Name) {
			continue
		}
		for _, to := range r.May {
			if !slices.ContainsFunc(byRow[r.Name], func(e Edge) bool { return !e.Test() && covers(to, e.To) }) {
				add("%s may import %s, and does not: remove it", r.Name, to)
			}
		}
		for _, files := range r.patterns() {
			for _, to := range r.Files[files] {
				if !slices.ContainsFunc(byRow[r.Name], func(e Edge) bool {
					return !e.Test() && matches(files, e.File) && covers(to, e.To) && !covered(r.May, e.To)
				}) {
					add("%s of %s may import %s, and does not, or may anyway: remove it", files, r.Name, to)
				}
			}
		}
		for _, to := range r.Tests {
			if !slices.ContainsFunc(byRow[r.Name], func(e Edge) bool {
				return e.Test() && covers(to, e.To) && !mayImport(r, "", e.To, packages) && !covered(testPackages, e.To)
			}) {
				add("the tests of %s may import %s, and do not, or may anyway: remove it", r.Name, to)
			}
		}
	}
	return findings
}

// isText reports whether a file of this name is searched for words.
func isText(name string) bool {
	switch path.Ext(name) {
	case ".go", ".md", ".yml", ".yaml", ".json", ".sh", ".xml", ".txtar":
		return true
	}
	return path.Base(name) == "Makefile" || path.Dir(name) == "scripts" || path.Dir(name) == ".ci"
}

// checkWords finds words that must not be used anywhere. A word inside a longer one,
// as in a key's base64, is ignored.
func checkWords(name string, src []byte) (findings []Finding) {
	lower := bytes.ToLower(src)
	for _, bad := range badWords {
		word := []byte(strings.ToLower(bad.word))
		for at := 0; ; {
			i := bytes.Index(lower[at:], word)
			if i < 0 {
				break
			}
			i, at = at+i, at+i+len(word)
			if letter(word[0]) && i > 0 && letter(lower[i-1]) || letter(word[len(word)-1]) && at < len(lower) && letter(lower[at]) {
				continue
			}
			line := 1 + bytes.Count(src[:i], []byte("\n"))
			findings = append(findings, Finding{name, line, fmt.Sprintf("%q must not be used: %s", bad.word, bad.why)})
			break
		}
	}
	return findings
}

// checkProtocolNames finds names of protocols in packages that must not contain any,
// at most one in each line.
func checkProtocolNames(name string, src []byte) (findings []Finding) {
	if !slices.Contains(protocolPackages, path.Dir(name)) || strings.HasSuffix(name, "_test.go") || slices.ContainsFunc(protocolFiles, func(pattern string) bool { return matches(pattern, name) }) {
		return nil
	}
	for i, line := range bytes.Split(bytes.ToLower(src), []byte("\n")) {
		for _, protocol := range protocolNames {
			at := bytes.Index(line, []byte(protocol))
			if at < 0 || at > 0 && letter(line[at-1]) && len(protocol) < 4 {
				continue // three letters are part of many words
			}
			findings = append(findings, Finding{name, i + 1, fmt.Sprintf("%s knows no protocol, and this names %s: %s is the list of them", path.Dir(name), protocol, protocolLister)})
			break
		}
	}
	return findings
}

// matches reports whether a file's name matches a pattern of package path.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

func letter(b byte) bool { return 'a' <= b && b <= 'z' || '0' <= b && b <= '9' }

// goFile checks one source file: its package's imports, which it adds to edges, its size,
// its names, and sleeping in tests.
func goFile(name string, src []byte, packages []Package, edges map[Edge]bool) (findings []Finding, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return []Finding{{name, 0, "does not parse: " + err.Error()}}, nil //nolint:nilerr // it is a finding
	}
	add := func(at token.Pos, format string, args ...any) {
		findings = append(findings, Finding{name, set.Position(at).Line, fmt.Sprintf(format, args...)})
	}
	dir, test := path.Dir(name), strings.HasSuffix(name, "_test.go")

	if slices.Contains(badPackages, strings.TrimSuffix(file.Name.Name, "_test")) {
		add(file.Name.Pos(), "package %s says nothing about what is inside: name it after its noun", file.Name.Name)
	}
	if f := strings.Fields(file.Doc.Text()); len(f) > 1 && f[0] == "Package" && f[1] != strings.TrimSuffix(file.Name.Name, "_test") {
		add(file.Doc.Pos(), "the comment of package %s begins with \"Package %s\"", file.Name.Name, f[1])
	}
	lines, limit := bytes.Count(src, []byte("\n")), maxLines
	if test {
		limit = maxTestLines
	}
	if lines > limit && !ast.IsGenerated(file) {
		findings = append(findings, Finding{name, 0, fmt.Sprintf("%d lines, more than %d: split the file", lines, limit)})
	}

	folder, ok := packageOf(dir, packages)
	if !ok {
		add(file.Name.Pos(), "package %s has no row in the table of packages: add one to test/arch/table.go and docs/architecture.md", dir)
		return findings, nil
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return findings, fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		to, own := strings.CutPrefix(imported, Module+"/")
		if !own || to == dir {
			continue
		}
		edges[Edge{dir, to, path.Base(name)}] = true
		if mayImport(folder, path.Base(name), to, packages) {
			continue
		}
		add(spec.Pos(), "%s may not import %s: the table of packages allows %s", dir, to, folder.allows())
	}
	if n := len(folder.filesOf(path.Base(name))); n > 1 {
		findings = append(findings, Finding{name, 0, fmt.Sprintf("%d patterns of the table of packages match this file: a rule of the linter needs one", n)})
	}
	if !test {
		ast.Inspect(file, func(n ast.Node) bool {
			if to := assertedTo(n); to == "load" || to == "protocol" {
				add(n.Pos(), "a type assertion finds what a target can do, and a wrapper hides it: ask its Capabilities")
			}
			if s, ok := n.(*ast.StructType); ok && dir != "internal/advice" && hasField(s, "Err") && hasField(s, "Hint") {
				add(n.Pos(), "an error with a hint is a protocol.Error (internal/advice)")
			}
			return true
		})
	}
	if test && !imports(file, "testing/synctest") {
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Sleep" {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" {
					add(sel.Pos(), "time.Sleep in a test: wait for what is meant, or use testing/synctest")
				}
			}
			return true
		})
	}
	return findings, nil
}

// assertedTo returns the package of the interface in a type assertion; "" for another node, and for a
// schedule, which does not belong to a protocol.
func assertedTo(n ast.Node) string {
	a, ok := n.(*ast.TypeAssertExpr)
	if !ok {
		return ""
	}
	sel, ok := a.Type.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name == "Stepped" {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); ok {
		return x.Name
	}
	return ""
}

func hasField(s *ast.StructType, name string) bool {
	return slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool {
		return slices.ContainsFunc(f.Names, func(n *ast.Ident) bool { return n.Name == name })
	})
}

// packageOf finds the row of a directory: the exact one, or else the longest one that
// covers it.
func packageOf(dir string, packages []Package) (Package, bool) {
	var best Package
	for _, r := range packages {
		if r.Name == dir {
			return r, true
		}
		if covers(r.Name, dir) && len(r.Name) > len(best.Name) {
			best = r
		}
	}
	return best, best.Name != ""
}

func covers(pattern, dir string) bool {
	if top, ok := strings.CutSuffix(pattern, "/..."); ok {
		return dir == top || strings.HasPrefix(dir, top+"/")
	}
	ok, _ := path.Match(pattern, dir)
	return ok
}

// mayImport reports whether row r allows a file an import. Packages of one row may import each
// other, unless a row of its own describes the imported one. A test may import what any file may.
func mayImport(r Package, file, to string, packages []Package) bool {
	own, _ := packageOf(to, packages)
	if covered(r.May, to) || own.Name == r.Name {
		return true
	}
	test := strings.HasSuffix(file, "_test.go")
	for _, files := range r.patterns() {
		if (test || matches(files, file)) && covered(r.Files[files], to) {
			return true
		}
	}
	return test && (covered(r.Tests, to) || covered(testPackages, to))
}

// patterns are the patterns of r's exceptions, sorted.
func (r Package) patterns() []string { return slices.Sorted(maps.Keys(r.Files)) }

// filesOf are the patterns of r's exceptions that match a file that is not a test.
func (r Package) filesOf(file string) []string {
	return slices.DeleteFunc(r.patterns(), func(files string) bool { return strings.HasSuffix(file, "_test.go") || !matches(files, file) })
}

// allows says what r may import.
func (r Package) allows() string {
	text := "it nothing of ours"
	if len(r.May) > 0 {
		text = "it " + strings.Join(r.May, ", ")
	}
	for _, files := range r.patterns() {
		text += "; " + files + " alone " + strings.Join(r.Files[files], ", ")
	}
	return text
}

// covered reports whether one of the patterns covers a directory.
func covered(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return covers(p, dir) })
}

func imports(file *ast.File, pkg string) bool {
	return slices.ContainsFunc(file.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == strconv.Quote(pkg) })
}
