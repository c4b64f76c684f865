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

// TestFindCeiling finds the ceiling of a stand-in that serves as a queue. With events due evenly and exponential service at 1,000
// a second, p99<50ms holds up to 953.2 a second: there the response time is exponential with a mean of 50 ms/ln 100.
func TestFindCeiling(t *testing.T) {
	testkit.OnlyConformance(t, "takes six minutes")
	const ceiling, within = 953.2, 0.05
	server := startStandin(t, "riemann", "--listen", "127.0.0.1:0", "--server", "rate=1000/s,service=exponential")
	e := start(t, "find", "riemann://"+server.addr, "--slo", "p99<50ms", "--budget", "6m", "--batch-events", "1", "--max-in-flight", "10000", "--json", "--quiet").
		wait(10*time.Minute).want(t, 0)
	var answer struct {
		Ending       string
		Holds, Fails float64
		Why          string
	}
	decode(t, e.stdout, &answer)
	t.Logf("%+v in %v", answer, e.elapsed)
	assert.True(t, answer.Ending == "found" && answer.Holds <= ceiling*(1+within) && answer.Fails >= ceiling*(1-within),
		"got %+v, want an interval around %v", answer, ceiling)
}

// A ceiling is the answer of find as JSON.
type ceiling struct {
	Ending       string
	Holds, Fails float64
	Why          string
	Bottleneck   *struct{ Why string }
	Trials       []struct {
		Role, Report string
		Verdict      *struct{ Result string }
	}
}

// TestFindOfTargets finds the ceilings of stand-ins that serve 1,000 events a second, for what
// else than producing can be searched. No search says that more holds than the server does.
func TestFindOfTargets(t *testing.T) {
	testkit.OnlyConformance(t, "takes eight minutes")
	const capacity, within = 1000, 0.25
	with := func(kind string, args ...string) string {
		return startStandin(t, kind, append([]string{"--listen", "127.0.0.1:0"}, args...)...).addr
	}
	const server = "rate=1000/s,service=exponential"
	for _, tt := range []struct {
		name string
		args func(t *testing.T) []string
	}{
		{"roundtrip", func(*testing.T) []string {
			return []string{"kafka://" + with("kafka", "--topic", "t:1", "--server", server) + "/t", "--op", "roundtrip", "--slo", "end-to-end.p99<200ms", "--slo", "keeps-up"}
		}},
		{"acks=0", func(*testing.T) []string {
			// A queue that an overload does not fill within a trial would hide it.
			return []string{"kafka://" + with("kafka", "--topic", "t:1", "--server", server+",queue=200") + "/t", "--acks", "0", "--slo", "not-found=0", "--from", "400/s"}
		}},
		{"APM", func(*testing.T) []string {
			return []string{"apm+http://" + with("apm", "--server", server), "--slo", "p99<200ms", "--events", "1", "--spans", "0"}
		}},
		{"APM agents", func(*testing.T) []string {
			return []string{"apm+http://" + with("apm", "--server", server), "--slo", "p99<500ms", "--clients", "4"}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := start(t, append([]string{"find", "--budget", "100s", "--json", "--quiet"}, tt.args(t)...)...).wait(4*time.Minute).wantOneOf(t, 0, 3, 4)
			var a ceiling
			decode(t, e.stdout, &a)
			t.Logf("%+v in %v", a, e.elapsed)
			if a.Holds > capacity*(1+within) || a.Ending == "found" && (a.Fails < capacity*(1-2*within) || a.Bottleneck == nil) {
				t.Errorf("got %+v, want an interval around %v", a, capacity)
			}
			assert.True(t, len(a.Trials) >= 4, "got %+v", a)
		})
	}
}

// TestFindOfKafka searches for ceilings of Kafka: what is answered depends on the machine, but it
// is an interval, each trial has a report, and the node was watched.
func TestFindOfKafka(t *testing.T) {
	testkit.OnlyConformance(t, "takes ten minutes")
	node := func(t *testing.T, c *kafkatest.Cluster, replicas int16, args ...string) []string {
		return append([]string{"kafka://" + c.Bootstrap() + "/" + c.CreateTopic(t, 3, replicas)}, args...)
	}
	for _, tt := range []struct {
		name string
		args func(t *testing.T) []string
	}{
		{"acks=1 on one node", func(t *testing.T) []string {
			c := kafkatest.Shared(t)
			return node(t, c, 1, "--acks", "1", "--slo", "p99<200ms", "--budget", "3m", "--system-pid", strconv.Itoa(c.Node(1).PID()))
		}},
		{"reading", func(t *testing.T) []string {
			args := node(t, kafkatest.Shared(t), 1, "--op", "consume", "--budget", "40s")
			run(t, "run", args[0], "--count", "60M", "--size", "100", "--quiet").wantOneOf(t, 0, 3)
			return args
		}},
		{"acks=all on three nodes", func(t *testing.T) []string {
			return node(t, kafkatest.SharedThree(t), 3, "--acks", "all", "--slo", "p99<500ms", "--budget", "3m")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := start(t, append([]string{"find", "--quiet"}, tt.args(t)...)...).wait(8*time.Minute).wantOneOf(t, 0, 3, 4)
			t.Logf("exit code %d in %v\n%s%s", e.code, e.elapsed, e.stdout, e.stderr)
			assert.Has(t, e.stdout, "/s", "trials in ", "carronade report list label.find=")
		})
	}
}

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

// Of two stand-ins that serve 4,000 and 2,800 events a second, the second one has a ceiling that is 30 %
// lower. The series is killed in its second search, and goes on there.
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
	assert.Must(t, series != nil, "it names no series:\n%s", s.stderrText())
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
