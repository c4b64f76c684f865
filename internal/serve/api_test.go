package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carronade/internal/apm"
	"carronade/internal/kafka"
	"carronade/internal/live"
	"carronade/internal/null"
	"carronade/internal/riemann"
	"carronade/internal/serve/jobs"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// manyLines, of a thousand bytes each, are more than the buffers of a connection hold.
const manyLines = 30_000

// TestMain is also the program of the jobs in these tests: with the variable set, it prints its
// arguments, and waits for an interrupt if the last one is "wait", or prints much if it is "print".
func TestMain(m *testing.M) {
	if os.Getenv("CARRONADE_TEST_JOB") == "" {
		os.Exit(m.Run())
	}
	fmt.Println(strings.Join(os.Args[1:], " "))
	switch os.Args[len(os.Args)-1] {
	case "wait":
		waitForInterrupt()
		os.Exit(130)
	case "print":
		for range manyLines {
			fmt.Println(strings.Repeat("x", 999))
		}
	}
	os.Exit(0)
}

// A testSite is a site with a real queue.
type testSite struct {
	t       *testing.T
	url     string
	tokens  *Tokens
	secret  string // of ann
	queue   *jobs.Queue
	folder  string
	ran     [][]string // commands that ran at once
	mu      sync.Mutex
	outcome func(args []string, stdout, stderr io.Writer) int
	hub     *live.Hub
	stop    func()
}

// kinds are those of the targets in these tests.
var kinds = []protocol.Kind{kafka.Kind{}, riemann.Kind{}, apm.Kind{}, null.Kind{}}

func newTestSite(t *testing.T) *testSite {
	t.Helper()
	return openTestSite(t, jobs.Options{}, func(l net.Listener) net.Listener { return l })
}

func openTestSite(t *testing.T, o jobs.Options, wrap func(net.Listener) net.Listener) *testSite {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("CARRONADE_TEST_JOB", "1") // for the processes of jobs
	o.Dir = dir
	q := assert.Value(jobs.Open(t.Context(), o))(t)
	t.Cleanup(func() { err := q.Close(context.Background()); assert.True(t, err == nil, "%v", err) })
	s := &testSite{t: t, queue: q, tokens: OpenTokens(dir), folder: filepath.Join(dir, "files")}
	s.secret = assert.Value(s.tokens.Add("ann"))(t)
	api := &API{
		Jobs: q, Kinds: kinds, Loads: func(args []string) bool { return args[0] == "run" }, Folder: s.folder, Version: "1",
		Check: func(args []string) (what, way string) {
			if slices.Contains(args, "--rat") {
				return "unknown flag --rat", "did you mean --rate?"
			}
			return "", ""
		},
		Run: func(_ context.Context, user string, args []string, stdout, stderr io.Writer) int {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ran = append(s.ran, append([]string{user}, args...))
			if s.outcome == nil {
				return 0
			}
			return s.outcome(args, stdout, stderr)
		},
	}
	l := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	s.url = "http://" + l.Addr().String()
	s.hub = live.NewHub()
	site := NewSite(SiteOptions{API: api, Hub: s.hub, Tokens: s.tokens, Host: "127.0.0.1"})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- site.Serve(ctx, wrap(l)) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		err := <-ended
		assert.True(t, err == nil, "%v", err)
	})
	t.Cleanup(s.stop)
	return s
}

// do sends a request with ann's token, and returns the status and the body.
func (s *testSite) do(method, path, body string, change ...func(*http.Request)) (int, string) {
	s.t.Helper()
	r := assert.Value(http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body)))(s.t)
	r.Header.Set("Authorization", "Bearer "+s.secret)
	r.Header.Set("Content-Type", "application/json")
	for _, f := range change {
		f(r)
	}
	answer := assert.Value(http.DefaultTransport.RoundTrip(r))(s.t) //nolint:bodyclose // it is closed below
	defer answer.Body.Close()
	text := assert.Value(io.ReadAll(answer.Body))(s.t)
	return answer.StatusCode, string(text)
}

