// Package arch checks the structure of the source tree: which package may import
// which, how large a file may be, which names and words must not be used. It contains
// the table below and the checks of a tree of files. It reads source only with
// go/parser and knows nothing about what the code does.
//
// Its invariant: a package without a row in the table is a finding, so the table is
// always complete.
package arch

import "slices"

// Module is the import path of the tree's root.
const Module = "carronade"

// A Package is one row of the import table: a package, or all packages below a
// directory when the name ends in "/..."; * is any one folder (path.Match).
type Package struct {
	Name  string              // path below the module; "." is main
	May   []string            // packages it may import, in the same notation
	Files map[string][]string // more packages, which only files of these names may import (path.Match)
	Tests []string            // packages its tests may import besides those of testPackages
}

// public are the packages that a protocol outside this module may use.
var public = []string{"app", "load", "measure", "payload", "protocol", "protocol/protocoltest", "units"}

// protocol are the packages that a kind of target may import.
var protocol = []string{"load", "measure", "payload", "protocol", "units"}

// open are rows for protocols that someone adds: they say what these may import, and nothing
// in the tree need use it. With them a new wing needs no row of its own.
var open = []string{"examples/...", "internal/*", "internal/*/wire", "internal/*/standin"}

// testPackages may be imported by the tests of any package.
var testPackages = []string{"internal/advice", "test/testkit/assert", "test/testkit/browser", "test/testkit/kafkatest", "test/testkit", "internal/standin", "internal/standin/standintest", "internal/*/standin", "internal/*/wire", "protocol/protocoltest", "internal/null", "protocol", "load", "measure", "payload", "units", "internal/workload"}

