package kafkatest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Version is the release of Apache Kafka that is run.
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

// Jars returns the directory that holds the jars of Kafka and its tools. The
// first call on a machine fetches them, some 55 MB, with Maven and the user's
// own settings for it; later ones find them in the user's cache. Several
// processes may call it at once.
func Jars(t testing.TB) string {
	t.Helper()
	dir, err := jars()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func jars() (string, error) {
	jarsOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if errJars = checkJava(ctx); errJars != nil {
			return
		}
		cache, err := os.UserCacheDir()
		if err != nil {
			errJars = fmt.Errorf("kafkatest: find the user's cache directory: %w", err)
			return
		}
		jarsDir, errJars = fetch(ctx, filepath.Join(cache, "carronade"), "kafka-"+Version)
	})
	return jarsDir, errJars
}

// fetch returns parent/name, made by Maven when it is not there. The directory
// appears by a rename, so it is whole or absent; the lock only saves several
// processes from fetching the same.
func fetch(ctx context.Context, parent, name string) (string, error) {
	dir := filepath.Join(parent, name)
	if whole(dir) {
		return dir, nil
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", errors.New("kafkatest: Maven (mvn) is missing, and with it the way to fetch Kafka; install it: apt-get install maven, or run scripts/deps as root")
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("kafkatest: make the cache: %w", err)
	}
	unlock, err := lock(filepath.Join(parent, name+".lock"))
	if err != nil {
		return "", fmt.Errorf("kafkatest: lock the cache: %w", err)
	}
	defer unlock()
	if whole(dir) { // somebody else was first
		return dir, nil
	}
	stage, err := os.MkdirTemp(parent, name+".part-*")
	if err != nil {
		return "", fmt.Errorf("kafkatest: make room in the cache: %w", err)
	}
	defer os.RemoveAll(stage)
	if err := os.WriteFile(filepath.Join(stage, "pom.xml"), pom, 0o644); err != nil {
		return "", fmt.Errorf("kafkatest: write the list of jars: %w", err)
	}
	cmd := exec.CommandContext(ctx, mvn, "-B", "-ntp", "-C", "-q",
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars")
	cmd.Dir = stage
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("kafkatest: fetch Kafka %s with Maven (a network or a mirror in Maven's settings is needed once): %w\n%s", Version, err, out)
	}
	os.RemoveAll(dir) // a directory that is not whole
	if err := os.Rename(filepath.Join(stage, "jars"), dir); err != nil {
		return "", fmt.Errorf("kafkatest: put Kafka into the cache: %w", err)
	}
	if !whole(dir) {
		return "", fmt.Errorf("kafkatest: Maven left no Kafka in %s", dir)
	}
	return dir, nil
}

// whole tells whether dir holds what a broker and the tools need.
func whole(dir string) bool {
	for _, jar := range []string{"kafka_2.13-" + Version, "kafka-tools-" + Version, "log4j-slf4j-impl-2.25.4"} {
		if _, err := os.Stat(filepath.Join(dir, jar+".jar")); err != nil {
			return false
		}
	}
	return true
}

var javaVersion = regexp.MustCompile(`version "(?:1\.)?(\d+)`)

func checkJava(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "java", "-version").CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("kafkatest: Java is missing; install a runtime of version %d or later: apt-get install default-jre-headless, or run scripts/deps as root", javaNeeded)
	}
	if err != nil {
		return fmt.Errorf("kafkatest: java -version: %w\n%s", err, out)
	}
	return checkJavaVersion(string(out))
}

func checkJavaVersion(text string) error {
	m := javaVersion.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("kafkatest: java -version says nothing of a version: %q", text)
	}
	if v, err := strconv.Atoi(m[1]); err != nil || v < javaNeeded {
		return fmt.Errorf("kafkatest: Java %s is too old for Kafka %s; install a runtime of version %d or later", m[1], Version, javaNeeded)
	}
	return nil
}
