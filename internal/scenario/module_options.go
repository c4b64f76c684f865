package scenario

import (
	"math"
	"slices"
	"strconv"

	"github.com/grafana/sobek"
)

// The options that are not only settings: the name of a step, which no setting has, the target of
// a part, and the operation.
const (
	nameOption   = "name"
	targetOption = "target"
	opOption     = "op"
)

// options reads options, an object of names and values. undefined and null count as no
// options. of is the function or step that the errors name.
func (e *engine) options(of string, v sobek.Value) (out []Option) {
	if sobek.IsUndefined(v) || sobek.IsNull(v) {
		return nil
	}
	o, ok := v.(*sobek.Object)
	if _, callable := sobek.AssertFunction(v); !ok || callable || o.ClassName() == "Array" {
		e.fail(`such as {rate: "10k/s", for: "30s"}`, "the options of %s must be an object", of)
	}
	for _, key := range o.Keys() {
		v := o.Get(key)
		if sobek.IsUndefined(v) || sobek.IsNull(v) {
			continue
		}
		out = append(out, Option{Name: key, Values: e.values(key, v)})
	}
	return out
}

// take removes an option, and returns its first value; "" if there is none.
func take(options *[]Option, name string) string {
	i := slices.IndexFunc(*options, func(o Option) bool { return o.Name == name })
	if i < 0 {
		return ""
	}
	text := (*options)[i].Values[0]
	*options = slices.Delete(*options, i, i+1)
	return text
}

// values are the texts of an option: of a scalar one, of a list each, of an object NAME=VALUE.
func (e *engine) values(name string, v sobek.Value) []string {
	o, ok := v.(*sobek.Object)
	if !ok {
		return []string{e.scalar(name, v)}
	}
	var out []string
	switch {
	case o.ClassName() == "Array":
		e.vm.ForOf(o, func(item sobek.Value) bool {
			out = append(out, e.scalar(name, item))
			return true
		})
	case o.ClassName() == "Object" && e.isPlain(o):
		for _, key := range o.Keys() {
			out = append(out, key+"="+e.scalar(name+"."+key, o.Get(key)))
		}
	default:
		e.fail("", "%s must be a text, a number, true, false, a list or an object of these", name)
	}
	if len(out) == 0 {
		e.fail("leave it out", "%s has no value", name)
	}
	return out
}

// isPlain is whether an object is neither a promise nor a function, which have values of no use.
func (e *engine) isPlain(o *sobek.Object) bool {
	if _, ok := o.Export().(*sobek.Promise); ok {
		e.fail("write await before the step", "an option is a step in progress")
	}
	_, callable := sobek.AssertFunction(o)
	return !callable
}

// scalar is the text of a scalar, as it would be typed.
func (e *engine) scalar(name string, v sobek.Value) string {
	switch x := v.Export().(type) {
	case string:
		return x
	case bool:
		return strconv.FormatBool(x)
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			return strconv.FormatFloat(x, 'f', -1, 64)
		}
	}
	e.fail("", "%s must be a text, a number, true or false, not %s", name, v.String())
	return ""
}
