package payload

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
)

// A function is one function of the language.
type function struct {
	name   string
	params []param
	rest   bool // the last parameter may be repeated, or left out
	result string
	help   string
	make   func(b *builder, args []node) (node, error)
}

// A param is a parameter: arguments are converted to its kind.
type param struct {
	name     string
	kind     kind // kindNone: any value, not converted
	optional bool
}

// A builder makes nodes. It numbers the calls that draw random numbers, so that each has
// values of its own.
type builder struct {
	o     TemplateOptions
	sites uint64
}

// site returns the seed of another call.
func (b *builder) site() uint64 {
	b.sites++
	return mix(b.o.Seed, b.sites)
}

func integers(names ...string) []param { return paramsOf(kindInteger, names) }

func reals(names ...string) []param { return paramsOf(kindReal, names) }

func paramsOf(k kind, names []string) (out []param) {
	for _, n := range names {
		out = append(out, param{name: n, kind: k})
	}
	return out
}

// functions are all functions, in the order of documents. A function that is not in Java's
// language of mongoose says so.
var functions = []function{
	nowFunction("date:formatNowIso8601", "now, as 2026-01-31T13:05:59,250", iso8601Date),
	nowFunction("date:formatNowRfc1123", "now, as Sat, 31 Jan 2026 13:05:59 GMT", rfc1123Date),
	nowFunction("date:formatNowAmazonStyle", "now, as 20260131T130559Z", amazonDate),
	{
		name: "date:format", params: []param{{name: "pattern", kind: kindText}}, result: "date format",
		help: "a pattern of Java's SimpleDateFormat, in UTC; a constant",
		make: func(_ *builder, args []node) (node, error) {
			if args[0].varies {
				return node{}, constantError(args[0], "the pattern")
			}
			p, err := parseDate(args[0].known)
			if err != nil {
				if args[0].env {
					err = fmt.Errorf("the variable of the environment is not a pattern of dates")
				}
				return node{}, &TemplateError{args[0].at + 1, err.Error()}
			}
			return node{traits: args[0].traits, kind: kindFormat, format: p}, nil
		},
	},
	{
		name: "date:from", params: integers("milliseconds"), result: "date", help: "a date, by its milliseconds since 1970",
		make: func(_ *builder, args []node) (node, error) {
			n := args[0]
			n.kind = kindDate
			return n, nil
		},
	},
	{
		name: "env:get", params: []param{{name: "name", kind: kindText}}, result: "text",
		help: "a variable of the environment; its name is a constant, and its value is never shown in reports",
		make: makeEnv,
	},
	{
		name: "int64:toString", params: []param{{name: "x", kind: kindInteger}, {name: "radix", kind: kindInteger, optional: true}}, result: "text",
		help: "an integer in a radix from 2 to 36, or 10",
		make: func(_ *builder, args []node) (node, error) {
			x, radix := args[0].integer, radixOf(args)
			return textNode(traitsOf(args), 65, func(c ctx, dst []byte) []byte { return strconv.AppendInt(dst, x(c), radix(c)) }), nil
		},
	},
	{
		name: "int64:toUnsignedString", params: []param{{name: "x", kind: kindInteger}, {name: "radix", kind: kindInteger, optional: true}}, result: "text",
		help: "the same without a sign, from 0 to 2^64-1",
		make: func(_ *builder, args []node) (node, error) {
			x, radix := args[0].integer, radixOf(args)
			return textNode(traitsOf(args), 64, func(c ctx, dst []byte) []byte { return strconv.AppendUint(dst, uint64(x(c)), radix(c)) }), nil
		},
	},
	integerFunction("int64:reverse", "the bits in reverse order", func(x int64) int64 { return int64(bits.Reverse64(uint64(x))) }),
	integerFunction("int64:reverseBytes", "the bytes in reverse order", func(x int64) int64 { return int64(bits.ReverseBytes64(uint64(x))) }),
	integerFunction2("int64:rotateLeft", "x", "distance", "the bits rotated", func(x, n int64) int64 { return int64(bits.RotateLeft64(uint64(x), int(n&63))) }),
	integerFunction2("int64:rotateRight", "x", "distance", "the bits rotated", func(x, n int64) int64 { return int64(bits.RotateLeft64(uint64(x), -int(n&63))) }),
	integerFunction2("int64:xor", "x", "y", "exclusive or", func(x, y int64) int64 { return x ^ y }),
	integerFunction("int64:xorShift", "one step of a xorshift generator", func(x int64) int64 {
		x ^= x << 21
		x ^= int64(uint64(x) >> 35)
		return x ^ x<<4
	}),
	integerFunction("math:absInt32", "absolute value, of the low 32 bits", func(x int64) int64 {
		if x = narrowed(x); x < 0 {
			return narrowed(-x)
		}
		return x
	}),
	integerFunction("math:absInt64", "absolute value", func(x int64) int64 { return max(x, -x) }),
	singleFunction("math:absFloat32", "absolute value, of 32 bits", math.Abs),
	realFunction("math:absFloat64", "absolute value", math.Abs),
	realFunction("math:acos", "arc cosine, in radians", math.Acos),
	realFunction("math:asin", "arc sine, in radians", math.Asin),
	realFunction("math:atan", "arc tangent, in radians", math.Atan),
	realFunction("math:ceil", "rounded up", math.Ceil),
	realFunction("math:cos", "cosine of radians", math.Cos),
	realFunction("math:exp", "e to the power of x", math.Exp),
	realFunction("math:floor", "rounded down", math.Floor),
	realFunction("math:log", "natural logarithm", math.Log),
	realFunction("math:log10", "decimal logarithm", math.Log10),
	integerFunction2("math:maxInt32", "x", "y", "the larger one, of the low 32 bits", func(x, y int64) int64 { return max(narrowed(x), narrowed(y)) }),
	integerFunction2("math:maxInt64", "x", "y", "the larger one", func(x, y int64) int64 { return max(x, y) }),
	singleFunction2("math:maxFloat32", "the larger one, of 32 bits", func(x, y float64) float64 { return max(x, y) }),
	realFunction2("math:maxFloat64", "the larger one", func(x, y float64) float64 { return max(x, y) }),
	integerFunction2("math:minInt32", "x", "y", "the smaller one, of the low 32 bits", func(x, y int64) int64 { return min(narrowed(x), narrowed(y)) }),
	integerFunction2("math:minInt64", "x", "y", "the smaller one", func(x, y int64) int64 { return min(x, y) }),
	singleFunction2("math:minFloat32", "the smaller one, of 32 bits", func(x, y float64) float64 { return min(x, y) }),
	realFunction2("math:minFloat64", "the smaller one", func(x, y float64) float64 { return min(x, y) }),
	realFunction2("math:pow", "x to the power of y", math.Pow),
	{
		name: "math:random", params: integers("n"), result: "integer", help: "random, from 0 to n-1; an addition, which mongoose does not have",
		make: func(b *builder, args []node) (node, error) { return drawNode(b, "math:random", args) },
	},
	realFunction("math:sin", "sine of radians", math.Sin),
	realFunction("math:sqrt", "square root", math.Sqrt),
	realFunction("math:tan", "tangent of radians", math.Tan),
	{
		name: "path:random", params: integers("width", "depth"), result: "text",
		help: "1 to depth random directories, each from 0 to width-1 in digits to the base of 36 and followed by /; constants",
		make: makePath,
	},
	{
		name: "string:format", params: []param{{name: "format", kind: kindText}, {name: "values", kind: kindNone}}, rest: true, result: "text",
		help: "Java's String.format with %d %x %X %o %e %f %s %b %c %n %%, widths, precisions, positions and the flags - 0 + , and blank",
		make: makeFormatted,
	},
	{
		name: "string:join", params: []param{{name: "separator", kind: kindText}, {name: "values", kind: kindText}}, rest: true, result: "text",
		help: "the values with the separator between them",
		make: makeJoined,
	},
	{
		name: "time:millisSinceEpoch", result: "integer", help: "now, in milliseconds since 1970",
		make: func(*builder, []node) (node, error) {
			return integerNode(clockTraits, func(c ctx) int64 { return c.now / 1e6 }), nil
		},
	},
	{
		name: "time:nanos", result: "integer", help: "now, in nanoseconds since 1970",
		make: func(*builder, []node) (node, error) {
			return integerNode(clockTraits, func(c ctx) int64 { return c.now }), nil
		},
	},
}

