//go:build conformance

package acceptance

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// found reports whether a series of searches has effects. It has none if the generator was the
// limit in all searches of a cell, on a machine that is busy with the server; the output says so.
func (e ended) found(t *testing.T) bool {
	t.Helper()
	if strings.Contains(e.stdout, "ceiling (decides)") {
		return true
	}
	if said := e.stdout + e.stderr; !strings.Contains(said, "at least: ") && !strings.Contains(said, "stopped: ") && !strings.Contains(said, "no top: ") {
		t.Errorf("no effects, and no search that says why:\n%s\n%s", e.stderr, e.stdout)
	}
	t.Logf("the ceilings of some cell are not known:\n%s\n%s", e.stderr, e.stdout)
	return false
}

// TestFindCeilingsOfStandins: of two stand-ins that serve 4,000 and 2,800 events a second, the
// second one has a ceiling that is 30 % lower. The series is killed in its second search, and
// goes on there.
func TestFindCeilingsOfStandins(t *testing.T) {
	testkit.OnlyConformance(t, "takes five minutes")
	targets := make([]string, 2)
	for i, rate := range []string{"4000/s", "2800/s"} {
		targets[i] = "riemann://" + startStandin(t, "riemann", "--listen", "127.0.0.1:0", "--server", "rate="+rate+",service=exponential").addr
	}
	args := []string{
		"find", "--vary", "target=" + strings.Join(targets, ","), "--slo", "p99<50ms", "--budget", "50s", "--precision", "5%", "--repeat", "3",
		"--batch-events", "1", "--max-in-flight", "10000", "--store", filepath.Join(t.TempDir(), "reports.db"),
	}
	s := start(t, args...)
	s.awaitStderr("search 2 of 6")
	s.awaitStderr("trial 3")
	s.signal(syscall.SIGKILL)
	<-s.done
	series := regexp.MustCompile(`--resume (s[a-z0-9]{7}) `).FindStringSubmatch(s.stderrText())
	if series == nil {
		t.Fatalf("it names no series:\n%s", s.stderrText())
	}
	e := start(t, append(args, "--resume", series[1])...).wait(10*time.Minute).wantOneOf(t, 0, 1, 3, 4)
	e.says(t, "of 6 searches are there")
	if !e.found(t) {
		return
	}
	t.Log(e.stdout)
	effect := regexp.MustCompile(`(?s)ceiling \(decides\).*?(-[0-9]+)%.*\n\n`).FindStringSubmatch(e.stdout)
	n := percent(effect)
	assert.True(t, n <= -25 && n >= -35, "the effect is %q, want about -30%%", effect)
}

// TestFindCeilingsOfKafka ranks what three settings of a producer do to the ceiling of Kafka.
func TestFindCeilingsOfKafka(t *testing.T) {
	testkit.OnlyConformance(t, "takes ten minutes")
	broker := kafkatest.Start(t, kafkatest.Config{Properties: map[string]string{"log.retention.check.interval.ms": "5000"}})
	topic := broker.CreateTopic(t, 4, 1, "retention.bytes=400000000", "segment.bytes=100000000")
	e := start(t, "find", topicURL(broker, topic), "--vary", "acks=1,all", "--vary", "compression=none,lz4", "--vary", "batch-size=16KiB,256KiB",
		"--size", "1KiB", "--slo", "p99<200ms", "--budget", "40s", "--precision", "20%", "--store", filepath.Join(t.TempDir(), "reports.db")).
		wait(20*time.Minute).wantOneOf(t, 0, 1, 3, 4)
	e.says(t, ": 8 cells, each 2 times: 16 searches of up to 40 s, together up to 10m40s", "search 16 of 16")
	if !e.found(t) {
		return
	}
	t.Log(e.stdout)
	assert.Has(t, e.stdout,
		"acks 1 \u2192 all ", "compression none \u2192 lz4 ", "batch-size 16KiB \u2192 256KiB ", "acks \u00d7 batch-size ", "best cell")
}

// percent is the number that a regular expression found, 0 without one.
func percent(match []string) int {
	if match == nil {
		return 0
	}
	n, _ := strconv.Atoi(match[1])
	return n
}