// Packages is the table of who may import whom. Imports go only downwards, and only app
// imports internal/cli.
var Packages = []Package{
	{Name: ".", May: []string{"app"}},
	{Name: "app", May: []string{"internal/cli", "protocol"}},
	{Name: "examples/...", May: public},

	{Name: "units"},
	{Name: "measure"},
	{Name: "payload", May: []string{"internal/splitmix", "internal/place", "units"}},
	{Name: "load", May: []string{"internal/splitmix", "internal/impair", "measure", "units"}},

	{Name: "protocol", May: []string{"internal/advice", "internal/secret", "load", "measure", "units"}},
	{Name: "protocol/protocoltest", May: []string{"internal/advice", "load", "protocol"}},
	{Name: "internal/kafka", May: []string{"internal/conn", "internal/impair", "internal/place", "internal/conn/socket", "internal/kafka/wire", "load", "measure", "payload", "protocol", "internal/kafka/cluster", "internal/kafka/franz", "units"}, Tests: []string{"internal/run/ledger"}},
	{Name: "internal/kafka/cluster", May: []string{"internal/splitmix", "internal/advice", "internal/conn", "internal/place", "internal/kafka/wire", "load", "measure", "payload", "protocol", "units"}},
	{Name: "internal/kafka/franz", May: []string{"internal/conn", "internal/impair", "internal/conn/socket", "internal/kafka/wire", "load", "measure", "payload", "internal/kafka/cluster"}},
	{Name: "internal/apm", May: []string{"internal/splitmix", "internal/conn", "internal/conn/web", "internal/place", "internal/apm/wire", "load", "measure", "payload", "protocol", "units"}, Tests: []string{"internal/conn/socket"}},
	{Name: "internal/riemann", May: []string{"internal/splitmix", "internal/conn", "internal/conn/socket", "internal/riemann/wire", "load", "measure", "payload", "protocol", "units"}, Tests: []string{"internal/run/ledger"}},
	{Name: "internal/null", May: []string{"internal/kafka/wire", "load", "measure", "payload", "protocol"}},
	{Name: "internal/*", May: slices.Concat(protocol, []string{"internal/splitmix", "internal/conn", "internal/conn/framing", "internal/conn/socket", "internal/conn/web", "internal/place", "internal/*/wire"})},

	{Name: "internal/*/wire", May: []string{"internal/splitmix", "internal/place", "internal/crc"}},
	{Name: "internal/*/standin", May: []string{"internal/standin", "internal/*/wire"}},
	{Name: "internal/crc"},
	{Name: "internal/splitmix"},
	{Name: "internal/impair"},
	{Name: "internal/conn/framing"},
	{Name: "internal/conn/socket", May: []string{"internal/impair"}},
	{Name: "internal/conn", May: []string{"internal/advice", "internal/place", "internal/conn/socket", "load", "protocol", "units"}},
	{Name: "internal/standin/standintest", May: []string{"internal/standin", "test/testkit/assert"}},
	{Name: "internal/conn/web", May: []string{"internal/conn", "internal/conn/framing", "internal/conn/socket", "internal/secret", "load", "measure", "protocol"}},
	{Name: "internal/standin", May: []string{"internal/conn/framing", "internal/conn/socket", "internal/host", "units"}},
	{Name: "internal/apm/standin", May: []string{"internal/secret", "internal/standin", "internal/apm/wire", "units"}},
	{Name: "internal/kafka/standin", May: []string{"internal/secret", "internal/standin", "internal/host", "units"}},
	{Name: "internal/riemann/standin", May: []string{"internal/standin", "internal/riemann/wire", "units"}},
	{Name: "internal/run/ledger", May: []string{"load", "measure"}},
	{Name: "internal/verdict/trust", May: []string{"load", "measure", "units"}, Files: map[string][]string{
		"examination.go": {"internal/layout", "protocol"},
		"machine*.go":    {"internal/host", "protocol"},
	}},
	{Name: "internal/host", May: []string{"internal/impair", "measure", "units"}},
	{Name: "internal/advice"},
	{Name: "internal/place", May: []string{"internal/advice"}},
	{Name: "internal/door"},
	{Name: "internal/sandbox"},
	{Name: "internal/secret", May: []string{"internal/place"}},
	{Name: "internal/system", May: []string{"internal/conn", "internal/secret", "internal/host", "measure", "protocol", "units"}},
	{Name: "internal/verdict/fault", May: []string{"load", "units"}},
	{Name: "internal/workload", May: []string{"internal/advice", "internal/verdict/fault", "internal/place", "internal/secret", "load", "measure", "payload", "protocol", "units"}},
	{Name: "internal/layout"},
	{Name: "internal/verdict/find", May: []string{"internal/layout", "internal/verdict/stats", "internal/host", "measure", "units"}, Tests: []string{"internal/judge"}},
	{Name: "internal/fleet", May: []string{"internal/advice", "internal/report", "internal/run", "internal/host", "internal/workload", "load", "measure", "protocol"}},
	{Name: "internal/report", May: []string{"internal/advice", "internal/verdict/fault", "internal/verdict/find", "internal/layout", "internal/place", "internal/host", "internal/verdict/trust", "internal/workload", "load", "measure", "units"}},
	{Name: "internal/store", May: []string{"internal/advice", "internal/report", "internal/secret", "internal/host", "internal/workload", "load", "measure", "protocol", "units"}, Tests: []string{"internal/verdict/fault", "internal/verdict/find", "internal/store/sqlite", "test/testkit/reporttest", "internal/*"}},
	{Name: "test/testkit/reporttest", May: []string{"internal/report", "internal/store", "test/testkit/assert", "load", "measure"}},
	{Name: "internal/store/sqlitefile", May: []string{"internal/host"}},
	{Name: "internal/serve/jobs", May: []string{"internal/store/sqlitefile", "internal/host", "protocol", "units"}},
	{Name: "internal/serve/shell", May: []string{"internal/advice", "internal/serve/jobs", "internal/place", "internal/secret", "internal/store/elastic", "internal/system", "internal/host", "protocol"}},
	{Name: "internal/serve", May: []string{"internal/advice", "internal/conn", "internal/door", "internal/verdict/fault", "internal/serve/jobs", "internal/live", "internal/place", "internal/secret", "internal/host", "internal/workload", "payload", "protocol"}, Tests: []string{"internal/apm", "internal/kafka", "internal/riemann"}},
	{Name: "internal/store/sqlite", May: []string{"internal/report", "internal/store/sqlitefile", "internal/store", "internal/host", "protocol"}, Tests: []string{"test/testkit/reporttest"}},
	{Name: "internal/store/elastic", May: []string{"internal/conn", "internal/place", "internal/report", "internal/secret", "internal/store", "internal/host", "measure", "protocol", "units"}, Tests: []string{"test/testkit/reporttest"}},
	{Name: "internal/verdict/stats"},
	{Name: "internal/profile", May: []string{"internal/apm/wire", "internal/kafka/wire", "load", "units"}},
	{Name: "internal/report/explain", May: []string{"internal/report", "measure", "units"}, Files: map[string][]string{
		"incidents.go": {"internal/verdict/stats"},
		"input.go":     {"internal/verdict/fault"},
		"text.go":      {"internal/layout"},
	}},
	{Name: "internal/judge", May: []string{"internal/layout", "internal/report", "internal/verdict/stats", "internal/store", "internal/workload", "load", "measure", "protocol", "units"}},
	{Name: "internal/report/picture", May: []string{"internal/verdict/fault", "internal/verdict/find", "internal/layout", "internal/report", "load", "measure", "units"}},
	{Name: "internal/page", May: []string{"internal/report/picture", "internal/report"}, Tests: []string{"internal/report/export", "internal/live"}},
	{Name: "internal/report/export", May: []string{"internal/layout", "internal/page", "internal/report/picture", "internal/report", "measure", "units"}, Tests: []string{"internal/verdict/fault", "internal/verdict/find"}},
	{Name: "internal/run/trace", May: []string{"internal/place", "internal/host", "load"}, Tests: []string{"test/testkit/parquettest"}},
	{Name: "internal/live", May: []string{"internal/conn", "internal/door", "internal/layout", "internal/page", "internal/report", "internal/secret", "internal/host", "load", "measure", "protocol", "units"}},
	{Name: "internal/run", May: []string{"internal/verdict/fault", "internal/run/ledger", "internal/place", "internal/report", "internal/secret", "internal/store", "internal/system", "internal/host", "internal/run/trace", "internal/verdict/trust", "internal/workload", "load", "measure", "protocol", "units"}, Tests: []string{"internal/store/sqlite", "test/testkit/parquettest"}},
	{Name: "internal/fleet/bus", May: []string{"internal/advice", "internal/door", "internal/host"}},
	{Name: "internal/scenario", May: []string{"internal/advice", "internal/place", "internal/report", "internal/host", "internal/workload", "measure", "protocol", "units"}},
	{Name: "internal/dropin", May: []string{"internal/kafka/cluster", "internal/layout", "internal/report", "internal/scenario", "internal/host", "internal/run/trace", "internal/workload", "load", "measure"}},
	{Name: "internal/dropin/dropintest", May: []string{"internal/dropin", "internal/report", "internal/workload", "test/testkit/assert"}},
	{Name: "internal/dropin/...", May: []string{"internal/advice", "internal/dropin", "internal/layout", "internal/live", "internal/report/picture", "internal/place", "internal/report", "internal/scenario", "internal/secret", "internal/verdict/stats", "internal/store/elastic", "internal/host", "internal/run/trace", "internal/apm/wire", "internal/kafka/wire", "internal/workload", "load", "measure", "payload", "internal/kafka/cluster", "units"}, Tests: []string{"internal/kafka", "internal/dropin/dropintest", "internal/verdict/find"}},
	{Name: "internal/cli/cmdutil", May: []string{"internal/advice", "internal/host", "internal/layout", "internal/place", "internal/workload", "protocol"}},
	{Name: "internal/cli/profile", May: []string{"internal/advice", "internal/cli/cmdutil", "internal/host", "internal/layout", "internal/place", "internal/profile", "internal/workload", "internal/apm/wire", "internal/kafka", "internal/kafka/wire", "internal/riemann", "internal/riemann/wire", "payload", "protocol", "units"}, Tests: []string{"internal/apm"}},
	{Name: "internal/cli/query", May: []string{"internal/cli/cmdutil", "internal/layout", "internal/riemann", "internal/workload", "protocol", "units"}},
	{Name: "internal/cli/reports", May: []string{"internal/advice", "internal/cli/cmdutil", "internal/report/explain", "internal/report/export", "internal/report/picture", "internal/judge", "internal/layout", "internal/place", "internal/report", "internal/store", "internal/host", "internal/verdict/stats", "load", "measure", "protocol", "units"}, Tests: []string{"internal/store/sqlite", "test/testkit/reporttest"}},
	{Name: "internal/cli/topics", May: []string{"internal/cli/cmdutil", "internal/host", "internal/kafka", "internal/kafka/cluster", "internal/layout", "internal/place", "internal/report", "internal/run", "internal/workload", "load", "measure", "protocol", "units"}},
	{Name: "internal/cli", May: []string{
		"internal/advice",
		"internal/cli/...", "internal/dropin", "internal/conn", "internal/verdict/fault", "internal/verdict/find", "internal/fleet",
		"internal/fleet/bus", "internal/judge", "internal/layout", "internal/live", "internal/place",
		"internal/report", "internal/run", "internal/sandbox", "internal/scenario", "internal/secret",
		"internal/serve", "internal/standin", "internal/store", "internal/store/sqlite", "internal/host",
		"internal/verdict/trust", "internal/workload", "load", "measure", "protocol", "units",
	}, Files: map[string][]string{
		"find_answer.go": {"internal/report/export"},
		"machine.go":     {"internal/serve/jobs", "internal/serve/shell"},
		"scenario.go":    {"internal/dropin/mongoose"},
		"serve.go":       {"internal/serve/shell"},
		"shell.go":       {"internal/serve/shell"},
		"stores.go":      {"internal/store/elastic"},
		"help_pages*.go": {"payload"},
		"system*.go":     {"internal/system"},
		"targets.go":     {"internal/dropin/...", "internal/*", "internal/*/standin"},
		"vary*.go":       {"internal/verdict/stats"},
	}},

	{Name: "test/arch"},
	{Name: "test/testkit", May: []string{"test/testkit/assert"}},
	{Name: "test/testkit/assert"},
	{Name: "test/testkit/browser", May: []string{"test/testkit", "test/testkit/assert"}},
	{Name: "test/testkit/kafkatest", May: []string{"test/testkit", "test/testkit/assert"}},
	{Name: "test/testkit/parquettest"},
	{Name: "test/acceptance", Tests: []string{"internal/dropin/dropintest", "internal/host", "test/testkit/parquettest"}},
	{Name: "test/bench", May: []string{"internal/report", "internal/store/sqlite", "test/testkit", "test/testkit/kafkatest", "test/testkit/reporttest"}},
	{Name: "tools/...", May: []string{"internal/cli", "measure"}},
}

// The names of protocols must not be used in the packages that serve all protocols,
// neither in code nor in comments, except in some files.
var (
	protocolNames    = []string{"kafka", "riemann", "apm"} // not otlp, in which a run also publishes its own metrics
	protocolPackages = []string{"load", "measure", "internal/report", "internal/cli", "internal/cli/cmdutil", "internal/cli/reports", "internal/run", "internal/live", "internal/run/ledger", "internal/verdict/trust", "internal/workload", "internal/report/export", "internal/report/picture", "internal/run/trace", "internal/verdict/stats", "internal/system", "internal/fleet", "internal/fleet/bus"}
	protocolLister   = "internal/cli/targets.go"

	// protocolFiles are the files of those packages that may name protocols: the list, the
	// commands that know kinds of target, and examples.
	protocolFiles = []string{protocolLister, "internal/cli/reports/collate.go", "internal/cli/reports/table.go", "internal/fleet/manifest*.go"}
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