func (s *testSite) want(status int, method, path, body string, contains ...string) string {
	s.t.Helper()
	got, text := s.do(method, path, body)
	assert.Must(s.t, got == status, "%s %s: %d, want %d\n%s", method, path, got, status, text)
	for _, c := range contains {
		assert.Must(s.t, strings.Contains(text, c), "%s %s: %s\nlacks %s", method, path, text, c)
	}
	return text
}

// submit submits a job and returns its number.
func (s *testSite) submit(args ...string) int64 {
	s.t.Helper()
	body, _ := json.Marshal(map[string]any{"args": args}) //nolint:errchkjson // strings
	var answer struct {
		Job   JobView
		Ahead int
	}
	assert.OK(s.t, json.Unmarshal([]byte(s.want(http.StatusCreated, "POST", "/api/v1/jobs", string(body))), &answer))
	return answer.Job.ID
}

func TestJobs(t *testing.T) {
	s := newTestSite(t)
	first := s.submit("run", "kafka://127.0.0.1:9092/t", "wait")
	second := s.submit("run", "kafka://localhost:9092/u") // the same system
	awaitOutput(t, s.queue, first)
	s.want(http.StatusOK, "GET", "/api/v1/jobs?state=queued", "", `"id": `+fmt.Sprint(second), `"system": "kafka://127.0.0.1:9092"`, `"user": "ann"`)
	s.want(http.StatusOK, "GET", "/api/v1/status", "", `"user": "ann"`, `"queued": 1`)
	// It prints before it waits for the interrupt, so that the reader of the output sees it run.
	seen := make(chan string, 1)
	go func() {
		var b bytes.Buffer
		s.queue.Output(t.Context(), first, true, &b)
		seen <- b.String()
	}()
	s.want(http.StatusAccepted, "POST", fmt.Sprintf("/api/v1/jobs/%d/cancel", first), "")
	assert.Equal(t, <-seen, "run kafka://127.0.0.1:9092/t wait\n", "output")
	job, err := s.queue.Wait(t.Context(), first)
	assert.True(t, err == nil && job.State == jobs.Cancelled, "%+v, %v", job, err)
	job, err = s.queue.Wait(t.Context(), second)
	assert.True(t, err == nil && job.State == jobs.Done, "%+v, %v", job, err)
	assert.Equal(t, s.want(http.StatusOK, "GET", fmt.Sprintf("/api/v1/jobs/%d/output?follow=1", second), ""), "run kafka://localhost:9092/u\n",
		"output")
	s.want(http.StatusOK, "GET", fmt.Sprintf("/api/v1/jobs/%d", second), "", `"state": "done"`, `"exit": 0`)
	s.want(http.StatusConflict, "POST", fmt.Sprintf("/api/v1/jobs/%d/cancel", second), "", "has ended")
}

// awaitOutput returns when a job has printed something.
func awaitOutput(t *testing.T, q *jobs.Queue, id int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := q.Output(ctx, id, true, stopWriter{cancel})
	assert.Must(t, err == nil || errors.Is(err, context.Canceled) || errors.Is(err, io.ErrClosedPipe), "%v", err)
}

type stopWriter struct{ stop func() }

func (w stopWriter) Write([]byte) (int, error) {
	w.stop()
	return 0, io.ErrClosedPipe
}

