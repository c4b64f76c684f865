package serve

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"carronade/internal/place"
	"carronade/internal/verdict/fault"
	"carronade/internal/workload"
	"carronade/payload"
	"carronade/protocol"
)

// An argument is what an argument of a command names that is not a flag.
type argument uint8

const (
	argWords   argument = iota // ids, filters and other words, which the command does not open
	argTargets                 // targets
	argFiles                   // files, also in place of reports
	argEither                  // a target, or a file if it is no address
)

// commands are what a job may run, by their path without the program's name, with what their
// arguments name. A path allows the commands below it.
var commands = map[string]argument{
	"run": argTargets, "find": argTargets, "scenario": argFiles,
	"explain": argFiles, "compare": argFiles, "collate": argWords, "verify": argWords,
	"report list": argWords, "report show": argFiles, "report table": argWords, "report cite": argFiles, "report export": argWords, "report import": argFiles,
	"report log": argFiles, "report replay": argEither, "mark": argWords,
	"topics": argTargets, "query": argEither, "host": argWords, "help": argWords, "version": argWords, "system list": argWords,
}

// Command checks a command by its path, such as "report show", and its arguments. Flags are checked
// by Flag and Document, except those of system build: what it builds may do anything.
func (r *Rules) Command(path string, args []string) error {
	switch {
	case r.open() || path == "":
		return nil
	case path == "system build" && len(args) > 0:
		return r.Build(args[0])
	case path == "as" && len(args) > 0: // see Tool
		return nil
	}
	kind, ok := commands[path]
	if group, _, below := strings.Cut(path, " "); !ok && below {
		kind, ok = commands[group]
	}
	if !ok {
		return r.refuse(fmt.Sprintf("this server does not run the command %q", path), wayAllow)
	}
	for _, arg := range args {
		if err := r.argument(kind, arg); err != nil {
			return err
		}
	}
	return nil
}

// argument checks an argument of a command.
func (r *Rules) argument(kind argument, text string) error {
	switch {
	case kind == argTargets, kind == argEither && place.IsAddress(text):
		return r.Address(text)
	case kind == argFiles, kind == argEither:
		return r.File(text)
	}
	return nil
}

// Flag checks a flag that is not a setting of workloads, by the word for its value in help.
func (r *Rules) Flag(name, word, value string) error {
	if r.open() {
		return nil
	}
	return r.value("--"+name, name, word, value)
}

