package testkit

import (
	"strings"
	"testing"
)

func TestReleaseOf(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"", "opensearch-" + SearchVersion},
		{"opensearch-3", "opensearch-3.8.0"},
		{"elasticsearch-7", "elasticsearch-7.10.2"},
		{"elasticsearch-9.5.3", "elasticsearch-9.5.3"},
	} {
		if r, err := releaseOf(tt.name); err != nil || r.name != tt.want {
			t.Errorf("%q: got %v and %v, want %s", tt.name, r, err, tt.want)
		}
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
