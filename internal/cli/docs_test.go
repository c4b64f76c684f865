package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/internal/cli"
	"carronade/internal/standin"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/payload"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

const root = "../.."

// documents returns the documents whose examples are run.
func documents(t *testing.T) []string {
	t.Helper()
	list := []string{root + "/README.md"}
	for _, dir := range []string{"/docs/*.md", "/docs/targets/*.md", "/docs/coming-from/*.md"} {
		found, err := filepath.Glob(root + dir)
		assert.Must(t, err == nil && len(found) != 0, "got %d documents and %v, want some", len(found), err)
		list = append(list, found...)
	}
	return list
}

// exampleServers are the servers of the examples, by their addresses in the documents.
var exampleServers = []struct {
	addr string
	args []string
	udp  bool // at the same port
}{
	{"127.0.0.1:9092", []string{"kafka", "--in-memory"}, false},
	{"127.0.0.1:5555", []string{"riemann", "--interval", "100ms"}, true},
	{"127.0.0.1:8200", []string{"apm"}, false},
	{"127.0.0.1:4318", []string{"otlp"}, false},
}

// addresses starts the servers that a document's examples need, and returns
// alternately the address of each in the document and the real one.
func addresses(t *testing.T, text string) []string {
	t.Helper()
	// The durations and repetitions of the documents, and those of a test.
	// Other tests run at the same time and may make a run untrustworthy.
	pairs := []string{
		"--for 30s", "--for 1s", "for: 30s", "for: 1s", "duration=30s", "duration=1s",
		"--repeat 10", "--repeat 2", "--repeat 6", "--repeat 2", "count: 100k", "count: 20k", "--budget 1h", "--budget 1s", "--budget 10m", "--budget 5s",
		"compare --run", "compare --untrusted --run",
	}
	if strings.Contains(text, exampleStore) {
		pairs = append(pairs, exampleStore, startStore(t))
	}
	if strings.Contains(text, exampleCluster) {
		node := testkit.SharedSearch(t)
		t.Cleanup(testkit.EndSharedSearch) // no other document has one
		pairs = append(pairs, exampleCluster, strings.TrimPrefix(node.URL, "http://"))
	}
	for _, s := range exampleServers {
		if !strings.Contains(text, s.addr) {
			continue
		}
		if strings.Contains(text, "--listen "+s.addr) { // the examples start it themselves
			pairs = append(pairs, s.addr, freeAddress(t))
			continue
		}
		args := append(s.args[:len(s.args):len(s.args)], "--listen", "127.0.0.1:0")
		if s.udp {
			free := freeAddress(t)
			args = append(s.args[:len(s.args):len(s.args)], "--listen", free, "--udp", free)
		}
		c := assert.Value(standin.Spawn(t.Context(), carronade(t), args...))(t)
		t.Cleanup(func() { _ = c.Stop() })
		pairs = append(pairs, s.addr, c.Addr())
		if grpc := c.AddrOf("grpc"); grpc != "" {
			pairs = append(pairs, "127.0.0.1:4317", grpc)
		}
	}
	return pairs
}

// startServer starts a stand-in that an example starts, and returns its address in the documents and the real one.
func startServer(t *testing.T, args []string) []string {
	t.Helper()
	for _, s := range exampleServers {
		if s.args[0] != args[0] {
			continue
		}
		c := child(t, args...)
		return []string{s.addr, c.Addr()}
	}
	t.Fatalf("no example has a server %q", args)
	return nil
}

// startTeam starts the server of a team that an example starts, and returns its addresses in the documents and the real ones.
func startTeam(t *testing.T, dir string) []string {
	t.Helper()
	cmd := exec.Command(carronade(t), "serve", "--text-port", "0", "--http-port", "0")
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir+"/data")
	out := assert.Value(cmd.StdoutPipe())(t)
	assert.OK(t, cmd.Start())
	t.Cleanup(func() {
		err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
		assert.True(t, err == nil, "%v", err)
	})
	var pairs []string
	lines := bufio.NewScanner(out)
	for _, documented := range []string{"127.0.0.1:8234", "127.0.0.1:8235"} {
		assert.Must(t, lines.Scan(), "the server of a team does not listen")
		pairs = append(pairs, documented, strings.Fields(lines.Text())[2])
	}
	go io.Copy(io.Discard, out)
	return pairs
}

