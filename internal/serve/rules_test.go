package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carronade/internal/door"
	"carronade/internal/serve/jobs"
	"carronade/internal/workload"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// rules returns rules with a folder that has a file, links that stay in it and lead out of it,
// and a folder next to it in which builds are allowed.
func rules(t *testing.T) (*Rules, string) {
	t.Helper()
	base := t.TempDir()
	for _, dir := range []string{"files/sub", "builds/repo", "builds2", "other"} {
		assert.OK(t, os.MkdirAll(filepath.Join(base, dir), 0o700))
	}
	for _, file := range []string{"files/a.yaml", "other/b.yaml"} {
		assert.OK(t, os.WriteFile(filepath.Join(base, file), nil, 0o600))
	}
	for link, to := range map[string]string{"files/in": "a.yaml", "files/out": "../other/b.yaml", "files/nothing": "../other/none", "files/dir": "../other", "builds/out": "../other"} {
		if err := os.Symlink(to, filepath.Join(base, link)); err != nil {
			t.Skip(err)
		}
	}
	t.Chdir(filepath.Join(base, "files"))
	return &Rules{Folder: filepath.Join(base, "files"), Builds: []string{filepath.Join(base, "builds")}, Targets: []string{"127.0.0.1", "*.example.org:9092", "::1"}, Store: "/var/reports.db", Home: filepath.Join(base, "ann")}, base
}

func TestRulesFile(t *testing.T) {
	r, base := rules(t)
	for path, ok := range map[string]bool{
		"a.yaml": true, "sub/new": true, "-": true, "in": true, "new": true, "sub/../a.yaml": true,
		filepath.Join(base, "files", "a.yaml"): true, filepath.Join(base, "files"): true,
		"../other/b.yaml": false, "/etc/passwd": false, "out": false, "nothing": false, "dir/b.yaml": false, "dir/new": false, "dir/../a.yaml": false, filepath.Join(base, "files") + "/dir/../a.yaml": false,
		"sub/../../other/b.yaml": false, filepath.Join(base, "other", "b.yaml"): false, filepath.Join(base, "files2"): false, "..": false, "": false,
	} {
		err := r.File(path)
		assert.True(t, (err == nil) == ok, "%q: %v", path, err)
	}
	assert.OK(t, (*Rules)(nil).File("/etc/passwd"), "without rules")
}

func TestRulesAddress(t *testing.T) {
	r, _ := rules(t)
	for text, ok := range map[string]bool{
		"kafka://127.0.0.1:9092/t": true, "127.0.0.1:80": true, "null://": true, "apm+http://a.example.org:9092": true, "riemann://[::1]:5555": true, "http://A.Example.org:9092/x?y": true,
		"kafka://127.0.0.1:1,10.0.0.1:2/t": false, "apm+http://a.example.org:9093": false, "http://127.0.0.1@evil.org": false, "http://evil.org/127.0.0.1": false,
		"http://": false, "http://a.example.org.evil.org:9092": false, "http://evil.org?127.0.0.1": false,
	} {
		err := r.Address(text)
		assert.True(t, (err == nil) == ok, "%q: %v", text, err)
	}
	// A pattern of numbers fits no name.
	numbers := &Rules{Folder: "/", Targets: []string{"10.0.0.*"}}
	assert.True(t, numbers.Address("http://10.0.0.7") == nil && numbers.Address("http://10.0.0.evil.example") != nil,
		"a pattern of numbers")
	assert.OK(t, (&Rules{Folder: "/"}).Address("kafka://anywhere"), "without patterns")
}

func TestRulesBuild(t *testing.T) {
	r, base := rules(t)
	for path, ok := range map[string]bool{
		filepath.Join(base, "builds", "repo"): true, filepath.Join(base, "builds"): true, "../builds/repo": true,
		filepath.Join(base, "builds2"): false, filepath.Join(base, "builds", "out"): false, filepath.Join(base, "builds", "none"): false, "..": false,
	} {
		err := r.Build(path)
		assert.True(t, (err == nil) == ok, "%q: %v", path, err)
	}
}

