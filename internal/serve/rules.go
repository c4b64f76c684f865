package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"carronade/internal/place"
	"carronade/internal/serve/jobs"
)

// MemoryHint is what to do about a job that needs more memory than it may have.
const MemoryHint = jobs.MemoryHint

// rulesVariable is the name of the environment variable with the rules of a job, as JSON.
const rulesVariable = "CARRONADE_PERMIT"

// Rules are what a job may do: which commands it may run, which files it may name, which systems
// it may load, and which programs it may start. The server gives them to the process of each job
// in its environment, and the command line of that process asks here before it does anything. Nil
// rules allow everything.
//
// The rules refuse everything that they do not allow by name. A new setting whose value is a file, an address
// or a command is recognized by the word for its value in help.
type Rules struct {
	// Everything is set if the server's operator allows everything.
	Everything bool `json:"everything,omitempty"`
	// Folder has the files that a job may read and write, and is where it runs.
	Folder string `json:"folder"`
	// Targets are patterns of addresses that a job may connect to, HOST or HOST:PORT, with * for
	// any part of a name. None: all addresses.
	Targets []string `json:"targets,omitempty"`
	// Builds are the folders of repositories whose systems a job may build and start.
	Builds []string `json:"builds,omitempty"`
	// Home is the folder with what the server keeps for the user: passwords, to which a job may
	// refer, and the logs of systems, which it may write. It may not name them otherwise.
	Home string `json:"home,omitempty"`
	// User is whose job it is, whose runs it may mark; "": all.
	User string `json:"user,omitempty"`
	// NoLoad is set for commands that do not wait in the queue: they may not generate load.
	NoLoad bool `json:"no_load,omitempty"`
	// Store is the place of reports. It is the only one of this machine that a job may name, and
	// the one that it uses without naming one; "": the default.
	Store string `json:"store,omitempty"`
	// Ports are those of the server on this machine. Who connects to that of the shell without a token is the
	// server's user.
	Ports []uint16 `json:"ports,omitempty"`
	// Memory is how many bytes of memory a job may take; 0: what is free.
	Memory int64 `json:"memory,omitempty"`
	// FileSize is how large a file may become that a job writes; 0: as large as there is space.
	FileSize int64 `json:"file_size,omitempty"`
	// Wall is what the system allows the process; nil: all that its user may do.
	Wall *Wall `json:"wall,omitempty"`
	// Agent is set for the runs of an agent of a fleet, which are not jobs of a server. They may
	// refer to the agent's environment for secrets of their targets.
	Agent bool `json:"-"`
}

// refuse makes a refusal in the words of a server, or of an agent.
func (r *Rules) refuse(what, way string) *Refusal {
	if r.Agent {
		what = strings.NewReplacer("this server does not allow jobs", "this agent does not allow runs", "a job of the server", "a run", "a job of this server", "a run").Replace(what)
		way = "start the agent with --allow-target PATTERN for an address, or with --allow for everything"
	}
	return &Refusal{What: what, Way: way}
}

// A Refusal is the error of what the rules do not allow.
type Refusal struct {
	What string // such as "--trace /etc/x: a job may only name files in its folder"
	Way  string // how it is possible
}

func (r *Refusal) Error() string { return r.What }

// The ways out of refusals.
const (
	wayAllow  = "run it on a machine of your own, or ask the operator of the server to start it with --allow"
	wayFile   = "name a file in the server's folder for files, without .. and without a leading /"
	wayTarget = "ask the operator of the server to start it with --allow-target PATTERN"
	wayBuild  = "ask the operator of the server to start it with --allow-build FOLDER"
)

// TakeRules returns the rules in the environment of this process, and removes them from it: a
// system that it starts may be a carronade, too. It returns nil if there are none. Rules that
// cannot be read are an error, because a job without rules may do everything.
func TakeRules() (*Rules, error) {
	text := os.Getenv(rulesVariable)
	if text == "" {
		return nil, nil
	}
	var r Rules
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Folder == "" {
		return nil, errors.New(rulesVariable + " has no valid rules")
	}
	return &r, os.Unsetenv(rulesVariable)
}

// open reports whether everything is allowed.
func (r *Rules) open() bool { return r == nil || r.Everything }

// Owner is the user whose runs a job may mark; "": there is none, or all may be marked.
func (r *Rules) Owner() string {
	if r.open() {
		return ""
	}
	return r.User
}

// Environment is the entry for the environment of a job's process.
func (r *Rules) Environment() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings only
	}
	return rulesVariable + "=" + string(text)
}

