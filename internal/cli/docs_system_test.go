package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// exampleStore is the address of Elasticsearch in the examples.
const exampleStore = "127.0.0.1:9200"

// exampleCluster is the address of a real cluster in the examples, which stores
// reports.
const exampleCluster = "search.example:9200"

// startStore starts a server that imitates Elasticsearch: it only accepts and
// counts documents.
func startStore(t *testing.T) (addr string) {
	t.Helper()
	var documents atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/_bulk":
			text, _ := io.ReadAll(r.Body)
			n := bytes.Count(text, []byte("\n")) / 2
			documents.Add(int64(n))
			fmt.Fprintf(w, `{"items":[%s]}`, strings.TrimSuffix(strings.Repeat(`{"create":{"status":201}},`, n), ","))
		case strings.HasSuffix(r.URL.Path, "/_count"):
			fmt.Fprintf(w, `{"count":%d,"_shards":{"failed":0}}`, documents.Load())
		default:
			fmt.Fprint(w, `{"version":{"number":"9.6.0"},"status":"green"}`)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// exampleServer is built by the repository of the examples: a server that
// accepts and ignores an APM Server's flags.
const exampleServer = "#!/bin/sh\nexec carronade standin apm --listen 127.0.0.1:8200 --index http://" + exampleStore + "\n"

// exampleRepository creates the folder apm-server of the examples, a repository
// whose make builds a server.
func exampleRepository(t *testing.T, dir string, swap *strings.Replacer) {
	t.Helper()
	dir = filepath.Join(dir, "apm-server")
	assert.OK(t, os.Mkdir(dir, 0o755))
	for name, text := range map[string]string{
		"Makefile":   "apm-server: server.sh\n\tcp server.sh apm-server\n\tchmod +x apm-server\n",
		"server.sh":  swap.Replace(exampleServer),
		".gitignore": "apm-server\n",
	} {
		assert.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-qm", "a server"}, {"branch", "trace-apm-server"}} {
		cmd := exec.Command(testkit.Program(t, "git"), append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...)
		out, err := cmd.CombinedOutput()
		assert.Must(t, err == nil, "git %v: %v\n%s", args, err, out)
	}
	out, err := exec.Command(testkit.Program(t, "make"), "-C", dir).CombinedOutput()
	assert.Must(t, err == nil, "make: %v\n%s", err, out)
}