func TestRulesCommand(t *testing.T) {
	r, _ := rules(t)
	for _, c := range []struct {
		line string
		ok   bool
	}{
		{"run null://", true},
		{"", true},
		{"report show last", true},
		{"report list branch=master rate<5", true},
		{"compare a.yaml sub/b.yaml", true},
		{"topics list kafka://127.0.0.1:9092", true},
		{"run kafka://10.0.0.1/t", false},
		{"compare ../a.yaml b.yaml", false},
		{"report import /etc/passwd", false},
		{"scenario out", false},
		{"scenario x://../../other/b.yaml", false},
		{"report import kafka://127.0.0.1/../../other/b.yaml", false},
		{"profile elasticsearchy:/../../other/b.yaml", false},
		{"report replay last kafka://10.0.0.1/t", false},
		{"report replay last kafka://127.0.0.1/t", true},
		{"report open", false},
		{"report push", false},
		{"standin", false},
		{"serve", false},
		{"completion bash", false},
		{"__complete report show", false},
		{"report delete --yes x", false},
		{"shell", false},
		{"config", false},
		{"demo", false},
		{"calibrate", false},
		{"doctor kafka://127.0.0.1", false},
		{"profile kafka://127.0.0.1/t", false},
		{"system prune", false},
		{"system build ../builds/repo", true},
		{"system build ../other", false},
		{"runs", false},
	} {
		// The path is what cobra finds: here, the words before the first that is an argument.
		words := strings.Fields(c.line)
		path := ""
		if len(words) > 0 {
			path = words[0]
			words = words[1:]
			if path == "report" || path == "system" || path == "topics" {
				path += " " + words[0]
				words = words[1:]
			}
		}
		err := r.Command(path, words)
		assert.True(t, (err == nil) == c.ok, "%q: %v", c.line, err)
	}
}

// TestRulesTool: of the drop-ins, a job may run what the shell runs, and nothing that acts outside a workload.
func TestRulesTool(t *testing.T) {
	r, base := rules(t)
	repo := filepath.Join(base, "builds", "repo")
	password := "u:file:" + filepath.Join(base, "ann", "password")
	for _, c := range []struct {
		line string
		ok   bool
	}{
		{"hey-apm -base-url http://127.0.0.1:8200 -apm-es-url http://127.0.0.1:9200 -apm-es-auth " + password + " -es-url=http://127.0.0.1:9200 -system-git " + repo + " -system-branch b -system-build make -system-cmd ./apm-server -system-log " + filepath.Join(base, "ann", "apm.log") + " test 30s 1 2 3 4 -E a=b --mem 4g", true},
		{"hey-apm -apm-es-url http://127.0.0.1:9200 elasticsearch reset --yes", true},
		{"hey-apm dump body.json 1 1 1", true},
		{"hey-apm -server", false},
		{"hey-apm --server test 1s 1 1 1 1", false},
		{"hey-apm -dump", false},
		{"hey-apm", false},
		{"hey-apm -profile heavy", false},
		{"hey-apm dump /tmp/x 1 1 1", false},
		{"hey-apm dump ../x 1 1 1", false},
		{"hey-apm -apm-es-url http://10.0.0.1 elasticsearch reset --yes", false},
		{"hey-apm -apm-es-url=http://10.0.0.1 elasticsearch reset --yes", false},
		{"hey-apm -apm-es-url http://127.0.0.1 -apm-es-auth u:env:HOME elasticsearch reset --yes", false},
		{"hey-apm -apm-es-url http://127.0.0.1 -apm-es-auth u:file:/etc/passwd elasticsearch reset --yes", false},
		{"hey-apm -apm-es-url http://127.0.0.1 -apm-es-auth u:password elasticsearch reset --yes", false},
		{"hey-apm -system-git " + base + " -system-cmd ./x test 1s 1 1 1 1", false},
		{"hey-apm -system-git " + repo + " -system-cmd id test 1s 1 1 1 1", false},
		{"hey-apm -system-git " + repo + " -system-log /etc/x -system-cmd ./x test 1s 1 1 1 1", false},
		{"hey-apm --report-json /etc/x test 1s 1 1 1 1", false},
		{"hey-apm -es-url sqlite:///etc/x test 1s 1 1 1 1", false},
		{"hey-apm -es-url elasticsearchy:/../x test 1s 1 1 1 1", false},
		{"hey-apm --store sqlite:///etc/x test 1s 1 1 1 1", false},
		{"riemann-load -r /etc/x 127.0.0.1:1", false},
		{"kafka-producer-perf-test --topic t", false},
	} {
		words := strings.Fields(c.line)
		err := r.Tool(nil, words[0], words[1:])
		assert.True(t, (err == nil) == c.ok, "%s: %v", c.line, err)
	}
}

