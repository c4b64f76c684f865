package apm

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"carronade/internal/apm/wire"
	"carronade/internal/splitmix"
	"carronade/payload"
	"carronade/protocol"
)

// maxLabel is the maximum length of a label's value that servers accept, in characters.
const maxLabel = 1024

// parseLabels reads labels of events, each NAME=TEXT. Their expressions are evaluated for
// the events of the pool, and repeat with it. It also returns the values of environment
// variables in them, which a server may repeat in its errors.
func parseLabels(given []string, seed uint64) (labels []wire.Label, secrets []string, err error) {
	lookup := func(name string) (string, bool) {
		v, ok := os.LookupEnv(name)
		secrets = append(secrets, v)
		return v, ok
	}
	for i, text := range given {
		if text == "" {
			continue
		}
		l, err := parseLabel(text, payload.TemplateOptions{Seed: seed + uint64(i+1)*splitmix.Golden, Use: payload.Ahead, Env: lookup})
		if err != nil {
			return nil, nil, &protocol.Error{Doing: "read --" + optEventLabel, Err: fmt.Errorf("%q: %w", text, err), Hint: "want NAME=TEXT, such as order=${rnd.nextInt(1000)}"}
		}
		if slices.ContainsFunc(labels, func(other wire.Label) bool { return other.Name == l.Name }) {
			return nil, nil, &protocol.Error{Doing: "read --" + optEventLabel, Err: fmt.Errorf("there are two labels %s", l.Name), Hint: "give each name once"}
		}
		labels = append(labels, l)
	}
	return labels, secrets, nil
}

func parseLabel(text string, o payload.TemplateOptions) (l wire.Label, err error) {
	name, value, ok := payload.CutText(text, '=')
	switch {
	case !ok || name == "":
		return l, errors.New("a name or a value is missing")
	case payload.HasExpression(name):
		return l, errors.New("a name is not an expression")
	case strings.ContainsAny(name, `.*"`):
		return l, errors.New("a name has none of . * and quotes: servers replace them")
	case slices.Contains(wire.ReservedLabels, name):
		return l, fmt.Errorf("events have a label %s anyway", name)
	}
	t, err := payload.ParseTemplate(value, o)
	if err != nil {
		if wrong, ok := errors.AsType[*payload.TemplateError](err); ok {
			wrong.Column += len(name) + 1
		}
		return l, err
	}
	if t.MaxLen() > maxLabel {
		return l, fmt.Errorf("the value may have %d characters, and servers accept %d", t.MaxLen(), maxLabel)
	}
	return wire.Label{Name: name, Append: t.Append}, nil
}
