package kafkatools

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestProperties(t *testing.T) {
	file := filepath.Join(t.TempDir(), "client.properties")
	assert.OK(t, os.WriteFile(file, []byte("acks=1\ngroup.id=g\nlinger.ms = 5\nmade.up=1\n"), 0o600))
	p := assert.Value(readProperties(file, []string{"acks=all", "sasl.jaas.config=M required username=\"a=b\";"}))(t)
	for name, want := range map[string]string{"acks": "all", "group.id": "g", "linger.ms": "5", "sasl.jaas.config": "M required username=\"a=b\";"} {
		got, ok := p.get(name)
		assert.True(t, ok && got == want, "%s is %q, %v; want %q", name, got, ok, want)
	}
	_, ok := p.get("retries")
	assert.True(t, !ok, "there is a property that was not given")
	var d dropin.Draft
	p.set(&d, "--producer.config", "--producer-props")
	var got []string
	for _, e := range d.Entries {
		got = append(got, e.Name+" by "+e.Where)
	}
	want := []string{"client-config by --producer.config", "client-property by --producer-props", "client-property by --producer-props"}
	assert.True(t, slices.Equal(got, want), "settings %q, want %q", got, want)
	for op, want := range map[string][]string{"produce": {"group.id"}, "consume": {"acks", "linger.ms"}, "roundtrip": nil} {
		got := p.unused(op)
		assert.True(t, slices.Equal(got, want), "%s does not use %q, want %q", op, got, want)
	}
	var warnings strings.Builder
	p.warn(&warnings, "produce")
	assert.Equal(t, warnings.String(), "warning: the client property sasl.jaas.config is visible in the process list: put it into a properties file\n"+
		"warning: the client property group.id has no meaning for the operation produce and is ignored\n", "warnings")
}

// An error about unreadable properties quotes nothing.
func TestUnreadableProperties(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		pairs      []string
	}{{"no such file", filepath.Join(t.TempDir(), "none"), nil}, {"no pair", "", []string{"hunter2"}}} {
		_, err := readProperties(tt.file, tt.pairs)
		assert.True(t, err != nil && !strings.Contains(err.Error(), "hunter2"), "%s: err %v", tt.name, err)
	}
}

// A run that is only not trusted exits with 0, as the tool does, unless --exit-on-distrust is given.
func TestExitOnDistrust(t *testing.T) {
	for _, c := range []struct {
		args      []string
		distrusts int // the exit code of a run that is not trusted
	}{{nil, host.ExitOK}, {[]string{"--exit-on-distrust"}, host.ExitUntrusted}, {[]string{"--exit-on-distrust=false"}, host.ExitOK}} {
		own, o, err := Producer.Split(append([]string{"--topic", "t"}, c.args...))
		assert.Must(t, err == nil && len(own) == 2, "%q, %v", own, err)
		assert.Equal(t, o.ExitCode(host.ExitUntrusted, nil), c.distrusts, "%v", c.args)
		for _, other := range []int{host.ExitOK, host.ExitBroken, host.ExitFailed, host.ExitInterrupted} {
			assert.Equal(t, o.ExitCode(other, nil), other, "%v", c.args)
		}
		assert.Equal(t, o.ExitCode(host.ExitUntrusted, errors.New("x")), host.ExitUntrusted, "with an error")
	}
}

