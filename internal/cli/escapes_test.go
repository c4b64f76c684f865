package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/cli"
	"carronade/internal/cli/cmdutil"

	"carronade/internal/sandbox"
	"carronade/internal/serve"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// forms are texts that lead out of the folder of jobs, for what the rules may take for a file, an
// address, a store or a reference of a secret. VICTIM is a folder next to that of jobs, CANARY an
// address that is not allowed, TARGET one that is, and SECRET a variable.
var forms = []string{
	"VICTIM/secret", "VICTIM/new/x", "../victim/secret", "../victim/new/x", "sub/../../victim/secret", "./../victim/new/x",
	"out", "dir/secret", "dir/new/x", "nothing", "xy:/../../victim/secret", "xy://../../victim/new/x", "/proc/self/environ",
	"elasticsearchy:/../../victim/new/x.db", "elasticsearchy:@TARGET/../../victim/new/x.db", "elasticsearch:/../../victim/new/x.db", "sqlite://VICTIM/new/x.db", "sqlite://../victim/new/x.db",
	"elasticsearch://CANARY/x", "elasticsearch://TARGET/x?ca=../victim/secret", "elasticsearch://TARGET/x?ca=in&ca=VICTIM/secret", "elasticsearch://TARGET/x?api-key=env:SECRET", "elasticsearch://TARGET/x?user=a&password=file:VICTIM/secret",
	"file:VICTIM/secret", "file:../victim/secret", "file://VICTIM/secret", "env:SECRET", "file(VICTIM/secret,random)", "ring(4KiB,file:VICTIM/secret)", "ring(4KiB,list(../victim/secret),1)",
	"CANARY", "http://CANARY/x", "http://TARGET@CANARY/x", "kafka://CANARY/t", "kafka://TARGET,CANARY/t",
}

// secretName and secretText are what no output and no connection may have.
const (
	secretName = "CARRONADE_TEST_SECRET"
	secretText = "canary-in-a-secret"
)

// base is a command line that a flag is added to, after its command: enough that the flag's value is
// used, and that nothing runs for long.
var base = map[string][]string{
	"run": {"null://", "--count", "1"}, "find": {"null://", "--slo", "p99<1s", "--budget", "1s"}, "scenario": {"s.js"}, "doctor": {"null://"},
	"compare": {"a", "b"}, "collate": {"rate"}, "report show": {"none"}, "report cite": {"none"}, "report import": {"in"}, "report export": {"--as", "json"},
	"topics list": {"kafka://TARGET"}, "topics create": {"kafka://TARGET", "t"}, "topics delete": {"kafka://TARGET", "t"}, "topics describe": {"kafka://TARGET", "t"}, "topics read": {"kafka://TARGET", "t"},
	"query": {"riemann://TARGET", "true"}, "profile": {"in"}, "mark": {"none", "note", "x"}, "system build": {"."},
}

// An attempt is a command line with a form in the value of a flag, or as an argument.
type attempt struct {
	Flag, Form, Line string
	Args             []string
}

// attempts are made from the tree of commands: each flag that takes a text, and the arguments of each
// command, with each form; or with one of so many, except for some flags of run.
func attempts(root *cobra.Command, every int, place func(string) string) (all []attempt, flags int) {
	n := 0
	const fewer = 6 // for a flag that an earlier command has, too
	seen := map[string]bool{}
	whole := map[string]int{"PLACE": 9, "FILE": 1, "REF": 1, "K=REF": 1, "K: V": 1, "URL": 1} // flags, by their word in help
	add := func(flag string, line []string, prefix, word string) {
		flags++
		stride := every
		switch {
		case whole[word] > 0 && line[0] == "run":
			whole[word]--
			stride = 1
		case strings.HasPrefix(prefix, "--") && seen[prefix]:
			stride *= fewer
		}
		seen[prefix] = true
		for _, form := range forms {
			if n++; n%stride != 0 || prefix == "--memprofile=" && !strings.Contains(form, "/") { // a file in the folder, written at the end
				continue
			}
			args := append(slices.Clone(line), prefix+form)
			for i := range args {
				args[i] = place(args[i])
			}
			all = append(all, attempt{Flag: flag, Form: form, Line: strings.Join(args, " "), Args: args})
		}
	}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		path := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "carronade"), " ")
		if c.Hidden || !c.Runnable() || path == "" {
			return
		}
		line := append(strings.Fields(path), base[path]...)
		if len(base[path]) > 0 || c.Args != nil && c.Args(c, []string{"x"}) == nil {
			add(path+" ARGUMENT", strings.Fields(path), "", "")
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			word, _ := pflag.UnquoteUsage(f)
			s, isSetting := cmdutil.SettingOf(f)
			if isSetting {
				word = s.Placeholder()
			}
			line, prefix := line, "--"+f.Name+"="
			switch {
			case slices.Contains([]string{"bool", "number", "duration", "size", "rate", "share", "count", "int", "uint", "int64", "uint16", "uint64", "float64"}, f.Value.Type()):
				return
			case strings.HasPrefix(word, "K: "):
				prefix += "a: "
			case strings.Contains(word, "="):
				prefix += "a="
			}
			if isSetting {
				if len(s.Choices) > 0 {
					return
				}
				if s.Kind != "" && path == "run" {
					line = []string{path, schemes[s.Kind] + "://TARGET/t", "--count", "1"}
				}
			}
			add(path+" --"+f.Name, line, prefix, word)
		})
	}
	visit(root)
	return all, flags
}

