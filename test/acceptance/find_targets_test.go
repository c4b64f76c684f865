//go:build conformance

package acceptance

import (
	"strconv"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// A ceiling is the answer of find as JSON.
type ceiling struct {
	Ending       string
	Holds, Fails float64
	Why          string
	Bottleneck   *struct{ Why string }
	Trials       []struct {
		Role    string
		Report  string
		Verdict *struct{ Result string }
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
