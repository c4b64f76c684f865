package shell

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carronade/internal/serve/jobs"
	"carronade/test/testkit/assert"
)

// TestCompletions: commands, flags, reports, branches, topics, jobs and names, each where it belongs.
func TestCompletions(t *testing.T) {
	dir, _ := repository(t)
	git(t, dir, "branch", "feature")
	git(t, dir, "fetch", "-q", "axw")
	q := newFakeQueue()
	_, _, err := q.Submit(t.Context(), jobs.Request{User: "ann", Args: []string{"run"}})
	assert.OK(t, err)
	s := &session{ctx: t.Context(), work: t.Context(), names: names{
		"co": "apm switch -fcmv $", "ones": "test 30s 1 1 1 1", "do": "co ; ones",
	}, system: map[string]*server{"apm": {URL: localServer, Dir: dir}, "kafka": {URL: "kafka://b/t"}, "riemann": {}}}
	s.Options = Options{
		Queue: q, User: "ann", Commands: []string{"run", "report"},
		Complete: func(words []string) []string { return []string{"--rate", "of:" + strings.Join(words, " ")} },
		Run: func(_ context.Context, args []string, out io.Writer) int {
			switch args[0] {
			case "report":
				io.WriteString(out, `{"reports":[{"id":"k3xv2a9q"},{"id":"m2"}]}`)
			case "topics":
				io.WriteString(out, `{"topics":[{"name":"orders"},{"name":"of `+args[2]+`"}]}`)
			}
			return 0
		},
	}
	branches := []string{"axw/", "axw/master", "axw/trace-apm-server", "feature", "master"}
	for _, tt := range []struct {
		name, line string
		want       []string // those that begin with the last word
	}{
		{"commands", "re", []string{"report"}},
		{"names", "o", []string{"ones"}},
		{"after a separator", "status ; re", []string{"report"}},
		{"words of a system", "apm s", []string{"switch"}},
		{"places of a system", "apm use l", []string{"last", "local"}},
		{"flags of a system", "kafka use --", []string{"--cmd", "--make", "--url"}},
		{"branches", "apm switch -cm ", branches},
		{"branches of a remote", "apm switch axw/t", []string{"axw/trace-apm-server"}},
		{"a revision", "apm switch master ", nil},
		{"branches of a system without a folder", "kafka switch ", nil},
		{"a branch for a name", "co f", []string{"feature"}},
		{"a branch for the last placeholder", "do ; do master axw/t", []string{"axw/trace-apm-server"}},
		{"reports", "report show k", []string{"k3xv2a9q"}},
		{"the newest report", "report open l", []string{"last"}},
		{"flags", "report show --r", []string{"--rate"}},
		{"a subcommand", "report o", []string{"of:report o"}},
		{"topics", "run kafka://b:1/or", []string{"kafka://b:1/orders"}},
		{"topics to use", "kafka use kafka://b:1/of", []string{"kafka://b:1/of kafka://b:1"}},
		{"topics of nothing", "run kafka:///o", nil},
		{"a system in use", "run k", []string{"kafka"}},
		{"jobs", "cancel ", []string{"1"}},
		{"definitions", "define rm d", []string{"do"}},
		{"a definition", "define r", []string{"rm"}},
		{"Elasticsearch", "elasticsearch use l", []string{"last", "local"}},
		{"flags of a server", "test 30s 1 1 1 1 -", []string{"--mem", "-E"}},
		{"an open quote", "run 'kaf", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begin := strings.LastIndexByte(tt.line, ' ') + 1
			got := s.completions(t.Context(), tt.line[:begin], tt.line[begin:])
			got = slices.DeleteFunc(got, func(c string) bool { return !strings.HasPrefix(c, tt.line[begin:]) })
			slices.Sort(got)
			assert.True(t, slices.Equal(got, tt.want), "%q: got %q, want %q", tt.line, got, tt.want)
		})
	}
}

// TestTab: one completion is typed, several are shown, and the line stays.
func TestTab(t *testing.T) {
	d := talkOnTerminal(t, Options{Queue: newFakeQueue()})
	d.send("define tens test 30s 10 10 10 1\r")
	d.until("ok")
	d.until(promptText)
	d.send("te\t")
	d.until("  tens test\r\n")
	d.until(promptText + "te")
	d.send("n\t\x15elasticsearch u\tx\x15")
	d.until("s ") // the rest of tens
	d.until("elasticsearch u")
	d.until("se x")
	d.send("run \x1b[31m\t\x15quit\r")
	d.until("bye!")
	assert.OK(t, d.end())
}

// Options may come before the variable, as in the tool's own example: collate -n 1 concurrency.
func TestCollateOptionsFirst(t *testing.T) {
	var ran string
	d := talk(t, Options{Queue: newFakeQueue(), Run: runPrinting(`{"variable":"concurrency","groups":[],"notes":["none"]}`, &ran)})
	d.do("collate -n 1 --sort efficiency concurrency branch=master request_size>1000")
	assert.Equal(t, ran, "collate concurrency -n 1 --sort efficiency branch=master target.request.bytes>1000 --filter-starts --json --all", "command")
	wants(t, d.do("collate -n 1"), "<variable> argument is required\n")
	wants(t, d.do("collate --csv events=1"), "<variable> argument is required\n")
}

