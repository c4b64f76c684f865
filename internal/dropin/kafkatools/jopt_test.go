package kafkatools

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

var jopts = []joptOption{
	{name: "topic", kind: textValue, word: "topic", help: "The topic to consume from."},
	{name: "messages", kind: longValue, word: "count", help: "REQUIRED: how many."},
	{name: "fetch-size", kind: integerValue, word: "size", otherwise: "1048576", help: "How much in a fetch."},
	{name: "timeout", kind: optionalLong, word: "milliseconds", otherwise: "10000", help: "How long."},
	{name: "config", kind: optionalText, word: "file"},
	{name: "from-latest", kind: noValue, help: "From the end."},
}

func TestJopt(t *testing.T) {
	for _, tt := range []struct {
		name string
		args string
		want map[string]string // by name, in one text; an option without a value has "-"
		rest []string
		err  string
	}{
		{"nothing", "", map[string]string{}, nil, ""},
		{"values apart and joined", "--topic t --messages=5", map[string]string{"topic": "t", "messages": "5"}, nil, ""},
		{"one dash", "-topic t", map[string]string{"topic": "t"}, nil, ""},
		{"a value that looks like an option", "--topic --messages --from-latest", map[string]string{"topic": "--messages", "from-latest": "-"}, nil, ""},
		{"an optional value that is absent", "--timeout --topic t", map[string]string{"timeout": "-", "topic": "t"}, nil, ""},
		{"an optional value", "--timeout 5", map[string]string{"timeout": "5"}, nil, ""},
		{"a negative optional value", "--timeout -5", map[string]string{"timeout": "-5"}, nil, ""},
		{"an optional text that is absent", "--config --topic t", map[string]string{"config": "-", "topic": "t"}, nil, ""},
		{"twice", "--topic a --topic b", map[string]string{"topic": "a b"}, nil, ""},
		{"arguments of no option", "a --topic t b -- --c", map[string]string{"topic": "t"}, []string{"a", "b", "--c"}, ""},
		{"= in a value", "--topic=a=b", map[string]string{"topic": "a=b"}, nil, ""},
		{"unknown", "--foo", nil, nil, "foo is not a recognized option"},
		{"no value", "--messages", nil, nil, "Option messages requires an argument"},
		{"a value for a flag", "--from-latest=yes", nil, nil, "option from-latest takes no argument"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := parseJopt(jopts, strings.Fields(tt.args))
			if tt.err != "" {
				assert.True(t, err != nil && err.Error() == tt.err, "error %v, want %q", err, tt.err)
				return
			}
			assert.OK(t, err)
			got := make(map[string]string)
			for _, name := range v.names() {
				got[name] = strings.Join(v.all(name), " ")
				if len(v.all(name)) == 0 {
					got[name] = "-"
				}
			}
			assert.True(t, len(got) == len(tt.want) && slices.Equal(v.rest, tt.rest), "got %q and %q", got, v.rest)
			for name, want := range tt.want {
				assert.Equal(t, got[name], want, "%s", name)
			}
		})
	}
}

func TestJoptValues(t *testing.T) {
	parse := func(args string) *joptValues {
		v := assert.Value(parseJopt(jopts, strings.Fields(args)))(t)
		return v
	}
	for _, tt := range []struct {
		name, args, option string
		want               int64
		err                string
	}{
		{"a number", "--messages 5000000000", "messages", 5_000_000_000, ""},
		{"the default", "", "fetch-size", 1048576, ""},
		{"the default of one without a value", "--timeout", "timeout", 10000, ""},
		{"no default", "", "messages", 0, ""},
		{"no number", "--messages five", "messages", 0, "Cannot parse argument 'five' of option messages"},
		{"too large for an int", "--fetch-size 5000000000", "fetch-size", 0, "Cannot parse argument '5000000000' of option fetch-size"},
		{"twice", "--messages 1 --messages 2", "messages", 0, "Found multiple arguments for option messages, but you asked for only one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parse(tt.args).number(tt.option)
			assert.True(t, got == tt.want && (err == nil) == (tt.err == "") && (err == nil || err.Error() == tt.err),
				"got %d, %v; want %d, %q", got, err, tt.want, tt.err)
		})
	}
	v := parse("--topic t --messages 5")
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"present", v.missing("topic"), ""},
		{"missing", v.missing("topic", "timeout"), `Missing required argument "[timeout]"`},
		{"one of two", v.oneOf("topic", "timeout"), ""},
		{"none of two", v.oneOf("timeout", "config"), "Exactly one of the following arguments is required: [timeout], [config]"},
		{"two of two", v.oneOf("topic", "messages"), "Exactly one of the following arguments is required: [topic], [messages]"},
		{"apart", v.exclusive("topic", "timeout"), ""},
		{"together", v.exclusive("topic", "messages"), `Option "[topic]" can't be used with option "[messages]"`},
	} {
		got := "<nil>"
		if tt.err != nil {
			got = tt.err.Error()
		}
		assert.Equal(t, got, cmp.Or(tt.want, "<nil>"), "%s", tt.name)
	}
}

func TestJoptTable(t *testing.T) {
	usage := joptTable(jopts)
	assert.Has(t, usage,
		"Option                                       Description\n",
		"--fetch-size <Integer: size>                 How much in a fetch. (default:\n                                               1048576)\n",
		"--timeout [Long: milliseconds]               How long. (default: 10000)\n",
		"--from-latest                                From the end.\n",
	)
}

// No argument is dropped: each is an option, an option's value, or in Rest.
func FuzzJopt(f *testing.F) {
	for _, args := range []string{"--topic t --messages 5", "-topic=t x -- --y", "--timeout --topic", "--timeout -5 -", "--from-latest", "---topic x"} {
		f.Add(args)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Fields(line)
		v, err := parseJopt(jopts, args)
		if err != nil {
			return
		}
		n := len(v.rest)
		for _, name := range v.names() {
			n += len(v.all(name))
		}
		assert.True(t, n <= len(args), "%q became %d values", args, n)
		if topic := v.all("topic"); len(topic) == 1 {
			if got, err := v.text("topic"); err != nil || got != topic[0] {
				t.Errorf("topic is %q, %v; want %q", got, err, topic[0])
			}
		}
	})
}
