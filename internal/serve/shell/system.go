package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Defaults of an APM Server.
const (
	localServer  = "http://localhost:8200"
	defaultMake  = "make"
	updateMake   = "make update"
	defaultStart = "./apm-server"
	dockerMake   = "docker build -t {image} ."
)

// systemVerb is apm, kafka and riemann.
func (s *session) systemVerb(words []string) error {
	if len(words) < 2 {
		return s.usage(words)
	}
	kind, rest := words[0], words[2:]
	switch words[1] {
	case "use":
		return s.use(kind, rest)
	case "switch":
		return s.change(kind, rest)
	case "tail":
		return s.tail(kind, rest)
	case "list":
		if len(rest) == 0 {
			return s.list(kind)
		}
	}
	return s.usage(words)
}

// use chooses the system: where it answers, and the repository that it is built from.
func (s *session) use(kind string, args []string) error {
	v := &server{}
	args, options, err := takeOptions(args, "--url", "--make", "--cmd")
	if err != nil {
		return err
	}
	v.URL, v.Make, v.Cmd = options["--url"], options["--make"], options["--cmd"]
	if s.Allow != nil && (v.Make != "" || v.Cmd != "") {
		return errCommands
	}
	if v.URL != "" {
		if err := checkURL(kind, v.URL); err != nil {
			return err
		}
	}
	switch {
	case len(args) == 0 && len(options) == 0:
		v = s.system[kind]
		if v.URL == "" {
			return hinted(errors.New("no "+kind+" is in use"), useHint(kind))
		}
		s.say("using %s", s.named(v))
		return nil
	case len(args) == 1 && args[0] == "last":
		given := *v
		if err := s.home.load(kind, v); err != nil {
			return err
		}
		if v.URL == "" {
			return hinted(errors.New("no "+kind+" was in use before"), useHint(kind))
		}
		if err := s.refused(v); err != nil {
			return err
		}
		v.Switch = change{}
		override(&v.URL, given.URL)
		override(&v.Make, given.Make)
		override(&v.Cmd, given.Cmd)
	case kind == "apm" && len(args) >= 1 && args[0] == "docker" && len(args) <= 2:
		if err := s.docker(v); err != nil {
			return err
		}
		v.Dir = localFolder()
		if len(args) == 2 {
			v.Dir = args[1]
		} else if last := s.system["apm"].Dir; last != "" {
			v.Dir = last
		}
	case kind == "apm" && len(args) == 1 && args[0] == "local":
		v.Dir = localFolder()
	case len(args) >= 1 && strings.Contains(args[0], "://") && v.URL == "" && (len(args) == 1 || kind != "apm" && len(args) == 2):
		if err := checkURL(kind, args[0]); err != nil {
			return err
		}
		v.URL = strings.TrimRight(args[0], "/")
		if len(args) == 2 {
			v.Dir = args[1]
		}
	case kind == "apm" && len(args) == 1:
		v.Dir = args[0]
	default:
		return s.usage([]string{kind})
	}
	v.URL = cmp.Or(v.URL, localServer)
	if v.Dir != "" {
		if v.Dir, err = s.folder(v.Dir); err != nil {
			return err
		}
	}
	if err := s.reach(v.URL); err != nil {
		return err
	}
	s.system[kind] = v
	if err := s.home.save(kind, v); err != nil {
		return err
	}
	s.say("using %s", s.named(v))
	return nil
}

func override(to *string, given string) {
	if given != "" {
		*to = given
	}
}

func useHint(kind string) string {
	if kind == "apm" {
		return "apm use <dir>"
	}
	return kind + " use <url>"
}

// named is the place of a system, for people.
func (s *session) named(v *server) string {
	if u := v.using(); u != "" {
		return u
	}
	return v.URL
}

// takeOptions removes options with values from arguments.
func takeOptions(args []string, names ...string) (rest []string, values map[string]string, err error) {
	values = map[string]string{}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		if !slices.Contains(names, name) {
			rest = append(rest, args[i])
			continue
		}
		if !joined {
			if i++; i == len(args) {
				return nil, nil, fmt.Errorf("%s has no value", name)
			}
			value = args[i]
		}
		values[name] = value
	}
	return rest, values, nil
}

// checkURL checks the address of a system. An error does not repeat it: it may
// contain a password.
func checkURL(kind, text string) error {
	u, err := url.Parse(text)
	schemes := map[string][]string{"apm": {"http", "https"}, "kafka": {"kafka", "kafka+tls"}, "riemann": {"riemann", "riemann+tls", "riemann+udp", "riemann+ws", "riemann+wss", "riemann+http", "riemann+https"}}[kind]
	switch {
	case err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme):
		return fmt.Errorf("the address of a %s is a URL that begins with %s://", kind, strings.Join(schemes, "://, "))
	case u.User != nil || u.RawQuery != "":
		return errors.New("the URL must have neither a login nor a query")
	}
	return nil
}

