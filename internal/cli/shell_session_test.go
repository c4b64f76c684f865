package cli_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// startShell begins a session with a real server and a real repository, whose system is
// a stand-in with some flags. It returns the repository and the server's address.
func startShell(t *testing.T, flags string) (d *typist, repo, address string) {
	t.Helper()
	testkit.Need(t, "minutes: it runs loads")
	exe := assert.Value(exec.LookPath("carronade"))(t)
	dir := t.TempDir()
	address, repo = freeAddress(t), filepath.Join(dir, "apm-server")
	for name, text := range map[string]string{
		"server.sh": "#!/bin/sh\nexec carronade standin apm --listen " + address + " " + flags + "\n",
		"Makefile":  "all:\n\tcp server.sh apm-server\n\tchmod +x apm-server\n\techo made\n",
	} {
		assert.OK(t, errors.Join(os.MkdirAll(repo, 0o755), os.WriteFile(filepath.Join(repo, name), []byte(text), 0o644)))
	}
	fork, author := filepath.Join(dir, "fork"), []string{"-c", "user.name=a", "-c", "user.email=a@b"}
	for _, args := range [][]string{
		{"init", "-q", "-b", "master"},
		{"add", "."},
		append(author, "commit", "-q", "-m", "serve"),
		{"clone", "-q", repo, fork},
		{"-C", fork, "checkout", "-q", "-b", "trace-apm-server"},
		append(append([]string{"-C", fork}, author...), "commit", "-q", "--allow-empty", "-m", "trace"),
		{"remote", "add", "axw", fork},
		{"remote", "add", "origin", repo},
	} {
		out, err := exec.CommandContext(t.Context(), testkit.Program(t, "git"), append([]string{"-C", repo}, args...)...).CombinedOutput()
		assert.OK(t, err, "git %v: %s", args, out)
	}
	server := exec.Command(exe, "serve", "--text-port", "0", "--http-port", "0", "--allow-build", repo)
	server.Env = append(os.Environ(), "XDG_DATA_HOME="+filepath.Join(dir, "data"), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "CARRONADE_TEST_UNTRUSTED=none", "NO_COLOR=1")
	server.Stderr = os.Stderr
	out := assert.Value(server.StdoutPipe())(t)
	assert.OK(t, server.Start())
	t.Cleanup(func() {
		err := errors.Join(server.Process.Signal(syscall.SIGTERM), server.Wait())
		assert.True(t, err == nil, "%v", err)
	})
	var port string
	assert.Value(fmt.Fscanf(out, "listening on %s for the shell\n", &port))(t)
	go io.Copy(io.Discard, out)
	conn := assert.Value(net.Dial("tcp", port))(t)
	d = newTypist(t, conn)
	d.expect("type 'help' for help\n>>> ")
	return d, repo, address
}

// TestShellSession types a session as hey-apm's users did.
func TestShellSession(t *testing.T) {
	t.Parallel()
	d, repo, address := startShell(t, "")
	d.enter("apm use "+repo+" --url http://"+address, "using "+repo+"\n>>> ")
	d.enter("status", "ApmServer [http://"+address+"]: not running\nUsing "+repo+": unknown branch (hint: apm switch <branch>)\n0 commands queued\n>>> ")
	d.enter("apm switch -cmv master", "made\n", "branch    master\n", "build     took ")
	d.enter("define t test 1s 1 2 3 $")
	d.enter("t ; t ; t 1 2 4", "started new work, payload size is ", "on branch master , cmd = [1s 1 2 3 1]\n", " responses (100.00%)", "(max RSS)\n", "saving report\n",
		"cmd = [1s 1 2 3 2]", "saving report\n", "cmd = [1s 1 2 3 4]", "saving report\n", ">>> ")
	d.enter("status", ": master, ", " serve\n0 commands queued\n")
	d.enter("apm tail -n 2", "connections, ", "[time now ")
	d.enter("report log --build", "cp server.sh apm-server\n", "made\n", ">>> ") // of the switch: the tests found it built
	d.enter("collate concurrency", "duration 1s  events 1  spans 2  frames 3  branch master  revision ", "report id  revision date   pushed", "  1\n", "  2\n", "  4\n", ">>> ")
	d.enter("verify -n 168h branch=master duration=1s events=1 spans=2 frames=3 concurrency=1 limit=-1", "too little history")
	d.enter("apm switch -fcm axw/trace-apm-server ; test 1s 1 2 3 1", "branch    trace-apm-server\n", "on branch trace-apm-server , cmd = [1s 1 2 3 1]\n", "saving report\n", ">>> ")
	d.enter("status", ": trace-apm-server, ", " trace\n0 commands queued\n")
	d.enter("collate branch concurrency=1", "  concurrency 1\n", "  master", "  trace-apm-server")
	d.enter("test 1m 1 2 3 4", "started new work")
	d.enter("cancel", "ok\n", "work cancelled")
	d.quit()
}

