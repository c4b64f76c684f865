package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"carronade/internal/testkit/assert"
	"carronade/internal/testkit/kafkatest"
)

// faultRun has what all runs with a fault of a real Kafka share: 2,000 events/s for a minute after
// twenty seconds of warm-up, and a fault in their middle.
func faultRun(url string, more ...string) []string {
	return append([]string{"run", url, "--acks", "all", "--rate", "2k/s", "--warmup", "20s", "--for", "60s", "--json", "--slo", "p99<2s"}, more...)
}

// scores checks that a run has the scores of a fault and of its heal, with each of six partitions,
// and logs them.
func scores(t *testing.T, d *document, name string) (fault, heal faultScore) {
	t.Helper()
	if d.Faults == nil || len(d.Faults.Scores) != 2 {
		t.Fatalf("got %+v, want the scores of a fault and its heal; problems %q", d.Faults, d.Problems)
	}
	fault, heal = d.Faults.Scores[0], d.Faults.Scores[1]
	for _, s := range []faultScore{fault, heal} {
		if s.Name != name || len(s.Lanes) != 6 || s.Worst < 0 {
			t.Fatalf("got %q with %d partitions, the worst %d; want %q with 6", s.Name, len(s.Lanes), s.Worst, name)
		}
		t.Logf("%s %s at %.1f s:%s", s.Kind, s.Name, s.AtS, s.Whole.times())
		t.Logf("  the worst, %s", s.Lanes[s.Worst].times())
		t.Logf("  baseline %+v", s.Baseline)
	}
	assert.True(t, fault.Kind == "fault" && heal.Kind == "heal", "got a %s and a %s", fault.Kind, heal.Kind)
	return fault, heal
}

// TestSlowNetworkOfKafka delays the connections to a real Kafka with three nodes by three seconds,
// which the limit of two seconds does not allow.
func TestSlowNetworkOfKafka(t *testing.T) {
	if !conformance {
		t.Skip("takes two minutes; set CARRONADE_TEST_CONFORMANCE=1")
	}
	c := kafkatest.SharedThree(t)
	topic := c.CreateTopic(t, 6, 3)
	d := run(t, faultRun(topicURL(c, topic), "--fault", "45s:net-delay=3s,10s", "--slo", "outage<20s")...).wantOneOf(t, 0, 1, 3, 4).document(t)
	fault, _ := scores(t, d, "net-delay 3 s")
	worst := fault.Lanes[fault.Worst]
	within(t, "noticed", fault.Whole.Noticed, 1.9, 3)
	// Half of the delay is on the way back: an answer to a request that the system already had comes
	// after it, and the next one after the whole delay.
	within(t, "blackout", fault.Whole.Blackout, 1.4, 8)
	within(t, "blackout of the worst partition", worst.Blackout, 2, 10)
	if fault.Baseline.Why == "" {
		// The delay lasts for ten seconds, and what became due up to then is late.
		within(t, "in limit", fault.Whole.Back, 5, 20)
	}
	assert.True(t, d.Totals.Failed+d.Totals.Unknown <= 0, "a slow network cost events: %+v", d.Failures)
}

// TestLostPacketsOfKafka drops packets that arrive at a real Kafka with three nodes, which has a
// network of its own.
func TestLostPacketsOfKafka(t *testing.T) {
	if !conformance {
		t.Skip("takes two minutes, and makes a network; set CARRONADE_TEST_CONFORMANCE=1")
	}
	if os.Geteuid() != 0 {
		t.Skip("dropping packets needs root")
	}
	m := newLAN(t).quick()
	c := kafkatest.Start(t, kafkatest.Config{Nodes: 3, Address: m.address, Network: m.name})
	topic := c.CreateTopic(t, 6, 3)
	// All nodes are in one network, so one of them stands for it.
	d := run(t, faultRun(topicURL(c, topic), "--fault", "45s:net-loss=60%,10s", "--system-pid", strconv.Itoa(c.Node(1).PID()))...).wantOneOf(t, 0, 1, 3, 4).document(t)
	fault, _ := scores(t, d, "net-loss 60%")
	worst := fault.Lanes[fault.Worst]
	// A lost packet is sent again after 200 ms, and then later and later: with six of ten lost, some
	// partition stands still for seconds.
	within(t, "blackout of the worst partition", worst.Blackout, 0.5, 40)
	assert.True(t, worst.Over != 0, "no event was late")
	if out, err := exec.Command("ip", "netns", "exec", m.name, "iptables", "-S", "INPUT").CombinedOutput(); err != nil || strings.Contains(string(out), "carronade") {
		t.Errorf("the rule is still there: %v: %s", err, out)
	}
}

// TestNodeOfKafka: the run starts one of three nodes of a real Kafka, whose data are on a small
// filesystem. Its disk is full, and it is restarted.
func TestNodeOfKafka(t *testing.T) {
	if !conformance {
		t.Skip("takes four minutes, and mounts a filesystem; set CARRONADE_TEST_CONFORMANCE=1")
	}
	for _, tt := range []struct {
		name  string
		flags func(data string) []string
		want  string
	}{
		{"full disk", func(data string) []string {
			return []string{"--fault", "50s:disk-full=" + data + ",10s", "--allow-disk-full"}
		}, "disk-full"},
		{"restart", func(string) []string { return []string{"--fault", "50s:restart=system,5s"} }, "restart system"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var data string
			c := kafkatest.Start(t, kafkatest.Config{
				Nodes: 3,
				// The run's node leads partitions again soon after it has come back.
				Properties: map[string]string{"leader.imbalance.check.interval.seconds": "3", "leader.imbalance.per.broker.percentage": "0", "log.segment.bytes": "16777216"},
				Prepare: func(id int, dir string) error {
					if id != 1 {
						return nil
					}
					data = dir
					return mountSmall(t, dir)
				},
			})
			topic := c.CreateTopic(t, 6, 3)
			n := c.Node(1)
			n.Stop(t)
			name := tt.want
			if name == "disk-full" {
				name += " " + data
			}
			d := run(t, faultRun(topicURL(c, topic), append(tt.flags(data),
				"--system-cmd", n.Command(), "--system-ready", "port:"+n.Addr()[strings.LastIndexByte(n.Addr(), ':')+1:], "--system-ready-within", "3m")...)...).wantOneOf(t, 0, 1, 2, 3, 4).document(t)
			fault, _ := scores(t, d, name)
			worst := fault.Lanes[fault.Worst]
			// The others notice after 4 s that a node is gone, and then lead its partitions.
			within(t, "blackout of the worst partition", worst.Blackout, 0.5, 30)
			assert.True(t, d.Totals.Acked != 0, "nothing was acked")
			t.Logf("problems %q", d.Problems)
		})
	}
}

// mountSmall mounts a filesystem of 256 MiB in memory until the test ends.
func mountSmall(t *testing.T, dir string) error {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
			return
		}
		_ = os.RemoveAll(filepath.Dir(filepath.Dir(dir))) // what the end of the cluster could not
	})
	return nil
}