// localFolder is where Go before modules kept the repository.
func localFolder() string {
	path := os.Getenv("GOPATH")
	if path == "" {
		home, _ := os.UserHomeDir()
		path = filepath.Join(home, "go")
	}
	return filepath.Join(filepath.SplitList(path)[0], "src", "github.com", "elastic", "apm-server")
}

// folder checks that a folder exists and that the session may use it, and returns its
// full name.
func (s *session) folder(dir string) (string, error) {
	if s.Dir != "" && !filepath.IsAbs(dir) {
		dir = filepath.Join(s.Dir, dir)
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		if _, err = os.ReadDir(abs); err == nil && s.Allow != nil {
			abs, err = filepath.EvalSymlinks(abs)
		}
	}
	if err != nil {
		if s.Allow != nil { // what exists elsewhere on this machine is not the session's concern
			return "", s.outside()
		}
		return "", hinted(fmt.Errorf("Can't ch to directory %s", dir), "apm use <dir>")
	}
	if s.Allow == nil {
		return abs, nil
	}
	for _, f := range s.Allow.Folders {
		if found, err := filepath.EvalSymlinks(f); err == nil {
			if rel, err := filepath.Rel(found, abs); err == nil && filepath.IsLocal(rel) {
				return abs, nil
			}
		}
	}
	return "", s.outside()
}

// refused returns an error if the session may not use a system: another session of the
// user may have been allowed more.
func (s *session) refused(v *server) error {
	if s.Allow == nil {
		return nil
	}
	if v.Make != "" || v.Cmd != "" {
		return errCommands
	}
	if v.Dir == "" {
		return nil
	}
	_, err := s.folder(v.Dir)
	return err
}

var errCommands = errors.New("this session may not choose commands of this machine")

func (s *session) outside() error {
	if len(s.Allow.Folders) == 0 {
		return errors.New("this session may not build or start servers")
	}
	return errors.New("this session may use only folders in " + strings.Join(s.Allow.Folders, ", "))
}

// docker checks that containers can be started, and makes v use them.
func (s *session) docker(v *server) error {
	if s.Allow != nil { // it would start programs of this machine, and builds of a server are made by make
		return errCommands
	}
	v.Docker = true
	if _, err := exec.LookPath("docker"); err != nil {
		return hinted(errors.New("apm use docker: docker is not installed"), "apm use <dir>")
	}
	ctx, cancel := context.WithTimeout(s.work, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", "version", "--format", "{{.Server.Version}}").CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return hinted(fmt.Errorf("apm use docker: the daemon does not answer: %s", lines[len(lines)-1]), "start docker, or apm use <dir>")
	}
	return nil
}

// list shows what a system has: builds, topics, or the index.
func (s *session) list(kind string) error {
	if kind == "apm" {
		return s.run([]string{"system", "list"})
	}
	v := s.system[kind]
	if v.URL == "" {
		return hinted(errors.New("no "+kind+" is in use"), useHint(kind))
	}
	if kind == "kafka" {
		return s.run([]string{"topics", "list", v.URL, "--no-store"})
	}
	return s.run([]string{"query", v.URL, "true"})
}

// systemOf names the queue of a system: jobs of one system run one after the other.
func (s *session) systemOf(kind string) string {
	return s.System([]string{"run", s.targetOf(kind)})
}

// targetOf is the target of the system in use.
func (s *session) targetOf(kind string) string {
	address := s.system[kind].URL
	if kind == "apm" && address != "" {
		address = "apm+" + address
	}
	return address
}

// withSystem replaces the word apm, kafka or riemann by its address, and adds the
// revision that was switched to.
func (s *session) withSystem(words []string) (args []string) {
	args = slices.Clone(words)
	for i, w := range args[1:] {
		if v := s.system[w]; v != nil && v.URL != "" && !strings.HasPrefix(args[i], "-") {
			args[i+1] = s.targetOf(w)
			if len(args) > 1 && (args[0] == "run" || args[0] == "find") {
				args = append(args, v.flags("--")...)
				if slices.Contains(args, "--system-cmd") {
					args = append(args, "--system-log", s.logOf(w))
				}
			}
		}
	}
	return args
}

// flags are the settings of a run for the system's revision, and of what starts it.
func (v *server) flags(dash string) (out []string) {
	add := func(name, value string) { out = append(out, dash+name, value) }
	if v.Dir == "" || v.Switch.Branch == "" {
		return nil
	}
	add("system-git", v.Dir)
	add("system-branch", v.Switch.Branch)
	if v.Switch.Checkout != "" {
		add("system-checkout", v.Switch.Checkout)
	}
	if v.Switch.Build != "" {
		add("system-build", v.Switch.Build)
	}
	if v.Cmd != "" {
		if v.Switch.Checkout == "" {
			add("system-dir", v.Dir)
		}
		add("system-cmd", v.Cmd)
	}
	return out
}
