package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"carronade/internal/dropin"
	"carronade/internal/report"
	"carronade/internal/serve"
	"carronade/internal/workload"
	"carronade/test/testkit/assert"
)

// TestShown: addresses are printed without secrets, and a job does not tell where the server keeps its files.
func TestShown(t *testing.T) {
	t.Setenv("HOME", "/home/ann")
	plain := &session{Program: &Program{}}
	job := &session{Program: &Program{}, rules: &serve.Rules{Folder: "/srv/data/files"}}
	for _, tt := range []struct {
		name       string
		s          *session
		text, want string
	}{
		{"secret in an address", plain, "report push x --to 'elasticsearch://h:1/x?password=canary' copies it", "report push x --to 'elasticsearch://h:1/x?password=***' copies it"},
		{"login in an address", plain, "connect to http://u:canary@h/x failed", "connect to http://***@h/x failed"},
		{"reference", plain, "such as elasticsearch://h/x?user=ops&password=env:ES_PASSWORD, or so", "such as elasticsearch://h/x?user=ops&password=env:ES_PASSWORD, or so"},
		{"words", plain, "read the store's password: an address must not contain secrets", "read the store's password: an address must not contain secrets"},
		{"own home", plain, "cannot read /home/ann/x", "cannot read /home/ann/x"},
		{"home of a server", job, "cannot read /home/ann/.config/x", "cannot read ~/.config/x"},
		{"files of a server", job, "cannot read /srv/data/files/a.yaml in /srv/data/files", "cannot read a.yaml in ."},
		{"data of a server", job, "cannot read /srv/data/users/bob", "cannot read SERVER/users/bob"},
		{"a folder next to that of a server", job, "in /srv/data/files2 or /srv/data-2/x, not /srv/data.", "in SERVER/files2 or /srv/data-2/x, not SERVER."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && tt.s == job {
				t.Skip("these are no absolute paths there")
			}
			assert.Equal(t, tt.s.shown(tt.text), tt.want)
		})
	}
}

// TestNoSecretsInMessages: what a command says about an address has no secret of it.
func TestNoSecretsInMessages(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	place := "elasticsearch://127.0.0.1:1/x?password=canary"
	for _, args := range [][]string{
		{"report", "list", "--store", place},
		{"report", "push", "all", "--to", place},
		{"run", "null://", "--count", "1", "--quiet", "--store", place},
		{"run", "null://", "--count", "1", "--quiet", "--no-store", "--otlp", "http://u:canary@127.0.0.1:1"},
		{"run", "kafka://127.0.0.1:1/t", "--client-property", "ssl.key.password=canary"},
		{"run", "kafka://u:canary@127.0.0.1:1/t"},
	} {
		var out, errs bytes.Buffer
		p := &Program{Kinds: Kinds(), Args: args, In: strings.NewReader(""), Out: &out, Err: &errs}
		p.Main()
		assert.True(t, !strings.Contains(out.String()+errs.String(), "canary") && errs.Len() != 0,
			"%q:\n%s%s", args, out.String(), errs.String())
	}
}

// TestKeptFiles: what is kept for this user only this user can read.
func TestKeptFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes there")
	}
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	calibrated := assert.Value(keepCalibration(&calibration{Schema: calibrationSchema, Host: hostName()}))(t)
	assert.OK(t, keepGenerates(map[string]report.Generates{"a": {}}))
	generates := assert.Value(generatesPath())(t)
	for path, want := range map[string]os.FileMode{calibrated: 0o600, generates: 0o600, filepath.Dir(generates): 0o700} {
		info, err := os.Stat(path)
		assert.True(t, err == nil && info.Mode().Perm() == want, "%s: %v, %v, want %v", path, info, err, want)
	}
}

