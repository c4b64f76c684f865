package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/live"
	"carronade/internal/place"
	"carronade/internal/run"
	"carronade/internal/serve"
	"carronade/internal/serve/jobs"
	"carronade/internal/serve/shell"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/protocol"
)

// A machine is what a server or a shell of its own works with: the queue of a data folder, the
// runs in progress, and the rules of jobs.
type machine struct {
	data, files string
	queue       *jobs.Queue
	hub         *live.Hub
	rules       *serve.Rules
	program     string
	kinds       []protocol.Kind
	configured  []string // values of the configuration
	stores      []store.Store
	disk        int64 // how many bytes the files of jobs may have; 0: that is not limited
}

// commandEnd is how long a command that is cancelled has to end by itself.
const commandEnd = 5 * time.Second

// openMachine opens the data folder and continues its queue.
func (s *session) openMachine(ctx context.Context, v *serving) (*machine, error) {
	data, err := ownFolder(v.data, "serve")
	if err != nil {
		return nil, err
	}
	store := v.store
	if store == "" {
		if store, err = s.defaultStore(); err != nil {
			return nil, err
		}
	}
	if store, err = absoluteStore(store); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	m := &machine{data: data, files: filepath.Join(data, "files"), hub: live.NewHub(), program: program, kinds: s.Kinds}
	m.rules = v.rules(m.files, store)
	m.disk = v.disk(m.files, host.FolderSize(m.files))
	m.queue, err = jobs.Open(ctx, jobs.Options{
		Dir: data, Parallel: v.parallel, MostFiles: m.disk, Memory: m.memory(),
		Environ: func(j *jobs.Job) []string { return m.environ(j.User, j.Args, false) },
		Frames:  func(_ int64, r io.Reader) { m.hub.Read(r) },
		Problem: s.printError,
	})
	if err != nil || v.everything {
		return m, err
	}
	if err := m.prepare(ctx, s); err != nil {
		m.close(s)
		return nil, err
	}
	return m, nil
}

// prepare makes what jobs use and may not make themselves.
func (m *machine) prepare(ctx context.Context, s *session) error {
	conf, err := s.configuration()
	if err != nil {
		return err
	}
	for _, e := range conf.Entries {
		m.configured = append(m.configured, e.Values...)
	}
	if err := errors.Join(os.RemoveAll(m.temporary()), os.MkdirAll(m.temporary(), 0o700)); err != nil {
		return fmt.Errorf("make the temporary folder of jobs: %w", err)
	}
	if _, err := run.AttachmentKey(); err != nil {
		s.warn("jobs cannot attach files: " + err.Error())
	}
	// An open store keeps the files of its log, which jobs may not make: see sqlite.Files.
	places, err := databases(m.rules.Store)
	if err != nil {
		return err
	}
	for _, path := range places {
		if opened, err := sqlite.Open(ctx, path); err == nil { // a job says what is wrong with it
			m.stores = append(m.stores, opened)
		}
	}
	return nil
}

// memory is what a job may ask for, in bytes; 0: the system does not limit it.
func (m *machine) memory() int64 {
	if m.rules.Everything {
		return 0
	}
	return m.rules.Memory
}

// temporary is the folder for temporary files of jobs.
func (m *machine) temporary() string { return filepath.Join(m.data, "tmp") }

// absoluteStore makes the path of a store absolute: jobs run in another folder.
func absoluteStore(text string) (string, error) {
	p, err := storeAt(text)
	if err != nil || p.Kind != place.File {
		return text, err
	}
	return filepath.Abs(p.Value)
}

// close ends the running jobs. Others stay in the queue.
func (m *machine) close(s *session) {
	ctx, cancel := context.WithTimeout(context.Background(), drainJobs)
	defer cancel()
	if err := m.queue.Close(ctx); err != nil {
		s.printError(err)
	}
	for _, opened := range m.stores {
		if err := opened.Close(); err != nil {
			s.printError(err)
		}
	}
	m.hub.Close()
}

// drainJobs is how long running jobs may take to end with the server.
const drainJobs = 12 * time.Second