func TestRulesMake(t *testing.T) {
	r, _ := rules(t)
	for command, ok := range map[string]bool{
		"make": true, "make update && make": true, "make apm-server": true, "make -j": true,
		"": false, "id": false, "make; id": false, "make && id": false, "make -f /etc/x": false, "make $(id)": false, "make `id`": false, "make -C..": false, "make SHELL=/tmp/x": false, "make || id": false,
	} {
		err := r.Make(command)
		assert.True(t, (err == nil) == ok, "%q: %v", command, err)
	}
}

func TestRulesDocument(t *testing.T) {
	r, base := rules(t)
	repo := filepath.Join(base, "builds", "repo")
	entries := func(pairs ...string) (out []workload.Entry) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, workload.Entry{Name: pairs[i], Values: []string{pairs[i+1]}, Where: "w.yaml:1: " + pairs[i]})
		}
		return out
	}
	for _, c := range []struct {
		name    string
		entries []workload.Entry
		ok      bool
	}{
		{"plain", entries("target", "null://", "count", "5", "trace", "t.parquet"), true},
		{"target", entries("target", "kafka://10.0.0.1/t"), false},
		{"build", entries("system-git", repo, "system-build", "make", "system-cmd", "./x -e"), true},
		{"a fault of a system that it did not start", entries("fault", "1s:stop=system,1s"), false},
		{"a fault of its system", entries("fault", "1s:stop=system,1s", "system-git", repo, "system-build", "make", "system-cmd", "./x"), true},
		{"a fault of a process", entries("fault", "1s:stop=pid:1,1s", "system-git", repo, "system-build", "make", "system-cmd", "./x"), false},
		{"build elsewhere", entries("system-git", base, "system-build", "make", "system-cmd", "./x"), false},
		{"the last folder counts", entries("system-git", repo, "system-git", base, "system-cmd", "./x"), false},
		{"command alone", entries("system-cmd", "./x"), false},
		{"secret in a file", entries("secret-token", "file:a.yaml"), true},
		{"secret of the user", entries("secret-token", "file:"+filepath.Join(base, "ann", "password")), true},
		{"secret of another user", entries("secret-token", "file:"+filepath.Join(base, "bob", "password")), false},
		{"secret below", entries("secret-token", "file:"+filepath.Join(base, "ann", "x", "password")), false},
		{"secret as another file", entries("trace", filepath.Join(base, "ann", "password")), false},
		{"secret in another file", entries("secret-token", "file:/etc/passwd"), false},
		{"payload", entries("payload", "file(a.yaml,random)"), true},
		{"payload with a delimiter", entries("payload", "file(a.yaml,delim=;)"), true},
		{"payload elsewhere", entries("payload", "file(/etc/passwd,random)"), false},
		{"seed of a ring", entries("payload", "ring(4MiB,file:../other/b.yaml)"), false},
		{"list of a check elsewhere", entries("check-values", "ring(4MiB,list(../other/b.yaml),1)"), false},
		{"list of a check", entries("check-values", "ring(4MiB,list(a.yaml),1)"), true},
		{"client property", entries("client-property", "ssl.truststore.location=/etc/x"), false},
		{"metrics", entries("metrics-addr", "127.0.0.1:0"), false},
		{"its metrics", entries("system-vars", "http://127.0.0.1:6060/debug/vars"), true},
		{"other metrics", entries("system-vars", "http://10.0.0.1:6060/debug/vars"), false},
		{"ready elsewhere", entries("system-git", repo, "system-cmd", "./x", "system-ready", "http://10.0.0.1/"), false},
		{"another file as store", entries("store", "sqlite:///var/other.db"), false},
		{"a cluster as store", entries("store", "elasticsearch://127.0.0.1:9200?user=u&password=file:a.yaml"), true},
		{"a cluster elsewhere", entries("store", "elasticsearch://10.0.0.1:9200"), false},
		{"a cluster with a variable", entries("store", "elasticsearch://127.0.0.1:9200?user=u&password=env:HOME"), false},
		{"a cluster with a file", entries("store", "elasticsearch://127.0.0.1:9200?ca=/etc/x"), false},
		{"a store whose scheme only begins like a cluster's", entries("store", "elasticsearchy:/../../other/x.db"), false},
		{"the same with an address that is allowed", entries("store", "elasticsearchy:@127.0.0.1/../../other/x.db"), false},
		{"a cluster without a host", entries("store", "elasticsearch:/../../other/x.db"), false},
		{"a cluster with a second certificate", entries("store", "elasticsearch://127.0.0.1:9200?ca=a.yaml&ca=/etc/x"), false},
		{"the server's store by its scheme", entries("store", "sqlite:///var/reports.db"), true},
		{"a flag of the system with a variable", entries("system-git", repo, "system-cmd", "./x", "system-flag", "a=env:HOME"), false},
		{"another build", entries("system-git", repo, "system-build", "sh -c id", "system-cmd", "./x"), false},
		{"a program of this machine", entries("system-git", repo, "system-cmd", "sh -c id"), false},
		{"a program outside the tree", entries("system-git", repo, "system-cmd", "./../../x"), false},
		{"a process", entries("system-git", repo, "system-pid", "1"), false},
		{"a log elsewhere", entries("system-git", repo, "system-cmd", "./x", "system-log", "/etc/x"), false},
		{"a variable from a file", entries("system-git", repo, "system-cmd", "./x", "system-env", "A=file:/etc/x"), false},
		{"the page of a run", entries("web", "0.0.0.0:1"), false},
		{"store of the server", entries("store", "/var/reports.db"), true},
		{"header", entries("header", "a: b"), true},
	} {
		err := r.Document(kinds, c.entries)
		assert.True(t, (err == nil) == c.ok, "%s: %v", c.name, err)
	}
}