// startNode starts a node of mongoose that an example starts, and returns its address in the documents and the real one.
func startNode(t *testing.T, dir string) []string {
	t.Helper()
	cmd := exec.Command(carronade(t), "as", "mongoose", "--run-node", "--load-step-node-port=0", "--run-port=0")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "XDG_DATA_HOME="+dir+"/data", "HOME="+dir)
	out := assert.Value(cmd.StdoutPipe())(t)
	assert.OK(t, cmd.Start())
	t.Cleanup(func() {
		err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
		assert.True(t, err == nil, "%v", err)
	})
	lines := bufio.NewScanner(out)
	assert.Must(t, lines.Scan(), "the node does not listen")
	addr, _, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "node "), ": ")
	go io.Copy(io.Discard, out)
	return []string{"127.0.0.1:1099", addr}
}

// startMember starts the server of a fleet, or an agent, in the background, and waits until
// the status of the fleet shows it. The returned function ends it.
func (e *example) startMember(t *testing.T, dir string) (end func()) {
	t.Helper()
	args := strings.Fields(strings.TrimSuffix(e.command, " &"))[1:]
	shown := args[len(args)-1] + " ready " // --name NAME is the last flag of an agent
	if args[0] == "fleet" {
		args, shown = append(args, "--listen", "127.0.0.1:0"), "no machine has joined"
	}
	env := append(os.Environ(), "XDG_DATA_HOME="+dir+"/data")
	cmd := exec.Command(carronade(t), args...)
	cmd.Dir, cmd.Env = dir, env
	var words bytes.Buffer
	cmd.Stderr = &words
	assert.OK(t, cmd.Start())
	end = func() {
		err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
		assert.True(t, err == nil, "%s: %v\n%s", e.command, err, words.String())
	}
	for range 200 {
		status := exec.Command(carronade(t), "fleet", "status")
		status.Env = env
		if out, _ := status.CombinedOutput(); strings.Contains(strings.Join(strings.Fields(string(out)), " "), shown) {
			return end
		}
	}
	t.Errorf("%s: the status never showed %q", e.command, shown)
	return end
}

// freeAddress returns an address whose port is free for TCP and UDP.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 20 {
		l := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
		p, err := net.ListenPacket("udp", l.Addr().String())
		l.Close()
		if err == nil {
			p.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free for TCP and UDP")
	return ""
}

// Every block of a document that begins with "$ carronade" or "$ sh" is run, and its output is compared with
// the document, except for numbers. The servers of the examples are stand-ins at free ports. A block that
// begins with "$ cat FILE" creates the file instead.
func TestExamplesOfDocumentsRun(t *testing.T) {
	testkit.Need(t, "minutes: it runs the program")
	t.Parallel()
	type document struct {
		path, text string
		blocks     []example
	}
	var list []document
	for _, path := range documents(t) {
		data := assert.Value(os.ReadFile(path))(t)
		if blocks := examples(string(data)); len(blocks) > 0 {
			list = append(list, document{path, string(data), blocks})
		}
	}
	assert.True(t, len(list) != 0, "no document has an example")
	// The longest begins first, so that the others run next to it.
	slices.SortStableFunc(list, func(a, b document) int { return len(b.blocks) - len(a.blocks) })
	for _, d := range list {
		t.Run(filepath.Base(d.path), func(t *testing.T) {
			t.Parallel()
			dir, pairs := t.TempDir(), addresses(t, d.text)
			swap := strings.NewReplacer(pairs...)
			if strings.Contains(d.text, "--system-git apm-server") {
				exampleRepository(t, dir, swap)
			}
			for _, b := range d.blocks {
				if b.command == "carronade serve &" {
					swap = strings.NewReplacer(append(startTeam(t, dir), pairs...)...)
					continue
				}
				if strings.HasPrefix(b.command, "carronade fleet start") || strings.HasPrefix(b.command, "carronade agent") {
					members := b.startMember(t, dir)
					t.Cleanup(members)
					continue
				}
				if b.command == "carronade as mongoose --run-node &" {
					swap = strings.NewReplacer(append(startNode(t, dir), pairs...)...)
					continue
				}
				if server, ok := b.server(); ok {
					swap = strings.NewReplacer(append(startServer(t, server), pairs...)...)
					continue
				}
				b.check(t, dir, swap)
			}
		})
	}
}

func carronade(t testing.TB) string {
	t.Helper()
	testkit.Need(t, "minutes: it runs the program")
	exe := assert.Value(exec.LookPath("carronade"))(t)
	return exe
}