// schemes are those of targets, by the name of their kind.
var schemes = map[string]string{}

func init() {
	for _, k := range cli.Kinds() {
		schemes[k.Name()] = k.Schemes()[0]
	}
}

// lines is the program carronade-lines: it runs command lines that it reads as JSON, each under the same
// rules, as the processes of jobs do, and prints what they print. It confines itself once.
func lines() {
	var in struct {
		Rules    serve.Rules
		Confined bool // by the system
		Open     bool // the rules allow everything then
		Attempts []attempt
	}
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		panic(err)
	}
	run := func(rules *serve.Rules, args []string) string {
		name, value, _ := strings.Cut(rules.Environment(), "=")
		_ = os.Setenv(name, value)
		var out bytes.Buffer
		signals := make(chan os.Signal, 2)
		late := time.AfterFunc(time.Minute, func() { signals <- os.Interrupt; signals <- os.Interrupt })
		defer late.Stop()
		(&cli.Program{
			Kinds: cli.Kinds(), Args: args, In: strings.NewReader(""), Out: &out, Err: &out, Signals: signals,
			Exit: func(int) { panic("hangs: " + strings.Join(args, " ")) },
		}).Main()
		return out.String()
	}
	switch {
	case in.Confined && in.Open: // the rules would confine more
		here := []string{in.Rules.Folder, os.TempDir(), filepath.Dir(in.Rules.Store)}
		if err := sandbox.Confine(sandbox.Limits{Write: here, Ports: in.Rules.Wall.Ports}); err != nil {
			panic(err)
		}
	case in.Confined:
		first := in.Rules
		first.Wall = &serve.Wall{Ports: in.Rules.Wall.Ports}
		run(&first, []string{"version"})
	}
	in.Rules.Wall, in.Rules.Everything = nil, in.Open
	for _, a := range in.Attempts {
		if text := run(&in.Rules, a.Args); strings.Contains(text, secretText) {
			fmt.Printf("%s: it prints a secret: %s\n", a.Line, text)
		}
	}
	fmt.Println("done")
}