func TestRulesEnvironment(t *testing.T) {
	r, _ := rules(t)
	name, value, _ := strings.Cut(r.Environment(), "=")
	t.Setenv(name, value)
	got, err := TakeRules()
	assert.True(t, err == nil && got.Folder == r.Folder && len(got.Targets) == 3 && len(got.Builds) == 1 && got.Store == r.Store, "%+v, %v", got, err)
	if got, err := TakeRules(); got != nil || err != nil { // they were taken
		t.Errorf("without rules: %+v, %v", got, err)
	}
	for _, bad := range []string{"{", "{}", "null", "x"} {
		t.Setenv(name, bad)
		got, err := TakeRules()
		assert.True(t, err != nil, "%q: %+v", bad, got)
	}
}

// TestThousandSubmissions: jobs that two users submit at once for one system, in several spellings, never
// run at the same time, and each runs once.
func TestThousandSubmissions(t *testing.T) {
	if runtime.GOOS == "windows" || testing.Short() {
		t.Skip("it needs a Unix shell and much time")
	}
	script := `mkdir here || echo "$2" >> overlaps; echo "$2" >> ran; rmdir here`
	s := openTestSite(t, jobs.Options{Program: []string{"/bin/sh", "-c", script}, Parallel: 3, QueuedPerUser: 1000}, func(l net.Listener) net.Listener { return l })
	bob := assert.Value(s.tokens.Add("bob"))(t)
	targets := []string{"kafka://localhost/t", "kafka://127.0.0.1:9092/u", "kafka://LOCALHOST:9092,b/t", "kafka://b,localhost./t"}
	const each = 500
	var work sync.WaitGroup
	for k, secret := range []string{s.secret, bob} {
		client := &http.Client{Transport: &http.Transport{}} // a connection of its own
		defer client.CloseIdleConnections()
		work.Go(func() {
			for i := range each {
				body, _ := json.Marshal(map[string]any{"args": []string{"run", targets[i%len(targets)], fmt.Sprintf("%d-%d", k, i)}}) //nolint:errchkjson // strings
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/api/v1/jobs", strings.NewReader(string(body)))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Authorization", "Bearer "+secret)
				r.Header.Set("Content-Type", "application/json")
				a, err := client.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, a.Body)
				a.Body.Close()
				assert.Equal(t, a.StatusCode, http.StatusCreated, "status")
			}
		})
	}
	work.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for id := range int64(2 * each) {
		job, err := s.queue.Wait(ctx, id+1)
		assert.Must(t, err == nil && job.State == jobs.Done, "%+v, %v", job, err)
	}
	if text, err := os.ReadFile(filepath.Join(s.folder, "overlaps")); err == nil {
		t.Errorf("these ran next to others: %s", text)
	}
	text, err := os.ReadFile(filepath.Join(s.folder, "ran"))
	ran := strings.Fields(string(text))
	slices.Sort(ran)
	assert.True(t, len(ran) == 2*each && len(slices.Compact(ran)) == 2*each, "%d jobs ran, %d of them different: %v", len(ran), len(slices.Compact(ran)), err)
}

