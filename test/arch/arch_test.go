package arch

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"carronade/test/testkit/assert"
)

// TestTree checks the real tree against the rules.
func TestTree(t *testing.T) {
	r := assert.Value(Check(os.DirFS("../.."), Packages))(t)
	assert.Must(t, r.Files >= 20, "read %d Go files: the tree was not found", r.Files)
	for _, f := range append(r.Findings, Unused(r.Edges, Packages)...) {
		t.Error(f)
	}
	for _, p := range testPackages {
		used := false
		for e := range r.Edges {
			used = used || e.Test() && covers(p, e.To)
		}
		assert.True(t, used, "the tests of any package may import %s, and none does: remove it", p)
	}
}

// TestTable checks that the table is consistent: rows are unique, and name only existing rows.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Packages {
		assert.True(t, !seen[r.Name], "%s has two rows", r.Name)
		seen[r.Name] = true
		if r.Name != "app" {
			for _, to := range r.May {
				assert.True(t, to != "internal/cli" || strings.HasPrefix(r.Name, "tools"),
					"%s may import internal/cli: only app may", r.Name)
			}
		}
	}
	for _, r := range Packages {
		for _, to := range slices.Concat(r.May, r.Tests, slices.Concat(slices.Collect(maps.Values(r.Files))...)) {
			_, ok := packageOf(strings.TrimSuffix(to, "/..."), Packages)
			assert.True(t, ok, "%s may import %s, which has no row", r.Name, to)
		}
	}
}

// TestProtocolPackages checks that each package that must not name protocols exists, and each file in which it may.
func TestProtocolPackages(t *testing.T) {
	for _, pattern := range protocolFiles {
		files, err := filepath.Glob(filepath.Join("../..", filepath.FromSlash(pattern)))
		assert.True(t, err == nil && len(files) != 0, "protocolFiles has %s, which does not exist: remove it", pattern)
	}
	for _, dir := range protocolPackages {
		files, err := filepath.Glob(filepath.Join("../..", filepath.FromSlash(dir), "*.go"))
		assert.True(t, err == nil && len(files) != 0, "protocolPackages has %s, which does not exist: remove it", dir)
	}
}