// A store that cannot take reports is refused before a run begins, and nothing is stored elsewhere.
func TestTooOldStore(t *testing.T) {
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"version":{"number":"6.8.23"},"tagline":"You Know, for Search"}`)
	}))
	t.Cleanup(server.Close)
	var out, errs bytes.Buffer
	p := &Program{Kinds: Kinds(), Args: []string{"run", "null://", "--count", "1", "--store", "elasticsearch://" + strings.TrimPrefix(server.URL, "http://")}, In: strings.NewReader(""), Out: &out, Err: &errs}
	assert.Equal(t, p.Main(), 2, "%s%s", out.String(), errs.String())
	for _, want := range []string{"Elasticsearch 6.8.23", "7.0 or later"} {
		assert.Has(t, strings.Join(strings.Fields(errs.String()), " "), want)
	}
	kept, _ := filepath.Glob(filepath.Join(data, "carronade", "reports.db*"))
	assert.Equal(t, len(kept), 0, "files of the own store")
}

// The limits in the example of help slo, and every name that it lists, can be parsed.
func TestSLOSubject(t *testing.T) {
	limits := 0
	words := strings.Fields(sloExample)
	for i, word := range words {
		if word != "--slo" {
			continue
		}
		limits++
		assert.Value(workload.ParseLimit(strings.Trim(words[i+1], "'")))(t, "%s", words[i+1])
	}
	assert.True(t, limits != 0, "the example has no limit")
	text := sloText(nil)
	for _, r := range workload.Results() {
		assert.True(t, strings.Contains(strings.ReplaceAll(text, "\n", " \n"), "\n  "+r.Name+" "), "help slo does not list %s", r.Name)
	}
	for _, from := range workload.MetricSources() {
		assert.True(t, strings.Contains(text, "\n  "+from+".NAME "), "help slo does not list the metrics of %s", from)
	}
}

// The usual flags exist: a setting that was renamed must not vanish from help.
func TestUsualSettingsExist(t *testing.T) {
	kinds := Kinds()
	for _, group := range usual {
		for _, name := range group.names {
			assert.True(t, usualSetting(name, kinds) != nil, "--%s is among the usual flags, and does not exist", name)
		}
	}
}

// Jobs run in another folder than the server, so the path of its store is made absolute.
func TestAbsoluteStore(t *testing.T) {
	t.Chdir(t.TempDir())
	here := assert.Value(filepath.Abs("reports.db"))(t)
	for place, want := range map[string]string{
		"reports.db": here, "./reports.db": here, here: here, "sqlite://reports.db": here,
		"elasticsearch://127.0.0.1:9200": "elasticsearch://127.0.0.1:9200",
	} {
		got, err := absoluteStore(place)
		assert.True(t, got == want && err == nil, "%s: got %s and %v, want %s", place, got, err, want)
	}
}

// wide finds the lines of a page that a terminal of 80 columns would break. It
// skips the original lines of old tools and of Go's flag package.
func wide(t *testing.T, of, page string) {
	t.Helper()
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "    \t") || strings.HasPrefix(line, "This tool measures end-to-end latency in Kafka") {
			continue
		}
		n := utf8.RuneCountInString(strings.TrimRight(line, "\n"))
		assert.True(t, n <= 80, "%s: %d columns: %s", of, n, line)
	}
}

// The help of every command, subject and old tool fits a terminal of 80 columns.
func TestHelpWidth(t *testing.T) {
	var out bytes.Buffer
	s := &session{Program: &Program{Kinds: Kinds(), Out: &out, Err: io.Discard}, out: &stdout{w: &out}}
	pages := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		out.Reset()
		cmd.SetOut(&out)
		s.help(cmd, nil)
		wide(t, cmd.CommandPath(), out.String())
		pages++
		if cmd.Annotations[settingsPage] != "" {
			out.Reset()
			for _, k := range Kinds() {
				s.help(cmd, []string{k.Schemes()[0] + "://h"})
			}
			s.helpAll = true
			s.help(cmd, nil)
			s.helpAll = false
			wide(t, cmd.CommandPath()+" --help-all", out.String())
		}
		for _, c := range cmd.Commands() {
			if c.Name() == "completion" {
				continue // its pages are cobra's
			}
			walk(c)
		}
	}
	walk(s.root())
	assert.True(t, pages >= 30, "%d pages of help: where are the commands?", pages)
	for _, sub := range subjects() {
		wide(t, "help "+sub.name, sub.text(s))
	}
	for _, tool := range oldTools() {
		var said bytes.Buffer
		for _, flag := range []string{"--help", "-help"} {
			p := &dropin.Program{Called: tool.Name, Args: []string{flag}, In: strings.NewReader(""), Out: &said, Err: &said}
			if _, err := tool.Main(t.Context(), p); err == nil && said.Len() > 0 {
				break
			}
			said.Reset()
		}
		assert.True(t, said.Len() != 0, "%s: no help", tool.Name)
		wide(t, "as "+tool.Name, said.String())
	}
}