func TestRefusedRequests(t *testing.T) {
	s := newTestSite(t)
	bob := assert.Value(s.tokens.Add("bob"))(t)
	id := s.submit("run", "null://", "wait")
	awaitOutput(t, s.queue, id)
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) {
			if value == "" {
				r.Header.Del(name)
			} else {
				r.Header.Set(name, value)
			}
		}
	}
	host := func(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }
	run := `{"args":["run","null://"]}`
	assert.OK(t, os.Mkdir(filepath.Join(s.folder, "folder"), 0o700))
	for _, c := range []struct {
		name, method, path, body string
		change                   func(*http.Request)
		status                   int
	}{
		{"without a token", "GET", "/api/v1/jobs", "", header("Authorization", ""), http.StatusUnauthorized},
		{"wrong token", "GET", "/api/v1/jobs", "", header("Authorization", "Bearer x"), http.StatusUnauthorized},
		{"token in another form", "GET", "/api/v1/jobs", "", header("Authorization", s.secret), http.StatusUnauthorized},
		{"runs without a token", "GET", "/api/runs", "", header("Authorization", ""), http.StatusUnauthorized},
		{"foreign host", "GET", "/api/v1/jobs", "", host("evil.example"), http.StatusMisdirectedRequest},
		{"foreign host of the page", "GET", "/", "", host("evil.example"), http.StatusMisdirectedRequest},
		{"foreign origin", "POST", "/api/v1/jobs", run, header("Origin", "http://evil.example"), http.StatusForbidden},
		{"another site's fetch", "POST", "/api/v1/jobs", run, header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		{"form", "POST", "/api/v1/jobs", run, header("Content-Type", "text/plain"), http.StatusUnsupportedMediaType},
		{"no JSON", "POST", "/api/v1/jobs", "{", header("x", ""), http.StatusBadRequest},
		{"unknown name", "POST", "/api/v1/jobs", `{"args":["run"],"dir":"/"}`, header("x", ""), http.StatusBadRequest},
		{"JSON behind JSON", "POST", "/api/v1/jobs", `{"args":["run"]}{}`, header("x", ""), http.StatusBadRequest},
		{"text behind JSON", "POST", "/api/v1/jobs", `{"args":["run"]} x`, header("x", ""), http.StatusBadRequest},
		{"what the command line refuses", "POST", "/api/v1/jobs", `{"args":["run","null://","--rat","5"]}`, header("x", ""), http.StatusBadRequest},
		{"no arguments", "POST", "/api/v1/jobs", `{"args":[]}`, header("x", ""), http.StatusBadRequest},
		{"zero byte", "POST", "/api/v1/jobs", `{"args":["run","a\u0000b"]}`, header("x", ""), http.StatusBadRequest},
		{"very long", "POST", "/api/v1/jobs", `{"args":["` + strings.Repeat("x", 2*longestBody) + `"]}`, header("x", ""), http.StatusBadRequest},
		{"not a load", "POST", "/api/v1/jobs", `{"args":["report","list"]}`, header("x", ""), http.StatusBadRequest},
		{"a load at once", "POST", "/api/v1/commands", run, header("x", ""), http.StatusBadRequest},
		{"another user's job", "POST", fmt.Sprintf("/api/v1/jobs/%d/cancel", id), "", header("Authorization", "Bearer "+bob), http.StatusForbidden},
		{"no such job", "GET", "/api/v1/jobs/999", "", header("x", ""), http.StatusNotFound},
		{"not a number", "GET", "/api/v1/jobs/x", "", header("x", ""), http.StatusNotFound},
		{"no such path", "GET", "/api/v1/nothing", "", header("x", ""), http.StatusNotFound},
		{"path above", "GET", "/api/nothing", "", header("x", ""), http.StatusNotFound},
		{"method", "PUT", "/api/v1/jobs", "{}", header("x", ""), http.StatusMethodNotAllowed},
		{"method without a token", "PUT", "/api/v1/jobs", "{}", header("Authorization", ""), http.StatusUnauthorized},
		{"method of no one path", "BREW", "/api/v1/status", "", header("x", ""), http.StatusMethodNotAllowed},
		{"range", "GET", "/api/v1/files/x", "", header("Range", "bytes=9-"), http.StatusNotFound},
		{"no such state", "GET", "/api/v1/jobs?state=x", "", header("x", ""), http.StatusBadRequest},
		{"too many", "GET", "/api/v1/jobs?n=1000000", "", header("x", ""), http.StatusBadRequest},
		{"file outside", "GET", "/api/v1/files/..%2ftokens.json", "", header("x", ""), http.StatusBadRequest},
		{"absolute file", "GET", "/api/v1/files/%2fetc%2fpasswd", "", header("x", ""), http.StatusBadRequest},
		{"write outside", "PUT", "/api/v1/files/..%2fx", "x", header("x", ""), http.StatusBadRequest},
		{"hidden file", "PUT", "/api/v1/files/.x", "x", header("x", ""), http.StatusBadRequest},
		{"part of a file", "PUT", "/api/v1/files/a/.part-1", "x", header("x", ""), http.StatusBadRequest},
		{"many folders", "PUT", "/api/v1/files/" + strings.Repeat("a/", mostFolders+1) + "x", "x", header("x", ""), http.StatusBadRequest},
		{"a long name", "PUT", "/api/v1/files/" + strings.Repeat("a", longestName+1), "x", header("x", ""), http.StatusBadRequest},
		{"no UTF-8", "PUT", "/api/v1/files/%ff", "x", header("x", ""), http.StatusBadRequest},
		{"remove outside", "DELETE", "/api/v1/files/..%2ftokens.json", "", header("x", ""), http.StatusBadRequest},
		{"remove a folder", "DELETE", "/api/v1/files/folder", "", header("x", ""), http.StatusNotFound},
		{"no such file", "GET", "/api/v1/files/x", "", header("x", ""), http.StatusNotFound},
	} {
		got, text := s.do(c.method, c.path, c.body, c.change)
		assert.True(t, got == c.status && !strings.Contains(text, s.folder) && !strings.Contains(text, s.secret),
			"%s: %d, want %d: %.200s", c.name, got, c.status, text)
		var e map[string]string
		if err := json.Unmarshal([]byte(text), &e); strings.HasPrefix(c.path, "/api/v1/") && (err != nil || e["error"] == "") {
			t.Errorf("%s: %v: %q is not JSON with an error", c.name, err, text)
		}
	}
	assert.True(t, len(s.ran) == 0, "commands ran: %q", s.ran)
	job, err := s.queue.Job(t.Context(), id)
	assert.True(t, err == nil && job.State == jobs.Running, "%+v, %v", job, err)
	s.want(http.StatusAccepted, "POST", fmt.Sprintf("/api/v1/jobs/%d/cancel", id), "")
}