// A counter is a listener that counts its open connections.
type counter struct {
	net.Listener
	accepted chan struct{}

	mu         sync.Mutex
	open, most int
}

type countedConn struct {
	net.Conn
	closed func()
}

func (c *counter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.open++
	c.most = max(c.most, c.open)
	c.mu.Unlock()
	c.accepted <- struct{}{}
	return &countedConn{conn, sync.OnceFunc(func() {
		c.mu.Lock()
		c.open--
		c.mu.Unlock()
	})}, nil
}

func (c *countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}

// TestThousandConnections: connections without a token have few places, and keep no user with a token
// out: neither a new one nor one that is connected.
func TestThousandConnections(t *testing.T) {
	testkit.Need(t, "some seconds")
	c := counter{accepted: make(chan struct{}, 2000)}
	s := openTestSite(t, jobs.Options{}, func(l net.Listener) net.Listener { c.Listener = l; return &c })
	dial := func() net.Conn {
		conn := assert.Value(net.Dial("tcp", strings.TrimPrefix(s.url, "http://")))(t)
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(time.Minute))
		return conn
	}
	ask := func(conn net.Conn) {
		t.Helper()
		fmt.Fprintf(conn, "GET /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n", s.secret)
		a, err := http.ReadResponse(bufio.NewReader(conn), nil)
		assert.Must(t, err == nil && a.StatusCode == http.StatusOK, "%+v, %v", a, err)
		a.Body.Close()
	}
	user := dial()
	ask(user)
	const many = 1000
	for k := range many {
		conn := dial()
		if k%2 == 0 {
			io.WriteString(conn, "GET /api/v1/status HTTP/1.1\r\nHost: ")
		}
	}
	for range many + 1 {
		<-c.accepted
	}
	ask(user)
	ask(dial())
	c.mu.Lock()
	defer c.mu.Unlock()
	if most := door.FromOne + 4; c.most > most { // those of the user, and one that comes while another leaves
		t.Errorf("%d connections were open at once, want %d at most", c.most, most)
	}
}

