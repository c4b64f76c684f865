package permit

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"carronade/internal/workload"
	"carronade/target"
)

// Commands that a job may run, by their path without the program's name. A path allows the
// commands below it.
var commands = []string{
	"run", "find", "scenario", "calibrate", "demo",
	"compare", "collate", "verify",
	"report list", "report show", "report table", "report cite", "report export", "report import",
	"report log", "report replay", "report delete",
	"topics", "query", "host", "help", "version", "system list", "completion", "__complete",
}

// tools are the drop-ins that read no file and start no program by flags of their own.
var tools = []string{"hey-apm", "riemann-load", "sangrenel"}

// Command checks a command by its path, such as "report show", and its arguments. Flags are checked
// by Flag and Document, except those of system build: what it builds may do anything.
func (r *Rules) Command(path string, args []string) error {
	switch {
	case r.open() || path == "":
		return nil
	case path == "system build" && len(args) > 0:
		return r.Build(args[0])
	case path == "as" && len(args) > 0 && slices.Contains(tools, args[0]):
		return nil
	case !slices.ContainsFunc(commands, func(c string) bool { return path == c || strings.HasPrefix(path, c+" ") }):
		return &Refusal{What: fmt.Sprintf("this server does not run the command %q", path), Way: wayAllow}
	}
	for _, arg := range args {
		if err := r.argument(arg); err != nil {
			return err
		}
	}
	return nil
}

// argument checks an argument that is not a flag: an address, or what may be a file.
func (r *Rules) argument(arg string) error {
	if strings.Contains(arg, "://") {
		return r.Address(arg)
	}
	return r.File(arg)
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
func (r *Rules) Document(kinds []target.Kind, entries []workload.Entry) error {
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
func settings(kinds []target.Kind, name string) (found []workload.Setting) {
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
	err := error(&Refusal{What: "a job of this server may not build, start or watch a system", Way: wayBuild})
	for _, e := range entries {
		if e.Name == "system-git" && len(e.Values) > 0 {
			err = r.Build(e.Values[len(e.Values)-1])
		}
	}
	return err
}

// watching are the settings about a system that only read its metrics.
var watching = []string{"system-vars", "system-metrics", "system-header", "system-names", "system-branch", "system-verbose"}

// system checks a setting about the system under test.
func (r *Rules) system(e workload.Entry, value string, started error) error {
	switch e.Name {
	case "system-vars", "system-metrics":
		return at(e.Where, r.Address(value))
	case "system-header":
		_, ref, _ := strings.Cut(value, "=")
		return r.reference(e.Where, ref)
	case "system-host", "system-gc-log":
		return at(e.Where, r.File(value))
	case "system-ready":
		if strings.Contains(value, "://") {
			if err := r.Address(value); err != nil {
				return at(e.Where, err)
			}
		}
	}
	if slices.Contains(watching, e.Name) {
		return nil
	}
	return at(e.Where, started)
}

// refused are settings that no job may give, and why.
var refused = map[string]string{
	"metrics-addr":    "would listen on this machine; the server has metrics of its own",
	"client-property": "may name files and classes; use the flags of carronade",
	"client-config":   "may name files and classes; use the flags of carronade",
}

// value checks a value by the word for it in help.
func (r *Rules) value(where, name, word, value string) error {
	if why, ok := refused[name]; ok {
		return &Refusal{What: fmt.Sprintf("%s: not in a job of this server: it %s", where, why), Way: wayAllow}
	}
	switch word {
	case "FILE", "DIR", "PATH":
		return at(where, r.File(value))
	case "CMD", "COMMAND", "IMAGE", "PID":
		return &Refusal{What: where + ": not in a job of this server: it names a program", Way: wayAllow}
	case "PLACE":
		if value == r.Store {
			return nil
		}
		if strings.Contains(value, "://") {
			return at(where, r.Address(value))
		}
		return &Refusal{What: where + ": a job of this server keeps its report in the server's store", Way: wayAllow}
	case "REF":
		return r.reference(where, value)
	case "K=REF":
		_, ref, _ := strings.Cut(value, "=")
		return r.reference(where, ref)
	case "K: V": // a header, whose value may be a reference
		_, ref, _ := strings.Cut(value, ":")
		if ref = strings.TrimSpace(ref); strings.HasPrefix(ref, "env:") || strings.HasPrefix(ref, "file:") {
			return r.reference(where, ref)
		}
		return nil
	case "URL", "HOST:PORT", "ADDR":
		return at(where, r.Address(value))
	}
	return at(where, r.contents(value))
}

// contents checks the files that a value names in one of the forms of payloads, file:PATH,
// file(PATH,...) or ring(SIZE,file:PATH).
func (r *Rules) contents(value string) error {
	for _, form := range []string{"file:", "file("} {
		for rest := value; ; {
			_, after, ok := strings.Cut(rest, form)
			if !ok {
				break
			}
			path := after
			if i := strings.IndexAny(after, ",)"); i >= 0 {
				path = after[:i]
			}
			// The path may contain a comma or a bracket, so the whole is checked as well.
			if err := r.File(strings.TrimSpace(path)); err != nil {
				return err
			}
			if err := r.File(strings.TrimSpace(after)); err != nil {
				return err
			}
			rest = after
		}
	}
	return nil
}

// reference checks a reference to a secret. The environment has the server's own, so a job may
// only name files.
func (r *Rules) reference(where, ref string) error {
	if path, ok := strings.CutPrefix(ref, "file:"); ok {
		if r.Secrets != "" && filepath.IsAbs(path) && filepath.Dir(filepath.Clean(path)) == filepath.Clean(r.Secrets) {
			return nil
		}
		return at(where, r.File(path))
	}
	return &Refusal{What: where + ": a job of this server may not read its environment", Way: "use file:PATH, with a file in the server's folder for files"}
}

// at adds to a refusal where the value was given.
func at(where string, err error) error {
	if r, ok := err.(*Refusal); ok && where != "" { //nolint:errorlint // it comes from this package, unwrapped
		return &Refusal{What: where + ": " + r.What, Way: r.Way}
	}
	return err
}