// File checks a path that a job names. Relative paths begin where package place opens them, in a job in the
// folder. Links that lead out of the folder are refused as well.
func (r *Rules) File(path string) error {
	if r.open() {
		return nil
	}
	refused := r.refuse(fmt.Sprintf("a job of the server may only name files in its folder, not %q", path), wayFile)
	p, err := place.Path(path)
	if err != nil {
		return refused
	}
	if p.Kind == place.Stream {
		return nil
	}
	if path = p.Value; !filepath.IsAbs(path) {
		here, err := place.Here()
		if err != nil || !filepath.IsLocal(path) {
			return refused
		}
		path = here + string(filepath.Separator) + path // the system does not clean it either
	}
	local, err := filepath.Rel(r.Folder, path)
	if err != nil || !filepath.IsLocal(local) {
		return refused
	}
	at, err := filepath.EvalSymlinks(r.Folder)
	if err != nil {
		return refused
	}
	// The file need not exist, but what exists of its path must be in the folder, link by link: the parent of
	// a link's end is not that of the link.
	folder := at
	for name := range strings.SplitSeq(below(path, r.Folder, local), string(filepath.Separator)) {
		at = filepath.Join(at, name)
		found, err := filepath.EvalSymlinks(at)
		if err == nil {
			at = found
		} else if info, err := os.Lstat(at); err == nil && info.Mode()&os.ModeSymlink != 0 { // it leads to a file that does not exist
			return refused
		}
		if !within(folder, at) {
			return refused
		}
	}
	return nil
}

// below is the part of a path below a folder as it was written, or else clean.
func below(path, folder, clean string) string {
	if rest, ok := strings.CutPrefix(path, folder+string(filepath.Separator)); ok {
		return rest
	}
	return clean
}

// within reports whether a path is a folder or in it. Both are clean.
func within(folder, path string) bool {
	local, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(local)
}

// Address checks an address that a job connects to: a URL, perhaps with several hosts, or
// HOST:PORT.
func (r *Rules) Address(text string) error {
	if r.open() || len(r.Targets) == 0 {
		return nil
	}
	hosts, err := hostsOf(text)
	if err != nil {
		return err
	}
	for _, host := range hosts {
		if !slices.ContainsFunc(r.Targets, func(pattern string) bool { return matches(pattern, host) }) {
			return r.refuse(fmt.Sprintf("this server does not allow jobs to connect to %s", host), wayTarget)
		}
	}
	return nil
}

// Port checks the port of an address of this machine's loopback.
func (r *Rules) Port(port uint16) error {
	if r.open() || !slices.Contains(r.Ports, port) {
		return nil
	}
	return r.refuse("this server does not allow jobs to connect to its own ports", wayAllow)
}

// hostsOf returns the hosts of an address, with their ports if they have one.
func hostsOf(text string) ([]string, error) {
	rest := text
	if scheme, after, ok := strings.Cut(text, "://"); ok {
		if scheme == "null" {
			return nil, nil
		}
		rest = after
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		rest = rest[i+1:]
	}
	if rest == "" {
		return nil, &Refusal{What: "an address has no host", Way: wayTarget}
	}
	return strings.Split(rest, ","), nil
}

// matches reports whether an address fits a pattern. A pattern without a port fits all ports. A
// pattern of numbers, such as 10.0.0.*, fits addresses and no names: the owner of a domain may call
// a host 10.0.0.example.org.
func matches(pattern, address string) bool {
	wantHost, wantPort := splitPort(pattern)
	host, port := splitPort(address)
	if wantPort != "" && wantPort != "*" && wantPort != port {
		return false
	}
	if strings.Trim(wantHost, "0123456789.*?") == "" && strings.ContainsAny(wantHost, "0123456789") && net.ParseIP(host) == nil {
		return false
	}
	ok, err := filepath.Match(strings.ToLower(wantHost), strings.ToLower(host))
	return err == nil && ok
}

// splitPort splits HOST:PORT, where the port and the brackets of IPv6 may be missing.
func splitPort(text string) (host, port string) {
	if h, p, err := net.SplitHostPort(text); err == nil {
		return h, p
	}
	return strings.Trim(text, "[]"), ""
}

// homeFile reports whether a path is a file that the server keeps for the user.
func (r *Rules) homeFile(path string) bool {
	return r.Home != "" && filepath.IsAbs(path) && filepath.Dir(filepath.Clean(path)) == filepath.Clean(r.Home)
}

// Build checks the folder of a repository whose system a job builds or starts.
func (r *Rules) Build(folder string) error {
	if r.open() {
		return nil
	}
	path := folder
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.Folder, path)
	}
	if found, err := filepath.EvalSymlinks(path); err == nil {
		for _, allowed := range r.Builds {
			if base, err := filepath.EvalSymlinks(allowed); err == nil && within(base, found) {
				return nil
			}
		}
	}
	return r.refuse(fmt.Sprintf("this server does not allow jobs to build or start what is in %q", folder), wayBuild)
}