var clockTraits = traits{varies: true, clock: true}

func functionNamed(name string) *function {
	for i := range functions {
		if functions[i].name == name {
			return &functions[i]
		}
	}
	return nil
}

func traitsOf(args []node) (t traits) {
	for _, a := range args {
		t = t.with(a.traits)
	}
	return t
}

// constantError is the error of an argument that must be known before the run.
func constantError(arg node, what string) error {
	return &TemplateError{arg.at + 1, what + " must be a constant: it is checked before the run"}
}

func nowFunction(name, help string, p *datePattern) function {
	return function{name: name, result: "text", help: help, make: func(*builder, []node) (node, error) {
		return textNode(clockTraits, p.most, func(c ctx, dst []byte) []byte { return p.append(dst, c.now/1e6) }), nil
	}}
}

func integerFunction(name, help string, f func(int64) int64) function {
	return function{name: name, params: integers("x"), result: "integer", help: help, make: func(_ *builder, args []node) (node, error) {
		x := args[0].integer
		return integerNode(traitsOf(args), func(c ctx) int64 { return f(x(c)) }), nil
	}}
}

func integerFunction2(name, first, second, help string, f func(x, y int64) int64) function {
	return function{name: name, params: integers(first, second), result: "integer", help: help, make: func(_ *builder, args []node) (node, error) {
		x, y := args[0].integer, args[1].integer
		return integerNode(traitsOf(args), func(c ctx) int64 { return f(x(c), y(c)) }), nil
	}}
}

