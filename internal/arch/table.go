// Package arch checks the structure of the source tree: which package may import
// which, how large a file may be, which names and words must not be used. It contains
// the table below and the checks of a tree of files. It reads source only with
// go/parser and knows nothing about what the code does.
//
// Its invariant: a package without a row in the table is a finding, so the table is
// always complete.
package arch

// Module is the import path of the tree's root.
const Module = "carronade"

// A Package is one row of the import table: a package, or all packages below a
// directory when the name ends in "/...".
type Package struct {
	Name  string              // path below the module; "." is main
	May   []string            // packages it may import, in the same notation
	Files map[string][]string // more packages, which only files of these names may import (path.Match)
	Tests []string            // packages its tests may import besides those of testPackages
}

// public are the packages that a protocol outside this module may use.
var public = []string{"app", "load", "measure", "payload", "target", "target/targettest", "units"}

// protocol are the packages that a kind of target may import.
var protocol = []string{"load", "measure", "payload", "target", "units"}

// open are rows for protocols that someone adds: they say what these may import, and nothing
// in the tree need use it. With them a new folder below target needs no row of its own.
var open = []string{"examples/...", "target/..."}

// testPackages may be imported by the tests of any package.
var testPackages = []string{"internal/testkit/assert", "internal/testkit/browser", "internal/testkit/kafkatest", "internal/testkit", "internal/standin", "internal/standin/apm", "internal/standin/kafka", "internal/standin/riemann", "internal/wire/...", "target/targettest", "target/null", "target", "load", "measure", "payload", "units", "internal/workload"}

