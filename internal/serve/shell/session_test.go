package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"carronade/internal/serve/jobs"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A fakeElasticsearch answers as Elasticsearch does.
type fakeElasticsearch struct {
	url     string
	docs    atomic.Int64
	deleted atomic.Value // the path of the last DELETE
}

// elasticsearch starts one. With a password it wants the login elastic:PASSWORD.
func elasticsearch(t *testing.T, password string) *fakeElasticsearch {
	t.Helper()
	f := &fakeElasticsearch{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, got, _ := r.BasicAuth(); password != "" && (user != "elastic" || got != password) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"reason":"unable to authenticate user with %s"}}`, got)
			return
		}
		switch {
		case r.Method == http.MethodDelete:
			f.deleted.Store(r.URL.Path)
			fmt.Fprint(w, `{"acknowledged":true}`)
		case r.URL.Path == "/_cluster/health":
			fmt.Fprint(w, `{"status":"yellow"}`)
		case strings.HasPrefix(r.URL.Path, "/apm-*") && strings.HasSuffix(r.URL.Path, "/_count"):
			fmt.Fprintf(w, `{"count":%d}`, f.docs.Load())
		case strings.HasPrefix(r.URL.Path, "/_cat/indices/apm-*"):
			fmt.Fprint(w, `[{"index":"apm-6.3.0-transaction-2018.05.18"},{"index":"apm-6.3.0-span-2018.05.18"}]`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error":"no handler"}`)
		}
	}))
	t.Cleanup(s.Close)
	f.url = s.URL
	return f
}

// repository makes a repository with a master and a branch of the remote axw. It returns its folder and the head of that branch.
func repository(t *testing.T) (dir, revision string) {
	t.Helper()
	dir = t.TempDir()
	other := filepath.Join(t.TempDir(), "axw")
	git(t, dir, "init", "-q", "-b", "master")
	write(t, filepath.Join(dir, "Makefile"), "all:\n\tcp server.sh apm-server\n")
	write(t, filepath.Join(dir, "server.sh"), "#!/bin/sh\n")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "first")
	git(t, dir, "clone", "-q", dir, other)
	git(t, other, "checkout", "-q", "-b", "trace-apm-server")
	write(t, filepath.Join(other, "trace"), "x")
	git(t, other, "add", ".")
	git(t, other, "commit", "-q", "-m", "trace the server")
	git(t, dir, "remote", "add", "axw", other)
	return dir, git(t, other, "rev-parse", "HEAD")
}

func write(t *testing.T, name, text string) {
	t.Helper()
	assert.OK(t, os.WriteFile(name, []byte(text), 0o644))
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(testkit.Program(t, "git"), append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	out, err := cmd.CombinedOutput()
	assert.OK(t, err, "git %v: : %s", args, out)
	return strings.TrimSpace(string(out))
}

// closedPort is the address of a port on which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().String()
}

func wants(t *testing.T, got, want string) {
	t.Helper()
	assert.Equal(t, got, want, "answer")
}

