package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"carronade/internal/command"
	"carronade/internal/jobs"
	"carronade/internal/permit"
	"carronade/internal/serve"
	"carronade/internal/shell"
	"carronade/internal/web"
	"carronade/internal/web/frame"
)

// A machine is what a server or a shell of its own works with: the queue of a data folder, the
// runs in progress, and the rules of jobs.
type machine struct {
	data, files string
	queue       *jobs.Queue
	hub         *web.Hub
	rules       *permit.Rules
	program     string
}

// commandEnd is how long a command that is cancelled has to end by itself.
const commandEnd = 5 * time.Second

// openMachine opens the data folder and continues its queue.
func (s *session) openMachine(ctx context.Context, v *serving) (*machine, error) {
	data, err := dataFolder(v.data)
	if err != nil {
		return nil, err
	}
	store := v.store
	if store == "" {
		if store, err = s.defaultStore(); err != nil {
			return nil, err
		}
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	m := &machine{data: data, files: filepath.Join(data, "files"), hub: web.NewHub(), program: program}
	m.rules = v.rules(m.files, store)
	m.queue, err = jobs.Open(ctx, jobs.Options{
		Dir: data, Parallel: v.parallel,
		Frames:  func(_ int64, r io.Reader) { frame.Read(r, m.hub.Take) }, //nolint:errcheck // a run without a picture is a run
		Problem: s.printError,
	})
	return m, err
}

// close ends the running jobs. Others stay in the queue.
func (m *machine) close(s *session) {
	ctx, cancel := context.WithTimeout(context.Background(), drainJobs)
	defer cancel()
	if err := m.queue.Close(ctx); err != nil {
		s.printError(err)
	}
	m.hub.Close()
}

// drainJobs is how long running jobs may take to end with the server.
const drainJobs = 12 * time.Second

// A userQueue gives each job the rules of its user.
type userQueue struct {
	*jobs.Queue
	m *machine
}

// Submit adds the rules to the environment of the job's process.
func (q userQueue) Submit(ctx context.Context, r jobs.Request) (jobs.Job, int, error) {
	r.Env = append(r.Env, q.m.rulesOf(r.User).Environment())
	return q.Queue.Submit(ctx, r)
}

// home is the folder of a user's settings and passwords.
func (m *machine) home(user string) string { return filepath.Join(m.data, "users", user) }

// rulesOf are the rules of a user's jobs.
func (m *machine) rulesOf(user string) *permit.Rules {
	r := *m.rules
	r.Secrets = m.home(user)
	return &r
}

// run runs a command of carronade at once, in a process with the rules of the user's jobs.
func (m *machine) run(ctx context.Context, user string, args []string, stdout, stderr io.Writer) int {
	cmd := exec.CommandContext(ctx, m.program, args...)
	cmd.Dir, cmd.Env = m.files, append(os.Environ(), m.rulesOf(user).Environment())
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = commandEnd
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintf(stderr, "error: %s\n", command.Reason(err))
		return command.Failed
	}
	return command.OK
}

// api is the API of the machine.
func (m *machine) api(s *session) *serve.API {
	return &serve.API{
		Jobs: userQueue{m.queue, m}, Kinds: s.Kinds, Folder: m.files, Version: version(),
		Run: m.run,
	}
}

// session runs sessions of the shell.
func (m *machine) session(s *session, o shell.Options) func(ctx context.Context, conn io.ReadWriter, user string) error {
	var names []string
	for _, c := range s.root().Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return func(ctx context.Context, conn io.ReadWriter, user string) error {
		o := o
		o.Queue, o.User, o.Home = userQueue{m.queue, m}, user, m.home(user)
		o.Commands, o.Loads = names, serve.Loads
		o.System = func(args []string) string { return serve.SystemOf(s.Kinds, args) }
		o.Run = func(ctx context.Context, args []string, out io.Writer) int { return m.run(ctx, user, args, out, out) }
		return shell.Serve(ctx, conn, o)
	}
}
