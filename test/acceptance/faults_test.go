//go:build conformance

package acceptance

import (
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

func (n *faultNumbers) times() string {
	text := n.Name
	for _, x := range []struct {
		label string
		at    *faultTime
	}{{"noticed", n.Noticed}, {"blackout", n.Blackout}, {"first ack", n.FirstAck}, {"in limit", n.Back}, {"drained", n.Drained}} {
		text += " " + x.label + " -"
		if x.at != nil {
			text = text[:len(text)-1]
			if x.at.More {
				text += ">"
			}
			text += strconv.FormatFloat(x.at.S, 'f', 2, 64)
		}
	}
	if n.Predicted != nil {
		text += fmt.Sprintf(" predicted: headroom %.2f, drained %.2f", n.Predicted.Headroom, n.Predicted.DrainedS)
	}
	if n.NotPredicted != "" {
		text += " not predicted: " + n.NotPredicted
	}
	return text
}

func within(t *testing.T, what string, got *faultTime, low, high float64) {
	t.Helper()
	assert.True(t, got != nil && !got.More && got.S >= low && got.S <= high,
		"%s: got %+v, want %v s to %v s", what, got, low, high)
}

// A run stops the system that it started for two seconds, and its score says so.
func TestFaultOfStandin(t *testing.T) {
	t.Parallel()
	addr := "127.0.0.1:" + freePort(t)
	d := run(t, "run", "kafka://"+addr+"/t", "--rate", "1000/s", "--for", "6s", "--json", "--slo", "outage<10s",
		"--system-cmd", program+" standin kafka --in-memory --topic t:4 --listen "+addr, "--fault", "2s:stop=system,2s").wantOneOf(t, 0, 3, 4).document(t)
	assert.Must(t, d.Faults != nil && len(d.Faults.Scores) == 2,
		"got the scores %+v, want those of a fault and a heal", d.Faults)
	fault, heal := d.Faults.Scores[0], d.Faults.Scores[1]
	assert.True(t, fault.Kind == "fault" && fault.Name == "stop system" && fault.AtS >= 2 && heal.Kind == "heal" &&
		heal.AtS-fault.AtS >= 1.9, "the marks are %+v and %+v", fault, heal)
	b := fault.Whole.Blackout
	assert.True(t, b != nil && b.S >= 1.8 && !b.More, "the system stood still for 2 s, the blackout is %+v", b)
	assert.True(t, len(fault.Lanes) == 4 && fault.Worst >= 0,
		"there are scores of %d partitions, the worst %d", len(fault.Lanes), fault.Worst)
	assert.True(t, fault.Baseline.Why != "", "two seconds are a baseline")
}

// TestFaultOfReading: a run that only reads stops the system for two seconds and lets it go on, while
// another program writes. The scores of the whole and of each partition say so: the marks are the script.
func TestFaultOfReading(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("signals need Unix")
	}
	for _, engine := range []string{"wire", "client"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory", "--topic", "t:4")
			writer := exec.Command(program, "run", "kafka://"+s.addr+"/t", "--rate", "500/s", "--for", "60s", "--quiet", "--no-store")
			assert.OK(t, testkit.Launch(writer))
			t.Cleanup(func() { _ = writer.Process.Kill(); _ = writer.Wait() })
			d := run(t, "run", "kafka://"+s.addr+"/t", "--op", "consume", "--engine", engine, "--for", "7s", "--json", "--slo", "outage<20s", "--slo", "longest-stall<20s",
				"--fault", fmt.Sprintf("3s:stop=pid:%d,2s", s.cmd.Process.Pid)).wantOneOf(t, 0, 3).document(t)
			assert.Must(t, d.Faults != nil && len(d.Faults.Scores) == 2,
				"got the scores %+v, want those of a fault and a heal; problems %q", d.Faults, d.Problems)
			fault, heal := d.Faults.Scores[0], d.Faults.Scores[1]
			assert.Must(t, fault.Kind == "fault" && heal.Kind == "heal" && len(fault.Lanes) == 4 && fault.Worst >= 0,
				"got a %s and a %s with %d partitions, the worst %d", fault.Kind, heal.Kind, len(fault.Lanes), fault.Worst)
			script := heal.AtS - fault.AtS
			t.Logf("stopped for %.2f s; whole:%s; %s", script, fault.Whole.times(), fault.Lanes[fault.Worst].times())
			for _, n := range append(fault.Lanes, fault.Whole) {
				// The machine may be slow to go on; it is not faster than the script.
				within(t, "blackout of "+n.Name, n.Blackout, script-0.2, script+1.5)
				within(t, "first event of "+n.Name, n.FirstAck, script-0.2, script+1.5)
				if n.Noticed != nil || n.Back != nil || n.Drained != nil {
					t.Errorf("a run that only reads has times that it cannot know: %s", n.times())
				}
			}
			within(t, "first event after the heal", heal.Whole.FirstAck, 0, 1.5)
		})
	}
}

