package testkit

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed Start.java
var startSource []byte

// module is the path of the descriptor in a jar of an Elasticsearch module.
const module = "META-INF/es-plugins/transport-netty4/plugin-descriptor.properties"

// command prepares the process of a node of Elasticsearch 8 or later in n.dir, at a
// port that is currently free. A module is a folder with jars and a descriptor. The
// class that starts the node is compiled at each start, in 2 s.
func (n *SearchNode) command(java, jars string) (*exec.Cmd, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n.URL = "http://" + l.Addr().String()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	transport := filepath.Join(n.dir, "modules", "transport-netty4")
	for _, dir := range []string{"config", "plugins", "lib", "logs", "modules/transport-netty4"} {
		if err := os.MkdirAll(filepath.Join(n.dir, dir), 0o755); err != nil {
			return nil, err
		}
	}
	text := searchSettings + "http.port: " + port + "\n"
	if err := os.WriteFile(filepath.Join(n.dir, "config", n.release.config), []byte(text), 0o644); err != nil {
		return nil, err
	}
	all, err := os.ReadDir(jars)
	if err != nil {
		return nil, err
	}
	var path []string
	for _, e := range all {
		jar := filepath.Join(jars, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "ecj-"):
		case strings.HasPrefix(e.Name(), "netty-"), strings.HasPrefix(e.Name(), "transport-netty4-"):
			if err := os.Symlink(jar, filepath.Join(transport, e.Name())); err != nil {
				return nil, err
			}
		default:
			path = append(path, jar)
		}
	}
	descriptor, err := readDescriptor(filepath.Join(jars, jarFile(n.release.jars[1])))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(transport, "plugin-descriptor.properties"), descriptor, 0o644); err != nil {
		return nil, err
	}
	source := filepath.Join(n.dir, "Start.java")
	if err := os.WriteFile(source, startSource, 0o644); err != nil {
		return nil, err
	}
	class := strings.Join(path, string(os.PathListSeparator))
	compile := exec.Command(java, "-jar", filepath.Join(jars, jarFile(compiler)), "-source", "17", "-target", "17", "-proc:none", "-nowarn", "-cp", class, "-d", n.dir, source)
	if out, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile Start.java: %w\n%s", err, out)
	}
	return exec.Command(java, "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Des.path.home="+n.dir,
		"-cp", n.dir+string(os.PathListSeparator)+class, "Start", n.dir), nil
}

// readDescriptor reads a module's descriptor, without the name of its Java module:
// here everything is on the class path.
func readDescriptor(jar string) ([]byte, error) {
	r, err := zip.OpenReader(jar)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err := r.Open(module)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return moduleName.ReplaceAll(text, nil), nil
}

var moduleName = regexp.MustCompile(`(?m)^modulename=.*$`)

// startProxy starts a proxy in front of a node made of jars. The jars lack the handler
// of the root path, so the proxy answers there as a distribution does (Elasticsearch's
// "Root API"). Version 9 also lacks the native library for its best compression, so
// the proxy requests the default one instead.
func (n *SearchNode) startProxy() error {
	res, err := searchClient.Get(n.URL + "/_nodes/_local?filter_path=nodes.*.version")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var found struct {
		Nodes map[string]struct{ Version string }
	}
	if err := json.NewDecoder(res.Body).Decode(&found); err != nil {
		return err
	}
	version := ""
	for _, node := range found.Nodes {
		version = node.Version
	}
	if "elasticsearch-"+version != n.release.name {
		return errors.New("the started node has version " + version)
	}
	to, err := url.Parse(n.URL)
	if err != nil {
		return err
	}
	node := httputil.NewSingleHostReverseProxy(to)
	n.proxy = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" || r.Method != http.MethodGet {
			if r.Method == http.MethodPut && strings.HasPrefix(version, "9.") { // searchSettings; documents use POST
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return // the client is gone
				}
				body = bytes.ReplaceAll(body, []byte(`"best_compression"`), []byte(`"default"`))
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			}
			node.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
		fmt.Fprintf(w, `{"name":"node","cluster_name":"test","version":{"number":%q},"tagline":"You Know, for Search"}`, version)
	}))
	n.URL = n.proxy.URL
	return nil
}
