package secret

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

const canary = "kestrel-9271"

// testHidden hides the texts of a file of testdata: == begins one with its name, | is a line of it and / a line without
// an end, text is one in quotation marks. keeps is a part that must stay readable.
func testHidden(t *testing.T, file string, secrets ...string) {
	t.Helper()
	data := assert.Value(os.ReadFile(filepath.Join("testdata", file)))(t)
	for _, part := range strings.Split("\n"+string(data), "\n== ")[1:] {
		name, lines, _ := strings.Cut(part, "\n")
		t.Run(name, func(t *testing.T) {
			text, keeps := "", []string(nil)
			for line := range strings.Lines(lines) {
				word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				if unquoted, err := strconv.Unquote(rest); err == nil && word != "|" && word != "/" {
					rest = unquoted
				}
				switch word {
				case "|":
					text += rest + "\n"
				case "/", "text":
					text += rest
				case "keeps":
					keeps = append(keeps, rest)
				}
			}
			got := new(Mask).Text(text)
			for _, one := range append(secrets, canary) {
				assert.True(t, text != "" && !strings.Contains(got, one), "a secret is left: got\n%s\nof\n%s", got, text)
			}
			for _, kept := range keeps {
				assert.True(t, strings.Contains(got, kept), "got\n%s\nof\n%s\nwant in it %q", got, text, kept)
			}
		})
	}
}

// Files and lines whose secret is hard to find.
func TestHostile(t *testing.T) {
	testHidden(t, "hostile.txt", base64.StdEncoding.EncodeToString([]byte("u:"+canary)))
}

// Forms of other programs' files, and of logs.
func TestForms(t *testing.T) { testHidden(t, "forms.txt") }

// Texts that repeat what the scanner looks for take no time that grows with a square.
func TestRepeatedTexts(t *testing.T) {
	for _, part := range []string{"[", "{", "a: [", "- ", "<a b='token' name='token'>\n", "password: |\n", "name=token\n'", "--password 'a\n", "passwords:\n- a\n# - b\n", "a=[\n", "? ", "!a\n", "<a>", "{\"a\":", "token: [\n", "x token='a\n", "token: [token: [", "curl ", "-u "} {
		s := scanner{t: strings.Repeat(part, testkit.Cases(128<<10, 32<<10)/len(part))}
		s.scan()
		assert.True(t, s.work <= 2*s.mostWork(), "%q: %d bytes of %d were looked at", part, s.work, len(s.t))
		got := s.found.hide(s.t)
		assert.True(t, strings.Count(got, "\n") >= strings.Count(s.t, "\n")/1000, "%q: got %.100q", part, got)
	}
}

// A secret is found however deep it is.
func TestNested(t *testing.T) {
	for _, tt := range []struct{ name, open, inside, closed string }{
		{"JSON, lists", "[", `"password=` + canary + `"`, "]"},
		{"JSON, maps", `{"a":`, `{"password":"` + canary + `"}`, "}"},
		{"XML", "<a>", "<password>" + canary + "</password>", "</a>"},
		{"YAML, tags", "!a ", "password: " + canary, ""},
		{"YAML, keys", "? ", "password: " + canary, ""},
		{"YAML, items on lines", "-\n", "password: " + canary, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, n := range []int{1, 64, 1000, 3000} {
				text := strings.Repeat(tt.open, n) + tt.inside + strings.Repeat(tt.closed, n)
				got := new(Mask).Text(text)
				assert.True(t, !strings.Contains(got, canary), "%d levels: got %.2000q", n, got)
			}
		})
	}
}