// TestKilledNode: a run kills the node that it started. Its target has another address, so it goes on,
// and the score says for how long nothing was acked.
func TestKilledNode(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("who listens at an address is known on Linux only")
	}
	addr := "127.0.0.1:" + freePort(t)
	other := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory", "--topic", "t:1")
	e := run(t, "run", "kafka://"+addr+","+other.addr+"/t", "--rate", "500/s", "--for", "8s", "--json", "--system-ready", "port:"+addr[strings.LastIndexByte(addr, ':')+1:],
		"--system-cmd", program+" standin kafka --in-memory --topic t:1 --listen "+addr, "--fault", "2s:kill=leader").wantOneOf(t, 0, 1, 3)
	d := e.document(t)
	assert.Must(t, d.Faults != nil && len(d.Faults.Scores) == 1, "got the scores %+v, want that of a fault", d.Faults)
	assert.True(t, d.Totals.Offered == 4000, "offered %d events of 4000: the run ended with its system", d.Totals.Offered)
	for _, reason := range d.Trust.Reasons {
		assert.True(t, !strings.Contains(reason, "ended by itself"), "the run killed it: %s", reason)
	}
	t.Logf("the whole:%s", d.Faults.Scores[0].Whole.times())
}

// TestExecMarks: the mark of a command is at the middle of its run, and one that fails is a problem.
func TestExecMarks(t *testing.T) {
	t.Parallel()
	d := run(t, "run", "null://", "--rate", "100/s", "--for", "3s", "--json", "--no-store", "--allow-exec",
		"--at", "1s", "--exec", "sleep 1", "--at", "1s:heal", "--exec", "echo it broke; exit 3").want(t, 2).says(t, "exit status 3: it broke").document(t)
	found := false
	for _, s := range d.Faults.Scores {
		if s.Kind == "fault" {
			found = true
			assert.True(t, s.AtS >= 1.4 && s.BoundS >= 0.4,
				"a command of a second at 1 s is marked at %v s ± %v s", s.AtS, s.BoundS)
		}
	}
	assert.True(t, found, "the command is not among %+v", d.Faults.Scores)
}

