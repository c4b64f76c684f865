package serve

import (
	"fmt"
	"strings"

	"carronade/internal/place"
	"carronade/internal/workload"
	"carronade/protocol"
)

// Drop-ins act on their own flags before there is a workload. So a job may only run the one that the
// shell runs for its users, with the flags that the shell gives it.

// toolFlags are the flags of hey-apm in jobs: whether they take a value, and how it is checked.
var toolFlags = map[string]func(r *Rules, where, value string) error{
	"base-url": (*Rules).addressAt, "apm-es-url": (*Rules).addressAt, "es-url": (*Rules).reports,
	"apm-es-auth": (*Rules).login, "es-auth": (*Rules).login,
	"requests": nil, "timeout": nil, "E": nil, "mem": nil,
}

// A toolLine is a parsed command line of hey-apm, with the flags that jobs may give.
type toolLine struct {
	words  []string // that are not flags
	system []workload.Entry
	values []workload.Entry // of toolFlags
}

// parseTool parses a command line of hey-apm. It stops at a flag without its value; the tool says
// that it is missing.
func parseTool(args []string) (l toolLine, complete bool, err error) {
	for i := 0; i < len(args); i++ {
		flag, ok := strings.CutPrefix(args[i], "-")
		if !ok || flag == "" {
			l.words = append(l.words, args[i])
			continue
		}
		flag, value, joined := strings.Cut(strings.TrimPrefix(flag, "-"), "=")
		if flag == "yes" && !joined && len(l.words) > 0 && l.words[0] == "elasticsearch" {
			continue
		}
		_, known := toolFlags[flag]
		if !known && !strings.HasPrefix(flag, "system-") {
			return l, false, &Refusal{What: fmt.Sprintf("this server does not take -%s of hey-apm", flag), Way: wayAllow}
		}
		if !joined {
			if i++; i == len(args) {
				return l, false, nil
			}
			value = args[i]
		}
		e := workload.Entry{Name: flag, Values: []string{value}, Where: "-" + flag}
		if known {
			l.values = append(l.values, e)
		} else {
			l.system = append(l.system, e)
		}
	}
	return l, true, nil
}

// ToolLoads reports whether the command line of a drop-in, after its name, generates load. It is
// false only for a dump of hey-apm that starts no system: other command lines may generate load.
func ToolLoads(name string, args []string) bool {
	l, complete, err := parseTool(args)
	return name != "hey-apm" || err != nil || !complete || len(l.words) == 0 || l.words[0] != "dump" || len(l.system) > 0
}

// Tool checks the command line of a drop-in, after its name.
func (r *Rules) Tool(kinds []protocol.Kind, name string, args []string) error {
	if r.open() {
		return nil
	}
	if name != "hey-apm" {
		return &Refusal{What: fmt.Sprintf("this server does not run the command %q", "as "+name), Way: wayAllow}
	}
	l, complete, err := parseTool(args)
	if err != nil {
		return err
	}
	for _, e := range l.values {
		if check := toolFlags[e.Name]; check != nil {
			if err := check(r, e.Where, e.Values[0]); err != nil {
				return err
			}
		}
	}
	if err := r.Document(kinds, l.system); err != nil || !complete {
		return err
	}
	words := l.words
	switch {
	case len(words) > 0 && words[0] == "test", len(words) == 2 && words[0] == "elasticsearch" && words[1] == "reset":
		return nil
	case len(words) > 1 && words[0] == "dump":
		return r.File(words[1])
	}
	return &Refusal{What: "this server runs test, dump and elasticsearch reset of hey-apm", Way: wayAllow}
}

func (r *Rules) addressAt(where, value string) error { return at(where, r.Address(value)) }

// reports checks the URL of the Elasticsearch with the store.
func (r *Rules) reports(where, value string) error {
	text, err := place.OfServer(value, "", "")
	if err != nil {
		return &Refusal{What: where + ": " + err.Error(), Way: "give the URL of an Elasticsearch, such as http://localhost:9200"}
	}
	return at(where, r.store(text))
}

// login checks USER:REFERENCE.
func (r *Rules) login(where, value string) error {
	_, ref, _ := strings.Cut(value, ":")
	return r.reference(where, ref)
}
