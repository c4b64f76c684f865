package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"carronade/internal/serve/jobs"
	"carronade/test/testkit/assert"
)

// TestCtrlC: it ends a command that waits and leaves the jobs running. At the prompt it cancels them.
func TestCtrlC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it fails if a goroutine is left
		q := newFakeQueue()
		d := talkOnTerminal(t, Options{Queue: q, Run: func(ctx context.Context, _ []string, _ io.Writer) int {
			<-ctx.Done()
			return 130
		}})
		state := func() jobs.State {
			q.mu.Lock()
			defer q.mu.Unlock()
			return q.find(1).State
		}
		typeKeys := func(keys string) {
			t.Helper()
			d.send(keys)
			synctest.Wait()
		}
		typeKeys("run null://\r")
		d.until(promptText)
		typeKeys("wait ; nonsense\r")
		typeKeys("typed ahead\r\x03")
		d.until("interrupted (hint: the jobs go on; cancel stops them)")
		d.until(promptText)
		typeKeys("version ; status\r")
		typeKeys("\x03")
		d.until(promptText)
		if s := d.transcript(); state() != jobs.Running || strings.Contains(s, "queued") || strings.Contains(s, "nothing done") {
			t.Errorf("the job is %s, and the session wrote %q", state(), s)
		}
		q.print(1, "more\n") // it is still attached
		d.until("more")
		typeKeys("not finished\x03")
		d.until("job 1 cancelled")
		assert.Equal(t, state(), jobs.Cancelled, "the job")
		typeKeys("wait\r") // for nothing
		typeKeys("quit\r")
		d.until("bye!")
		err := d.end()
		assert.True(t, err == nil, "%v", err)
	})
}

func TestKeys(t *testing.T) {
	k := newKeys(strings.NewReader(""))
	typed := func(text string) {
		for _, b := range []byte(text) {
			k.put(b)
		}
	}
	read := func(want string) {
		t.Helper()
		buf := make([]byte, 100)
		n, err := k.Read(buf)
		assert.True(t, string(buf[:n]) == want && err == nil, "got %q and %v, want %q", buf[:n], err, want)
	}
	typed("one\rtwo\r\nthree")
	read("one\r")
	read("two\r\n")
	read("three")
	typed("four")
	k.cancel() // the editor may have got a part of the line
	read("\x15cancel\r")
	ended := 0
	k.cancel() // before the command has begun
	k.during(func() { ended++ })
	k.cancel()
	assert.Equal(t, ended, 2, "how often the command was ended")
	k.ask(true)
	typed("yes")
	read("yes")
	k.cancel()
	if read("\x15\r"); ended != 3 {
		t.Errorf("the question did not end the command")
	}
	k.ask(false)
	k.during(nil)
	typed("last")
	k.end(io.EOF)
	read("last")
	_, err := k.Read(make([]byte, 1))
	assert.True(t, errors.Is(err, io.EOF), "got %v", err)
}

// A session over a network runs no programs of its choice and sees no files but in its folders.
func TestPermit(t *testing.T) {
	dir, _ := repository(t)
	q := newFakeQueue()
	d := talk(t, Options{Queue: q, Allow: &Permit{Folders: []string{filepath.Dir(dir)}}})
	assert.Has(t, d.do("apm use /etc"), "this session may use only folders in ")
	assert.Has(t, d.do("apm use /missing"), "this session may use only folders in ")
	assert.Has(t, d.do("apm use "+dir+" --cmd 'rm -rf /'"), "this session may not choose commands of this machine")
	assert.Has(t, d.do("apm use "+dir+" --url http://"+closedPort(t)), "using "+dir)
	for _, line := range []string{"run null:// --system-cmd x", "find null://", "report list --store /etc/passwd", "report export last", "scenario x.js"} {
		assert.Has(t, d.do(line), "this session may not run ")
	}
	assert.Has(t, d.do("verify branch=x --confirm 'rm -rf /'"), "--confirm is not allowed here")
	assert.Has(t, d.do("collate branch --pictures /tmp"), "--pictures is not allowed here")
	assert.Has(t, d.do("dump /etc/x 1 2 3"), "this session may use only folders in ")
	assert.Has(t, d.do("report list branch=x"), "ran report list branch=x")
	assert.Has(t, d.do("apm switch master"), "using "+dir+": master, ")
	assert.Has(t, d.do("test 30s 1 2 3 4 -E x=file:/etc/passwd"), "this session may not read files")
	assert.OK(t, os.Symlink("/etc", filepath.Join(filepath.Dir(dir), "link")))
	assert.Has(t, d.do("apm use "+filepath.Join(filepath.Dir(dir), "link")), "this session may use only folders in ")
	assert.True(t, len(q.args()) == 0, "jobs %q", q.args())
}