// TestFindings checks that each rule can fail, and that allowed code passes.
func TestFindings(t *testing.T) {
	packages := []Package{
		{Name: "units"},
		{Name: "load", May: []string{"units"}},
		{Name: "wire/..."},
		{Name: "cli", May: []string{"load"}, Tests: []string{"extra"}},
		{Name: "extra"},
		{Name: "wire/own"},
		{Name: "internal/cli/reports"},
		{Name: "run", May: []string{"units"}, Files: map[string][]string{"profile*.go": {"load"}, "*_b.go": {"extra"}}},
	}
	tests := []struct {
		name, file, src string
		want            []string
	}{
		{"allowed", "load/a.go", "package load\nimport \"carronade/units\"\n", nil},
		{"forbidden", "units/a.go", "package units\n\nimport \"carronade/load\"\n", []string{
			"units/a.go:3: units may not import load: the table of packages allows it nothing of ours",
		}},
		{"forbidden in a test", "units/a_test.go", "package units_test\n\nimport \"carronade/cli\"\n", []string{
			"units/a_test.go:3: units may not import cli: the table of packages allows it nothing of ours",
		}},
		{"a test's extra", "cli/a_test.go", "package cli\nimport \"carronade/extra\"\n", nil},
		{"own external test", "load/a_test.go", "package load_test\nimport \"carronade/load\"\n", nil},
		{"below a covered package", "wire/kafka/a.go", "package kafka\nimport \"carronade/wire/snappy\"\n", nil},
		{"below, with a row of its own", "wire/kafka/a.go", "package kafka\nimport \"carronade/wire/own\"\n", []string{
			"wire/kafka/a.go:2: wire/kafka may not import wire/own: the table of packages allows it nothing of ours",
		}},
		{"covered package upwards", "wire/kafka/a.go", "package kafka\nimport \"carronade/load\"\n", []string{
			"wire/kafka/a.go:2: wire/kafka may not import load: the table of packages allows it nothing of ours",
		}},
		{"an exception of a file", "run/profile_a.go", "package run\nimport \"carronade/load\"\n", nil},
		{"an exception of other files", "run/a.go", "package run\nimport \"carronade/load\"\n", []string{
			"run/a.go:2: run may not import load: the table of packages allows it units; *_b.go alone extra; profile*.go alone load",
		}},
		{"an exception, in a test", "run/a_test.go", "package run\nimport \"carronade/load\"\n", nil},
		{"two exceptions match", "run/profile_b.go", "package run\nimport \"carronade/load\"\n", []string{
			"run/profile_b.go:0: 2 patterns of the table of packages match this file: a rule of the linter needs one",
		}},
		{"others' modules are free", "units/a.go", "package units\nimport \"carronades/x\"\n", nil},
		{"no row", "new/a.go", "package fresh\n", []string{
			"new/a.go:1: package new has no row in the table of packages: add one to test/arch/table.go and docs/architecture.md",
		}},
		{"empty name", "load/a.go", "package util\n", []string{
			"load/a.go:1: package util says nothing about what is inside: name it after its noun",
		}},
		{"a comment of another package", "load/a.go", "// Package other is old.\npackage load\n", []string{
			"load/a.go:1: the comment of package load begins with \"Package other\"",
		}},
		{"a comment of its own", "load/a_test.go", "// Package load is new.\npackage load_test\n", nil},
		{"sleep in a test", "load/a_test.go", "package load\nimport \"time\"\nfunc f() { time.Sleep(1) }\n", []string{
			"load/a_test.go:3: time.Sleep in a test: wait for what is meant, or use testing/synctest",
		}},
		{"sleep under synctest", "load/a_test.go", "package load\nimport (\"time\"; \"testing/synctest\")\nfunc f() { synctest.Wait(); time.Sleep(1) }\n", nil},
		{"sleep outside tests", "load/a.go", "package load\nimport \"time\"\nfunc f() { time.Sleep(1) }\n", nil},
		{"too long", "load/a.go", "package load\n" + strings.Repeat("\n", maxLines), []string{
			"load/a.go:0: 601 lines, more than 600: split the file",
		}},
		{"a longer test is fine", "load/a_test.go", "package load\n" + strings.Repeat("\n", maxLines), nil},
		{"generated may be long", "load/a.go", "// Code generated by x. DO NOT EDIT.\npackage load\n" + strings.Repeat("\n", maxLines), nil},
		{"a capability by assertion", "cli/a.go", "package cli\nvar p, ok = t.(protocol.Poller)\n", []string{
			"cli/a.go:2: a type assertion finds what a target can do, and a wrapper hides it: ask its Capabilities",
		}},
		{"a second error with a hint", "cli/a.go", "package cli\ntype e struct {\n\tErr error\n\tHint string\n}\n", []string{
			"cli/a.go:2: an error with a hint is a protocol.Error (internal/advice)",
		}},
		{"an assertion to a type", "cli/a.go", "package cli\nvar p, ok = t.(*load.Mix)\n", nil},
		{"unfinished", "load/a.go", "package load\n\n// to" + "do: more\n", []string{
			"load/a.go:3: \"TO" + "DO\" must not be used: finish it or leave it out",
		}},
		{"a word in another", "load/a.go", "package load\n\n// auTo" + "Do to" + "dos\n", nil},
		{"unfinished after another word", "docs/a.md", "to" + "dos, a to" + "do\n", []string{
			"docs/a.md:1: \"TO" + "DO\" must not be used: finish it or leave it out",
		}},
		{"unfinished prose", "docs/a.md", "to" + "do\n", []string{
			"docs/a.md:1: \"TO" + "DO\" must not be used: finish it or leave it out",
		}},
		{"a protocol in a comment", "load/a.go", "package load\n\n// as KafkaThing does\n", []string{
			"load/a.go:3: load knows no protocol, and this names kafka: internal/cli/targets.go is the list of them",
		}},
		{"a protocol in code", "load/a.go", "package load\n\nvar to = \"apm+http\" // and riemann\n", []string{
			"load/a.go:3: load knows no protocol, and this names riemann: internal/cli/targets.go is the list of them",
		}},
		{"a protocol in a file that may", "internal/cli/reports/table.go", "package reports\n\n// as KafkaThing does\n", nil},
		{"letters of another word", "load/a.go", "package load\n\n// a heap map\n", nil},
		{"a protocol in a test", "load/a_test.go", "package load\n\n// kafka\n", nil},
		{"a protocol where it may be named", "units/a.go", "package units\n\n// kafka\n", nil},
		{"does not parse", "load/a.go", "pack", []string{"load/a.go:0: does not parse: load/a.go:1:1: expected 'package', found pack"}},
		{"a second send delay", "run/a.go", "package run\n\nvar x = o.Sent - max(0, b.Free)\nvar y = o.SentFirst()-max(due, o.Ready)\n", []string{
			"run/a.go:3: the send delay is computed by load.Passage, and nowhere else: use it",
			"run/a.go:4: the send delay is computed by load.Passage, and nowhere else: use it",
		}},
		{"a second list of counters", "run/a.go", "package run\n\nvar x = []uint64{c.Offered,\nc.Retries, c.AckedBytes}\n", []string{
			"run/a.go:3: the counters are listed by measure.CountsOf, and nowhere else: use it",
		}},
		{"a second list of percentiles", "run/a.go", "package run\n\nvar x = []string{\"p50\", \"p99\", \"p999\"}\n", []string{
			"run/a.go:3: the percentiles of reports are listed by measure.PercentilesOf, and nowhere else: use it",
		}},
		{"a second list of results", "run/a.go", "package run\n\nvar x = []y{\n\t{\"lost\", KindCount},\n\t{\"seen\", KindCount},\n}\nvar z = map[string]uint64{\"target-share\": x.Share}\n", []string{
			"run/a.go:4: results are listed by workload.Results, and nowhere else: use it",
			"run/a.go:7: results are listed by workload.Results, and nowhere else: use it",
		}},
		{"a second end of a run", "run/a.go", "package run\n\nfunc f() {\n\tselect {\n\tcase <-died:\n\t\tdied = nil\n\t}\n\tq := newGaugeReader(nil, 0, nil)\n}\n", []string{
			"run/a.go:5: a run begins to watch, and waits for its end, in internal/run/life.go, and nowhere else: use it",
			"run/a.go:8: a run begins to watch, and waits for its end, in internal/run/life.go, and nowhere else: use it",
		}},
		{"a second error with a hint", "run/a.go", "package run\n\ntype portError struct {\n\terr  error\n\thint string\n}\n", []string{"run/a.go:3: an error with a hint is advice.Error, and nowhere else: use it"}},
		{"a second writer of CSV", "run/a.go", "package run\n\nvar x = csv.NewWriter(w)\n", []string{"run/a.go:3: rows become Markdown and CSV in layout.Table, and nowhere else: use it"}},
		{"the send delay", "load/times.go", "package load\n\nvar x = p.Sent-max(due, p.Ready)\n", nil},
		{"others' files", "load/testdata/a.go", "package util\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := assert.Value(Check(fstest.MapFS{tt.file: {Data: []byte(tt.src)}}, packages))(t)
			var got []string
			for _, f := range r.Findings {
				got = append(got, f.String())
			}
			assert.Same(t, got, tt.want, "findings")
		})
	}
}