// TestFaultScores stops and kills the leader of most partitions of a real Kafka with three nodes, at
// a rate that it takes easily and as fast as it takes events, and looks at the scores.
func TestFaultScores(t *testing.T) {
	testkit.OnlyConformance(t, "takes six minutes")
	c := kafkatest.SharedThree(t)
	for _, load := range []struct {
		name  string
		flags []string
		topic []string // settings: what is written as fast as possible must not fill the disk
	}{
		{"half load", []string{"--rate", "5k/s"}, nil},
		{"full load", nil, []string{"retention.bytes=134217728", "segment.bytes=33554432"}},
	} {
		for _, action := range []string{"stop=leader,15s", "kill=leader"} {
			t.Run(load.name+" "+action, func(t *testing.T) {
				topic := c.CreateTopic(t, 6, 3, load.topic...)
				d := run(t, append([]string{
					"run", topicURL(c, topic), "--acks", "all", "--warmup", "10s", "--for", "70s", "--json", "--slo", "p99<2s",
					"--fault", "35s:" + action,
				}, load.flags...)...).wantOneOf(t, 0, 1, 3, 4).document(t)
				revive(t, c)
				assert.Must(t, d.Faults != nil && len(d.Faults.Scores) > 0, "the score is missing")
				s := d.Faults.Scores[0]
				assert.Must(t, len(s.Lanes) == 6, "%d partitions have scores, want 6", len(s.Lanes))
				worst := s.Lanes[s.Worst]
				t.Logf("%s, whole:%s", s.Name, s.Whole.times())
				t.Logf("the worst, %s", worst.times())
				t.Logf("baseline %+v", s.Baseline)
				assert.True(t, worst.Blackout != nil && worst.Blackout.S >= 0.5,
					"a partition lost its leader, and its blackout is %+v", worst.Blackout)
				if worst.Blackout != nil && s.Whole.Blackout != nil && s.Whole.Blackout.S > worst.Blackout.S+0.1 {
					t.Errorf("the whole run was without acks for %v s, the worst partition for %v s", s.Whole.Blackout.S, worst.Blackout.S)
				}
			})
		}
	}
}

func revive(t *testing.T, c *kafkatest.Cluster) {
	t.Helper()
	for id := 1; id <= 3; id++ {
		if n := c.Node(id); n.Ended() {
			n.Start(t)
		}
	}
	pause(t, 2*time.Second)
}

// TestRestartOfNodeOfKafka: the run starts one of three nodes of a real Kafka, and restarts it.
func TestRestartOfNodeOfKafka(t *testing.T) {
	testkit.OnlyConformance(t, "takes four minutes")
	// The run's node leads partitions again soon after it has come back.
	c := kafkatest.Start(t, kafkatest.Config{
		Nodes:      3,
		Properties: map[string]string{"leader.imbalance.check.interval.seconds": "3", "leader.imbalance.per.broker.percentage": "0"},
	})
	topic := c.CreateTopic(t, 6, 3)
	n := c.Node(1)
	n.Stop(t)
	d := start(t, "run", topicURL(c, topic), "--acks", "all", "--rate", "2k/s", "--warmup", "20s", "--for", "150s", "--json", "--slo", "p99<2s",
		"--fault", "50s:restart=system,5s", "--system-cmd", n.Command(), "--system-ready", "port:"+n.Addr()[strings.LastIndexByte(n.Addr(), ':')+1:],
		"--system-ready-within", "3m").wait(8*time.Minute).wantOneOf(t, 0, 1, 2, 3, 4).document(t)
	assert.Must(t, d.Faults != nil && len(d.Faults.Scores) == 2,
		"got %+v, want the scores of a fault and its heal; problems %q", d.Faults, d.Problems)
	fault, heal := d.Faults.Scores[0], d.Faults.Scores[1]
	if fault.Kind != "fault" || heal.Kind != "heal" || fault.Name != "restart system" || len(fault.Lanes) != 6 || fault.Worst < 0 {
		t.Fatalf("got a %s %q with %d partitions, the worst %d, and a %s", fault.Kind, fault.Name, len(fault.Lanes), fault.Worst, heal.Kind)
	}
	worst := fault.Lanes[fault.Worst]
	t.Logf("%s; the worst, %s; problems %q", fault.Whole.times(), worst.times(), d.Problems)
	// The others notice after 4 s that a node is gone, and then lead its partitions.
	within(t, "blackout of the worst partition", worst.Blackout, 0.5, 30)
	assert.True(t, d.Totals.Acked > 0, "nothing was acked")
}
