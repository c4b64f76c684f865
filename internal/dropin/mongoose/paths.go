package mongoose

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/advice"
)

// The types of steps in scenarios.
const (
	linearLoad   = "Load"
	pipelineLoad = "PipelineLoad"
	weightedLoad = "WeightedLoad"
)

// The types of values in a scenario.
const (
	nullValue   = "null"
	boolValue   = "boolean"
	numberValue = "number"
	textValue   = "string"
	listValue   = "list"
	mapValue    = "map"
)

// A path is a path of a scenario's configuration, resolved to an option.
type path struct {
	option  *option // nil: the option belongs to other storages, or to an old version
	value   string  // the alias stands for this value; "": for none
	note    string  // for the user, "" if there is nothing to say
	ignored string  // why it does nothing; "" if it does
	refused string  // why a step with it cannot run; "" if it can
}

// lenient are paths that mongoose's own examples have but not mongoose.
var lenient = map[string]string{
	"load-step-limit-count":   "load-op-limit-count",
	"load-op-recycle-enabled": "load-op-recycle",
}

// others are the options of mongoose's other storage drivers: a path, or the beginning of
// several if it ends in "-".
var others = []struct{ name, ignored, refused string }{
	{name: "storage-net-ssl-", refused: "certificates are verified with those of the system; `carronade run` has more: --tls-ca"},
	{name: "storage-net-http-", refused: "object storage only: Kafka has no HTTP"},
	{name: "storage-object-", refused: "object storage only"},
	{name: "storage-auth-version", refused: "object storage only"},
	{name: "storage-driver-limit-queue-output", ignored: "results are not queued here"},
	{name: "storage-net-bindBacklogSize", ignored: "no port is opened"},
	{name: "storage-net-interestOpQueued", ignored: "connections are managed automatically"},
	{name: "storage-net-keepAlive", ignored: "connections are managed automatically"},
	{name: "storage-net-reuseAddr", ignored: "connections are managed automatically"},
	{name: "storage-net-tcpNoDelay", ignored: "connections are managed automatically"},
	{name: "storage-net-timeoutMilliSec", ignored: "--load-op-timeoutMillis limits the time of an operation"},
	{name: "storage-net-transport", ignored: "connections are managed automatically"},
}

// dotted is a path as it is written in a scenario.
func dotted(name string) string { return strings.ReplaceAll(name, "-", ".") }

// resolve resolves a path a-b-c. With strict, only what mongoose has is a path. The hint
// helps to fix the error.
func resolve(name string, strict bool) (p path, hint string, err error) {
	if to, ok := lenient[name]; ok && !strict {
		p.note = fmt.Sprintf("mongoose has no %s; it is %s here", dotted(name), dotted(to))
		name = to
	}
	if a, ok := aliases[name]; ok {
		switch {
		case a.to == "":
			return path{ignored: "it is from an old version of mongoose"}, "", nil
		case a.deprecated:
			p.note = fmt.Sprintf("%s is deprecated, it is %s", dotted(name), dotted(a.to))
		}
		name, p.value = a.to, a.value
	}
	if p.option = find(name); p.option != nil {
		switch name {
		case "run-scenario":
			p.ignored = "this is the scenario"
		case "run-node", "run-port":
			p.ignored = "the command line has it, for all steps"
		}
		switch p.option.use {
		case effective:
		case ignored:
			p.ignored = p.option.why
		case refused:
			p.refused = p.option.why
		}
		return p, "", nil
	}
	for _, o := range others {
		if o.name == name || strings.HasSuffix(o.name, "-") && strings.HasPrefix(name, o.name) {
			if strict {
				break
			}
			p.ignored, p.refused = o.ignored, o.refused
			return p, "", nil
		}
	}
	var names []string
	for i := range options {
		o := &options[i]
		if strings.HasPrefix(o.name, name+"-") {
			return p, "such as " + dotted(o.name), fmt.Errorf("%s is a section of options, not an option", dotted(name))
		}
		names = append(names, dotted(o.name))
	}
	for name := range aliases {
		names = append(names, dotted(name))
	}
	slices.Sort(names) // of two that are equally near the first is shown
	hint = advice.DidYouMean(dotted(name), names, "%s", "`carronade as mongoose --help` lists the options")
	return p, hint, fmt.Errorf("mongoose has no option %s", dotted(name))
}

// checkPath checks a path a-b-c of a scenario's configuration, and the type of its value:
// one of nullValue and so on. Text is the value, or the elements of a list joined by commas.
// The hint helps to fix the error.
func checkPath(name, typ, text string, strict bool) (hint string, err error) {
	p, hint, err := resolve(name, strict)
	switch {
	case err != nil:
		return hint, err
	case p.option == nil || p.value != "" || typ == nullValue:
		return "", nil
	}
	wrong := func(want string) (string, error) {
		return "", fmt.Errorf("%s: %s is not %s", dotted(name), strconv.Quote(shortened(text)), want)
	}
	switch kind := p.option.kind; {
	case kind == tMap && typ != mapValue:
		return wrong("a map of names to values")
	case kind != tMap && typ == mapValue, kind != tList && kind != tAny && typ == listValue:
		return wrong("one value")
	case kind == tBool && typ != boolValue && p.option.check(text) != "":
		return wrong("true or false")
	case (kind == tInt || kind == tLong) && !loose(p.option, text, strict):
		return wrong("a whole number")
	case kind == tDouble && p.option.check(text) != "":
		return wrong("a number")
	}
	return "", nil
}

// loose reports whether a text is a whole number for an option. A run's id is one in 4.x;
// examples for 3.x give it a name.
func loose(o *option, text string, strict bool) bool {
	return o.check(text) == "" || o.name == "run-id" && !strict
}

// shortened is a value in a message.
func shortened(text string) string {
	if r := []rune(text); len(r) > 40 {
		text = string(r[:40]) + "..."
	}
	return text
}

// clone returns a copy that can be changed.
func (v *values) clone() *values {
	c := newValues()
	maps.Copy(c.given, v.given)
	for name, pairs := range v.maps {
		c.maps[name] = slices.Clone(pairs)
	}
	c.key, c.confined = v.key, v.confined
	return c
}

// set gives an option a value of a scenario: no texts for null, the names and values of a
// map in turn.
func (v *values) set(o *option, texts []string) {
	delete(v.maps, o.name)
	delete(v.given, o.name)
	if len(texts) == 0 {
		return // the default
	}
	v.given[o.name] = strings.Join(texts, ",")
	if o.kind == tMap {
		for i := 0; i+1 < len(texts); i += 2 {
			v.maps[o.name] = append(v.maps[o.name], [2]string{texts[i], texts[i+1]})
		}
	}
}
