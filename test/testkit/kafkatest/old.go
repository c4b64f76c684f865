package kafkatest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// OldVersions are releases of Kafka with ZooKeeper, from the oldest that Carronade works with: for each, the jar of
// its server.
var OldVersions = map[string]string{"0.11.0.3": "kafka_2.12", "1.1.1": "kafka_2.12", "2.8.2": "kafka_2.12"}

// oldPOM lists the jars of an old release. Old poms bring no binding of logs that ZooKeeper starts with, and Java
// has no javax.xml.bind since version 11.
const oldPOM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>carronade</groupId>
  <artifactId>kafkatest-old</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>%s</artifactId><version>%s</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-log4j12</artifactId><version>1.7.25</version></dependency>
    <dependency><groupId>log4j</groupId><artifactId>log4j</artifactId><version>1.2.17</version></dependency>
    <dependency><groupId>javax.xml.bind</groupId><artifactId>jaxb-api</artifactId><version>2.3.1</version></dependency>
  </dependencies>
</project>
`

const oldLogging = `log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n
`

// StartOld starts one broker of an old release, and ZooKeeper, and returns its address. They end with the test.
func StartOld(t testing.TB, version string) (addr string) {
	t.Helper()
	testkit.OnlyConformance(t, "a real Kafka of an old release")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	artifact := OldVersions[version]
	old := testkit.Bundle{
		Name: "kafka-" + version, Project: fmt.Appendf(nil, oldPOM, artifact, version),
		Needs: []string{artifact + "-" + version + ".jar", "log4j-1.2.17.jar", "jaxb-api-2.3.1.jar"},
	}
	jars, err := old.Fetch(ctx)
	assert.OK(t, err)
	dir := t.TempDir()
	port, err := freePort()
	assert.OK(t, err)
	zooPort, err := freePort()
	assert.OK(t, err)
	write := func(name string, lines ...string) string {
		file := filepath.Join(dir, name)
		assert.OK(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
		return file
	}
	log4j := write("log4j.properties", oldLogging)
	launchJava := func(name, class, settings string, port int) {
		logFile := filepath.Join(dir, name+".log")
		p, err := launch(logFile, "java", "-Xmx400m", "-Dlog4j.configuration=file:"+log4j, "-Dzookeeper.admin.enableServer=false",
			"-cp", filepath.Join(jars, "*"), class, settings)
		assert.OK(t, err)
		t.Cleanup(p.kill)
		testkit.Until(t, name+" listens", func() bool {
			assert.Must(t, !p.ended(), "%s has ended:\n%s", name, tail(logFile, 4096))
			c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				return false
			}
			return c.Close() == nil
		})
	}
	launchJava("zookeeper", "org.apache.zookeeper.server.quorum.QuorumPeerMain", write("zookeeper.properties",
		"dataDir="+filepath.Join(dir, "zookeeper"), fmt.Sprintf("clientPort=%d", zooPort), "clientPortAddress=127.0.0.1"), zooPort)
	launchJava("kafka", "kafka.Kafka", write("server.properties",
		"broker.id=0", fmt.Sprintf("listeners=PLAINTEXT://127.0.0.1:%d", port), fmt.Sprintf("zookeeper.connect=127.0.0.1:%d", zooPort),
		"zookeeper.connection.timeout.ms=60000", "log.dirs="+filepath.Join(dir, "log"), "num.partitions=1", "delete.topic.enable=true",
		"offsets.topic.replication.factor=1", "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
		"group.initial.rebalance.delay.ms=0"), port)
	return fmt.Sprintf("127.0.0.1:%d", port)
}