// TestDocumentedSession types the session of the tool's document, line by line.
func TestDocumentedSession(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir, revision := repository(t)
	es, q, address := elasticsearch(t, ""), newFakeQueue(), closedPort(t)
	d := talk(t, Options{Queue: q})

	wants(t, d.do("elasticsearch use "+es.url), "using "+es.url+"\n")
	wants(t, d.do("apm use "+dir+" --url http://"+address), "using "+dir+"\n")
	wants(t, d.do("status"), "ElasticSearch ["+es.url+"]: yellow ,  0 docs\n"+
		"ApmServer [http://"+address+"]: not running\n"+
		"Using "+dir+": unknown branch (hint: apm switch <branch>)\n"+
		"0 commands queued\n")
	wants(t, d.do("test 30s 1 2 3 4"), "unknown branch/revision (hint: apm switch <branch>)\n")

	// Without -c it only records the current tree.
	wants(t, d.do("apm switch -v master"), "using "+dir+": master, "+git(t, dir, "log", "-1", "--oneline")+"\n")
	assert.Has(t, d.do("apm switch -v axw/trace-apm-server "+revision), "the current tree is at", "(hint: apm switch -c checks it out)")

	wants(t, d.do("apm switch -fcmv axw/trace-apm-server "+revision), "")
	assert.Has(t, d.do("status"), "Using "+dir+": master, ", "\nrunning ", "[apm switch -fcmv axw/trace-apm-server "+revision+"]\n0 commands queued\n")
	assert.Has(t, d.do("test 30s 1 2 3 4 -E apm-server.tracing.enabled=true"), "(queued) position 2, job 2\n")
	assert.Has(t, d.do("status"), "1 commands queued\n "+ID("test 30s 1 2 3 4 -E apm-server.tracing.enabled=true")+"  [test 30s 1 2 3 4 -E apm-server.tracing.enabled=true]\n")

	want := []string{
		"system build " + dir + " --branch trace-apm-server --fetch axw --make make --checkout " + revision + " -v",
		"as hey-apm -base-url http://" + address + " -apm-es-url " + es.url + " -es-url " + es.url +
			" -system-git " + dir + " -system-branch trace-apm-server -system-checkout " + revision + " -system-build make" +
			" -system-cmd './apm-server -e -E apm-server.host=" + address + " -E output.elasticsearch.hosts=" + es.url + "'",
	}
	got := q.args()
	if len(got) != 2 || got[0] != want[0] || !strings.HasPrefix(strings.ReplaceAll(got[1], `"`, "'"), want[1]) || !strings.HasSuffix(got[1], " test 30s 1 2 3 4 -E apm-server.tracing.enabled=true") {
		t.Errorf("jobs\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	// The output of a job appears next to the prompt.
	q.print(1, "building\n")
	assert.Has(t, d.until("building\n"), "")
	q.end(1, jobs.Done, 0, "")
	d.until(promptText)
	q.print(2, "started new work, payload size is 3.8kb...\non branch trace-apm-server , cmd = [30s 1 2 3 4]\n")
	assert.Has(t, d.until("payload size"), "[test 30s 1 2 3 4 -E apm-server.tracing.enabled=true]\n")
	q.end(2, jobs.Done, 0, "")
	d.until(promptText)

	// define, and the lines that its names make.
	for _, line := range []string{"define co apm switch -fcmv $", "define ones test 30s 1 1 1 1", "define tens test 30s 10 10 10 1", "define do co ; ones ; tens"} {
		wants(t, d.do(line), "ok\n")
	}
	wants(t, d.do("define"), "co apm switch -fcmv $\ndo co ; ones ; tens\nones test 30s 1 1 1 1\ntens test 30s 10 10 10 1\n")
	git(t, dir, "remote", "add", "origin", dir)
	d.do("do ; do master axw/trace-apm-server")
	var typed []string
	list, _ := q.Jobs(t.Context(), jobs.Filter{})
	for _, j := range list[2:] {
		typed = append(typed, j.Typed)
	}
	want = []string{
		"apm switch -fcmv master", "test 30s 1 1 1 1", "test 30s 10 10 10 1",
		"apm switch -fcmv axw/trace-apm-server", "test 30s 1 1 1 1", "test 30s 10 10 10 1",
	}
	assert.True(t, slices.Equal(typed, want), "queued %q, want %q", typed, want)
	wants(t, d.do("verify -n 168h branch=master duration=30s events=10 spans=10 frames=10 concurrency=1 limit=-1"),
		"ran verify -n 168h branch=master duration=30s events=10 spans=10 frames=10 concurrency=1 limit=-1 --store elasticsearch://"+strings.TrimPrefix(es.url, "http://")+"\n")
	// Equal words have one id.
	assert.Has(t, d.do("cancel "+ID("test 30s 1 1 1 1")), "3 commands queued\n")
	d.send("quit\n")
	d.until("bye!\n")
	assert.OK(t, d.end())

	// Another user has other settings.
	d = talk(t, Options{Queue: q, User: "bob"})
	assert.Has(t, d.do("status"), "Kafka not configured (hint: kafka use <url>)\nElasticSearch not configured (hint: elasticsearch use <url>)\nApmServer not configured (hint: apm use <dir>)\n")
}

func TestCollate(t *testing.T) {
	type m = map[string]any
	cell := func(x float64) m { return m{"median": x} }
	rowOf := func(id, value string, pushed, accepted, docs, batch, index, rss, effic float64, mark string) m {
		return m{"text": value, "reports": []string{id}, "revision_date": "2018-05-18T10:21:00Z", "measured": m{
			"pushed": cell(pushed), "accepted": cell(accepted), "indexed": cell(docs), "per_batch": cell(batch), "service_mean": cell(20 * batch), "index_share": cell(index), "max_rss": cell(rss),
			"efficiency": m{"median": effic, mark: true},
		}}
	}
	of := func(name, value string) m { return m{"name": name, "value": value} }
	doc := assert.Value(json.Marshal(m{"variable": "flag.apm-server.tracing.enabled", "groups": []m{{
		"equal": []m{of("branch", "trace-apm-server"), of("concurrency", "20"), of("events", "10"), of("for", "30s"), of("frames", "10"), of("revision", "c961d664fbe5893d523bd9077be64617f57a96e7"), of("spans", "10"), of("gzip", "6")},
		"rows": []m{
			rowOf("v5yruht0", "false", 7.5e6, 4.8e6, 435.3, 0.185, 0.733, 432.9e6, 0.669, "noisy"),
			rowOf("958l1oly", "true", 7.7e6, 4.0e6, 349.6, 0.222, 0.706, 428.3e6, 0.564, "ahead"),
		},
	}}}))(t)
	var ran string
	o := Options{Queue: newFakeQueue(), Color: true, Run: runPrinting(string(doc), &ran)}
	d := talk(t, o)
	got := d.do("collate apm-server.tracing.enabled branch=trace-apm-server limit=4g")
	wants(t, strings.ReplaceAll(strings.ReplaceAll(got, grey, ""), plain, ""),
		"duration 30s  events 10  spans 10  frames 10  concurrency 20  branch trace-apm-server  revision c961d664fbe5893d523bd9077be64617f57a96e7\n"+
			"report id  revision date   pushed     accepted    throughput  latency  index  max rss  effic  apm-server.tracing.enabled\n"+
			"v5yruht0   18-05-18 10:21  7.5Mbps    4.8Mbps     435.3dps    3700ms   73.3%  432.9Mb  0.669  false\n"+
			green+"958l1oly   18-05-18 10:21  7.7Mbps    4.0Mbps     349.6dps    4440ms   70.6%  428.3Mb  0.564  true\n"+
			"958l1oly is ahead, unproven: its efficiency is more than twice that of the\nothers, with too few repetitions to tell that from noise\n\n"+cyan)
	wants(t, ran, "collate apm-server.tracing.enabled branch=trace-apm-server limit=4000000000 --filter-starts --json --all")
	got = d.do("collate apm-server.tracing.enabled --csv")
	assert.Has(t, got, "duration,events,spans,frames,concurrency,branch,revision,report id,revision date,pushed,", "\n30s,10,10,10,20,trace-apm-server,c961d664fbe5893d523bd9077be64617f57a96e7,v5yruht0,18-05-18 10:21,7.5Mbps,", ",true,,\"ahead, unproven\"\n")
	got = d.do("collate apm-server.tracing.enabled --strict")
	assert.Has(t, got, "435.3dps    185ms    73.3%", "349.6dps    222ms    70.6%") // the tool's formula
	wants(t, ran, "collate apm-server.tracing.enabled --json --all")
	marked := bytes.ReplaceAll(bytes.ReplaceAll(doc, []byte(`"text":"false"`), []byte(`"text":"false","untrusted":1`)), []byte(`"text":"true"`), []byte(`"text":"true","noisy":1`))
	o.Run = runPrinting(string(marked), &ran)
	assert.Has(t, talk(t, o).do("collate apm-server.tracing.enabled"), "v5yruht0!  18-05-18", "958l1oly~  18-05-18", "!: not trusted, the generator was the limit; ~: noisy")
	assert.Has(t, talk(t, o).do("collate apm-server.tracing.enabled --csv"), ",v5yruht0!,", ",958l1oly~,")
	doc = bytes.ReplaceAll(doc, []byte(`"ahead":true`), []byte(`"best":true`))
	o.Run = runPrinting(string(doc), &ran)
	assert.Has(t, talk(t, o).do("collate apm-server.tracing.enabled"), green+"958l1oly ", "\n958l1oly has the best efficiency\n\n")
	assert.Has(t, d.do("collate branch=x"), "<variable> argument is required")
	assert.Has(t, d.do("collate branch x"), "x is not a valid filter, must use one of = != < >")
}

// A password is in no answer, no job, no file but its own, and no command line.
func TestPasswords(t *testing.T) {
	const password = "p4ss-word'\"$"
	es, q, home := elasticsearch(t, password), newFakeQueue(), filepath.Join(t.TempDir(), "home")
	var ran []string
	o := Options{Queue: q, Home: home}
	o.Run = func(_ context.Context, args []string, _ io.Writer) int { ran = append(ran, args...); return 0 }
	d := talk(t, o)
	assert.Has(t, d.do(`elasticsearch use `+es.url+` elastic wrong`), "it answered 401: unable to authenticate user", "(hint: is it running, and are user and password right?)")
	assert.Has(t, d.do("status"), "ElasticSearch not configured")
	wants(t, d.do(`elasticsearch use `+es.url+` elastic "p4ss-word'\"$"`), "using "+es.url+"\n")
	d.do("apm use http://" + closedPort(t))
	d.do("test 30s 1 2 3 4")
	d.do("status")
	d.do("collate concurrency")
	d.do("verify branch=x")
	assert.Has(t, d.do("elasticsearch use http://elastic:p4ss-word@127.0.0.1:1"), "must not contain a login")
	assert.Has(t, d.do("test 30s 1 2 3 4 -E output.elasticsearch.password=p4ss"), "flags for the server need a server")
	assert.Has(t, d.do("run apm --secret-token p4ss-word"), "the line contains a secret")
	d.send("elasticsearch reset\n")
	d.until("yes or no: ")
	d.do("yes")
	s := strings.Join(q.args(), " ") + strings.Join(ran, " ") + d.transcript()
	assert.True(t, !strings.Contains(s, "p4ss") && !strings.Contains(s, "wrong"), "the password is in %s", s)
	assert.True(t, len(q.args()) == 2 && strings.Contains(q.args()[0], "-apm-es-auth elastic:file:"+home+"/password-") && strings.Contains(strings.Join(ran, " "), "password=file"),
		"jobs %q, commands %q: no reference to the password", q.args(), ran)
	files := assert.Value(os.ReadDir(home))(t)
	info, _ := os.Stat(home)
	assert.True(t, info.Mode().Perm() == 0o700, "the folder has mode %v", info.Mode())
	holds := 0
	for _, f := range files {
		data, _ := os.ReadFile(filepath.Join(home, f.Name()))
		info, _ := f.Info()
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", f.Name(), info.Mode())
		}
		if strings.Contains(string(data), "p4ss") {
			holds++
			assert.True(t, string(data) == password && strings.HasPrefix(f.Name(), "password-"), "%s holds %q", f.Name(), data)
		}
	}
	assert.Equal(t, holds, 1, "files that hold the password")
	// The next session of the user knows it.
	d = talk(t, Options{Queue: q, Home: home})
	assert.Has(t, d.do("status"), "yellow ,  0 docs")
	wants(t, d.do("elasticsearch use last"), "using "+es.url+"\n")
}

// Nothing is deleted before a yes, and then by a job.
func TestReset(t *testing.T) {
	es, q := elasticsearch(t, ""), newFakeQueue()
	es.docs.Store(7)
	d := talk(t, Options{Queue: q})
	assert.Has(t, d.do("elasticsearch reset"), "no Elasticsearch is in use (hint: elasticsearch use <url>)")
	d.do("elasticsearch use " + es.url)
	for _, answer := range []string{"no", "", "y", "elasticsearch reset"} {
		d.send("elasticsearch reset\n")
		wants(t, d.until("? yes or no: "), "delete all indices apm-* of "+es.url+" (now 2 with 7 docs)")
		wants(t, d.do(answer), "nothing deleted\n")
	}
	assert.Must(t, len(q.args()) == 0, "jobs %q", q.args())
	d.send("elasticsearch reset\n")
	d.until("? yes or no: ")
	wants(t, d.do("yes"), "")
	wants(t, strings.Join(q.args(), "|"), "as hey-apm -apm-es-url "+es.url+" elasticsearch reset --yes")
	assert.True(t, es.deleted.Load() == nil, "the session deleted, not the job")
}

// Two users: one queue, settings of their own, and no control characters from each other.
func TestTwoSessions(t *testing.T) {
	q := newFakeQueue()
	ann, bob := talk(t, Options{Queue: q, User: "ann"}), talk(t, Options{Queue: q, User: "b\x1b[2Job"})
	ann.do("run null:// --rate 1k/s")
	_, _, err := q.Submit(t.Context(), jobs.Request{User: "b\x1b[2Job", Typed: "run \x1b]0;x\a\u202e '", Args: []string{"run"}})
	assert.OK(t, err)
	assert.Has(t, bob.do("run null:// --rate 2k/s"), "(queued) position 3, job 3\n")
	assert.Has(t, bob.do("define one run null://"), "ok")
	assert.Has(t, ann.do("define"), "nothing to show")
	got := ann.do("status")
	assert.Has(t, got, "running "+ID("run null:// --rate 1k/s")+"  [run null:// --rate 1k/s]\n2 commands queued\n", `[run \x1b]0;x\x07\u202e ']  of b\x1b[2Job`)
	assert.True(t, !strings.ContainsAny(got, "\x1b\a") && !strings.Contains(got, "\u202e"), "control characters in %q", got)
	assert.Has(t, ann.do("cancel 3"), "the job belongs to another user")
	assert.Has(t, bob.do("cancel"), "ok\n")
	assert.Has(t, bob.do("cancel 77"), " commands queued\n")
	assert.Has(t, ann.do("attach 77"), "no job 77 of yours")
	// Output of a job reaches who submitted it, escaped.
	q.print(1, "a\x1b[2Jb\r\nc\td\n")
	wants(t, ann.until("d\n"), "\n"+`a\x1b[2Jb`+"\nc\t")
	q.end(1, jobs.Failed, 2, "the target is \x1b[31mdown")
	assert.Has(t, ann.until(promptText), `job 1 ended with exit code 2: the target is \x1b[31mdown`+"\n")
	assert.True(t, !strings.Contains(bob.transcript(), "2Jb"), "output of ann's job reached bob")
	// An owner may cancel what others run.
	owner := talk(t, Options{Queue: q, User: "root", Owner: true})
	assert.Has(t, owner.do("cancel 3"), " commands queued\n")
	assert.Has(t, bob.until(promptText), "job 3 cancelled: by its user")
}

// A disconnect stops no job and leaves no goroutine of the session.
func TestDisconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it fails if a goroutine is left
		q := newFakeQueue()
		for range 3 {
			d := talk(t, Options{Queue: q, User: "ann"})
			d.do("run null://")
			d.conn.Close()
			err := d.end()
			assert.True(t, err == nil, "%v", err)
			q.mu.Lock()
			assert.True(t, q.reading <= 0, "the session ended before those that follow its jobs")
			q.mu.Unlock()
		}
		list, _ := q.Jobs(t.Context(), jobs.Filter{States: []jobs.State{jobs.Queued, jobs.Running}})
		assert.Equal(t, len(list), 3, "jobs left")
		// The output waits for who comes back.
		q.print(1, "line\n")
		d := talk(t, Options{Queue: q, User: "ann"})
		d.send("attach 1\n")
		assert.Has(t, d.until("line\n"), "[run null://]")
		d.send("detach\n")
		d.until("ok\n")
		d.until(promptText)
		assert.Has(t, d.do("detach"), "nothing is attached\n")
		q.print(1, "unseen\n")
		d.do("status")
		assert.True(t, !strings.Contains(d.transcript(), "unseen"), "output after detach")
		d.do("attach 1")
		d.send("quit\n")
		d.until("bye!\n")
		err := d.end()
		assert.True(t, err == nil, "%v", err)
	})
}

