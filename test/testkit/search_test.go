package testkit

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

func TestMain(m *testing.M) { os.Exit(SearchMain(m)) }

func TestSharedSearch(t *testing.T) {
	n := SharedSearch(t)
	index := SearchIndex(t, "apm")
	n.Add(t, index, 7000)
	res := assert.Value(http.Get(n.URL + "/" + index + "/_count"))(t)
	defer res.Body.Close()
	var got struct{ Count int }
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil || got.Count != 7000 {
		t.Errorf("got %d documents, %v; want 7000", got.Count, err)
	}
	assert.True(t, SearchIndex(t, "apm") != index, "two indices named %s", index)
}

func TestReleaseOf(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"", "opensearch-" + SearchVersion},
		{"opensearch-3", "opensearch-3.8.0"},
		{"elasticsearch-7", "elasticsearch-7.10.2"},
		{"elasticsearch-9.5.3", "elasticsearch-9.5.3"},
	} {
		r, err := releaseOf(tt.name)
		assert.True(t, err == nil && r.name == tt.want, "%q: got %v and %v, want %s", tt.name, r, err, tt.want)
	}
	if _, err := releaseOf("solr"); err == nil || !strings.Contains(err.Error(), "elasticsearch-8.19.21") {
		t.Errorf("got %v, want a list of the releases", err)
	}
}

func TestProject(t *testing.T) {
	for i := range releases {
		text := string(releases[i].project())
		for _, jar := range releases[i].jars {
			if part := strings.Split(jar, ":"); len(part) != 3 || !strings.Contains(text, "<artifactId>"+part[1]+"</artifactId><version>"+part[2]+"<") {
				t.Errorf("%s: %s is not in\n%s", releases[i].name, jar, text)
			}
		}
	}
}

// fakeMaven puts a mvn into PATH that makes these jars and counts its calls.
func fakeMaven(t *testing.T, jars ...string) (calls func() int) {
	t.Helper()
	Program(t, "mkdir")
	dir := t.TempDir()
	script := "#!/bin/sh\ntest -s pom.xml || exit 1\necho >>" + filepath.Join(dir, "calls") + "\nmkdir jars\n"
	for _, j := range jars {
		script += "echo jar >jars/" + j + "\n"
	}
	assert.OK(t, os.WriteFile(filepath.Join(dir, "mvn"), []byte(script), 0o755))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() int {
		data, _ := os.ReadFile(filepath.Join(dir, "calls"))
		return strings.Count(string(data), "\n")
	}
}

var testBundle = &Bundle{Name: "server-1", Project: []byte("<project/>"), Needs: []string{"server-1.jar", "tools-1.jar"}}

func TestFetchOnce(t *testing.T) {
	calls := fakeMaven(t, testBundle.Needs...)
	cache := t.TempDir()
	const readers = 4
	errs := make(chan error)
	for range readers {
		go func() {
			_, err := testBundle.fetch(t.Context(), cache)
			errs <- err
		}()
	}
	for range readers {
		assert.Equal(t, <-errs, nil)
	}
	assert.Equal(t, calls(), 1, "Maven ran times")
	left, err := filepath.Glob(filepath.Join(cache, "*.part-*"))
	assert.True(t, err == nil && len(left) <= 0, "left behind: %v, %v", left, err)
}

func TestFetchRepairs(t *testing.T) {
	fakeMaven(t, testBundle.Needs...)
	cache := t.TempDir()
	assert.OK(t, os.MkdirAll(filepath.Join(cache, testBundle.Name), 0o755))
	dir, err := testBundle.fetch(t.Context(), cache)
	assert.True(t, err == nil && testBundle.complete(dir), "an incomplete cache is not repaired: %v", err)
}

func TestFetchFails(t *testing.T) {
	tests := []struct {
		name string
		path func(t *testing.T)
		want string
	}{
		{"no Maven", func(t *testing.T) { t.Setenv("PATH", t.TempDir()) }, "apt-get install maven"},
		{"Maven makes too few jars", func(t *testing.T) { fakeMaven(t, testBundle.Needs[0]) }, "left no server-1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.path(t)
			if _, err := testBundle.fetch(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}