func realFunction(name, help string, f func(float64) float64) function {
	return function{name: name, params: reals("x"), result: "real", help: help, make: func(_ *builder, args []node) (node, error) {
		x := args[0].real
		return realNode(traitsOf(args), func(c ctx) float64 { return f(x(c)) }), nil
	}}
}

func realFunction2(name, help string, f func(x, y float64) float64) function {
	return function{name: name, params: reals("x", "y"), result: "real", help: help, make: func(_ *builder, args []node) (node, error) {
		x, y := args[0].real, args[1].real
		return realNode(traitsOf(args), func(c ctx) float64 { return f(x(c), y(c)) }), nil
	}}
}

// singleFunction is a function of numbers of 32 bits.
func singleFunction(name, help string, f func(float64) float64) function {
	return singled(realFunction(name, help, func(x float64) float64 { return f(float64(float32(x))) }))
}

func singleFunction2(name, help string, f func(x, y float64) float64) function {
	return singled(realFunction2(name, help, func(x, y float64) float64 { return f(float64(float32(x)), float64(float32(y))) }))
}

func singled(f function) function {
	inner := f.make
	f.make = func(b *builder, args []node) (node, error) {
		n, err := inner(b, args)
		n.single = true
		return n, err
	}
	return f
}

// drawNode draws a number below its argument, or any if there is none.
func drawNode(b *builder, name string, args []node) (node, error) {
	seed := b.site()
	if len(args) == 0 {
		return integerNode(traits{varies: true}, func(c ctx) int64 { return int64(mix(seed, c.event)) }), nil
	}
	n := args[0].integer
	if !args[0].varies {
		most := n(ctx{})
		if most < 1 {
			return node{}, &TemplateError{args[0].at + 1, fmt.Sprintf("%s takes a number above 0: it draws from 0 to one less", name)}
		}
		return integerNode(traits{varies: true, env: args[0].env}, func(c ctx) int64 { return belowInt(mix(seed, c.event), most) }), nil
	}
	return integerNode(args[0].traits, func(c ctx) int64 { return belowInt(mix(seed, c.event), n(c)) }), nil
}

// radixOf returns the radix that the second argument says, like Java 10 if there is none
// such.
func radixOf(args []node) func(c ctx) int {
	if len(args) < 2 {
		return func(ctx) int { return 10 }
	}
	r := args[1].integer
	return func(c ctx) int {
		if r := r(c); r >= 2 && r <= 36 {
			return int(r)
		}
		return 10
	}
}

// maxEnv bounds the value of a variable.
const maxEnv = maxText

func makeEnv(b *builder, args []node) (node, error) {
	name := args[0]
	if name.varies || name.env {
		return node{}, constantError(name, "the name of a variable")
	}
	value, ok := b.o.Env(name.known)
	switch {
	case !ok:
		return node{}, &TemplateError{name.at + 1, fmt.Sprintf("the environment has no variable %q", name.known)}
	case len(value) > maxEnv:
		return node{}, &TemplateError{name.at + 1, fmt.Sprintf("the variable %q has more than %d bytes", name.known, maxEnv)}
	}
	n := textOf(value)
	n.env = true
	return n, nil
}

// Bounds of random paths.
const (
	maxWidth = 1 << 31
	maxPath  = 64
)

func makePath(b *builder, args []node) (node, error) {
	var bounds [2]int64
	for i, most := range [...]int64{maxWidth, maxPath} {
		if args[i].varies {
			return node{}, constantError(args[i], [...]string{"the width", "the depth"}[i])
		}
		bounds[i] = args[i].integer(ctx{})
		if bounds[i] < 1 || bounds[i] > most {
			return node{}, &TemplateError{args[i].at + 1, fmt.Sprintf("%s is from 1 to %d", [...]string{"the width", "the depth"}[i], most)}
		}
	}
	width, depth, seed := bounds[0], bounds[1], b.site()
	t := traitsOf(args)
	t.varies = true
	each := len(strconv.FormatInt(width-1, 36)) + 1
	return textNode(t, int(depth)*each, func(c ctx, dst []byte) []byte {
		u := mix(seed, c.event)
		for i := range 1 + belowInt(u, depth) {
			dst = strconv.AppendInt(dst, belowInt(mix(u, uint64(i)+1), width), 36)
			dst = append(dst, '/')
		}
		return dst
	}), nil
}

func makeJoined(_ *builder, args []node) (node, error) {
	separator, values := args[0], args[1:]
	most := 0
	for i, v := range values {
		most += v.most
		if i > 0 {
			most += separator.most
		}
	}
	if err := checkLength(most, separator.at); err != nil {
		return node{}, err
	}
	return textNode(traitsOf(args), most, func(c ctx, dst []byte) []byte {
		for i := range values {
			if i > 0 {
				dst = separator.text(c, dst)
			}
			dst = values[i].text(c, dst)
		}
		return dst
	}), nil
}
