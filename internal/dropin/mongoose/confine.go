package mongoose

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"carronade/payload"
)

// A run of the remote API may come from any program that can connect to it. It names files in one
// folder, and does not see the environment of this process.

// errEnv is the error of an expression of such a run that reads the environment.
var errEnv = errors.New("a run of the remote API does not see the environment: leave out env:get")

// compile compiles a text with expressions. In a run of the remote API none reads the environment,
// and the error is the same whether a variable exists or not.
func (v *values) compile(text string, o payload.TemplateOptions) (*payload.Template, error) {
	if v.confined == "" {
		return payload.ParseTemplate(text, o)
	}
	looked := false
	o.Env = func(string) (string, bool) {
		looked = true
		return "", true
	}
	t, err := payload.ParseTemplate(text, o)
	if looked {
		return nil, errEnv
	}
	return t, err
}

// checkHeader returns an error if a run of the remote API may not have a header. The run itself
// compiles it, as any other.
func (v *values) checkHeader(pair [2]string) error {
	if v.confined == "" {
		return nil
	}
	for _, text := range pair {
		if _, err := v.compile(text, payload.TemplateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// fileOptions are the options that name files.
var fileOptions = []string{"item-data-input-file", "item-input-file", "item-output-file"}

// special are the characters that have a meaning in settings that are made of names of files.
const special = "(){},$%#"

// confine has the files that options name be in the folder of those of the remote API. Expressions
// are evaluated before: what they stand for is confined.
func (v *values) confine() error {
	if v.confined == "" {
		return nil
	}
	for _, name := range fileOptions {
		file := v.text(name)
		if file == "" {
			continue
		}
		inside, absolute := strings.CutPrefix(file, v.confined+string(filepath.Separator))
		if absolute && filepath.Clean(file) != file || !filepath.IsLocal(inside) {
			return fmt.Errorf("--%s: a run of the remote API names only files in %s: give a name without .. and without a leading /", name, v.confined)
		}
		if strings.ContainsAny(inside, special+"\x00\r\n") {
			return fmt.Errorf("--%s: a run of the remote API names files without %s and line ends", name, special)
		}
		v.given[name] = filepath.Join(v.confined, inside)
	}
	return nil
}