// Packages is the table of docs/architecture.md. Imports go only downwards, and only
// app imports internal/cli.
var Packages = []Package{
	{Name: ".", May: []string{"app"}},
	{Name: "app", May: []string{"internal/cli", "target"}},
	{Name: "examples/...", May: public},

	{Name: "units"},
	{Name: "measure"},
	{Name: "payload", May: []string{"internal/place", "units"}},
	{Name: "load", May: []string{"internal/impair", "measure", "units"}},

	{Name: "target", May: []string{"internal/secret", "load", "measure", "units"}},
	{Name: "target/targettest", May: []string{"load", "target"}},
	{Name: "target/kafka", May: []string{"internal/conn", "internal/impair", "internal/place", "internal/socket", "internal/wire/kafka", "load", "measure", "payload", "target", "target/kafka/cluster", "target/kafka/franz", "units"}, Tests: []string{"internal/ledger"}},
	{Name: "target/kafka/cluster", May: []string{"internal/conn", "internal/place", "internal/wire/kafka", "load", "measure", "payload", "target", "units"}},
	{Name: "target/kafka/franz", May: []string{"internal/conn", "internal/impair", "internal/socket", "internal/wire/kafka", "load", "measure", "payload", "target", "target/kafka/cluster"}},
	{Name: "target/apm", May: []string{"internal/conn", "internal/place", "internal/secret", "internal/socket", "internal/wire/apm", "load", "measure", "payload", "target", "units"}},
	{Name: "target/riemann", May: []string{"internal/conn", "internal/socket", "internal/wire/riemann", "load", "measure", "payload", "target", "units"}, Tests: []string{"internal/ledger"}},
	{Name: "target/null", May: []string{"internal/wire/kafka", "load", "measure", "payload", "target"}},
	{Name: "target/...", May: protocol},

	{Name: "internal/wire/...", May: []string{"internal/place", "internal/wire/crc"}},
	{Name: "internal/impair"},
	{Name: "internal/socket", May: []string{"internal/impair"}},
	{Name: "internal/conn", May: []string{"internal/place", "internal/socket", "load", "target", "units"}},
	{Name: "internal/standin", May: []string{"internal/socket", "internal/system", "units"}},
	{Name: "internal/standin/apm", May: []string{"internal/secret", "internal/standin", "internal/wire/apm", "units"}},
	{Name: "internal/standin/kafka", May: []string{"internal/secret", "internal/standin", "internal/system", "units"}},
	{Name: "internal/standin/riemann", May: []string{"internal/standin", "internal/wire/riemann", "units"}, Tests: []string{"internal/system"}},
	{Name: "internal/ledger", May: []string{"load", "measure"}},
	{Name: "internal/trust", May: []string{"load", "measure", "units"}, Files: map[string][]string{
		"examination.go": {"internal/layout", "target"},
		"machine*.go":    {"internal/system", "target"},
	}},
	{Name: "internal/system", May: []string{"internal/impair", "measure", "units"}},
	{Name: "internal/place"},
	{Name: "internal/door"},
	{Name: "internal/sandbox"},
	{Name: "internal/secret", May: []string{"internal/place"}},
	{Name: "internal/sut", May: []string{"internal/conn", "internal/secret", "internal/system", "measure", "target", "units"}},
	{Name: "internal/fault", May: []string{"load", "units"}},
	{Name: "internal/workload", May: []string{"internal/fault", "internal/place", "internal/secret", "load", "measure", "payload", "target", "units"}},
	{Name: "internal/layout"},
	{Name: "internal/find", May: []string{"internal/layout", "internal/stats", "internal/system", "measure", "units"}, Tests: []string{"internal/judge"}},
	{Name: "internal/fleet", May: []string{"internal/report", "internal/run", "internal/system", "internal/workload", "load", "measure", "target"}},
	{Name: "internal/report", May: []string{"internal/fault", "internal/find", "internal/layout", "internal/place", "internal/system", "internal/trust", "internal/workload", "load", "measure", "units"}},
	{Name: "internal/store", May: []string{"internal/report", "internal/secret", "internal/system", "internal/workload", "load", "measure", "target", "units"}, Tests: []string{"internal/fault", "internal/find", "internal/store/sqlite", "internal/testkit/reporttest", "target/..."}},
	{Name: "internal/testkit/reporttest", May: []string{"internal/report", "internal/store", "internal/testkit/assert", "load", "measure"}},
	{Name: "internal/sqlitefile", May: []string{"internal/system"}},
	{Name: "internal/jobs", May: []string{"internal/sqlitefile", "internal/system", "target", "units"}},
	{Name: "internal/shell", May: []string{"internal/jobs", "internal/place", "internal/secret", "internal/store/elastic", "internal/sut", "internal/system", "target"}},
	{Name: "internal/serve", May: []string{"internal/conn", "internal/door", "internal/fault", "internal/jobs", "internal/live", "internal/place", "internal/secret", "internal/system", "internal/workload", "payload", "target"}, Tests: []string{"target/apm", "target/kafka", "target/riemann"}},
	{Name: "internal/store/sqlite", May: []string{"internal/report", "internal/sqlitefile", "internal/store", "internal/system", "target"}, Tests: []string{"internal/testkit/reporttest"}},
	{Name: "internal/store/elastic", May: []string{"internal/conn", "internal/place", "internal/report", "internal/secret", "internal/store", "internal/system", "measure", "target", "units"}, Tests: []string{"internal/testkit/reporttest"}},
	{Name: "internal/stats"},
	{Name: "internal/traffic", May: []string{"internal/wire/apm", "internal/wire/kafka", "load", "units"}},
	{Name: "internal/explain", May: []string{"internal/report", "measure", "units"}, Files: map[string][]string{
		"incidents.go": {"internal/stats"},
		"input.go":     {"internal/fault"},
		"text.go":      {"internal/layout"},
	}},
	{Name: "internal/judge", May: []string{"internal/layout", "internal/report", "internal/stats", "internal/store", "internal/workload", "load", "measure", "target", "units"}},
	{Name: "internal/picture", May: []string{"internal/fault", "internal/find", "internal/layout", "internal/report", "load", "measure", "units"}},
	{Name: "internal/page", May: []string{"internal/picture", "internal/report"}, Tests: []string{"internal/export", "internal/live"}},
	{Name: "internal/export", May: []string{"internal/layout", "internal/page", "internal/picture", "internal/report", "measure", "units"}, Tests: []string{"internal/fault", "internal/find"}},
	{Name: "internal/trace", May: []string{"internal/place", "internal/system", "load"}, Tests: []string{"internal/testkit/parquettest"}},
	{Name: "internal/live", May: []string{"internal/conn", "internal/door", "internal/layout", "internal/page", "internal/report", "internal/secret", "internal/system", "load", "measure", "target", "units"}},
	{Name: "internal/run", May: []string{"internal/fault", "internal/ledger", "internal/place", "internal/report", "internal/secret", "internal/store", "internal/sut", "internal/system", "internal/trace", "internal/trust", "internal/workload", "load", "measure", "target", "units"}, Tests: []string{"internal/store/sqlite", "internal/testkit/parquettest"}},
	{Name: "internal/fleet/bus", May: []string{"internal/door", "internal/system"}},
	{Name: "internal/scenario", May: []string{"internal/place", "internal/report", "internal/system", "internal/workload", "measure", "target", "units"}},
	{Name: "internal/compat", May: []string{"internal/layout", "internal/picture", "internal/place", "internal/report", "internal/scenario", "internal/secret", "internal/stats", "internal/store/elastic", "internal/system", "internal/trace", "internal/wire/apm", "internal/workload", "load", "measure", "payload", "target/kafka/cluster", "units"}},
	{Name: "internal/compat/mongoose", May: []string{"internal/compat", "internal/layout", "internal/live", "internal/report", "internal/scenario", "internal/secret", "internal/system", "internal/trace", "internal/wire/kafka", "internal/workload", "load", "measure", "payload", "units"}, Tests: []string{"target/kafka"}},
	{Name: "internal/command", May: []string{"internal/export", "internal/judge", "internal/layout", "internal/place", "internal/report", "internal/store", "internal/system", "internal/workload", "load", "measure", "target", "units"}, Files: map[string][]string{
		"explain.go":  {"internal/explain"},
		"pictures.go": {"internal/picture"},
		"profile*.go": {"internal/traffic", "internal/wire/apm", "internal/wire/kafka", "internal/wire/riemann", "payload", "target/kafka", "target/riemann"},
		"query*.go":   {"target/riemann"},
		"topics*.go":  {"internal/run", "target/kafka", "target/kafka/cluster"},
		"vary.go":     {"internal/picture", "internal/stats"},
	}, Tests: []string{"internal/store/sqlite", "internal/testkit/reporttest", "target/apm"}},
	{Name: "internal/cli", May: []string{
		"internal/command", "internal/compat", "internal/conn", "internal/fault", "internal/find", "internal/fleet",
		"internal/fleet/bus", "internal/judge", "internal/layout", "internal/live", "internal/place",
		"internal/report", "internal/run", "internal/sandbox", "internal/scenario", "internal/secret",
		"internal/serve", "internal/standin", "internal/store", "internal/store/sqlite", "internal/system",
		"internal/trust", "internal/workload", "load", "measure", "target", "units",
	}, Files: map[string][]string{
		"find_answer.go": {"internal/export"},
		"machine.go":     {"internal/jobs", "internal/shell"},
		"scenario.go":    {"internal/compat/mongoose"},
		"serve.go":       {"internal/shell"},
		"shell.go":       {"internal/shell"},
		"stores.go":      {"internal/store/elastic"},
		"subjects*.go":   {"payload"},
		"system*.go":     {"internal/sut"},
		"targets.go":     {"internal/compat/mongoose", "internal/standin/apm", "internal/standin/kafka", "internal/standin/riemann", "target/..."},
		"vary*.go":       {"internal/stats"},
	}},

	{Name: "internal/arch"},
	{Name: "internal/testkit", May: []string{"internal/testkit/assert"}},
	{Name: "internal/testkit/assert"},
	{Name: "internal/testkit/browser", May: []string{"internal/testkit", "internal/testkit/assert"}},
	{Name: "internal/testkit/kafkatest", May: []string{"internal/testkit", "internal/testkit/assert"}},
	{Name: "internal/testkit/parquettest"},
	{Name: "internal/acceptance", Tests: []string{"internal/system", "internal/testkit/parquettest"}},
	{Name: "internal/bench", May: []string{"internal/report", "internal/store/sqlite", "internal/testkit", "internal/testkit/kafkatest", "internal/testkit/reporttest"}},
	{Name: "internal/tools/...", May: []string{"internal/cli"}},
}

