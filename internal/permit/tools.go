package permit

import (
	"fmt"
	"strings"

	"carronade/internal/workload"
	"carronade/target"
)

// Drop-ins act on their own flags before there is a workload. So a job may only run the one that the
// shell runs for its users, with the flags that the shell gives it.

// toolFlags are the flags of hey-apm in jobs: whether they take a value, and how it is checked.
var toolFlags = map[string]func(r *Rules, where, value string) error{
	"base-url": (*Rules).addressAt, "apm-es-url": (*Rules).addressAt, "es-url": (*Rules).addressAt,
	"apm-es-auth": (*Rules).login, "es-auth": (*Rules).login,
	"requests": nil, "timeout": nil, "E": nil, "mem": nil,
}

// Tool checks the command line of a drop-in, after its name.
func (r *Rules) Tool(kinds []target.Kind, name string, args []string) error {
	if r.open() {
		return nil
	}
	if name != "hey-apm" {
		return &Refusal{What: fmt.Sprintf("this server does not run the command %q", "as "+name), Way: wayAllow}
	}
	var (
		words  []string
		system []workload.Entry
	)
	for i := 0; i < len(args); i++ {
		flag, ok := strings.CutPrefix(args[i], "-")
		if !ok || flag == "" {
			words = append(words, args[i])
			continue
		}
		flag, value, joined := strings.Cut(strings.TrimPrefix(flag, "-"), "=")
		if flag == "yes" && !joined && len(words) > 0 && words[0] == "elasticsearch" {
			continue
		}
		check, known := toolFlags[flag]
		if !known && !strings.HasPrefix(flag, "system-") {
			return &Refusal{What: fmt.Sprintf("this server does not take -%s of hey-apm", flag), Way: wayAllow}
		}
		if !joined {
			if i++; i == len(args) {
				return nil // the tool says that a value is missing
			}
			value = args[i]
		}
		switch {
		case !known:
			system = append(system, workload.Entry{Name: flag, Values: []string{value}, Where: "-" + flag})
		case check != nil:
			if err := check(r, "-"+flag, value); err != nil {
				return err
			}
		}
	}
	if err := r.Document(kinds, system); err != nil {
		return err
	}
	switch {
	case len(words) > 0 && words[0] == "test", len(words) == 2 && words[0] == "elasticsearch" && words[1] == "reset":
		return nil
	case len(words) > 1 && words[0] == "dump":
		return r.File(words[1])
	}
	return &Refusal{What: "this server runs test, dump and elasticsearch reset of hey-apm", Way: wayAllow}
}

func (r *Rules) addressAt(where, value string) error { return at(where, r.Address(value)) }

// login checks USER:REFERENCE.
func (r *Rules) login(where, value string) error {
	_, ref, _ := strings.Cut(value, ":")
	return r.reference(where, ref)
}
