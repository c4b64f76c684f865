package place

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"carronade/test/testkit/assert"
)

func TestStore(t *testing.T) {
	cluster := func(text string, a Address) Place { return Place{Kind: Cluster, Value: text, Address: &a} }
	for _, tt := range []struct {
		text string
		want Place
		err  string // what the error says
	}{
		{"", Place{}, ""},
		{"a.db", Place{Kind: File, Value: "a.db"}, ""},
		{"./none", Place{Kind: File, Value: "./none"}, ""},
		{"/x/a:b", Place{Kind: File, Value: "/x/a:b"}, ""},
		{`C:\x.db`, Place{Kind: File, Value: `C:\x.db`}, ""},
		{"sqlite:///x.db?mode=ro", Place{Kind: File, Value: "/x.db?mode=ro"}, ""},
		{"elasticsearch://h", cluster("elasticsearch://h", Address{Host: "h:9200", Prefix: "carronade"}), ""},
		{"elasticsearch+https://h:1/p?user=a&password=file:x&ca=c.pem", cluster("elasticsearch+https://h:1/p?user=a&password=file:x&ca=c.pem", Address{TLS: true, Host: "h:1", Prefix: "p", User: "a", Password: Place{Kind: File, Value: "x"}, CA: "c.pem"}), ""},
		{"elasticsearch://h?api-key=env:K", cluster("elasticsearch://h?api-key=env:K", Address{Host: "h:9200", Prefix: "carronade", APIKey: Place{Kind: Variable, Value: "K"}}), ""},
		{"none", Place{}, "none is not the place of a store"},
		{"elasticsearchy:/../x.db", Place{}, "unknown scheme elasticsearchy:"},
		{"elasticsearchy:@h:1/../../x.db", Place{}, "unknown scheme elasticsearchy:"},
		{"elasticsearch:/../x.db", Place{}, "after elasticsearch: there is no //"},
		{"SQLITE:///x.db", Place{}, "unknown scheme SQLITE:"},
		{"sqlite:x.db", Place{}, "after sqlite: there is no //"},
		{"sqlite://", Place{}, "no path"},
		{"file:x.db", Place{}, "unknown scheme file:"},
		{"elasticsearch:///x", Place{}, "names no host"},
		{"elasticsearch://:9200/x", Place{}, "names no host"},
		{"elasticsearch://h/../../x", Place{}, "begin the name of an index"},
		{"elasticsearch://h/Reports", Place{}, "lower case"},
		{"elasticsearch://a:canary@h:1", Place{}, "visible to others"},
		{"elasticsearch://h?user=a&password=canary", Place{}, "must not contain secrets"},
		{"elasticsearch://h?user=a", Place{}, "go together"},
		{"elasticsearch://h?user=a&password=env:P&api-key=env:K", Place{}, "both"},
		{"elasticsearch://h?verify=no", Place{}, `"verify"`},
		{"elasticsearch://h?ca=a&ca=/etc/x", Place{}, "ca is there twice"},
		{"elasticsearch://h?ca=a;b", Place{}, "not NAME=VALUE"},
	} {
		got, err := Store(tt.text)
		switch {
		case tt.err == "" && err != nil:
			t.Errorf("%q: %v", tt.text, err)
		case tt.err == "" && !cmp.Equal(got, tt.want):
			t.Errorf("%q: %s", tt.text, cmp.Diff(tt.want, got))
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "canary")):
			t.Errorf("%q: %v, %v, want an error with %q", tt.text, got, err, tt.err)
		}
	}
}

func TestPath(t *testing.T) {
	for text, want := range map[string]Kind{"-": Stream, "a": File, "": File, "../a": File, "a:b": File, `C:\a`: File, "./x://a": File, "a=x://b": File} {
		got, err := Path(text)
		assert.True(t, err == nil && got.Kind == want, "%q: %v, %v", text, got, err)
	}
	for _, text := range []string{"xy://../a", "kafka://h/t", "FILE:///a"} {
		got, err := Path(text)
		assert.True(t, err != nil, "%q: %v", text, got)
	}
}