func TestBadLines(t *testing.T) {
	q := newFakeQueue()
	d := talk(t, Options{Queue: q})
	assert.Has(t, d.do("stauts"), "nothing done for stauts (hint: did you mean status?)")
	assert.Has(t, d.do("frobnicate"), "nothing done for frobnicate (hint: help lists the commands)")
	assert.Has(t, d.do("a\x1b[A"), `the line has characters that are not text: a\x1b[A (hint: arrow keys need rlwrap)`)
	assert.Has(t, d.do(strings.Repeat("x", MaxLine+1)), "longer than 8192 bytes")
	assert.Has(t, d.do("test 30s 1 2 3"), "usage: test DURATION EVENTS SPANS FRAMES CONCURRENCY")
	assert.Has(t, d.do("define test x"), "test is a reserved word")
	assert.Has(t, d.do("define x y x"), "x can't appear in the right side")
	assert.Has(t, d.do("status ; define x y"), "define can only be the first word in a line")
	wants(t, d.do("define x a"), "ok\n")
	wants(t, d.do("define y x"), "ok\n")
	wants(t, d.do("define x b"), "updated old value: a\n")
	wants(t, d.do("define rm x"), "still used by y\nok\n")
	assert.Has(t, d.do("define rm x"), "x is not defined")
	assert.Has(t, d.do("define es elasticsearch use http://127.0.0.1:9200 ann pw"), "a definition must not contain a password")
	wants(t, d.do("define y"), "y x\n")
	assert.Has(t, d.do("help tset"), "nothing done for tset (hint: did you mean test?)")
	assert.Has(t, d.do("help test"), "test DURATION EVENTS SPANS FRAMES CONCURRENCY")
	assert.Has(t, d.do("help run"), "ran help run\n")
	assert.Has(t, d.do("help"), "apm switch [-fcumv] BRANCH [REVISION]", "carronade's own commands")
	assert.Has(t, d.do("report list ; version"), "ran report list\nran version\n")
	assert.Has(t, d.do("apm use docker"), "apm use docker: ")
	assert.Has(t, d.do("apm use "+filepath.Join(t.TempDir(), "none")), "Can't ch to directory ", "(hint: apm use <dir>)")
	q.refuse = errors.New("the queue is full")
	assert.Has(t, d.do("run null://"), "the queue is full")
	d.send("\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\nrun null://\r\n")
	err := d.end()
	assert.True(t, errors.Is(err, errHTTP), "a web page: %v", err)
}