// TestEscapes: no flag and no argument of any command, in no form, reads or writes a file outside of the
// folder of jobs, connects to an address that is not allowed, or reads the environment: with the rules
// alone, with the rules and the system, and with the system alone.
func TestEscapes(t *testing.T) {
	t.Parallel()
	program := assert.Value(exec.LookPath("carronade-lines"))(t)
	page, err := os.ReadFile("../../docs/serve.md")
	want := fmt.Sprintf("each in %d forms", len(forms))
	assert.True(t, err == nil && strings.Contains(string(page), want), "docs/serve.md says nothing of %q (%v)", want, err)
	every := 73 // has no factor in common with the forms
	if testkit.Conformance {
		every = 1
	}
	for _, walls := range []struct {
		name           string
		confined, open bool
	}{{"rules", false, false}, {"rules and system", true, false}, {"system", true, true}} {
		t.Run(walls.name, func(t *testing.T) {
			t.Parallel()
			if here := sandbox.Here(); walls.confined && (!here.Files || !here.Ports) {
				t.Skip("this system confines no process")
			}
			dir := t.TempDir()
			folder, victim := filepath.Join(dir, "files"), filepath.Join(dir, "victim")
			for _, path := range []string{"files/sub", "files/xy:", "files/elasticsearchy:", "files/elasticsearch:", "files/elasticsearchy:@x", "victim", "data", "tmp"} {
				assert.OK(t, os.MkdirAll(filepath.Join(dir, path), 0o700))
			}
			for path, text := range map[string]string{"files/in": "text\n", "files/s.js": "", "victim/secret": secretText + "\n"} {
				assert.OK(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600))
			}
			for link, to := range map[string]string{"out": "../victim/secret", "dir": "../victim", "nothing": "../victim/made"} {
				if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
					t.Skip(err)
				}
			}
			allowed, canary := listen(t), listen(t)
			place := strings.NewReplacer("VICTIM", victim, "TARGET", allowed.addr, "CANARY", canary.addr, "SECRET", secretName).Replace
			all, flags := attempts(cli.Tree(cli.Kinds()), every, place)
			rules := &serve.Rules{Folder: folder, Store: filepath.Join(dir, "data", "reports.db"), Targets: []string{allowed.addr}}
			rules.Wall = rules.WallOf(cli.Kinds(), nil)
			if walls.open { // commands that serve others or need a terminal are no jobs
				all = slices.DeleteFunc(all, func(a attempt) bool { return rules.Command(pathIn(a.Args), nil) != nil })
			}
			for _, name := range []string{canary.addr, "env:" + secretName} { // so that a command with this file ends at once
				assert.OK(t, os.Mkdir(filepath.Join(folder, name), 0o700))
			}
			before := files(t, victim)
			in := assert.Value(json.Marshal(map[string]any{"Rules": rules, "Confined": walls.confined, "Open": walls.open, "Attempts": all}))(t)
			cmd := exec.CommandContext(t.Context(), program)
			cmd.Dir, cmd.Stdin = folder, bytes.NewReader(in)
			cmd.Env = []string{"HOME=" + dir, "XDG_DATA_HOME=" + filepath.Join(dir, "data"), "XDG_RUNTIME_DIR=" + filepath.Join(dir, "data"), "TMPDIR=" + filepath.Join(dir, "tmp"), "GODEBUG=multipathtcp=0", "NO_COLOR=1"}
			if !walls.open { // the environment of a job has no secrets, but the rules refuse it, too
				cmd.Env = append(cmd.Env, secretName+"="+secretText)
			}
			out, err := cmd.CombinedOutput()
			assert.True(t, err == nil && string(out) == "done\n", "%v\n%s", err, out)
			assert.NoDiff(t, cmp.Diff(before, files(t, victim)), "files outside of the folder")
			for name, text := range files(t, folder) {
				assert.True(t, !strings.Contains(text, secretText), "the file %s has a secret", name)
			}
			n := canary.accepted.Load()
			assert.True(t, n <= 0, "%d connections to an address that is not allowed", n)
			got := allowed.text()
			assert.True(t, !strings.Contains(got, secretText), "the target was sent a secret: %q", got)
			t.Logf("%d command lines: %d flags and arguments in %d forms each, one of %d of them", len(all), flags, len(forms), every)
		})
	}
}

func pathIn(args []string) string {
	cmd, _, err := cli.Tree(cli.Kinds()).Find(args)
	if err != nil {
		return "?"
	}
	return strings.TrimPrefix(cmd.CommandPath(), "carronade ")
}

func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	assert.OK(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			found[path] = d.Type().String()
			return err
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	}))
	return maps.Clone(found)
}

// A listener accepts connections, keeps what they send first, and closes them.
type listener struct {
	addr     string
	accepted atomic.Int64
	mu       sync.Mutex
	got      bytes.Buffer
}

func listen(t *testing.T) *listener {
	t.Helper()
	l := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	to := &listener{addr: l.Addr().String()}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			to.accepted.Add(1)
			var buf [4096]byte
			n, _ := conn.Read(buf[:])
			conn.Close()
			to.mu.Lock()
			to.got.Write(buf[:n])
			to.mu.Unlock()
		}
	}()
	return to
}

func (l *listener) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got.String()
}

// A job of a server connects to no address outside its rules, also if a broker announces it.
func TestAnnouncedAddresses(t *testing.T) {
	t.Parallel()
	c := child(t, "kafka", "--in-memory", "--topic", "t:1", "--advertise", "192.0.2.1:9092")
	rules := &serve.Rules{Folder: t.TempDir(), Targets: []string{"127.0.0.1"}}
	for _, args := range [][]string{
		{"run", "kafka://" + c.Addr() + "/t", "--count", "10"},
		{"run", "kafka://" + c.Addr() + "/t", "--count", "10", "--engine", "client"},
	} {
		cmd := exec.CommandContext(t.Context(), carronade(t), args...)
		cmd.Env, cmd.Dir = []string{rules.Environment(), "XDG_DATA_HOME=" + t.TempDir()}, rules.Folder
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "192.0.2.1:9092, the address that it advertises: this server does not allow jobs to connect to 192.0.2.1:9092\n") ||
			!strings.Contains(string(out), "\nhint: ask the operator of the server to start it with --allow-target") {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}