func TestCommands(t *testing.T) {
	s := newTestSite(t)
	s.outcome = func(args []string, stdout, stderr io.Writer) int {
		fmt.Fprintf(stdout, "out of %s", args[0])
		fmt.Fprint(stderr, "error: no report begins with x\nhint: look\n")
		return len(args) % 2 * 2
	}
	s.want(http.StatusOK, "POST", "/api/v1/commands", `{"args":["collate","rate"]}`, `"exit": 0`, `"stdout": "out of collate"`)
	s.want(http.StatusOK, "GET", "/api/v1/reports?filter=branch%3Dmain&filter=rate%3E5&n=3&columns=rate", "", "out of report")
	s.want(http.StatusNotFound, "GET", "/api/v1/reports/--store%3Dx", "", "no report begins with x", `"hint": "look"`)
	s.want(http.StatusOK, "GET", "/api/v1/reports/a/page?with=b", "", "out of report")
	want := [][]string{
		{"ann", "collate", "rate"},
		{"ann", "report", "list", "--json", "--last=3", "--columns=rate", "--", "branch=main", "rate>5"},
		{"ann", "report", "export", "--as=json", "--", "--store=x"},
		{"ann", "report", "export", "--as=html", "--", "a", "b"},
	}
	assert.True(t, slices.EqualFunc(s.ran, want, slices.Equal[[]string]), "ran %q", s.ran)
}

func TestFiles(t *testing.T) {
	s := newTestSite(t)
	s.want(http.StatusOK, "PUT", "/api/v1/files/a/load.yaml", "target: x", `"bytes": 9`)
	s.want(http.StatusOK, "PUT", "/api/v1/files/a/load.yaml", "target: yy", `"bytes": 10`)
	assert.Equal(t, s.want(http.StatusOK, "GET", "/api/v1/files/a/load.yaml", ""), "target: yy")
	if err := os.Symlink("/etc", filepath.Join(s.folder, "etc")); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{"/api/v1/files/etc/passwd", "/api/v1/files/etc", "/api/v1/files/a"} {
		status, text := s.do("GET", path, "")
		assert.True(t, status != http.StatusOK, "GET %s: %s", path, text)
	}
	status, _ := s.do("DELETE", "/api/v1/files/etc/passwd", "")
	assert.True(t, status != http.StatusOK, "a file was removed through a link")
	status, _ = s.do("PUT", "/api/v1/files/etc/carronade-test", "x")
	assert.True(t, status != http.StatusOK, "a file was written through a link")
	entries, err := os.ReadDir(filepath.Join(s.folder, "a"))
	assert.True(t, err == nil && len(entries) == 1, "%v, %v", entries, err)
	if exec.CommandContext(t.Context(), "mkfifo", filepath.Join(s.folder, "pipe")).Run() == nil { //nolint:gosec // in its folder
		status, _ = s.do("GET", "/api/v1/files/pipe", "")
		assert.Equal(t, status, http.StatusNotFound, "a named pipe that no one writes")
	}
}