// The names of protocols must not be used in the packages that serve all protocols,
// neither in code nor in comments, except in some files.
var (
	protocolNames    = []string{"kafka", "riemann", "apm"}
	protocolPackages = []string{"load", "measure", "internal/report", "internal/cli", "internal/command", "internal/run", "internal/live", "internal/ledger", "internal/trust", "internal/workload", "internal/export", "internal/picture", "internal/trace", "internal/stats", "internal/sut", "internal/fleet", "internal/fleet/bus"}
	protocolLister   = "internal/cli/targets.go"

	// protocolFiles are the files of those packages that may name protocols: the list, the
	// commands that know kinds of target, and examples.
	protocolFiles = []string{protocolLister, "internal/command/collate.go", "internal/command/doc.go", "internal/command/profile*.go", "internal/command/query*.go", "internal/command/table.go", "internal/command/topics*.go", "internal/fleet/manifest*.go"}
)

// The bounds of a file, in lines: a larger file should be split.
const (
	maxLines     = 600
	maxTestLines = 900
)

// badPackages are names that say nothing about the content of a package.
var badPackages = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "base", "lib"}

// badWords must not be used in any file of the tree, ignoring case. They are split
// here so that this file passes.
var badWords = []struct{ word, why string }{
	{"TO" + "DO", "finish it or leave it out"},
	{"FIX" + "ME", "fix it"},
	{"XX" + "X:", "say what is meant"},
	{"not yet " + "implemented", "finish it or leave it out"},
	{"/work/" + "main", "a machine's path"},
	{"/work/" + "shared", "a machine's path"},
	{"/tmp/" + "brief", "a machine's path"},
	{"/root" + "/", "a machine's path"},
	{"proxy.golang" + ".org", "a registry's host; the user's own settings choose it"},
	{"repo.maven" + ".apache.org", "a registry's host; the user's own settings choose it"},
	{"repo1." + "maven.org", "a registry's host; the user's own settings choose it"},
}