// A session over a network does not use what another session of its user was allowed.
func TestPermitOfSettings(t *testing.T) {
	dir, _ := repository(t)
	home := t.TempDir()
	local := talk(t, Options{Queue: newFakeQueue(), Home: home})
	assert.Has(t, local.do("apm use "+dir+" --cmd 'rm -rf /'"), "using "+dir)
	remote := talk(t, Options{Queue: newFakeQueue(), Home: home, Allow: &Permit{Folders: []string{dir}}})
	assert.Has(t, remote.do("status"), "ApmServer not configured")
	assert.Has(t, remote.do("apm use last"), "this session may not choose commands of this machine")
	assert.Has(t, remote.do("apm use docker"), "this session may not choose commands of this machine")
	local.do("apm use " + t.TempDir())
	remote = talk(t, Options{Queue: newFakeQueue(), Home: home, Allow: &Permit{Folders: []string{dir}}})
	assert.Has(t, remote.do("status"), "ApmServer not configured")
	assert.Has(t, remote.do("apm use last"), "this session may use only folders in ")
}

// With docker the image of the repository is built and run, with a memory limit.
func TestDocker(t *testing.T) {
	dir, revision := repository(t)
	bin := t.TempDir()
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	q := newFakeQueue()
	d := talk(t, Options{Queue: q})
	write(t, filepath.Join(bin, "docker"), "#!/bin/sh\necho Cannot connect to the daemon >&2\nexit 1\n")
	assert.OK(t, os.Chmod(filepath.Join(bin, "docker"), 0o755))
	assert.Has(t, d.do("apm use docker "+dir), "apm use docker: the daemon does not answer: Cannot connect to the daemon (hint: start docker, or apm use <dir>)")
	write(t, filepath.Join(bin, "docker"), "#!/bin/sh\necho 27\n")
	wants(t, d.do("apm use docker "+dir), "using docker\n")
	assert.Has(t, d.do("status"), "Using docker: unknown branch (hint: apm switch <branch>)\n")
	d.do("apm switch -v axw/trace-apm-server " + revision)
	d.do("test 30s 1 2 3 4 -E a.b=c")
	d.do("test 30s 1 2 3 4 --mem 2g")
	got := q.args()
	wants(t, got[0], "system build "+dir+" --branch trace-apm-server --fetch axw --make 'docker build -t {image} .' --checkout "+revision+" -v")
	assert.Has(t, got[1], " -system-git "+dir+" -system-branch trace-apm-server -system-checkout "+revision+" -system-build 'docker build -t {image} .'"+
		" -system-image {image} -system-publish 127.0.0.1:8200:8200 -system-arg ./apm-server -system-arg -e -system-arg -E -system-arg apm-server.host=0.0.0.0:8200 -system-log ",
		" test 30s 1 2 3 4 -E a.b=c --mem 4g")
	assert.True(t, strings.HasSuffix(got[2], " test 30s 1 2 3 4 --mem 2g"), "job %s", got[2])
}

// A terminal edits lines, asks for a password without showing it, and does not remember it.
func TestTerminal(t *testing.T) {
	es := elasticsearch(t, "pw1")
	d := talkOnTerminal(t, Options{Queue: newFakeQueue(), Commands: []string{"run"}})
	d.send("elasticsearch use " + es.url + " elastic\r")
	d.until("password: ")
	d.send("pw1\r")
	d.until("using " + es.url)
	d.until(promptText)
	d.send("elasticsearch use " + es.url + " elastic pw1\r")
	d.until("using ")
	d.until(promptText)
	d.send("stat\t\r")
	d.until("ElasticSearch [" + es.url + "]: yellow")
	d.until(promptText)
	d.send("\x1b[A\x1b[A") // the line before the last is the first one, without a password
	d.until("status")
	d.until("elasticsearch use " + es.url + " elastic")
	d.send("\x04\x15quit\r")
	d.until("bye!")
	assert.OK(t, d.end())
	if n := strings.Count(d.transcript(), "pw1"); n != 1 { // only as it was typed
		t.Errorf("the password was shown %d times: %q", n, d.transcript())
	}
}