func child(t testing.TB, args ...string) *standin.Child {
	t.Helper()
	c := assert.Value(standin.Spawn(t.Context(), carronade(t), append(args[:len(args):len(args)], "--listen", "127.0.0.1:0")...))(t)
	t.Cleanup(func() { _ = c.Stop() })
	return c
}

// An example is a command and its output.
type example struct {
	line    int
	command string
	want    []string
}

func examples(text string) []example {
	var out []example
	fenced, common := false, false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			fenced, common = !fenced, false
		case !fenced:
		case strings.HasPrefix(line, "$ carronade") || strings.HasPrefix(line, "$ cat ") || strings.HasPrefix(line, "$ sh "):
			common = true
			out = append(out, example{line: i + 1, command: strings.TrimPrefix(line, "$ ")})
		case common && strings.HasSuffix(out[len(out)-1].command, "\\") && len(out[len(out)-1].want) == 0:
			e := &out[len(out)-1]
			e.command = strings.TrimSuffix(e.command, "\\") + strings.TrimSpace(line)
		case common:
			e := &out[len(out)-1]
			e.want = append(e.want, line)
		}
	}
	return out
}

func (e *example) server() (args []string, ok bool) {
	command, background := strings.CutSuffix(e.command, " &")
	rest, ok := strings.CutPrefix(command, "carronade standin ")
	return strings.Fields(rest), ok && background
}

func (e *example) check(t *testing.T, dir string, swap *strings.Replacer) {
	t.Helper()
	if name, ok := strings.CutPrefix(e.command, "cat "); ok {
		path := filepath.Join(dir, strings.TrimPrefix(name, "~/"))
		assert.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		assert.OK(t, os.WriteFile(path, []byte(swap.Replace(strings.Join(e.want, "\n"))+"\n"), 0o644))
		return
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, "sh", "-c", swap.Replace(e.command))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir+"/data", "XDG_CONFIG_HOME="+dir+"/.config", "NO_COLOR=1", "LANG=C.UTF-8")
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		err = nil // this machine is busy with the other tests, and the report says so
	}
	if exit != nil && exit.ExitCode() == 1 && strings.HasPrefix(e.command, "carronade doctor ") {
		err = nil // it warns of the other tests
	}
	if exit != nil && exit.ExitCode() == 4 && strings.HasPrefix(e.command, "carronade verify ") {
		err = nil // the examples have no history
	}
	if exit != nil && exit.ExitCode() == 4 && strings.HasPrefix(e.command, "carronade find ") {
		err = nil // the examples have no time
	}
	if exit != nil && exit.ExitCode() == 2 && strings.HasPrefix(e.command, "carronade find ") && strings.Contains(words.String(), "error: --budget: the budget does not suffice: ") {
		err = nil // as above: everything else of the command was found to be right
	}
	if exit != nil && exit.ExitCode() == 1 && strings.HasPrefix(e.command, "carronade find ") && strings.Contains(out.String()+words.String(), "nothing was answered within ") {
		return // a trial of 100 ms, since the budget is short, can end before a busy machine has answered
	}
	if exit != nil && exit.ExitCode() == 2 && strings.HasPrefix(e.command, "carronade verify ") && strings.Contains(words.String(), "not trustworthy") {
		err = nil // the one run before it was not trusted, as above
	}
	if err != nil {
		t.Errorf("line %d: %s: %v\n%s%s", e.line, e.command, err, out.String(), words.String())
		return
	}
	if len(e.want) == 0 {
		return
	}
	if want := labels(e.want); len(want) > 0 {
		got := labels(strings.Split(out.String(), "\n"))
		for _, l := range want {
			// A report of a disturbed run has less room for these.
			disturbed := strings.Contains(out.String(), "upper bound") || strings.Contains(out.String(), "NOT TRUSTED")
			if disturbed && slices.Contains([]string{"batching", "queueing", "Series", "acked", "consumed", "response p99", "end to end p99", "in flight"}, l) {
				continue
			}
			assert.True(t, slices.Contains(got, l), "line %d: %s: its report has no row %q:\n%s", e.line, e.command, l, out.String())
		}
		return
	}
	got := mask(strings.Split(strings.TrimRight(out.String(), "\n"), "\n"))
	want := mask(e.want)
	if !matches(want, got) {
		t.Errorf("line %d: %s (-want +got, masked):\n%s\n\nit printed:\n%s", e.line, e.command, cmp.Diff(want, got), out.String())
	}
}