// TestSlowReader: a job does not wait for a client that follows its output and reads nothing.
func TestSlowReader(t *testing.T) {
	s := newTestSite(t)
	id := s.submit("run", "null://", "print")
	r := assert.Value(http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s/api/v1/jobs/%d/output?follow=1", s.url, id), http.NoBody))(t)
	r.Header.Set("Authorization", "Bearer "+s.secret)
	a := assert.Value(http.DefaultTransport.RoundTrip(r))(t) //nolint:bodyclose // it is closed below
	defer a.Body.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	job, err := s.queue.Wait(ctx, id)
	assert.Must(t, err == nil && job.State == jobs.Done, "%+v, %v", job, err)
	if text, err := io.ReadAll(a.Body); err == nil && (len(text) > manyLines*1000 || !strings.HasPrefix(string(text), "run null:// print\n")) {
		t.Errorf("%d bytes, %.99q", len(text), text)
	}
}

// TestArrivingDeadline: a client that sends a byte now and then loses its place.
func TestArrivingDeadline(t *testing.T) {
	began := time.Unix(1000, 0)
	for _, tt := range []struct {
		bytes       int64
		after, want time.Duration
	}{
		{0, 0, slowest},
		{1, slowest - time.Second, slowest + time.Second/leastRate},
		{10 * leastRate, 3 * time.Second, 3*time.Second + slowest},
		{10 * leastRate, 15 * time.Second, slowest + 10*time.Second},
	} {
		b := arriving{began: began, bytes: tt.bytes}
		assert.Equal(t, b.deadline(began.Add(tt.after)).Sub(began), tt.want, "%d bytes after %v", tt.bytes, tt.after)
	}
}

func TestTokens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	tokens := OpenTokens(dir)
	if all, err := tokens.List(); len(all) != 0 || err != nil {
		t.Fatalf("%v, %v", all, err)
	}
	ann := assert.Value(tokens.Add("ann"))(t)
	bob := assert.Value(tokens.Add("bob"))(t)
	own := tokens.AddOwn("owner")
	assert.True(t, len(ann) >= 22 && ann != bob, "tokens %q and %q", ann, bob)
	other := OpenTokens(dir) // of another process
	for secret, want := range map[string]string{ann: "ann", bob: "bob", own: "", "": "", ann + "x": "", ann[1:]: ""} {
		user, ok := other.User(secret)
		assert.True(t, user == want && ok == (want != ""), "%q is of %q, %v; want %q", secret, user, ok, want)
	}
	user, _ := tokens.User(own)
	assert.True(t, user == "owner", "own token is of %q", user)
	path := filepath.Join(dir, "tokens.json")
	text := assert.Value(os.ReadFile(path))(t)
	for _, secret := range []string{ann, bob, own} {
		assert.True(t, !strings.Contains(string(text), secret), "the file contains a token")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	assert.OK(t, tokens.Remove("ann"))
	_, ok := other.User(ann)
	assert.True(t, !ok, "a token that was removed is valid")
	_, ok = other.User(bob)
	assert.True(t, ok, "the token of another user was removed")
	err := tokens.Remove("ann")
	assert.True(t, errors.Is(err, ErrNoUser), "%v", err)
	for _, bad := range []string{"", "a b", "../x", "-x", strings.Repeat("x", 33), "a\n"} {
		_, err := tokens.Add(bad)
		assert.True(t, errors.Is(err, ErrUserName), "%q: %v", bad, err)
	}
	// With a damaged file no token is valid, and it is not overwritten.
	assert.OK(t, os.WriteFile(path, []byte("[{"), 0o600))
	_, ok = other.User(bob)
	assert.True(t, !ok, "a damaged file lets a user in")
	_, err = tokens.Add("eve")
	assert.ErrorHas(t, err, "damaged")
	user, _ = tokens.User(own)
	assert.True(t, user == "owner", "the server's own token depends on the file")
}

func TestLimiter(t *testing.T) {
	var l limiter
	now := time.Unix(1000, 0)
	assert.True(t, l.allowed("a", now), "the first try waits")
	l.failed("a", now)
	assert.True(t, !l.allowed("a", now.Add(tryEvery-1)), "a second try within a second")
	assert.True(t, l.allowed("b", now) && l.allowed("a", now.Add(tryEvery)), "others wait, or it waits for too long")
	for i := range 3 * mostTries {
		l.failed(fmt.Sprint(i), now)
	}
	assert.True(t, len(l.next) <= mostTries, "%d addresses are remembered", len(l.next))
}