func TestTail(t *testing.T) {
	home := t.TempDir()
	d := talk(t, Options{Queue: newFakeQueue(), Home: home, Color: true})
	assert.Has(t, d.do("apm tail"), "no server was started in this shell yet")
	var b strings.Builder
	for i := range 30 {
		fmt.Fprintf(&b, "INFO line %d\n", i)
	}
	write(t, filepath.Join(home, "apm.log"), b.String()+"WARN slow \x1b[2J\nERROR down\n")
	got := d.do("apm tail")
	assert.Has(t, got, "INFO line 22\n", yellow+`WARN slow \x1b[2J`, red+"ERROR down", "[time now ")
	assert.True(t, !strings.Contains(got, "line 21"), "more than 10 lines: %s", got)
	for _, line := range []string{"apm tail -n 2 INFO", "apm tail -2 INFO", "apm tail INFO -n2"} {
		got := d.do(line)
		assert.True(t, strings.Count(got, "INFO line 2") == 2 && !strings.Contains(got, "line 27"), "%s: %q", line, got)
	}
	assert.Has(t, d.do("apm tail -n x"), "x is not a number of lines")
}

// The words apm, kafka and riemann in carronade's commands mean the systems in use.
func TestSystemWords(t *testing.T) {
	q := newFakeQueue()
	d := talk(t, Options{Queue: q})
	assert.Has(t, d.do("kafka list"), "no kafka is in use (hint: kafka use <url>)")
	wants(t, d.do("kafka use kafka://127.0.0.1:9092/t"), "using kafka://127.0.0.1:9092/t\n")
	wants(t, d.do("riemann use riemann://127.0.0.1:5555"), "using riemann://127.0.0.1:5555\n")
	assert.Has(t, d.do("kafka use http://127.0.0.1"), "the address of a kafka is a URL that begins with kafka://")
	wants(t, d.do("kafka list"), "ran topics list kafka://127.0.0.1:9092/t --no-store\n")
	wants(t, d.do("riemann list"), "ran query riemann://127.0.0.1:5555 true\n")
	d.do("run kafka --rate 1k/s --label kafka")
	d.do("run riemann --label 'a b'")
	wants(t, strings.Join(q.args(), "|"), "run kafka://127.0.0.1:9092/t --rate 1k/s --label kafka|run riemann://127.0.0.1:5555 --label 'a b'")
	list, _ := q.Jobs(t.Context(), jobs.Filter{})
	assert.True(t, list[0].System == "kafka://127.0.0.1:9092/t" && list[1].System == "riemann://127.0.0.1:5555" &&
		list[1].Typed == "run riemann --label 'a b'", "jobs %+v", list)
}

// A session that may not connect to an address neither asks it nor keeps a password for it.
func TestAddresses(t *testing.T) {
	home := t.TempDir()
	d := talk(t, Options{Queue: newFakeQueue(), Home: home, Allow: &Permit{Address: func(string) error { return errors.New("not that one") }}})
	for _, line := range []string{"kafka use kafka://127.0.0.1:9092/t", "apm use http://127.0.0.1:8200", "elasticsearch use http://127.0.0.1:9200 ann hunter2secret"} {
		wants(t, d.do(line), "not that one\n")
	}
	kept := assert.Value(os.ReadDir(home))(t)
	for _, f := range kept {
		assert.True(t, !strings.HasPrefix(f.Name(), "password"), "%s is kept", f.Name())
	}
}