// labels returns the headings and row names of a report, from its first section on; none if the lines are not
// a report. The rest of a report depends on the run, and the layout of a page is tested elsewhere.
func labels(lines []string) []string {
	begin := slices.IndexFunc(lines, func(l string) bool { return l == "Workload" || l == "Times" || strings.HasPrefix(l, "  Times ") })
	if begin < 0 {
		return nil
	}
	var out []string
	for _, line := range lines[begin:] {
		if m := label.FindStringSubmatch(line); m != nil && !strings.ContainsAny(m[1], "0123456789.") {
			out = append(out, m[1])
		}
	}
	return out
}

var (
	label   = regexp.MustCompile(`^ {0,4}([^ ].*?)(?:  |$)`)
	numbers = regexp.MustCompile(`\S*[0-9]\S*( (ns|us|ms|s|min|h|B|KiB|MiB|GiB|k|M|G|k/s|M/s|G/s|/s)\b(/s)?)?`)
	blocks  = regexp.MustCompile(`[▁▂▃▄▅▆▇█ ]*[▁▂▃▄▅▆▇█]+`)
	// An id may have no digit.
	ids    = regexp.MustCompile(`\b(report +|show |open |explain )[a-z0-9]{8}\b`)
	rowIDs = regexp.MustCompile(`^[a-z0-9]{8}( |$)`)
	spaces = regexp.MustCompile(`[ \t]+`)
)

// mask removes the differences between runs: numbers with their units, sparklines, and the width of columns.
func mask(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		line = blocks.ReplaceAllString(line, " ~")
		line = ids.ReplaceAllString(line, "$1#")
		line = rowIDs.ReplaceAllString(line, "#$1")
		line = numbers.ReplaceAllString(line, "#")
		line = spaces.ReplaceAllString(strings.TrimRight(line, " "), " ")
		out[i] = line
	}
	return out
}

