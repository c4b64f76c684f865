package secret

import (
	"slices"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// Command lines, and the secrets of them in other texts. In hides.csv they are longer than what the mask must find.
func TestCommand(t *testing.T) {
	for _, file := range []string{"commands.csv", "hides.csv"} {
		for _, row := range testkit.CSV(t, "testdata/"+file) {
			name, want, line := row[0], row[1], row[2]
			t.Run(name, func(t *testing.T) {
				args := assert.Value(Split(line))(t)
				var m Mask
				got := m.Command(args)
				assert.True(t, !strings.Contains(got, canary) && (want == "" || got == want), "got  %s\nwant %s", got, want)
				whole, text := canary, strings.Join(args, " ")
				for _, more := range []string{"-" + canary, "--" + canary, "a " + canary, "a/" + canary, `a"` + canary} {
					if file == "hides.csv" && strings.Contains(text, more) {
						whole = more
					}
				}
				assert.True(t, !strings.Contains(text, canary) || !strings.Contains(m.Text("it says "+whole+" aloud"), canary),
					"the secret of the command line is not removed from other text")
			})
		}
	}
	assert.Equal(t, new(Mask).Command(nil), "", "no command")
}

// What is known of a login in an address is the whole and its password, and no word of a text
// behind the address.
func TestWordsBehindAnAddress(t *testing.T) {
	for _, tt := range []struct{ name, arg, shown, line, want string }{
		{"a path", "--note=https://ci:8443/1 done, info, see a@b", "--note=https://ci:8443/1 done, info, see a@b", "info: done, see 8443", "info: done, see 8443"},
		{"a query", "https://ci:8443?x done, info, see a@b", "https://ci:8443?x done, info, see a@b", "info: done", "info: done"},
		{"a login and a path", "https://u:" + canary + "@ci/1 done, info, see a@b", "https://***@ci/1 done, info, see a@b", "info: " + canary, "info: ***"},
		{"no path", "https://ci:8443 done, info, see a@b", "https://***@b", "info: done, see 8443", "info: done, see 8443"},
		{"a blank in a password", "https://u:a, " + canary + "@h/x", "https://***@h/x", "info: a, " + canary, "info: ***"},
		{"an escaped colon", `https\://u\:` + canary + "@h/x", `https\://***@h/x`, "info: " + canary, "info: ***"},
		{"no scheme", "info:" + canary + "@h", "info:***@h", "info: " + canary, "info: ***"},
		{"a token alone", "https://" + canary + "@h/x", "https://***@h/x", "info: " + canary, "info: ***"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m Mask
			assert.Equal(t, m.Args([]string{tt.arg})[0], tt.shown)
			assert.Equal(t, m.Text(tt.line), tt.want)
		})
	}
}

// A script is shown in its quotes only if each of its secrets is written there as it is.
func TestEscapesInScripts(t *testing.T) {
	for _, script := range []string{
		`mysql -pabcd; curl -u "u:a\"` + canary + `" h`,
		`ssh h "mysql -pabcd; curl -u \"u:a\\\"` + canary + `\" h"`,
	} {
		got := new(Mask).Command([]string{"sh", "-c", script})
		assert.True(t, !strings.Contains(got, canary), "got %s\nof %s", got, script)
	}
}

func TestValue(t *testing.T) {
	for _, test := range []struct{ name, setting, value, want string }{
		{"plain", "output.file", "a b", "a b"},
		{"secret", "es.password", canary, Hidden},
		{"reference", "es.password", "env:PW", "env:PW"},
		{"address", "es.hosts", "http://me:" + canary + "@h:1", "http://***@h:1"},
		{"nothing", "es.password", "", ""},
		{"a login", "cloud.auth", "elastic:" + canary, Hidden},
		{"a login of another name", "x.auth", "elastic:" + canary, Hidden},
	} {
		t.Run(test.name, func(t *testing.T) {
			var m Mask
			assert.Equal(t, m.Value(test.setting, test.value), test.want)
			assert.True(t, !strings.Contains(test.value, canary) || !strings.Contains(m.Text("say "+canary), canary),
				"the mask does not know the secret")
		})
	}
}

func TestLine(t *testing.T) {
	for _, test := range []struct{ name, line, want string }{
		{"plain", "srv -e  --port 1", "srv -e --port 1"},
		{"a secret with blanks", "srv --password='a " + canary + " b' -v", "srv --password=*** -v"},
		{"one word in quotes", `srv "--password" "a ` + canary + `"`, "srv --password ***"},
		{"no end", "srv 'x " + canary, Hidden},
	} {
		t.Run(test.name, func(t *testing.T) {
			var m Mask
			assert.Equal(t, m.Line(test.line), test.want)
		})
	}
}

// TestLineIsReadAgain: a report shows a command without secrets unchanged.
func TestLineIsReadAgain(t *testing.T) {
	for _, line := range []string{"srv -e", `sh -c 'it'\''s; echo "$X"'`, `a "b c" '' d\ e`, "{tree}/srv {flags} *"} {
		var m Mask
		want := assert.Value(Split(line))(t)
		got, err := Split(m.Line(line))
		assert.True(t, err == nil && slices.Equal(got, want), "%s: got %q (%v), want %q", line, got, err, want)
	}
}