// TestConfined: each function reaches what is in the folders, and nothing outside of them.
func TestConfined(t *testing.T) {
	base := t.TempDir()
	folder, home := filepath.Join(base, "files"), filepath.Join(base, "home")
	for _, path := range []string{"files/a", "files/d/b", "home/password", "victim"} {
		assert.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(base, path)), 0o700))
		assert.OK(t, os.WriteFile(filepath.Join(base, path), []byte(path), 0o600))
	}
	if err := os.Symlink("../victim", filepath.Join(folder, "out")); err != nil {
		t.Skip(err)
	}
	Confine([]string{folder, home}, "../other")
	defer confined.Store(nil)
	calls := map[string]func(path string) error{
		"Open":      func(path string) error { return closed(Open(path)) },
		"Create":    func(path string) error { return closed(Create(path)) },
		"OpenFile":  func(path string) error { return closed(OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)) },
		"ReadFile":  func(path string) error { _, err := ReadFile(path); return err },
		"WriteFile": func(path string) error { return WriteFile(path, nil, 0o600) },
		"Stat":      func(path string) error { _, err := Stat(path); return err },
		"MkdirAll":  func(path string) error { return MkdirAll(filepath.Join(path, "made"), 0o700) },
		"Rename":    func(path string) error { return Rename(path, path+".1") },
		"Remove":    Remove,
	}
	for name, call := range calls {
		for _, path := range []string{"../victim", filepath.Join(base, "victim"), "d/../../victim", "out", filepath.Join(folder, "out"), "x://../../victim", "..", "/"} {
			if name == "Rename" && filepath.Base(path) == "out" || name == "Remove" && filepath.Base(path) == "out" {
				continue // of the link itself
			}
			assert.True(t, call(path) != nil, "%s %q: no error", name, path)
		}
	}
	got, err := os.ReadFile(filepath.Join(base, "victim"))
	assert.True(t, err == nil && string(got) == "victim", "the file outside: %q, %v", got, err)
	for _, ok := range [][2]string{{"Stat", "a"}, {"ReadFile", filepath.Join(folder, "d", "b")}, {"Open", filepath.Join(home, "password")}, {"Create", "new"}, {"MkdirAll", "e"}, {"Rename", "a"}, {"Remove", "new"}} {
		if err := calls[ok[0]](ok[1]); err != nil { // in this order: Rename moves what Stat finds
			t.Errorf("%s %q: %v", ok[0], ok[1], err)
		}
	}
	if _, err := Stat("../other"); !os.IsNotExist(err) { // from the folder of this test
		t.Errorf("a file of its own: %v, want %v", err, fs.ErrNotExist)
	}
	assert.Value(os.Stat(filepath.Join(folder, "a.1")))(t)
	Confine([]string{filepath.Join(base, "missing")})
	_, err = Stat("a")
	assert.True(t, os.IsNotExist(err), "a folder that is missing: %v, want %v", err, fs.ErrNotExist)
}

func closed(f *os.File, err error) error {
	if err != nil {
		return err
	}
	return f.Close()
}

func TestTextReader(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a": "a", "\xef\xbb\xbf": "", "\xef\xbb\xbfa\n": "a\n", "\xef\xbb": "\xef\xbb", "\xef\xbb\xbf\xef\xbb\xbfa": "\xef\xbb\xbfa", "ab\xef\xbb\xbf": "ab\xef\xbb\xbf",
	} {
		got := assert.Value(io.ReadAll(TextReader(iotest.OneByteReader(strings.NewReader(text)))))(t)
		assert.Equal(t, string(got), want, "%q", text)
		assert.Equal(t, string(TextOf([]byte(text))), want, "%q at once", text)
	}
}
