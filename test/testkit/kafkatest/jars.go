package kafkatest

import (
	"context"
	_ "embed"
	"fmt"
	"sync"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// Version is the release of Apache Kafka that tests run.
const Version = "4.3.1"

// javaNeeded is the oldest Java that Kafka's brokers and tools run on since 4.0
// (KIP-1013).
const javaNeeded = 17

//go:embed pom.xml
var pom []byte

var (
	jarsOnce sync.Once
	jarsDir  string
	errJars  error
)

// Jars returns the directory with the jars of Kafka and its tools. The
// first call on a machine fetches them, some 55 MB, with Maven and the user's
// Maven settings; later ones find them in the user's cache. Several processes may
// call it at once.
func Jars(t testing.TB) string {
	t.Helper()
	testkit.Need(t, "the jars of Kafka")
	dir, err := jars()
	assert.OK(t, err)
	return dir
}

func jars() (string, error) {
	jarsOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if errJars = checkJava(); errJars != nil {
			return
		}
		jarsDir, errJars = bundle.Fetch(ctx)
	})
	return jarsDir, errJars
}

// bundle contains the jars of a broker and the tools.
var bundle = testkit.Bundle{
	Name: "kafka-" + Version, Project: pom,
	Needs: []string{"kafka_2.13-" + Version + ".jar", "kafka-tools-" + Version + ".jar", "log4j-slf4j-impl-2.25.4.jar"},
}

// checkJava checks the Java on the PATH, which runs brokers and tools.
func checkJava() error {
	switch n := testkit.JavaVersion("java"); {
	case n == 0:
		return fmt.Errorf("kafkatest: Java is missing; install a runtime of version %d or later: apt-get install default-jre-headless, or run scripts/deps as root", javaNeeded)
	case n < javaNeeded:
		return fmt.Errorf("kafkatest: Java %d is too old for Kafka %s; install a runtime of version %d or later", n, Version, javaNeeded)
	}
	return nil
}
