package shell

import (
	"context"
	"io"
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
