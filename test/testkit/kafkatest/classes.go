package kafkatest

import (
	"crypto/sha256"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"time"

	"carronade/test/testkit"
)

// shortLived are options for a JVM that runs for seconds and is not measured: only
// the first compiler runs, which halves the CPU time of a start.
var shortLived = []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}

// quick are the options of a JVM that is not measured: shortLived, and the archive of classes.
func quick() []string { return slices.Concat(shortLived, classes()) }

// classes are options with which a JVM maps Kafka's classes from an archive, instead of
// reading and verifying them from the jars. That halves the CPU time of a broker's start once
// more. A JVM that cannot use the archive starts without it, and says nothing. There are no
// options if the archive cannot be made: no result depends on it.
var classes = sync.OnceValue(func() []string {
	file, err := classArchive()
	if err != nil {
		return nil
	}
	return []string{"-XX:SharedArchiveFile=" + file, "-Xlog:cds*=off"}
})

// classArchive returns the archive of the classes that a broker loads, in the user's cache.
// The first call on a machine makes it, by starting and stopping a node. An archive is for
// one build of Java and one directory of jars, so both are in its name.
func classArchive() (string, error) {
	dir, err := jars()
	if err != nil {
		return "", err
	}
	build, err := exec.Command("java", "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kafkatest: ask Java for its version: %w", err)
	}
	sum := sha256.Sum256(append(build, dir...))
	return testkit.Make(fmt.Sprintf("kafka-%s-%x.jsa", Version, sum[:6]), func(path string) error {
		c, err := startWith(Config{Heap: "512m"}, append([]string{"-XX:ArchiveClassesAtExit=" + path}, shortLived...))
		if err != nil {
			return err
		}
		defer c.close(false)
		return c.nodes[0].process.stop(time.Minute)
	})
}
