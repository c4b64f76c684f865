//go:build conformance

package acceptance

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// canary begins every secret in these tests: no output may contain it.
const canary = "c4n4ry"

// checkNoSecrets searches for the canary in a run's output and in all files that it
// left: in its home and in the folder of its outputs.
func checkNoSecrets(t *testing.T, s *session, e ended, dir string) {
	t.Helper()
	texts := map[string]string{"stdout": e.stdout, "stderr": e.stderr}
	for _, root := range []string{s.home, dir} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			texts[path] = string(text)
			return err
		})
		assert.OK(t, err)
	}
	if _, err := os.Stat(filepath.Join(s.home, "carronade", "reports.db")); err == nil {
		// The store compresses reports: search their exported texts.
		list := runAt(t, s.home, "report", "list").stdout
		for line := range strings.Lines(list) {
			if id, _, _ := strings.Cut(line, " "); id != "id" && id != "" {
				texts["report "+id] = runAt(t, s.home, "report", "export", id, "--as", "json").want(t, 0).stdout
			}
		}
	}
	for where, text := range texts {
		if i := strings.Index(text, canary); i >= 0 {
			t.Errorf("%s has a secret: ...%s...", where, text[max(0, i-200):min(len(text), i+40)])
		}
	}
}

// TestSecrets passes secrets in every possible way and searches all output for them: of runs that succeed, of
// runs with a system that prints its secrets and then dies, and of runs that are refused.
func TestSecrets(t *testing.T) {
	t.Parallel()
	var env []string
	for _, name := range []string{"TOKEN", "KEY", "HEADER", "PASSWORD", "ENV", "FLAG", "SCRAPE"} {
		env = append(env, "CANARY_"+name+"="+canary+"-of-"+strings.ToLower(name))
	}
	begin := func(t *testing.T, args ...string) *session {
		s := prepare(t, args...)
		s.env = env
		s.begin()
		return s
	}
	secrets := t.TempDir()
	file := filepath.Join(secrets, "secret")
	writeFile(t, file, canary+"-of-a-file\n")
	attached := filepath.Join(secrets, "server.yaml")
	writeFile(t, attached, "port: 1\noutput:\n  password: "+canary+"\n  hosts: [\"http://u:"+canary+"@h:9200\"]\ntoken of the run: "+canary+"-of-token\n-----BEGIN PRIVATE KEY-----\n"+canary+"\n-----END PRIVATE KEY-----\n")
	repo := commitRepo(t, "main")
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.True(t, r.URL.Path != "/debug/vars" || r.Header.Get("X-Scrape") == canary+"-of-scrape",
			"the header of --system-header did not arrive")
		fmt.Fprint(w, `{"count":0,"active":3,"status":"green","version":{"number":"8.19.0"}}`)
	}))
	defer outside.Close()
	withPassword := "http://u:" + canary + "@127.0.0.1:1/"
	server := startStandin(t, "apm", "--listen", "127.0.0.1:0")
	to := "apm+http://" + server.addr

	for _, tt := range []struct {
		name string
		code int // -1: 0 or 3
		args []string
	}{
		{"by reference", -1, []string{
			to, "--count", "80", "--secret-token", "env:CANARY_TOKEN", "--header", "X-One: env:CANARY_HEADER", "--header", "X-Two: file:" + file,
			"--index", outside.URL, "--index-user", "me", "--index-password", "file:" + file, "--index-wait", "50ms",
			"--system-vars", outside.URL + "/debug/vars", "--system-header", "X-Scrape=env:CANARY_SCRAPE",
		}},
		{"keys", -1, []string{to, "--count", "80", "--api-key", "env:CANARY_KEY", "--index", outside.URL, "--index-api-key", "env:CANARY_PASSWORD", "--index-wait", "50ms"}},
		{"in the report's own data", -1, []string{
			to, "--count", "80", "--secret-token", "env:CANARY_TOKEN", "--note", "token=" + canary, "--label", "db_password=" + canary, "--attach", attached,
		}},
		{"refused", 2, []string{"apm+http://127.0.0.1:" + freePort(t), "--count", "80", "--secret-token", "env:CANARY_TOKEN"}},
		{"a plain token", 2, []string{to, "--count", "80", "--secret-token", canary}},
		{"a plain key", 2, []string{to, "--count", "80", "--api-key", canary}},
		{"in the target", 2, []string{"apm+http://u:" + canary + "@" + server.addr, "--count", "80"}},
		{"in the target's query", 2, []string{to + "/?secret_token=" + canary, "--count", "80"}},
		{"in the store's address", 2, []string{to, "--count", "80", "--index", withPassword}},
		{"in the proxy's address", 2, []string{to, "--count", "80", "--proxy", withPassword}},
		{"in the address of variables", -1, []string{to, "--count", "80", "--system-vars", withPassword}},
		{"a plain header", 2, []string{to, "--count", "80", "--system-vars", outside.URL, "--system-header", "X=" + canary}},
		{"a login as a header", 2, []string{to, "--count", "80", "--header", "Authorization: Bearer " + canary}},
		{"plain environment", 2, []string{to, "--count", "80", "--system-cmd", "true", "--system-env", "SERVER_PASSWORD=" + canary}},
		{"a plain flag", 2, []string{to, "--count", "80", "--system-cmd", "true", "--system-flag", "output.password=" + canary}},
		{"a system that does not start", 2, []string{
			"apm+http://127.0.0.1:" + freePort(t), "--count", "80", "--system-cmd", "sh -c 'echo password=$S; echo token $0 >&2; exit 4' --password " + canary,
			"--system-env", "S=env:CANARY_ENV", "--system-flag", "secret=env:CANARY_FLAG",
		}},
		{"a build that fails", 2, []string{
			to, "--count", "80", "--system-cmd", "true", "--system-git", repo, "--system-build", "echo --password " + canary + "; exit 1",
		}},
		{"in the readiness address", 2, []string{
			"apm+http://127.0.0.1:" + freePort(t), "--count", "80", "--system-cmd", "sleep 60", "--system-ready", withPassword, "--system-ready-within", "100ms",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			s := begin(t, append([]string{"run", "--json-file", filepath.Join(dir, "report.json"), "--hdr", filepath.Join(dir, "run.hlog")}, tt.args...)...)
			e := s.wait(runTimeout)
			if tt.code < 0 {
				e.wantOneOf(t, 0, 3)
			} else {
				e.want(t, tt.code)
			}
			checkNoSecrets(t, s, e, dir)
		})
	}

	t.Run("a system that dies", func(t *testing.T) {
		dir, addr := t.TempDir(), "127.0.0.1:"+freePort(t)
		enough := filepath.Join(t.TempDir(), "enough")
		script := "echo token $TOKEN; " + program + " standin apm --listen " + addr + " --secret-token env:TOKEN & " +
			"while [ ! -e " + enough + " ]; do sleep 0.1; done; kill $!; echo the password is $TOKEN; echo and $0 $* >&2; exit 7"
		s := begin(t, "run", "apm+http://"+addr, "--rate", "1k/s", "--for", "30s", "--secret-token", "env:CANARY_ENV", "--json", "--json-file", filepath.Join(dir, "report.json"),
			"--system-cmd", "sh -c '"+script+"'", "--system-env", "TOKEN=env:CANARY_ENV", "--system-flag", "output.password=env:CANARY_FLAG", "--system-flag", "queue=100")
		s.awaitStderr(progressText)
		writeFile(t, enough, "")
		e := s.wait(runTimeout).want(t, 3)
		d := e.document(t)
		assert.True(t, d.System.Died && strings.Contains(d.System.Exit, "7") &&
			strings.Contains(strings.Join(d.System.LastLines, "\n"), "the password is"), "system %+v", d.System)
		flags, _ := d.System.Facts["flags"].(map[string]any)
		assert.True(t, flags["output.password"] == "env:CANARY_FLAG" && flags["queue"] == "100", "flags %v", flags)
		checkNoSecrets(t, s, e, dir)
	})
}