// TestFilesThatArrive: files that are being received count as files of the folder.
func TestFilesThatArrive(t *testing.T) {
	s := newTestSite(t)
	for k := range mostFileBytes / largestFile {
		conn := assert.Value(net.Dial("tcp", strings.TrimPrefix(s.url, "http://")))(t)
		defer conn.Close()
		fmt.Fprintf(conn, "PUT /api/v1/files/%d HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", k, s.secret, largestFile)
		line := assert.Value(bufio.NewReader(conn).ReadString('\n'))(t)
		assert.Must(t, strings.HasPrefix(line, "HTTP/1.1 100 "), "%q", line)
	}
	s.want(http.StatusInsufficientStorage, "PUT", "/api/v1/files/x", "x", "is full")
}

// TestFilesAreLimited: what is sent is bounded, and what an earlier server did not receive to its end is removed.
func TestFilesAreLimited(t *testing.T) {
	s := newTestSite(t)
	write := func(name string, size int64) {
		t.Helper()
		f := assert.Value(os.Create(filepath.Join(s.folder, name)))(t)
		defer f.Close()
		assert.OK(t, f.Truncate(size))
	}
	write(".part-old", 5)
	removeParts(s.folder)
	for _, name := range []string{"d/e/f", "d/g"} {
		s.want(http.StatusOK, "PUT", "/api/v1/files/"+name, "x")
	}
	s.want(http.StatusOK, "DELETE", "/api/v1/files/d/e/f", "")
	_, err := os.Stat(filepath.Join(s.folder, "d", "e"))
	assert.True(t, os.IsNotExist(err), "an empty folder stays: %v", err)
	s.want(http.StatusOK, "GET", "/api/v1/files/d/g", "")
	s.want(http.StatusOK, "DELETE", "/api/v1/files/d/g", "")
	write("large", mostFileBytes-10)
	s.want(http.StatusOK, "PUT", "/api/v1/files/a", "0123456789")
	s.want(http.StatusInsufficientStorage, "PUT", "/api/v1/files/b", "x", "the folder of jobs is full: it may have 1000 files and 1024 MiB", "DELETE")
	s.want(http.StatusInsufficientStorage, "PUT", "/api/v1/files/a", "0123456789x")
	s.want(http.StatusOK, "PUT", "/api/v1/files/a", "9876543210") // in its own place
	s.want(http.StatusOK, "DELETE", "/api/v1/files/large", "", `"name": "large"`)
	for i := range mostFiles - 1 {
		write(fmt.Sprint("f", i), 0)
	}
	s.want(http.StatusInsufficientStorage, "PUT", "/api/v1/files/b", "x")
	s.want(http.StatusOK, "PUT", "/api/v1/files/f1", "x")
	entries, err := os.ReadDir(s.folder)
	assert.True(t, err == nil && len(entries) == mostFiles, "%d files, want %d: %v", len(entries), mostFiles, err)
	assert.Equal(t, s.want(http.StatusOK, "GET", "/api/v1/files/a", ""), "9876543210")
}