func TestCheckTopic(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"a.B_c-1", ""},
		{strings.Repeat("t", 249), ""},
		{"", "the empty string is not allowed"},
		{"..", "'..' is not allowed"},
		{"t?acks=0", "'t?acks=0' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"},
		{"a/b", "'a/b' contains one or more characters"},
		{strings.Repeat("t", 250), "is longer than the max allowed length 249"},
	} {
		err := CheckTopic(tt.name)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.HasPrefix(err.Error(), "Topic name is invalid: ") || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// allTested checks that the cases in a file use every option.
func allTested[T any](t *testing.T, file string, options []T, name func(T) string) {
	t.Helper()
	data := assert.Value(os.ReadFile(file))(t)
	for _, o := range options {
		assert.True(t, regexp.MustCompile(`--`+regexp.QuoteMeta(name(o))+`\b`).Match(data), "--%s is not tested", name(o))
	}
}

func TestServers(t *testing.T) {
	for _, tt := range []struct{ list, want, err string }{
		{"PLAINTEXT://a:1, b:2", "a:1,b:2", ""},
		{"", "", "Configuration 'bootstrap.servers' must not be empty. Valid values include: any non-empty value"},
		{" ", "", "Configuration 'bootstrap.servers' must not be empty. Valid values include: any non-empty value"},
		{"a:1,b:2/chroot", "", "Invalid url in bootstrap.servers: b:2/chroot"},
	} {
		got, err := readServers(tt.list)
		assert.True(t, got == tt.want && (err == nil) == (tt.err == "") && (err == nil || err.Error() == tt.err),
			"%q: got %q, %v; want %q, %s", tt.list, got, err, tt.want, tt.err)
	}
}

func TestUnknownOption(t *testing.T) {
	for arg, want := range map[string]string{
		"more":                          "warning: unknown option more is ignored\n",
		"ssl.key.password=hunter2":      "warning: unknown option ssl.key.password is ignored\n",
		`x=M username="a" password=hu=`: "warning: unknown option x is ignored\n",
	} {
		assert.Equal(t, unknownOption(arg), want)
	}
}

func TestHosts(t *testing.T) {
	for list, want := range map[string]string{
		"a:1":                            "a:1",
		"a:1,b:2":                        "a:1,b:2",
		" a:1, b:2 ":                     "a:1,b:2",
		"PLAINTEXT://a:1,SSL://[::1]:2":  "a:1,[::1]:2",
		"SASL_SSL://a:1 , PLAINTEXT://b": "a:1,b",
		"":                               "",
	} {
		assert.Equal(t, HostList(list), want, "%q", list)
	}
}

// The wanted texts are those of java.text.SimpleDateFormat in the English locale.
func TestDateFormat(t *testing.T) {
	at := time.Date(2026, time.March, 7, 0, 5, 9, 42_900_000, time.FixedZone("CET", 3600))
	for _, tt := range testkit.Table[struct{ Pattern, Want, Err string }](t, "testdata/dates.yaml") {
		t.Run(tt.Pattern, func(t *testing.T) {
			f, err := parseDate(tt.Pattern)
			assert.Must(t, (err == nil) == (tt.Err == "") && (err == nil || err.Error() == tt.Err), "error %v, want %q", err, tt.Err)
			got := f.format(at)
			assert.True(t, err != nil || got == tt.Want, "got %q, want %q", got, tt.Want)
		})
	}
}

// Afternoons and zones.
func TestDateFormatOthers(t *testing.T) {
	f := assert.Value(parseDate("K h k a z X"))(t)
	assert.Equal(t, f.format(time.Date(2026, 1, 1, 13, 0, 0, 0, time.UTC)), "1 1 13 PM UTC Z")
	assert.Equal(t, f.format(time.Date(2026, 1, 1, 12, 0, 0, 0, time.FixedZone("-03", -10800))), "0 12 12 PM GMT-03:00 -03")
}

// Every pattern is either refused or formats a time.
func FuzzDateFormat(f *testing.F) {
	for _, pattern := range []string{"yyyy-MM-dd HH:mm:ss:SSS", "hh 'o''clock' a", "'", "''", "XXXX", "qqq", "EEEE MMMM z Z X u D k K", "\xff", "GGG"} {
		f.Add(pattern)
	}
	at := time.Date(2026, time.December, 31, 23, 59, 59, 999e6, time.UTC)
	f.Fuzz(func(t *testing.T, pattern string) {
		parts, err := parseDate(pattern)
		if err != nil {
			return
		}
		assert.True(t, parts.format(at) != "" || strings.Trim(pattern, "'") == "", "%q writes nothing", pattern)
	})
}

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
		name, args string
		want       map[string]string // by name, in one text; an option without a value has "-"
		rest       []string
		err        string
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
			for name := range v.given {
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
		for name := range v.given {
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