// A group of branches has no revision, limit is -1 without one, and cells are cut to their columns.
func TestCollateLikeTool(t *testing.T) {
	of := func(name, value string) map[string]string { return map[string]string{"name": name, "value": value} }
	table := func(variable string, rows ...map[string]any) string {
		data := assert.Value(json.Marshal(map[string]any{"variable": variable, "groups": []any{map[string]any{
			"equal": []any{of("branch", "master"), of("revision", "c961d66"), of("events", "1")}, "rows": rows,
		}}}))(t)
		var ran string
		return talk(t, Options{Queue: newFakeQueue(), Run: runPrinting(string(data), &ran)}).do("collate limit")
	}
	got := table("branch", map[string]any{"text": "master", "reports": []string{"v5yruht0"}})
	assert.True(t, strings.HasPrefix(got, "events 1\nreport id"), "%s", got)
	got = table("system-mem", map[string]any{"text": "none", "reports": []string{"v5yruht0"}}, map[string]any{"text": "3.73GiB", "value": 4e9, "reports": []string{"a", "b", "c", "d"}, "untrusted": 4, "noisy": 4})
	assert.Has(t, got, "  effic  limit\n", "  -1\n", "  4000000000\n", "\na!4~4      -  ")
	got = table("events", map[string]any{"text": "1", "reports": []string{"v5yruht0"}, "measured": map[string]any{"pushed": map[string]any{"median": 7.5e6}, "service_mean": map[string]any{"median": 123456.789}}})
	assert.Has(t, got, "-               7.5Mbps    -           -           1234567  -    ")
}

// status shows what is tested now, and no branch after a switch that failed; a branch that does not
// exist is an error.
func TestSwitchStatus(t *testing.T) {
	dir, revision := repository(t)
	q := newFakeQueue()
	d := talk(t, Options{Queue: q})
	d.do("apm use " + dir)
	assert.Has(t, d.do("apm switch nosuch"), "the repository has no branch nosuch")
	assert.Has(t, d.do("status"), "unknown branch (hint: apm switch <branch>)")
	assert.Has(t, d.do("apm switch master"), dir+": master, ")
	d.do("apm switch -fcm axw/trace-apm-server " + revision)
	assert.Has(t, d.do("status"), "Using "+dir+": master, ")
	assert.Has(t, d.do("test 30s 1 1 1 1"), "(queued)")
	q.end(1, jobs.Done, 0, "")
	assert.Has(t, d.do("status"), "Using "+dir+": trace-apm-server, ")
	q.end(2, jobs.Done, 0, "")
	d.do("apm switch -fcm axw/trace-apm-server " + revision)
	q.end(3, jobs.Done, 2, "")
	assert.Has(t, d.until(promptText), "job 3 ended with exit code 2\n")
	assert.Has(t, d.do("status"), "Using "+dir+": unknown branch (hint: apm switch <branch>)")
	assert.Has(t, d.do("test 30s 1 1 1 1"), "unknown branch/revision")
}

// cancel answers ok, and with an id the remaining commands, as in the tool.
func TestCancelLikeTool(t *testing.T) {
	q := newFakeQueue()
	d := talk(t, Options{Queue: q, User: "ann"})
	wants(t, d.do("cancel"), "ok\n")
	wants(t, d.do("cancel 123456"), "0 commands queued\n")
	d.do("apm use http://127.0.0.1:1 ; test 30s 1 1 1 1 ; test 30s 2 2 2 2 ; test 30s 2 2 2 2")
	got := d.do("cancel " + ID("test 30s 2 2 2 2"))
	assert.Has(t, got, "0 commands queued\n")
	assert.True(t, !strings.Contains(got, "ok\n"), "%s", got)
}

// dump with only a name writes into the folder of the session.
func TestDumpInFolder(t *testing.T) {
	var ran string
	dir := t.TempDir()
	o := Options{Queue: newFakeQueue(), Dir: dir, Allow: &Permit{Folders: []string{t.TempDir()}}, Run: runPrinting("2.8kb written to disk\n", &ran)}
	assert.Has(t, talk(t, o).do("dump body.json 1 1 1"), "written to disk")
	assert.Equal(t, ran, "as hey-apm dump "+filepath.Join(dir, "body.json")+" 1 1 1", "command")
	for _, name := range []string{"../x", "..", ".", "/etc/x"} {
		ran = ""
		assert.Has(t, talk(t, o).do("dump "+name+" 1 1 1"), "this session may use only folders in ")
		assert.Equal(t, ran, "", "command")
	}
}

// Hints name commands as the shell has them.
func TestHintsHere(t *testing.T) {
	var ran string
	o := Options{Queue: newFakeQueue(), Commands: []string{"report"}, Run: runPrinting("error: there are no reports\nhint: carronade run stores a report of every run\n", &ran)}
	assert.Has(t, talk(t, o).do("report list"), "\nhint: run stores a report of every run\n")
}