// The definitions of the tool's document.
var documented = names{"co": "apm switch -fcmv $", "ones": "test 30s 1 1 1 1", "tens": "test 30s 10 10 10 1", "do": "co ; ones ; tens"}

func TestParse(t *testing.T) {
	long := names{"a": "b b", "b": "c c", "c": "d d", "d": "e e", "e": "f f", "f": "g g", "g": "x"}
	for _, c := range []struct {
		name  string
		names names
		line  string
		want  [][]string
		err   string
	}{
		{"the document's", documented, "do ; do master axw/trace-apm-server", [][]string{
			{"apm", "switch", "-fcmv", "master"},
			{"test", "30s", "1", "1", "1", "1"},
			{"test", "30s", "10", "10", "10", "1"},
			{"apm", "switch", "-fcmv", "axw/trace-apm-server"},
			{"test", "30s", "1", "1", "1", "1"},
			{"test", "30s", "10", "10", "10", "1"},
		}, ""},
		{"nothing", nil, "  ", nil, ""},
		{"two commands", nil, "status ; help", [][]string{{"status"}, {"help"}}, ""},
		{"a semicolon without blanks", nil, "a; b;c", [][]string{{"a;", "b;c"}}, ""},
		{"empty commands", nil, "; ; a ; ; b ;", [][]string{{"a"}, {"b"}}, ""},
		{"a name in any place", names{"big": "10 10"}, "test 30s big big 1", [][]string{{"test", "30s", "10", "10", "10", "10", "1"}}, ""},
		{"only whole words", names{"one": "1"}, "ones one", [][]string{{"ones", "1"}}, ""},
		{"two variables", names{"x": "a $ ; b $"}, "x 1 2", [][]string{{"a", "1"}, {"b", "2"}}, ""},
		{"words before the values stay", names{"x": "a $ ; b"}, "x y 1", [][]string{{"a", "1"}, {"b", "y"}}, ""},
		{"no value", names{"x": "a $"}, "x", nil, "too many variables"},
		{"values must come after the last one", names{"x": "a $ b $"}, "x 1", nil, "too many variables"},
		{"a variable without a name", nil, "apm switch $ master", [][]string{{"apm", "switch", "master"}}, ""},
		{"a name that means another, which means it", names{"a": "b", "b": "a"}, "a", nil, "too many substitutions (recursive definition?)"},
		{"too many, but not for ever", long, "a a", nil, "too many substitutions (recursive definition?)"},
		{"define in the middle", nil, "status ; define a b", nil, "define can only be the first word in a line"},
		{"a word that begins with define", nil, "defined", [][]string{{"defined"}}, ""},
		{"quotes", documented, `run 'a b' "c \"d\" \\" ones';' '$' "do" 'define'`, [][]string{{"run", "a b", `c "d" \`, "ones;", "$", "do", "define"}}, ""},
		{"an empty word", nil, `define2 ''`, [][]string{{"define2", ""}}, ""},
		{"a backslash", nil, `a\ b '\n'`, [][]string{{`a\`, "b", `\n`}}, ""},
		{"an open quote", nil, `status 'a`, nil, "a quote is not closed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := c.names.parse(c.line)
			assert.Must(t, fmt.Sprint(err) == c.err || err == nil && c.err == "", "error %v, want %q", err, c.err)
			assert.True(t, reflect.DeepEqual(got, c.want), "commands %q, want %q", got, c.want)
		})
	}
}

func TestLines(t *testing.T) {
	for _, c := range []struct{ name, sent, want string }{
		{"LF, CR LF, CR NUL, CR", "a\nb\r\nc\r\x00d\re", "a|b|c|d|e|EOF"},
		{"empty lines", "\n\r\n\r\x00\r\rx\n", "||||" + "|x|EOF"},
		{"telnet", "\xff\xfd\x03\xff\xfa\x18\x00xterm\xff\xffz\xff\xf0he\xff\xf1lp\r\n", "help|EOF"},
		{"a telnet byte that is data", "a\xff\xffb\n", `the line has characters that are not text: a\xffb|EOF`},
		{"arrow keys", "a\x1b[A\nb\n", `the line has characters that are not text: a\x1b[A|b|EOF`},
		{"text that turns around", "a\u202eb\n", `the line has characters that are not text: a\u202eb|EOF`},
		{"other letters", "définir ä\t日本\n", "définir ä\t日本|EOF"},
		{"the longest", strings.Repeat("x", MaxLine) + "\n", strings.Repeat("x", MaxLine) + "|EOF"},
		{"too long", strings.Repeat("x", MaxLine+1) + "\nb\n", errLong.Error() + "|b|EOF"},
		{"a web page", "POST / HTTP/1.1\r\nHost: x\r\n\r\nquit\n", errHTTP.Error()},
		{"a web page with a long address", "GET /" + strings.Repeat("x", 2*MaxLine) + " HTTP/1.1\r\n", errHTTP.Error()},
		{"no web page", "GET ready\n", "GET ready|EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLineReader(strings.NewReader(c.sent))
			var got []string
			for {
				line, err := l.next()
				switch {
				case errors.Is(err, io.EOF):
					got = append(got, "EOF")
				case err != nil:
					got = append(got, err.Error())
				default:
					got = append(got, line)
				}
				if errors.Is(err, io.EOF) || errors.Is(err, errHTTP) {
					break
				}
			}
			assert.Equal(t, strings.Join(got, "|"), c.want, "lines")
		})
	}
}