// Document checks the settings of a workload, wherever they were given. kinds are the kinds of
// targets, whose options have the words for their values.
func (r *Rules) Document(kinds []protocol.Kind, entries []workload.Entry) error {
	if r.open() {
		return nil
	}
	started := r.starts(entries)
	for _, e := range entries {
		for _, v := range e.Values {
			switch {
			case e.Name == "target":
				if err := r.Address(v); err != nil {
					return at(e.Where, err)
				}
				continue
			case e.Name == "fault":
				if err := r.fault(e.Where, v, started); err != nil {
					return err
				}
				continue
			case strings.HasPrefix(e.Name, "system-"):
				if err := r.system(e, v, started); err != nil {
					return err
				}
				continue
			}
			for _, s := range settings(kinds, e.Name) {
				word := s.Placeholder()
				if s.Secret {
					word = "REF"
				}
				if err := r.value(e.Where, e.Name, word, v); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// settings finds a setting by its name, in the table of each kind. Kinds may differ in what its
// value is.
func settings(kinds []protocol.Kind, name string) (found []workload.Setting) {
	tables := [][]workload.Setting{workload.Table(nil)}
	for _, k := range kinds {
		tables = append(tables, workload.Table(k))
	}
	for _, table := range tables {
		if i := slices.IndexFunc(table, func(s workload.Setting) bool { return s.Name == name }); i >= 0 {
			found = append(found, table[i])
		}
	}
	return found
}

// starts returns an error unless the settings describe a system from a folder in which builds are
// allowed.
func (r *Rules) starts(entries []workload.Entry) error {
	err := error(r.refuse("a job of this server may not build, start or watch a system", wayBuild))
	for _, e := range entries {
		if e.Name == "system-git" && len(e.Values) > 0 {
			err = r.Build(e.Values[len(e.Values)-1])
		}
	}
	return err
}

// watching are the settings about a system that only read its metrics.
var watching = []string{"system-vars", "system-metrics", "system-header", "system-branch", "system-verbose", "system-host", "system-gc-log"}

// others are settings about systems that this machine runs already, or that images have.
var others = []string{"system-pid", "system-container", "system-names", "system-image", "system-engine", "system-publish", "system-arg"}

// system checks a setting about the system under test.
func (r *Rules) system(e workload.Entry, value string, started error) error {
	var err error
	switch e.Name {
	case "system-vars", "system-metrics":
		err = r.Address(value)
	case "system-header":
		_, ref, _ := strings.Cut(value, "=")
		return r.reference(e.Where, ref)
	case "system-env", "system-flag":
		_, ref, _ := strings.Cut(value, "=")
		err = r.referred("", place.Reference(ref))
	case "system-log":
		if !r.homeFile(value) {
			err = r.File(value)
		}
	case "system-host", "system-gc-log":
		err = r.File(value)
	case "system-dir":
		err = r.Build(value)
	case "system-build":
		err = r.Make(value)
	case "system-cmd":
		if first, _, _ := strings.Cut(strings.TrimSpace(value), " "); !strings.HasPrefix(first, "./") || !filepath.IsLocal(first) || strings.ContainsAny(first, "'\"\\") {
			err = r.refuse("a job of this server may only start a program of the repository, such as ./server", wayAllow)
		}
	case "system-ready":
		if place.IsAddress(value) {
			err = r.Address(value)
		}
	}
	if slices.Contains(others, e.Name) {
		err = r.refuse("a job of this server may not choose programs of this machine", wayAllow)
	}
	if started != nil && !slices.Contains(watching, e.Name) {
		err = started
	}
	return at(e.Where, err)
}

// fault checks a fault that the run makes: only to a system that it started.
func (r *Rules) fault(where, value string, started error) error {
	f, err := fault.Parse(value)
	if err != nil || f.What != fault.System {
		return at(where, r.refuse("a job of this server may only make faults of the system that it started, such as 60s:restart=system", wayAllow))
	}
	return at(where, started)
}

// Make checks the command of a build: make with targets, alone or after another.
func (r *Rules) Make(command string) error {
	if r.open() {
		return nil
	}
	for part := range strings.SplitSeq(command, "&&") {
		words := strings.Fields(part)
		ok := len(words) > 0 && words[0] == "make"
		for _, w := range words {
			ok = ok && strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == "" && (!strings.HasPrefix(w, "-") || w == "-j")
		}
		if !ok {
			return r.refuse("a job of this server may only build with make and its targets", wayAllow)
		}
	}
	return nil
}

// refused are settings that no job may give, and why.
var refused = map[string]string{
	"fleet":           "would command machines to which the rules of this server do not apply",
	"metrics-addr":    "would listen on this machine",
	"web":             "would listen on this machine; the server's page shows the run",
	"client-property": "may name files and classes; use the flags of carronade",
	"client-config":   "may name files and classes; use the flags of carronade",
}

// value checks a value by the word for it in help.
func (r *Rules) value(where, name, word, value string) error {
	if why, ok := refused[name]; ok {
		return r.refuse(fmt.Sprintf("%s: not in a job of this server: it %s", where, why), wayAllow)
	}
	switch word {
	case "FILE", "DIR", "PATH":
		return at(where, r.File(value))
	case "CMD", "COMMAND", "IMAGE", "PID":
		return r.refuse(where+": not in a job of this server: it names a program", wayAllow)
	case "PLACE":
		return at(where, r.store(value))
	case "REF":
		return r.reference(where, value)
	case "K=REF":
		_, ref, _ := strings.Cut(value, "=")
		return r.reference(where, ref)
	case "K: V": // a header, whose value may be a reference
		_, ref, _ := strings.Cut(value, ":")
		return r.referred(where, place.Reference(strings.TrimSpace(ref)))
	case "URL", "HOST:PORT", "ADDR", "TARGET":
		return at(where, r.Address(value))
	}
	return at(where, r.contents(value))
}

// store checks the place of a store: the server's own, or a cluster that the rules allow, whose login
// and certificate are files that they allow.
func (r *Rules) store(text string) error {
	p, err := place.Store(text)
	if err != nil {
		return r.refuse(strings.TrimPrefix(err.Error(), "--store: "), "leave it out: the job's report goes to the server's store")
	}
	switch p.Kind {
	case place.Default:
		return nil
	case place.Cluster:
		return r.cluster(p.Address)
	}
	if own, err := place.Store(r.Store); err == nil && own == p {
		return nil
	}
	return r.refuse("a job of this server keeps its report in the server's store", wayAllow)
}

// cluster checks the address of a store.
func (r *Rules) cluster(a *place.Address) error {
	if err := r.Address(a.URL()); err != nil {
		return err
	}
	if a.CA != "" {
		if err := r.File(a.CA); err != nil {
			return err
		}
	}
	if err := r.referred("password", a.Password); err != nil {
		return err
	}
	return r.referred("api-key", a.APIKey)
}

// contents checks the files that a value names in one of the forms of payloads and their checks.
func (r *Rules) contents(value string) error {
	for _, path := range payload.Files(value) {
		if err := r.File(path); err != nil {
			return err
		}
	}
	return nil
}

// reference checks a reference to a secret, which must be one.
func (r *Rules) reference(where, text string) error {
	ref := place.Reference(text)
	if ref.Kind == place.Text {
		ref.Kind = place.Variable // as bad
	}
	return r.referred(where, ref)
}

// referred checks the place of a secret. The environment has the server's own, so a job may only
// name files.
func (r *Rules) referred(where string, ref place.Place) error {
	switch ref.Kind {
	case place.Default, place.Text:
		return nil
	case place.File:
		if r.homeFile(ref.Value) {
			return nil
		}
		return at(where, r.File(ref.Value))
	}
	if r.Agent {
		return nil
	}
	return r.refuse(where+": a job of this server may not read its environment", "use file:PATH, with a file in the server's folder for files")
}

// at adds to a refusal where the value was given.
func at(where string, err error) error {
	if r, ok := err.(*Refusal); ok && where != "" { //nolint:errorlint // it comes from this package, unwrapped
		return &Refusal{What: where + ": " + r.What, Way: r.Way}
	}
	return err
}