// A typist types lines and reads answers.
type typist struct {
	t      *testing.T
	conn   io.ReadWriteCloser
	text   chan string
	read   string // so far, after the last text that was expected
	before string // what came before that
}

func newTypist(t *testing.T, conn io.ReadWriteCloser) *typist {
	d := &typist{t: t, conn: conn, text: make(chan string, 1000)}
	t.Cleanup(func() { conn.Close() })
	go func() {
		defer close(d.text)
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if n > 0 {
				d.text <- string(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	return d
}

func (d *typist) quit() {
	d.t.Helper()
	d.enter("quit", "bye!\n")
	_, open := <-d.text
	assert.True(d.t, !open, "the session goes on")
}

func (d *typist) enter(line string, texts ...string) {
	d.t.Helper()
	d.keys(line+"\n", texts...)
}

func (d *typist) keys(keys string, texts ...string) {
	d.t.Helper()
	assert.Value(io.WriteString(d.conn, keys))(d.t)
	for _, text := range texts {
		d.expect(text)
	}
}

func (d *typist) expect(text string) {
	d.t.Helper()
	d.await(fmt.Sprintf("%q", text), func() (begin, end int) { at := strings.Index(d.read, text); return at, at + len(text) })
}

// await reads until find finds something in what was read.
func (d *typist) await(what string, find func() (begin, end int)) {
	d.t.Helper()
	timeout := time.After(2 * time.Minute)
	for {
		if begin, end := find(); begin >= 0 {
			d.before, d.read = d.read[:begin], d.read[end:]
			return
		}
		select {
		case more, ok := <-d.text:
			if ok {
				d.read += more
				continue
			}
			d.t.Fatalf("the session ended before %s; it wrote %q", what, d.read)
		case <-timeout:
			d.t.Fatalf("no %s after two minutes; the session wrote %q", what, d.read)
		}
	}
}

// amount is a number in an answer, and volume one in the words of the tool: 1.6Mb.
const (
	amount = `[0-9]+(\.[0-9]+)?`
	volume = `([0-9]+\.[0-9][kMG]b|[0-9]+ b)`
)

func testAnswer(branch, cmd string) *regexp.Regexp {
	return regexp.MustCompile(`started new work, payload size is ` + volume + `\.\.\.
(warning: .*
)?on branch ` + branch + ` , cmd = \[` + cmd + `\]

pushed ` + volume + ` / sec , accepted ` + volume + ` / sec
http://\S+ 0
  \[202\]\t[0-9]+ responses \(100\.00%\) ?
  total\t[0-9]+ responses \(` + amount + ` rps\)

[0-9]+ docs indexed \(` + amount + ` / sec\)  \(100\.00% of expected\)
` + amount + ` ms / request
` + volume + ` \(max RSS\)
` + amount + ` memory efficiency \(accepted data volume per minute / memory used\)
saving report
report indexed in elasticsearch
`)
}

// collateHead is the second line of a group of collate.
const collateHead = "report id  revision date   pushed     accepted    throughput  latency  index  max rss  effic  "

func collateRow(value string) string {
	return `[a-z0-9]{8}   [0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}  ` + volume + `ps +` + volume + `ps +` + amount + `dps +` + amount + `ms +100\.0% +` + volume + ` +` + amount + ` +` + value + `\n`
}

// TestShellElasticsearch types the session of hey-apm's document with a real Elasticsearch or OpenSearch: a
// server that traces itself answers late, so that it accepts less.
func TestShellElasticsearch(t *testing.T) {
	t.Parallel()
	testkit.OnlyConformance(t, "a real Elasticsearch or OpenSearch: TestShellSession has a session without a store")
	node := testkit.StartSearch(t, os.Getenv(testkit.SearchVariable)) // "": OpenSearch
	d, repo, address := startShell(t, "--index "+node.URL+` --delay $(case "$*" in *tracing.enabled=true*) echo 600ms;; *) echo 250ms;; esac)`)
	revision := func(remote, branch string) string {
		t.Helper()
		out := assert.Value(exec.CommandContext(t.Context(), "git", "-C", repo, "ls-remote", remote, "refs/heads/"+branch).Output())(t)
		return strings.Fields(string(out))[0]
	}
	es, apm := node.URL, "http://"+address
	if local(t, node.URL) {
		es = "http://localhost:9200"
		d.enter("elasticsearch use local", "using "+es+"\n>>> ")
	} else {
		d.enter("elasticsearch use "+es, "using "+es+"\n>>> ")
	}
	d.enter("apm use "+repo+" --url "+apm, "using "+repo+"\n>>> ")
	d.enter("status", "ElasticSearch ["+es+"]: ", " ,  0 docs\n"+
		"ApmServer ["+apm+"]: not running\n"+
		"Using "+repo+": unknown branch (hint: apm switch <branch>)\n"+
		"0 commands queued\n>>> ")

	// A revision of a branch of a remote, with the output of its build.
	traced := revision("axw", "trace-apm-server")
	d.enter("apm switch -fcmv axw/trace-apm-server "+traced, "made\n", "branch    trace-apm-server\n", ">>> ")
	d.enter("status", "Using "+repo+": trace-apm-server, "+traced[:7]+" trace\n0 commands queued\n>>> ")
	d.enter("test 1s 1 2 3 4 -E apm-server.tracing.enabled=true")
	d.expectMatch(testAnswer("trace-apm-server", "1s 1 2 3 4"))
	for _, test := range []string{"1 -E apm-server.tracing.enabled=false", "1 -E apm-server.tracing.enabled=true", "20 -E apm-server.tracing.enabled=false", "20 -E apm-server.tracing.enabled=true"} {
		d.enter("test 1s 10 10 10 " + test)
	}
	for _, concurrency := range []string{"1", "1", "20", "20"} {
		d.expectMatch(testAnswer("trace-apm-server", "1s 10 10 10 "+concurrency))
	}
	d.expect(">>> ")
	d.enter("collate apm-server.tracing.enabled branch=trace-apm-server events=10")
	for _, concurrency := range []string{"20", "1"} {
		d.expectMatch(regexp.MustCompile(`(^|\n)duration 1s  events 10  spans 10  frames 10  concurrency ` + concurrency + `  branch trace-apm-server  revision ` + traced + "\n" +
			collateHead + "apm-server\\.tracing\\.enabled\n" + collateRow("false") + collateRow("true") + "([a-z0-9]{8} is ahead, unproven: |\n)"))
	}
	d.expect(">>> ")

	// The names of the document, for two branches.
	d.enter("define co apm switch -fcmv $", "ok\n>>> ")
	d.enter("define ones test 1s 1 1 1 1", "ok\n>>> ")
	d.enter("define tens test 1s 10 10 10 1", "ok\n>>> ")
	d.enter("define do co ; ones ; tens", "ok\n>>> ")
	d.enter("do ; do master axw/trace-apm-server", "(queued) position 2, job ", "(queued) position 6, job ")
	d.enter("status", " commands queued\n", "  [test 1s 10 10 10 1]\n")
	for _, branch := range []string{"master", "trace-apm-server"} {
		d.expect("branch    " + branch + "\n")
		d.expectMatch(testAnswer(branch, "1s 1 1 1 1"))
		d.expectMatch(testAnswer(branch, "1s 10 10 10 1"))
	}
	d.expect(">>> ")
	d.enter("collate branch branch=trace-apm-server events=10 concurrency=1")
	d.expectMatch(regexp.MustCompile(`(^|\n)duration 1s  events 10  spans 10  frames 10  concurrency 1\n` + collateHead + "branch\n(" + collateRow("(master|trace-apm-server)") + "){2}"))
	d.enter("collate revision branch=master --sort revision_date", "revision\n", revision(".", "master"))
	d.enter("verify -n 168h branch=master duration=1s events=10 spans=10 frames=10 concurrency=1 limit=-1", "too little history", ">>> ")

	d.enter("elasticsearch reset", "delete all indices apm-* of "+es+" (now ", "? yes or no: ")
	d.enter("yes", "deleted ", " docs\n", ">>> ")
	d.enter("status", " ,  0 docs\n")
	d.enter("collate concurrency", "  1\n") // reports are not deleted
	d.quit()
}

// local passes on what comes to the usual port of Elasticsearch, if that is free.
func local(t *testing.T, url string) bool {
	l, err := net.Listen("tcp", "127.0.0.1:9200")
	if err != nil {
		return false
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				conn.Close()
				continue
			}
			for _, c := range [][2]net.Conn{{conn, to}, {to, conn}} {
				go func() {
					io.Copy(c[0], c[1]) // the other side sees the end
					c[0].Close()
				}()
			}
		}
	}()
	return true
}

func (d *typist) expectMatch(form *regexp.Regexp) {
	d.t.Helper()
	d.await(fmt.Sprintf("text like %s", form), func() (begin, end int) {
		at := form.FindStringIndex(d.read)
		if at == nil {
			return -1, -1
		}
		return at[0], at[1]
	})
}
