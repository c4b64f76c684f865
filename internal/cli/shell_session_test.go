package cli_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/internal/elastictest"
)

// startShell begins a session with a real server and a real repository, whose system is
// a stand-in with some flags. It returns the repository and the server's address.
func startShell(t *testing.T, flags string) (d *typist, repo, address string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs loads")
	}
	exe, err := exec.LookPath("carronade")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	t.Setenv("CARRONADE_TEST_UNTRUSTED", "none")
	t.Setenv("NO_COLOR", "1")
	address, repo = freeAddress(t), filepath.Join(dir, "apm-server")
	for name, text := range map[string]string{
		"server.sh": "#!/bin/sh\nexec carronade standin apm --listen " + address + " " + flags + "\n",
		"Makefile":  "all:\n\tcp server.sh apm-server\n\tchmod +x apm-server\n\techo made\n",
	} {
		if err := errors.Join(os.MkdirAll(repo, 0o755), os.WriteFile(filepath.Join(repo, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
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
	} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", repo}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %s", args, out)
		}
	}
	server := exec.Command(exe, "serve", "--text-port", "0", "--http-port", "0", "--allow-build", repo)
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(server.Process.Signal(syscall.SIGTERM), server.Wait()); err != nil {
			t.Error(err)
		}
	})
	var port string
	if _, err := fmt.Fscanf(out, "listening on %s for the shell\n", &port); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out)
	conn, err := net.Dial("tcp", port)
	if err != nil {
		t.Fatal(err)
	}
	d = newTypist(t, conn)
	d.expect("type 'help' for help\n>>> ")
	return d, repo, address
}

// TestShellSession types a session as hey-apm's users did.
func TestShellSession(t *testing.T) {
	d, repo, address := startShell(t, "")
	d.enter("apm use "+repo+" --url http://"+address, "using "+repo+"\n>>> ")
	d.enter("status", "ApmServer [http://"+address+"]: not running\nUsing "+repo+": unknown branch (hint: apm switch <branch>)\n0 commands queued\n>>> ")
	d.enter("apm switch -cmv master", "made\n", "branch    master\n", "build     took ")
	d.enter("define t test 1s 1 2 3 $")
	d.enter("t ; t ; t 1 2 4", "started new work, payload size is ", "on branch master , cmd = [1s 1 2 3 1]\n", " responses (100.00%)", "(max RSS)\n", "saving report\n",
		"cmd = [1s 1 2 3 2]", "saving report\n", "cmd = [1s 1 2 3 4]", "saving report\n", ">>> ")
	d.enter("status", ": master, ", " serve\n0 commands queued\n")
	d.enter("apm tail -n 2", "connections, ", "[time now ")
	d.enter("collate concurrency", "duration 1s  events 1  spans 2  frames 3  branch master  revision ", "report id  revision date   pushed", "  1\n", "  2\n", "  4\n\n")
	d.enter("verify -n 168h branch=master duration=1s events=1 spans=2 frames=3 concurrency=1 limit=-1", "too little history")
	d.enter("apm switch -fcm axw/trace-apm-server ; test 1s 1 2 3 1", "branch    trace-apm-server\n", "on branch trace-apm-server , cmd = [1s 1 2 3 1]\n", "saving report\n", ">>> ")
	d.enter("status", ": trace-apm-server, ", " trace\n0 commands queued\n")
	d.enter("collate branch concurrency=1", "  concurrency 1\n", "  master", "  trace-apm-server")
	d.enter("test 1m 1 2 3 4", "started new work")
	d.enter("cancel", "ok\n", "work cancelled")
	d.quit()
}

// TestShellElasticsearch: documents are counted, reports are saved and collated in the
// Elasticsearch in use, and reset deletes the documents only.
func TestShellElasticsearch(t *testing.T) {
	node := elastictest.Start(t, os.Getenv(elastictest.Variable)) // "": OpenSearch
	d, repo, address := startShell(t, "--index "+node.URL)
	d.enter("elasticsearch use "+node.URL, "using "+node.URL+"\n")
	d.enter("status", "ElasticSearch ["+node.URL+"]: ", " ,  0 docs\nApmServer not configured")
	d.enter("apm use "+repo+" --url http://"+address, "using "+repo+"\n")
	d.enter("apm switch -cm master", "build     took ")
	d.enter("test 1s 1 2 3 1 ; test 1s 1 2 3 2", "started new work", " docs indexed (", "(100.00% of expected)\n", "report indexed in elasticsearch\n",
		"started new work", " docs indexed (", "report indexed in elasticsearch\n", ">>> ")
	d.enter("collate concurrency --sort concurrency", "report id  revision date   pushed", "dps", "100.0%", "  1\n", "dps", "100.0%", "  2\n\n")
	d.enter("verify branch=master concurrency=1", "too little history")
	d.enter("elasticsearch reset", "delete all indices apm-* of "+node.URL+" (now ", "? yes or no: ")
	d.enter("yes", "deleted ", " docs\n", ">>> ")
	d.enter("status", " ,  0 docs\n")
	d.enter("collate concurrency", "  1\n") // reports are not deleted
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

// quit ends the session.
func (d *typist) quit() {
	d.t.Helper()
	d.enter("quit", "bye!\n")
	if _, open := <-d.text; open {
		d.t.Error("the session goes on")
	}
}

// enter types a line, and waits for texts in this order.
func (d *typist) enter(line string, texts ...string) {
	d.t.Helper()
	d.keys(line+"\n", texts...)
}

// keys types keys, and waits for texts in this order.
func (d *typist) keys(keys string, texts ...string) {
	d.t.Helper()
	if _, err := io.WriteString(d.conn, keys); err != nil {
		d.t.Fatal(err)
	}
	for _, text := range texts {
		d.expect(text)
	}
}

func (d *typist) expect(text string) {
	d.t.Helper()
	timeout := time.After(time.Minute)
	for {
		if before, after, ok := strings.Cut(d.read, text); ok {
			d.before, d.read = before, after
			return
		}
		select {
		case more, ok := <-d.text:
			if ok {
				d.read += more
				continue
			}
			d.t.Fatalf("the session ended before %q; it wrote %q", text, d.read)
		case <-timeout:
			d.t.Fatalf("no %q after a minute; the session wrote %q", text, d.read)
		}
	}
}
