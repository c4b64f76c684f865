package shell

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"carronade/internal/checkout"
	"carronade/internal/jobs"
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
	if v.URL == "" {
		v.URL = localServer
	}
	if v.Dir != "" {
		if v.Dir, err = s.folder(v.Dir); err != nil {
			return err
		}
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
		return "", hinted(fmt.Errorf("Can't ch to directory %s", dir), "apm use <dir>") //nolint:staticcheck,revive // the tool's words
	}
	if s.Allow == nil {
		return abs, nil
	}
	for _, f := range s.Allow.Folders {
		if real, err := filepath.EvalSymlinks(f); err == nil {
			if rel, err := filepath.Rel(real, abs); err == nil && filepath.IsLocal(rel) {
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
	v.Docker = true
	if _, err := exec.LookPath("docker"); err != nil {
		return hinted(errors.New("apm use docker: docker is not installed"), "apm use <dir>")
	}
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
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
		return s.run([]string{"topics", "list", v.URL})
	}
	return s.run([]string{"query", v.URL, "true"})
}

// change is apm switch: it records the branch and the revision to test. With -c, -m
// or -u it builds them as a job.
func (s *session) change(kind string, args []string) error {
	v := s.system[kind]
	if v.Dir == "" {
		return hinted(errors.New("no repository is in use"), useHint(kind)+" with a folder")
	}
	flags, words, err := switchFlags(args)
	if err != nil || len(words) < 1 || len(words) > 2 {
		if err != nil {
			return err
		}
		return s.usage([]string{kind})
	}
	if len(words) == 2 && words[0] == words[1] {
		return errors.New("the branch and the revision are the same")
	}
	ctx, cancel := s.soonCtx()
	defer cancel()
	facts, err := checkout.Read(ctx, v.Dir)
	if err != nil {
		return err
	}
	remotes := checkout.Remotes(ctx, v.Dir)
	remote, branch := "", words[0]
	if before, after, ok := strings.Cut(words[0], "/"); ok && (slices.Contains(remotes, before) || slices.Contains(knownRemotes, before)) {
		remote, branch = before, after
	}
	c := change{Branch: branch}
	if len(words) == 2 {
		c.Revision = words[1]
	}
	if v.Docker {
		flags = map[rune]bool{'f': flags['f'] || remote != "", 'c': true, 'm': true, 'v': flags['v']}
	}
	build := []string{"system", "build", v.Dir, "--branch", branch}
	if flags['f'] {
		if remote == "" {
			remote = "origin"
		}
		if !slices.Contains(remotes, remote) {
			return hinted(fmt.Errorf("the repository has no remote %s", remote), remoteHint(v.Dir, remote))
		}
		build = append(build, "--fetch", remote)
	}
	switch {
	case c.Revision != "" && flags['c']:
		c.Checkout = c.Revision
	case flags['c'] && remote != "":
		c.Checkout = remote + "/" + branch
	case flags['c']:
		c.Checkout = branch
	case flags['m'] || flags['u']:
		c.Checkout = facts.Revision
	}
	if !flags['c'] && c.Revision != "" && !strings.HasPrefix(facts.Revision, c.Revision) {
		return hinted(fmt.Errorf("the current tree is at %.12s and not at %s", facts.Revision, cut(c.Revision, 40)), kind+" switch -c checks it out")
	}
	if kind != "apm" && v.Cmd == "" && c.Checkout != "" {
		return hinted(errors.New("nothing says how to start a build"), kind+" use URL DIR --cmd CMD")
	}
	if c.Build = v.build(flags); c.Build != "" {
		build = append(build, "--make", c.Build)
	}
	if c.Checkout != "" {
		build = append(build, "--checkout", c.Checkout)
	}
	if flags['v'] {
		build = append(build, "-v")
	}
	changed := *v
	changed.Switch = c
	s.system[kind] = &changed
	if err := s.home.save(kind, &changed); err != nil {
		return err
	}
	if c.Checkout == "" && !flags['f'] {
		s.say("using %s", s.branchLine(&changed))
		return nil
	}
	return s.submit(jobs.Request{System: s.systemOf(kind), Typed: typed(append([]string{kind, "switch"}, args...)), Args: build})
}

// knownRemotes are those that the tool added to the repository.
var knownRemotes = []string{"axw", "graphaelli", "jalvz", "roncohen", "simitt"}

func remoteHint(dir, remote string) string {
	if slices.Contains(knownRemotes, remote) {
		return "git -C " + dir + " remote add " + remote + " https://github.com/" + remote + "/apm-server.git"
	}
	return "git -C " + dir + " remote add " + remote + " URL"
}

// switchFlags reads the flags of apm switch. Letters may be joined: -fcm.
func switchFlags(args []string) (flags map[rune]bool, words []string, err error) {
	flags = map[rune]bool{}
	long := map[string]rune{"--fetch": 'f', "--checkout": 'c', "--make-update": 'u', "--make": 'm', "--verbose": 'v'}
	for _, a := range args {
		switch letter, ok := long[a]; {
		case ok:
			flags[letter] = true
		case strings.HasPrefix(a, "-") && len(a) > 1:
			for _, r := range a[1:] {
				if !strings.ContainsRune("fcumv", r) {
					return nil, nil, fmt.Errorf("apm switch has no flag %s: it has -f -c -u -m -v", cut(a, 40))
				}
				flags[r] = true
			}
		default:
			words = append(words, a)
		}
	}
	return flags, words, nil
}

// build is the command that builds a checked-out revision, "" if none does.
func (v *server) build(flags map[rune]bool) string {
	makes := v.Make
	switch {
	case v.Docker && makes == "":
		return dockerMake
	case v.Docker:
		return makes
	case makes == "":
		makes = defaultMake
	}
	switch {
	case flags['u'] && flags['m']:
		return updateMake + " && " + makes
	case flags['u']:
		return updateMake
	case flags['m']:
		return makes
	}
	return ""
}

// systemOf names the queue of a system: jobs of one system run one after the other.
func (s *session) systemOf(kind string) string {
	return queueOf(s.system[kind].URL)
}

func queueOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "local"
	}
	host := u.Host
	if u.Hostname() == "localhost" || u.Hostname() == "0.0.0.0" {
		host = net.JoinHostPort("127.0.0.1", u.Port())
	}
	return host
}

// withSystem replaces the word apm, kafka or riemann by its address, and adds the
// revision that was switched to. It returns the name of the system's queue.
func (s *session) withSystem(words []string) (args []string, system string) {
	args = slices.Clone(words)
	for i, w := range args[1:] {
		if v := s.system[w]; v != nil && v.URL != "" && !strings.HasPrefix(args[i], "-") {
			address := v.URL
			if w == "apm" {
				address = "apm+" + address
			}
			args[i+1] = address
			if len(args) > 1 && (args[0] == "run" || args[0] == "find") {
				args = append(args, v.flags("--")...)
				if slices.Contains(args, "--system-cmd") {
					args = append(args, "--system-log", s.logOf(w))
				}
			}
		}
		if system == "" && strings.Contains(args[i+1], "://") && !strings.HasPrefix(args[i+1], "-") {
			system = queueOf(args[i+1])
		}
	}
	return args, system
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
