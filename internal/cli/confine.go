package cli

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"carronade/internal/conn"
	"carronade/internal/fleet/bus"
	"carronade/internal/live"
	"carronade/internal/place"
	"carronade/internal/run"
	"carronade/internal/sandbox"
	"carronade/internal/serve"
	"carronade/internal/store/sqlite"
	"carronade/protocol"
	"carronade/units"
)

// takeRules takes the rules of the server whose job this process is, if it is one, and confines the
// process to what they allow. It comes before the command line is read.
func (s *session) takeRules() (err error) {
	if s.rules, err = serve.TakeRules(); err != nil || s.rules == nil || s.rules.Everything {
		return err
	}
	conn.Restrict(s.allowedAddress)
	conn.Forbid(func(at netip.AddrPort) error {
		if ip := at.Addr().Unmap(); !ip.IsLoopback() && !ip.IsUnspecified() {
			return nil
		}
		return notAllowed(s.rules.Port(at.Port()))
	})
	conf, err := s.configuration()
	if err != nil {
		return err
	}
	files := serve.FilesOfStore(s.rules.Store)
	for _, e := range conf.Entries {
		for _, v := range e.Values {
			files = append(files, serve.FilesOf(s.Kinds, e.Name, v)...)
		}
	}
	folders := []string{s.rules.Folder, s.rules.Home}
	if path, err := calibrationPath(); err == nil {
		folders = append(folders, filepath.Dir(path))
	}
	place.Confine(folders, files...)
	if s.rules.Wall == nil {
		return nil
	}
	limits := s.limits(folders, files)
	if err := sandbox.Confine(limits); err != nil {
		return &protocol.Error{Err: fmt.Errorf("cannot confine the job's process: %w", err), Hint: "ask the operator of the server; --allow runs jobs without walls"}
	}
	if limits.Memory > 0 && sandbox.Memory() > 0 {
		go s.watchMemory(limits.Memory)
	}
	return nil
}

// watchMemory ends the job, with its report, when it has nearly all of the memory that it may have. At the limit the
// system gives it no more, and the process ends without a report.
func (s *session) watchMemory(most int64) {
	for {
		used := sandbox.Memory()
		switch {
		case used > most/10*9:
			s.interrupt(&protocol.Error{Err: fmt.Errorf("%w: %s (--job-memory)", run.ErrMemory, units.FormatSize(s.rules.Memory)), Hint: serve.MemoryHint})
			return
		case used > most/2: // the rest may be taken in less than a second
			time.Sleep(5 * time.Millisecond)
		default:
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// limits are what the system allows this process.
func (s *session) limits(folders, files []string) sandbox.Limits {
	l := sandbox.Limits{
		Write: append([]string{s.rules.Folder, os.TempDir()}, folders[2:]...),
		Read:  append([]string{s.rules.Home}, files...),
		Ports: s.rules.Wall.Ports, AnyPort: s.rules.Wall.AnyPort, FileSize: s.rules.FileSize,
	}
	if s.rules.Memory > 0 {
		l.Memory = 2*s.rules.Memory + beyondMemory
	}
	if marks, err := live.MarkFolder(); err == nil {
		l.Write = append(l.Write, marks)
	}
	for _, dir := range l.Write {
		_ = os.MkdirAll(dir, 0o700) // a folder that is missing is no place to write
	}
	stores, _ := databases(s.rules.Store) // the place was checked by the server
	for _, path := range stores {
		l.Write = append(l.Write, sqlite.Files(path)...)
	}
	if path, _ := configPath(); path != "" {
		l.Read = append(l.Read, path)
	}
	if path, err := run.AttachmentKeyPath(); err == nil {
		l.Read = append(l.Read, path)
	}
	if self, err := os.Executable(); err == nil {
		l.Run = append(l.Run, self)
	}
	return l
}

// beyondMemory is what the system lets a process have beyond twice the memory that its numbers may ask for: the
// collector lets a heap double, and the program itself has some.
const beyondMemory = 512 << 20

// databases are the files of stores that jobs open: that of the server, and the user's own, which takes
// reports while another is not available.
func databases(text string) (paths []string, err error) {
	p, err := place.Store(text)
	if err != nil {
		return nil, err
	}
	if p.Kind == place.File {
		paths = append(paths, p.Value)
	}
	own, err := sqlite.Default()
	if err == nil && !slices.Contains(paths, own) {
		paths = append(paths, own)
	}
	return paths, err
}

// confineAgent confines this process to what an agent needs: its folder, and the ports of its server and of
// its targets, if they are known.
func (s *session) confineAgent(cfg bus.AgentConfig, targets []string, server, traces string) error {
	folders := []string{agentFiles(cfg.Dir)}
	l := sandbox.Limits{Write: []string{cfg.Dir}}
	if traces != "" {
		folders, l.Write = append(folders, traces), append(l.Write, traces)
	}
	place.Confine(folders)
	if cfg.NATS != nil { // its server may name others, and the files are read again for each connection
		l.AnyPort = true
		l.Read = []string{cfg.NATS.Creds, cfg.NATS.NKeySeedFile, cfg.NATS.CA}
	} else if l.Ports = serve.AgentPorts(targets, server); l.Ports == nil {
		l.AnyPort = true
	}
	if path, _ := configPath(); path != "" {
		l.Read = append(l.Read, path)
	}
	if err := sandbox.Confine(l); err != nil {
		return &protocol.Error{Err: fmt.Errorf("cannot confine the agent's process: %w", err), Hint: "--allow runs it without walls"}
	}
	return nil
}

// agentFiles is the folder with the files that runs of an agent may name.
func agentFiles(data string) string { return filepath.Join(data, "files") }

// walls says what limits jobs on this machine.
func (m *machine) walls() string {
	text := wallsText(m.rules.Everything)
	if len(m.rules.Builds) > 0 {
		text += "; jobs that may build have the rules alone"
	}
	return text
}

// wallsText says what limits jobs of a server, or runs of an agent, on this machine.
func wallsText(everything bool) string {
	if everything {
		return "none, because of --allow"
	}
	here := sandbox.Here()
	var parts []string
	for _, part := range []struct {
		there bool
		name  string
	}{{here.Files, "files"}, {here.Ports, "ports"}, {here.Signals, "signals"}} {
		if part.there {
			parts = append(parts, part.name)
		}
	}
	system := "nothing by the system"
	if len(parts) > 0 {
		system = strings.Join(parts, ", ") + " by the system (" + here.Name + ")"
	}
	return "the rules, and " + system
}