// FuzzLines: whatever is sent, lines are text and not too long, and the reader ends.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"a\r\nb", "\xff\xfa\x01\xff\xf0x", "GET / HTTP/1.0\n", "\xff", "\r\x00\x00", "\x16\x03\x01"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		l := newLineReader(strings.NewReader(string(sent)))
		for range len(sent) + 2 {
			line, err := l.next()
			assert.Must(t, err != nil || len(line) <= MaxLine && isText(line) && !strings.ContainsAny(line, "\r\n\x00\x1b"),
				"line %q", line)
			assert.Must(t, err == nil || isText(err.Error()), "error %q", err)
			if errors.Is(err, io.EOF) || errors.Is(err, errHTTP) {
				return
			}
		}
		t.Fatal("the reader does not end")
	})
}

// Parsing ends, quote is the inverse of split, and a definition that was accepted parses again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"do ; do master x", "a $ $ 1 2", `'a b' "c\"d"`, "define x y $ ; z", "a ; define b", "''", `"\`} {
		f.Add(s, "y $ ; z")
	}
	f.Fuzz(func(t *testing.T, line, definition string) {
		if ws, err := split(line); err == nil {
			again, err := split(quote(ws))
			assert.Must(t, err == nil && reflect.DeepEqual(texts(again), texts(ws)), "split(%q) = %q, again %q, %v", line, texts(ws), texts(again), err)
			for i := range ws {
				special := ws[i].is(separator) || ws[i].is(placeholder)
				assert.Must(t, special == (again[i].is(separator) || again[i].is(placeholder)), "%q: word %d changed its meaning", line, i)
			}
		}
		n := names{"do": "x ; do2", "do2": "$"}
		if ws, err := split(definition); err == nil && len(ws) > 0 {
			if _, err := n.set("y", ws); err == nil {
				assert.Value(split(n["y"]))(t, "the definition %q", n["y"])
			}
		}
		commands, _, _ := n.parse(line)
		for _, c := range commands {
			assert.Must(t, len(c) != 0, "%q: an empty command", line)
		}
	})
}

// FuzzPrintable: the result can be printed, and what can be printed stays.
func FuzzPrintable(f *testing.F) {
	f.Add("a\x1b[31m\x9b\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		p := Printable(s)
		assert.Must(t, isText(p) && !strings.Contains(p, "\t"), "Printable(%q) = %q", s, p)
		c := cleaner{to: func(text string) {
			assert.Must(t, isText(strings.ReplaceAll(text, "\n", "")), "cleaned %q: %q", s, text)
		}}
		c.Write([]byte(s))
		c.end()
	})
}

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

// status shows what is tested now, and no branch after a switch that failed; a branch that does not exist is an error.
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