// matches compares lines; "..." in want matches any lines.
func matches(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if strings.TrimSpace(want[0]) == "..." {
		for i := range len(got) + 1 {
			if matches(want[1:], got[i:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && want[0] == got[0] && matches(want[1:], got[1:])
}

// notRun are the commands in the blocks of a document that no test runs, with their lines: those without "$ ", and with
// "$ " those that examples does not know. A block with a language is one, too.
func notRun(text string) []string {
	fence, inFile := "", false
	var out []string
	goesOn := false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```") && fence != "":
			fence, inFile = "", false
		case strings.HasPrefix(line, "```"):
			if fence = line; fence != "```" {
				out = append(out, fmt.Sprintf("%d: %s", i+1, line))
			}
		case fence == "" || goesOn:
		case strings.HasPrefix(line, "$ "):
			if inFile = strings.HasPrefix(line, "$ cat "); !inFile && len(examples("```\n"+line)) == 0 {
				out = append(out, fmt.Sprintf("%d: %s", i+1, line))
			}
		case !inFile && copied.MatchString(line):
			out = append(out, fmt.Sprintf("%d: %s", i+1, line))
		}
		goesOn = fence != "" && strings.HasSuffix(line, "\\")
	}
	return out
}

// copied are lines that a reader may copy.
var copied = regexp.MustCompile(`^(sudo |go run |make |carronade |sh |curl |git )`)

// Every command of the reports' page, of README and of the first ten minutes is run as an example, but for these.
func TestEveryCommandRuns(t *testing.T) {
	but := []string{
		"go run . demo",          // README's own example runs carronade demo
		"make install",           // TestInstall
		"carronade run apm+http", // a checkout of APM Server; docs/system.md runs the like
	}
	for _, page := range []string{"/docs/reports.md", "/README.md", "/docs/start.md"} {
		text := string(assert.Value(os.ReadFile(root + page))(t))
		for _, line := range notRun(text) {
			_, words, _ := strings.Cut(line, ": ")
			assert.True(t, slices.ContainsFunc(but, func(known string) bool { return strings.HasPrefix(words, known) }),
				"%s:%s is not run: begin it with \"$ \", and a file with \"$ cat FILE\"", page, line)
		}
	}
	for _, tt := range []struct{ block, want string }{
		{"carronade run a", "2: carronade run a"}, {"$ curl a", "2: $ curl a"}, {"$ carronade run a\nmore", ""}, {"$ carronade run a \\\n  make", ""}, {"$ cat a.sh\nmake x", ""}, {"make all", "2: make all"},
	} {
		assert.Equal(t, strings.Join(notRun("```\n"+tt.block+"\n```\n"), "; "), tt.want, "%s", tt.block)
	}
}

// make install puts the program that make build made where it says, as a program.
func TestInstall(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("without make")
	}
	dir := t.TempDir()
	assert.OK(t, os.WriteFile(filepath.Join(dir, "Makefile"), assert.Value(os.ReadFile(root+"/Makefile"))(t), 0o600))
	assert.OK(t, os.WriteFile(filepath.Join(dir, "carronade"), []byte("#!/bin/sh\necho works\n"), 0o600))
	cmd := exec.Command("make", "-o", "build", "install", "PREFIX="+dir+"/own")
	cmd.Dir = dir
	said, err := cmd.CombinedOutput()
	assert.Must(t, err == nil, "%v: %s", err, said)
	out := assert.Value(exec.Command(dir + "/own/bin/carronade").Output())(t)
	assert.Equal(t, string(out), "works\n")
}

// docs/workload.md and the pages of targets have every setting of the table: `go test ./internal/cli -run
// Documented -update` writes the parts between the marks.
func TestEverySettingIsDocumented(t *testing.T) {
	texts := make(map[string]string)
	for _, path := range documents(t) {
		data := assert.Value(os.ReadFile(path))(t)
		texts[path] = string(data)
	}
	parts := map[string]string{
		"load":      settingsTable(workload.Table(nil), "", nil),
		"shapes":    "```\n" + load.ShapeForms + "\n```\n",
		"size":      list(payload.SizeForms),
		"payload":   list(payload.PayloadForms),
		"key":       list(payload.KeyForms),
		"functions": wordsTable(payload.ExpressionFunctions()),
		"values":    wordsTable(payload.ExpressionValues()),
		"operators": wordsTable(payload.ExpressionOperators()),
	}
	shared := make(map[string]bool)
	parts["shared"] = sharedTable(shared)
	for _, k := range cli.Kinds() {
		parts[k.Name()] = settingsTable(workload.Table(k), k.Name(), shared)
		if k.Name() == "null" { // its settings are those of Kafka
			parts["null"] = names(workload.Table(k), k.Name(), nil)
		}
		if _, variables, _ := strings.Cut(texts[root+"/docs/reports.md"], "<!-- independent:"); !strings.Contains(variables, "\n| "+k.Name()+" |") {
			t.Errorf("docs/reports.md lacks the independent variables of %s: add it to the kinds of the tests of internal/store", k.Name())
		}
	}
	for name, want := range parts {
		begin, end := fmt.Sprintf("<!-- %s: made from the table -->\n", name), fmt.Sprintf("<!-- end of %s -->", name)
		found := 0
		for path, text := range texts {
			before, rest, ok := strings.Cut(text, begin)
			got, after, ok2 := strings.Cut(rest, end)
			if !ok || !ok2 {
				continue
			}
			if found++; got != want && !testkit.Update() {
				t.Errorf("%s: %s (-want +got):\n%s", path, name, cmp.Diff(want, got))
			}
			texts[path] = before + begin + want + end + after
		}
		assert.Equal(t, found, 1, "documents with the marks of %q", name)
	}
	if !testkit.Update() {
		return
	}
	for path, text := range texts {
		assert.OK(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// settingsTable returns a kind's settings in Markdown, a table for each heading. A setting without a value is
// true or false. The heading names the operations that most of its settings belong to. Of those that it
// shares with other kinds it has the names alone.
func settingsTable(table []workload.Setting, kind string, shared map[string]bool) string {
	var titles []string
	groups := make(map[string][]workload.Setting)
	for _, s := range table {
		if s.Kind != kind || s.Name == "op" && kind != "" || shared[settingRow(s)] {
			continue
		}
		if groups[s.Group] == nil {
			titles = append(titles, s.Group)
		}
		groups[s.Group] = append(groups[s.Group], s)
	}
	var b strings.Builder
	for i, title := range titles {
		most, count := "", make(map[string]int)
		for _, s := range groups[title] {
			ops := operations(s)
			if count[ops]++; count[ops] > count[most] {
				most = ops
			}
		}
		columns := ""
		if i == 0 {
			columns = ": setting, value, (default)"
		}
		fmt.Fprintf(&b, "\n| %s%s%s | |\n|---|---|\n", title, strings.TrimSuffix(" "+most, " "), columns)
		for _, s := range groups[title] {
			about, mark := s.Help, ""
			if s.FlagOnly {
				mark = "†"
			}
			switch ops := operations(s); ops {
			case most:
			case "":
				about += " (every operation)"
			default:
				about += " " + ops
			}
			fmt.Fprintf(&b, "| `%s`%s%s | %s |\n", s.Name, mark, form(s), cell(about))
		}
	}
	if list := names(table, kind, shared); len(shared) > 0 {
		b.WriteString("\n[Shared with other targets](../workload.md#shared-settings):" + list)
	}
	b.WriteString("\n")
	return b.String()
}

// names lists the settings of a kind: those that are shared, or all.
func names(table []workload.Setting, kind string, shared map[string]bool) string {
	var b strings.Builder
	for _, s := range table {
		if s.Kind == kind && s.Name != "op" && (shared == nil || shared[settingRow(s)]) {
			fmt.Fprintf(&b, " `%s`", s.Name)
		}
	}
	return b.String() + "\n"
}

// settingRow is the row of a setting in a table.
func settingRow(s workload.Setting) string {
	return fmt.Sprintf("| `%s`%s | %s |\n", s.Name, form(s), cell(s.Help))
}

// sharedTable returns the settings that several kinds have in the same words, and adds their rows to a set.
func sharedTable(shared map[string]bool) string {
	var b strings.Builder
	b.WriteString("\n| setting, value, (default) | |\n|---|---|\n")
	seen := make(map[string]bool)
	for _, k := range cli.Kinds() {
		for _, s := range workload.Table(k) {
			if s.Kind != k.Name() || s.Kind == "null" || len(s.Ops) > 0 {
				continue
			}
			row := settingRow(s)
			if seen[row] && !shared[row] {
				shared[row] = true
				b.WriteString(row)
			}
			seen[row] = true
		}
	}
	b.WriteString("\n")
	return b.String()
}

// operations lists those that a setting belongs to; all of them if it is empty.
func operations(s workload.Setting) string {
	if len(s.Ops) == 0 {
		return ""
	}
	return "(" + strings.Join(s.Ops, ", ") + ")"
}

// form is what the value of a setting looks like, and its default.
func form(s workload.Setting) (text string) {
	if s.Type != protocol.Bool {
		text = " " + cell(s.Placeholder())
	}
	if s.Default != "" && (s.Type != protocol.Bool || s.Default != "false") {
		text += " (" + cell(s.Default) + ")"
	}
	return text
}

func cell(s string) string { return strings.ReplaceAll(s, "|", ", ") }

func wordsTable(words []payload.ExpressionWord) string {
	var b strings.Builder
	b.WriteString("\n| word, type | |\n|---|---|\n")
	for _, w := range words {
		fmt.Fprintf(&b, "| `%s` %s | %s |\n", strings.ReplaceAll(w.Form, "|", "\\|"), w.Result, w.Help)
	}
	b.WriteString("\n")
	return b.String()
}

func list(forms string) string {
	var b strings.Builder
	b.WriteString("\n")
	for form := range strings.SplitSeq(forms, ";") {
		fmt.Fprintf(&b, "- `%s`\n", strings.TrimSpace(form))
	}
	b.WriteString("\n")
	return b.String()
}

// The schema for editors is that of the table.
func TestSchemaIsCommitted(t *testing.T) {
	testkit.Golden(t, root+"/docs/workload.schema.json", string(workload.Schema(cli.Kinds())))
}

var (
	link    = regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	anchor  = regexp.MustCompile(`<a name="([^"]+)">`)
)

// anchors returns the places of a page that a link can lead to, as GitHub names them.
func anchors(text string) (list []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		list = append(list, name)
	}
	for _, m := range anchor.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

// Links between documents lead to existing files, and to headings that they have.
func TestLinksOfDocuments(t *testing.T) {
	found := 0
	for _, path := range documents(t) {
		data := assert.Value(os.ReadFile(path))(t)
		for _, m := range link.FindAllStringSubmatch(string(data), -1) {
			found++
			to := path
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(path), m[1])
				assert.Value(os.Stat(to))(t, "%s: the link to %s leads nowhere", path, m[1])
			}
			if m[2] == "" {
				continue
			}
			text, err := os.ReadFile(to)
			assert.True(t, err == nil && slices.Contains(anchors(string(text)), m[2]), "%s: the link to %s#%s leads nowhere", path, m[1], m[2])
		}
	}
	assert.True(t, found != 0, "no document has a link")
}