// TestSession: the page exchanges the token for a cookie.
func TestSession(t *testing.T) {
	s := newTestSite(t)
	jar := assert.Value(cookiejar.New(nil))(t)
	client := http.Client{Jar: jar}
	post := func(path, body, origin string) int {
		r := assert.Value(http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body)))(t)
		r.Header.Set("Content-Type", "application/json")
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		answer := assert.Value(client.Do(r))(t) //nolint:bodyclose // it is closed below
		answer.Body.Close()
		return answer.StatusCode
	}
	assert.Equal(t, post("/api/session", `{"token":"x"}`, ""), http.StatusUnauthorized, "wrong token")
	got := post("/api/session", `{"token":"`+s.secret+`"}`, "")
	assert.Must(t, got == http.StatusNoContent, "right token: %d", got)
	run := `{"args":["run","null://"]}`
	assert.Equal(t, post("/api/v1/jobs", run, ""), http.StatusForbidden, "a write without an origin")
	assert.Equal(t, post("/api/v1/jobs", run, s.url), http.StatusCreated, "a write of the page")
	assert.OK(t, s.tokens.Remove("ann"))
	assert.Equal(t, post("/api/v1/jobs", run, s.url), http.StatusUnauthorized, "after its token was removed")
}

// TestEndWithReader: a client that follows a job does not delay the end of the site.
func TestEndWithReader(t *testing.T) {
	testkit.Need(t, "some seconds")
	s := newTestSite(t)
	id := s.submit("run", "null://", "wait")
	r := assert.Value(http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s/api/v1/jobs/%d/output?follow=1", s.url, id), http.NoBody))(t)
	r.Header.Set("Authorization", "Bearer "+s.secret)
	answer := assert.Value(http.DefaultTransport.RoundTrip(r))(t) //nolint:bodyclose // it is closed below
	defer answer.Body.Close()
	s.stop()
	if _, err := io.ReadAll(answer.Body); err == nil {
		t.Log("the answer ended as if it was whole") // the job goes on, but the text was cut at its end
	}
}

// TestOpenAPI: the document has every route and no other.
func TestOpenAPI(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	assert.OK(t, json.Unmarshal(openAPI, &doc))
	var documented, served []string
	for path, methods := range doc.Paths {
		for m := range methods {
			documented = append(documented, strings.ToUpper(m)+" "+path)
		}
	}
	for pattern := range (&API{}).routes() {
		served = append(served, strings.ReplaceAll(pattern, "...", ""))
	}
	slices.Sort(documented)
	slices.Sort(served)
	assert.True(t, slices.Equal(documented, served), "documented %q\nserved %q", documented, served)
}

func TestSystemOf(t *testing.T) {
	for line, want := range map[string]string{
		"run kafka://b:2,A:1/t --rate 1k/s":            "kafka://a:1,b:2",
		"run kafka://localhost:9092/t":                 "kafka://127.0.0.1:9092",
		"find apm+http://[::1]:8200 --slo p99<1s":      "apm://127.0.0.1:8200",
		"run apm+https://h:8200":                       "apm://h:8200",
		"run kafka://A.,b:9092,a:9092/t":               "kafka://a:9092,b:9092",
		"run kafka://[0:0::1]/t":                       "kafka://127.0.0.1:9092",
		"run kafka://[2001:DB8:0::1]/t":                "kafka://[2001:db8::1]:9092",
		"run riemann://h":                              "riemann://h:5555",
		"topics create kafka://h/t":                    "kafka://h:9092",
		"run apm+http://h:8200 --index http://es:9200": "apm://h:8200",
		"run null://":                                  "this machine",
		"demo":                                         "this machine",
		"run -f load.yaml":                             jobs.Everything,
		"run kafka://a/t --file=x":                     jobs.Everything,
		"run kafka://a/t --vary=target=kafka://b/t":    jobs.Everything,
		"scenario a.js":                                jobs.Everything,
		"compare --run a.yaml b.yaml":                  jobs.Everything,
		"run kafka://a/t riemann://b":                  jobs.Everything,
		"":                                             jobs.Everything,
	} {
		assert.Equal(t, SystemOf(kinds, strings.Fields(line)), want, "%q", line)
	}
}

// TestAnswerHint: an error that only says where has the hint of the one in it.
func TestAnswerHint(t *testing.T) {
	w := httptest.NewRecorder()
	answerError(w, &protocol.Error{Doing: "--header", Err: &protocol.Error{Doing: "read x", Err: errors.New("no such file"), Hint: "make it"}})
	assert.Has(t, w.Body.String(), `"error": "--header: read x: no such file"`, `"hint": "make it"`)
}