// TestUnusedException checks that an exception for files that no import needs is found.
func TestUnusedException(t *testing.T) {
	packages := []Package{
		{Name: "units"},
		{Name: "load"},
		{Name: "run", May: []string{"units"}, Files: map[string][]string{"profile*.go": {"load"}}},
	}
	const unused = "test/arch/table.go:0: profile*.go of run may import load, and does not, or may anyway: remove it"
	for _, tt := range []struct {
		name string
		edge Edge
		want []string
	}{
		{"used", Edge{"run", "load", "profile_a.go"}, nil},
		{"used by another file", Edge{"run", "load", "a.go"}, []string{unused}},
		{"used by a test", Edge{"run", "load", "profile_test.go"}, []string{unused}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, f := range Unused(map[Edge]bool{{"run", "units", "a.go"}: true, tt.edge: true}, packages) {
				got = append(got, f.String())
			}
			assert.Same(t, got, tt.want)
		})
	}
	packages[2].May = append(packages[2].May, "load")
	got := Unused(map[Edge]bool{{"run", "units", "a.go"}: true, {"run", "load", "profile_a.go"}: true}, packages)
	assert.True(t, len(got) == 1 && got[0].String() == unused, "got %v of an exception for what all files may import", got)
}

// TestUnused checks that an entry of the table without an import is found.
func TestUnused(t *testing.T) {
	packages := []Package{
		{Name: "units"},
		{Name: "load", May: []string{"units"}, Tests: []string{"extra"}},
		{Name: "wire/...", May: []string{"units", "load"}},
		{Name: "extra", May: []string{"wire/..."}},
	}
	tests := []struct {
		name  string
		edges []Edge
		want  []string
	}{
		{"all are used", []Edge{{"load", "units", "a.go"}, {"load", "extra", "a_test.go"}, {"wire/a", "units", "a.go"}, {"wire/b", "load", "a.go"}, {"extra", "wire/c", "a.go"}}, nil},
		{"not used", []Edge{{"load", "units", "a.go"}, {"load", "extra", "a_test.go"}, {"wire/a", "units", "a.go"}, {"extra", "wire/c", "a.go"}}, []string{
			"test/arch/table.go:0: wire/... may import load, and does not: remove it",
		}},
		{"by a test alone", []Edge{{"load", "units", "a_test.go"}, {"load", "extra", "a_test.go"}, {"wire/a", "units", "a.go"}, {"wire/b", "load", "a.go"}, {"extra", "wire/c", "a.go"}}, []string{
			"test/arch/table.go:0: load may import units, and does not: remove it",
		}},
		{"not by its tests", []Edge{{"load", "units", "a.go"}, {"load", "extra", "a.go"}, {"wire/a", "units", "a.go"}, {"wire/b", "load", "a.go"}, {"extra", "wire/c", "a.go"}}, []string{
			"test/arch/table.go:0: the tests of load may import extra, and do not, or may anyway: remove it",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			edges := map[Edge]bool{}
			for _, e := range tt.edges {
				edges[e] = true
			}
			var got []string
			for _, f := range Unused(edges, packages) {
				got = append(got, f.String())
			}
			assert.Same(t, got, tt.want)
		})
	}
}

// TestMakefile: the Makefile and its scripts name no package that is gone.
func TestMakefile(t *testing.T) {
	var all []byte
	for _, file := range []string{"Makefile", "scripts/conformance"} {
		text := assert.Value(os.ReadFile(filepath.Join("..", "..", file)))(t)
		all = append(all, text...)
	}
	names := regexp.MustCompile(`(?:^|[\s/])((?:internal|target)/[a-z/]+[a-z])`).FindAllSubmatch(all, -1)
	assert.Must(t, len(names) >= 20, "found %d names of packages", len(names))
	for _, name := range names {
		_, err := os.Stat(filepath.Join("..", "..", string(name[1])))
		assert.True(t, err == nil, "%v", err)
	}
}