// environ is the environment of a process for a user. Without --allow it has nothing that may be a
// secret of the server's: scripts and expressions can read it.
func (m *machine) environ(user string, args []string, noLoad bool) []string {
	rules := *m.rules
	rules.User, rules.Home, rules.NoLoad = user, m.home(user), noLoad
	if noLoad { // several run at the same time as the jobs
		rules.Memory = max(leastJobMemory, rules.Memory/serve.MostCommands)
	}
	if m.disk > 0 { // the store is a file, too
		rules.FileSize = m.disk
		places, _ := databases(rules.Store) // the place was checked
		for _, path := range places {
			if info, err := os.Stat(path); err == nil {
				rules.FileSize = max(rules.FileSize, info.Size()+m.disk)
			}
		}
	}
	rules.Wall = rules.WallOf(m.kinds, args, m.configured...)
	env := host.Environ()
	if !rules.Everything {
		env = slices.DeleteFunc(env, func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			return !slices.ContainsFunc(passedOn, func(p string) bool {
				prefix, ok := strings.CutSuffix(p, "*")
				return name == p || ok && strings.HasPrefix(name, prefix)
			})
		})
	}
	if rules.Wall != nil {
		// Landlock does not know the sockets of multipath TCP, which Go listens with.
		env = append(env, "TMPDIR="+m.temporary(), "GODEBUG=multipathtcp=0")
	}
	return append(env, rules.Environment())
}

// passedOn are the variables that jobs get: those that programs need to run and to build.
var passedOn = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR", "TERM", "NO_COLOR", "XDG_*",
	"GOROOT", "GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOTOOLCHAIN", "GOFLAGS", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "JAVA_HOME",
	"SYSTEMROOT", "SystemRoot", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP", "PATHEXT", "ComSpec",
	configVariable, "CARRONADE_TEST_*",
}

// home is the folder of a user's settings and passwords.
func (m *machine) home(user string) string { return filepath.Join(m.data, "users", user) }

// run runs a command of carronade at once, in a process with the rules of the user's jobs.
func (m *machine) run(ctx context.Context, user string, args []string, stdout, stderr io.Writer) int {
	cmd := exec.CommandContext(ctx, m.program, args...)
	cmd.Dir, cmd.Env = m.files, m.environ(user, args, !m.rules.Everything)
	crash := jobs.NewCrash(func(p []byte) { _, _ = stderr.Write(p) }) // an error: the client is gone
	cmd.Stdout, cmd.Stderr = stdout, crash
	if stdout == stderr { // one goroutine writes both then
		cmd.Stdout = crash
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = commandEnd
	err := cmd.Run()
	if crash.TookAll() && err != nil {
		crash.End("error: " + jobs.NoMemory(m.memory()) + "\nhint: " + jobs.MemoryHint + "\n")
		return host.ExitFailed
	}
	crash.End("")
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintf(stderr, "error: %s\n", cmdutil.Reason(err))
		return host.ExitFailed
	}
	return host.ExitOK
}

// api is the API of the machine.
func (m *machine) api(s *session) *serve.API {
	return &serve.API{
		Jobs: m.queue, Kinds: s.Kinds, Rules: m.rules, Folder: m.files, Version: version(),
		Run: m.run, Loads: s.loads, Check: s.checkLine,
	}
}

// takes reports whether jobs may run a command, or one below it.
func (m *machine) takes(c *cobra.Command) bool {
	return m.rules.Command(pathOf(c), nil) == nil || slices.ContainsFunc(c.Commands(), m.takes)
}

// session runs sessions of the shell.
func (m *machine) session(s *session, o shell.Options) func(ctx context.Context, conn io.ReadWriter, user string) error {
	var names []string
	for _, c := range s.root().Commands() {
		if !c.Hidden && m.takes(c) {
			names = append(names, c.Name())
		}
	}
	return func(ctx context.Context, conn io.ReadWriter, user string) error {
		o := o
		o.Queue, o.User, o.Home, o.Dir = m.queue, user, m.home(user), m.files
		o.Commands, o.Loads, o.Complete = names, s.loads, s.completions
		if !m.rules.Everything {
			o.Walls = func(args []string) string {
				if walls := m.rules.Walls(s.Kinds, args); walls != serve.BothWalls {
					return walls
				}
				return ""
			}
		}
		o.System = func(args []string) string { return serve.SystemOf(s.Kinds, args) }
		o.Run = func(ctx context.Context, args []string, out io.Writer) int { return m.run(ctx, user, args, out, out) }
		return shell.Serve(ctx, conn, o)
	}
}
