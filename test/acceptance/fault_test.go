//go:build conformance

package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// progressText is contained in the line that the program prints for each interval. Tests that disturb a run wait for it.
const progressText = "/s"

// startBoth starts the same run with each engine, each on its own topic, and waits until both send, so that one fault tests both.
func startBoth(t *testing.T, c *kafkatest.Cluster, partitions int32, replicas int16, flags ...string) (topics map[string]string, sessions map[string]*session) {
	t.Helper()
	topics, sessions = make(map[string]string), make(map[string]*session)
	for _, engine := range engines {
		topics[engine] = c.CreateTopic(t, partitions, replicas)
		sessions[engine] = start(t, append([]string{"run", topicURL(c, topics[engine]), "--engine", engine, "--json"}, flags...)...)
	}
	for _, s := range sessions {
		s.awaitStderr(progressText)
	}
	return topics, sessions
}

// threeNodes is locked by a test that moves or kills the leaders of the shared cluster of three nodes.
var threeNodes sync.Mutex

// TestLeaderKilled kills the leader of a partition while idempotent batches are in flight: nothing may be lost or duplicated.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	threeNodes.Lock()
	defer threeNodes.Unlock()
	c := kafkatest.SharedThree(t)
	topics, sessions := startBoth(t, c, 6, 3, "--acks", "all", "--idempotent", "--verify", "--rate", "2000/s", "--for", "15s")
	pause(t, 3*time.Second)
	dead := c.LeaderOf(t, topics["wire"], 0) // leads some partitions of the other topic too
	dead.Kill()
	ends := make(map[string]ended)
	for engine, s := range sessions {
		ends[engine] = s.wait(3 * time.Minute)
	}
	dead.Start(t)
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			d := ends[engine].succeeded(t).document(t)
			all := d.wholeRun()
			d.checkLedger(t, all.Acked)
			assert.Equal(t, d.Totals.Offered, 30_000, "offered events")
			got := c.EndSum(t, topics[engine])
			assert.True(t, got == int64(all.Acked+d.Ledger.Recovered), "the end offsets grew by %d; acked are %d, recovered %d", got, all.Acked, d.Ledger.Recovered)
			assert.True(t, d.Response != nil && d.Response.MaxUS >= 1e6 && d.Stall.LongestS > 0,
				"the report does not show the dead leader: stall %+v, response %+v", d.Stall, d.Response)
			sum := all.Failed + all.Unknown
			assert.True(t, sum == 0 || len(d.Failures) > 0, "%d events failed or are unknown, and no failure is named", sum)
			t.Logf("longest without an answer %.1f s, %d retries, %+v", d.Stall.LongestS, all.Retries, *d.Ledger)
		})
	}
}

// TestWiped kills a single node in the middle of a run with acks=1 and deletes its
// records: the events acknowledged before are lost, and the report says how many.
func TestWiped(t *testing.T) {
	t.Parallel()
	testkit.OnlyConformance(t, "takes half a minute: TestRealGone of internal/kafka deletes records too")
	c := kafkatest.Start(t, kafkatest.Config{Heap: "512m"})
	topic := c.CreateTopic(t, 2, 1)
	// An older run's records are lost too, so that the log ends before the offset where this run began.
	run(t, "run", topicURL(c, topic), "--count", "100k", "--quiet").wantOneOf(t, 0, 3)
	s := start(t, "run", topicURL(c, topic), "--verify", "--rate", "1000/s", "--for", "22s", "--json")
	s.awaitStderr(progressText)
	pause(t, 2*time.Second)
	n := c.Node(1)
	n.Kill()
	n.WipeRecords(t)
	n.Start(t)
	d := s.wait(runTimeout).wantOneOf(t, 1, 3).document(t)
	assert.Must(t, d.Ledger != nil && d.Ledger.Lost > 0, "the loss is not reported: %+v", d.Ledger)
	all, l := d.wholeRun(), d.Ledger
	left := uint64(c.EndSum(t, topic))
	assert.True(t, l.Acked == all.Acked && l.Inexact <= all.Acked && l.Corrupted == 0, "acked are %d: %+v", all.Acked, *l)
	// All events on the disk that are not recovered were acked; the other acked events are gone. The ledger
	// may have events that it could not check, but must not claim anything false.
	gone := all.Acked - (left - l.Recovered)
	t.Logf("acked %d, on the disk %d, gone %d; the ledger: %+v", all.Acked, left, gone, *l)
	assert.True(t, l.Lost <= gone && l.Lost+l.Unread+l.Inexact >= gone,
		"%d acked events are gone; the ledger says lost %d, unread %d, not checked %d", gone, l.Lost, l.Unread, l.Inexact)
}

// TestFrozen freezes a broker in an open loop. The in-flight bound changes where the time is spent, but not
// the sum. Batches of several events keep what waits small for the broker: a broker that needs time for the
// backlog would delay events beyond the closed form.
func TestFrozen(t *testing.T) {
	c := kafkatest.Start(t, kafkatest.Config{Heap: "512m"})
	const measurement = 9 * time.Second
	tests := []struct {
		name, bound string
		queueing    bool
		run         *session
	}{{name: "wide bound", bound: "1000"}, {name: "capped bound", bound: "1", queueing: true}}
	for i := range tests {
		// A short warm-up lets the broker's JVM compile its hot paths first.
		tests[i].run = start(t, "run", topicURL(c, c.CreateTopic(t, 1, 1)), "--rate", "5000/s", "--for", measurement.String(), "--warmup", "3s", "--size", "10",
			"--linger", "10ms", "--max-in-flight", tests[i].bound, "--json")
	}
	for _, tt := range tests {
		tt.run.awaitStderr(progressText)
	}
	pause(t, 5*time.Second)
	freeze := frozen{at: time.Now()}
	freeze.least, freeze.most = c.Node(1).FreezeFor(t, 2*time.Second)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := tt.run.wait(runTimeout).succeeded(t).document(t)
			assert.Must(t, d.Response != nil && d.Queueing != nil && d.Service != nil, "the report has no response, queueing or service")
			d.checkFreeze(t, freeze, measurement, 1.05)
			assert.True(t, d.Response.Count == 45_000 && d.Totals.Acked == 45_000,
				"response counts %d events, acked are %d, want 45000", d.Response.Count, d.Totals.Acked)
			d.checkQueueing(t, freeze, tt.queueing)
		})
	}
	t.Run("closed loop", func(t *testing.T) {
		topic := c.CreateTopic(t, 1, 1)
		s := start(t, "run", topicURL(c, topic), "--concurrency", "4", "--for", "5s", "--json")
		s.awaitStderr(progressText)
		pause(t, time.Second)
		least, most := c.Node(1).FreezeFor(t, 2*time.Second)
		d := s.wait(runTimeout).succeeded(t).document(t)
		assert.True(t, d.Response == nil && d.SendDelay == nil,
			"a closed loop has response times or send delays: %+v, %+v", d.Response, d.SendDelay)
		if got := d.Stall.LongestS; got < least.Seconds()*0.95 || got > most.Seconds()+1+d.Freezes.TotalS {
			t.Errorf("the longest time without an answer is %.3f s, the freeze was %v to %v; freezes of the generator %+v", got, least, most, d.Freezes)
		}
		assert.True(t, d.Service != nil && d.Service.MaxUS >= least.Seconds()*0.95*1e6, "service does not show the freeze: %+v", d.Service)
	})
}

// Every operation goes on while the leaders of its partitions move and while three nodes are restarted, one after the
// other: nothing is lost, and events are acked or read until the end.
func TestRollingRestarts(t *testing.T) {
	t.Parallel()
	cluster := kafkatest.Start(t, kafkatest.Config{Nodes: 3})
	common := []string{"--for", "1h", "--json", "--quiet"}
	type operation struct {
		name  string
		flags []string
		topic string
		*session
	}
	feed := cluster.CreateTopic(t, 3, 3)
	ops := []*operation{
		{name: "produce", flags: []string{"--rate", "100/s", "--acks", "all", "--verify"}},
		{name: "produce, client", flags: []string{"--rate", "100/s", "--engine", "client", "--idempotent", "--acks", "all", "--verify"}},
		{name: "transactions", flags: []string{"--rate", "100/s", "--engine", "client", "--transactions", "--acks", "all", "--verify"}},
		{name: "round trip", flags: []string{"--rate", "50/s", "--op", "roundtrip", "--acks", "all", "--verify"}},
		{name: "round trip, client", flags: []string{"--rate", "50/s", "--op", "roundtrip", "--engine", "client", "--acks", "all", "--verify"}},
		{name: "feed", topic: feed, flags: []string{"--rate", "100/s", "--engine", "client", "--idempotent", "--acks", "all"}},
		{name: "consume", topic: feed, flags: []string{"--op", "consume", "--idle-timeout", "60s"}},
		{name: "group", topic: feed, flags: []string{"--op", "consume", "--engine", "client", "--group", "rolling", "--clients", "2", "--idle-timeout", "60s"}},
	}
	sends := func(o *operation) bool { return o.name != "consume" && o.name != "group" }
	for _, o := range ops {
		if o.topic == "" {
			o.topic = cluster.CreateTopic(t, 3, 3)
		}
		o.session = start(t, slices.Concat([]string{"run", topicURL(cluster, o.topic)}, common, o.flags)...)
	}
	// grows waits until every topic has more records.
	grows := func(when string) {
		t.Helper()
		for _, o := range ops {
			before := cluster.EndSum(t, o.topic)
			for deadline := time.Now().Add(3 * time.Minute); cluster.EndSum(t, o.topic) < before+100; pause(t, time.Second) {
				assert.Must(t, time.Now().Before(deadline), "%s: %s has no more records:\n%s", when, o.name, o.stderrText())
			}
		}
	}
	grows("at the beginning")
	for _, o := range ops {
		for p := range int32(3) {
			cluster.MoveLeader(t, o.topic, p, cluster.Node(int(p+1)%3+1))
		}
	}
	grows("after the leaders moved")
	for id := 1; id <= 3; id++ {
		cluster.Node(id).Stop(t)
		grows("with a node less")
		cluster.Node(id).Start(t)
		for _, o := range ops {
			cluster.AwaitInSync(t, o.topic)
		}
		grows("with the node again")
	}
	for _, o := range ops {
		if sends(o) {
			o.signal(os.Interrupt)
		}
	}
	for _, o := range ops {
		e := o.wait(10 * time.Minute)
		d := e.document(t)
		all := d.wholeRun()
		t.Logf("%s: exit %d, %+v, ledger %+v", o.name, e.code, all, d.Ledger)
		if !sends(o) {
			// A group may read again what it had not committed.
			end := uint64(cluster.EndSum(t, feed))
			assert.True(t, all.Consumed == end || o.name == "group" && all.Consumed > end, "%s: consumed %d of %d events\n%s", o.name, all.Consumed, end, e.stderr)
			continue
		}
		// Ctrl-C leaves what is due at that moment unsent. Without idempotence, a batch that is sent again may be there twice.
		assert.True(t, all.Failed+all.Unknown+all.Dropped == 0 && all.Unsent < 1000, "%s: %+v, %+v\n%s", o.name, all, d.Failures, e.stderr)
		once := slices.Contains(o.flags, "--idempotent") || slices.Contains(o.flags, "--transactions")
		if l := d.Ledger; o.name != "feed" {
			assert.True(t, l != nil && l.Lost+l.Corrupted+l.Inexact == 0 && l.Read == l.Acked+l.Duplicated && l.Acked > 1000 && (!once || l.Duplicated+l.Reordered == 0), "%s: %+v", o.name, l)
		}
	}
}

// A frozen is when a process was stopped, and for how long at least and at most.
type frozen struct {
	at          time.Time
	least, most time.Duration
}

// checkFreeze checks the response times of an open loop, to a server that was frozen once during the
// measurement. Every event due during the freeze waits until its end. So with events due evenly over a
// measurement of length T and a freeze of length f, the share of response times above x is (f-x)/T, and the
// 99th percentile is f - T/100, or up to above times that, which is for what waited.
//
// A busy machine may stop the generator too. Events then wait for as much longer as the report's freezes say,
// which it blames on the generator; and no more than that.
func (d *document) checkFreeze(t *testing.T, f frozen, measurement time.Duration, above float64) {
	t.Helper()
	least, most := (f.least - measurement/100).Seconds(), (f.most-measurement/100).Seconds()+d.Freezes.TotalS
	got := d.Response.P99US / 1e6
	t.Logf("frozen %v to %v, the generator %.3f s; response p99 %.3f s, closed form %.3f s", f.least, f.most, d.Freezes.TotalS, got, least)
	assert.True(t, got >= least*0.95 && got <= most*above,
		"response p99 is %.3f s, the closed form %.3f s to %.3f s; freezes of the generator %+v", got, least, most, d.Freezes)
	for _, b := range d.Trust.Bounds {
		if blamed := (b.UpperUS - b.LowerUS) / 1e6; blamed > d.Freezes.TotalS+f.least.Seconds()/4 {
			t.Errorf("the freeze of the server is blamed on the generator: %.3f s of %s p%v, and it was frozen for %.3f s", blamed, b.Time, b.P, d.Freezes.TotalS)
		}
	}
	at := f.at.Sub(d.StartedAt).Seconds()
	for _, own := range d.Freezes.Longest {
		if shared := min(own.AtS+own.LengthS, at+f.least.Seconds()) - max(own.AtS, at); shared > f.least.Seconds()*0.9 && own.LengthS < f.most.Seconds()*1.1 {
			t.Errorf("the freeze of the server at %.3f s is listed as one of the generator: %+v", at, own)
		}
	}
}

// checkQueueing checks where the events that were due while a server was frozen
// waited: for the in-flight bound, or for their answers if it is wide.
func (d *document) checkQueueing(t *testing.T, f frozen, queueing bool) {
	t.Helper()
	got := d.Queueing.MaxUS / 1e6
	assert.True(t, !queueing || got >= f.least.Seconds()*0.9, "queueing is %.3f s at most: it lacks the waiting for the bound", got)
	assert.True(t, queueing || got <= f.least.Seconds()*0.5+d.Freezes.TotalS, "queueing is %.3f s at most though the bound is wide", got)
}

// TestStopped: a generator that is stopped and continued reports that as its longest
// freeze, with the cause, whether it produces or consumes.
func TestStopped(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		args []string
	}{{"producing", []string{"--rate", "1000/s"}}, {"consuming", []string{"--op", "consume"}}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory", "--topic", "t:2")
			s := start(t, append([]string{"run", "kafka://" + server.addr + "/t", "--for", "4s", "--json"}, tt.args...)...)
			s.awaitStderr(progressText)
			pause(t, time.Second)
			stopped := (&standin{t: t, cmd: s.cmd}).freezeFor(300 * time.Millisecond)
			d := s.wait(runTimeout).wantOneOf(t, 0, 3).document(t)
			// A busy machine may stop it too, even for longer; that has another cause.
			i := slices.IndexFunc(d.Freezes.Longest, func(f freeze) bool { return f.Cause == "stopped and continued" })
			assert.Must(t, i >= 0 && d.Freezes.Count != 0, "the freeze is not listed, or not with its cause: %+v", d.Freezes)
			f := d.Freezes.Longest[i]
			assert.Equal(t, f.Who, "process", "frozen")
			assert.True(t, f.LengthS >= stopped.least.Seconds()*0.8 && f.LengthS <= stopped.most.Seconds()+5,
				"got a freeze of %v s, want %v to %v", f.LengthS, stopped.least, stopped.most)
			assert.True(t, d.Freezes.TotalS >= f.LengthS-0.001 && d.Freezes.Share > 0,
				"got freezes of %v s, %v of the measurement", d.Freezes.TotalS, d.Freezes.Share)
		})
	}
}

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
	assert.True(t, got != nil && !got.More && got.S >= low && got.S <= high, "%s: got %+v, want %v s to %v s", what, got, low, high)
}

// A run stops the system that it started for two seconds, and its score says so.
func TestFaultOfStandin(t *testing.T) {
	t.Parallel()
	addr := "127.0.0.1:" + freePort(t)
	d := run(t, "run", "kafka://"+addr+"/t", "--rate", "1000/s", "--for", "6s", "--json", "--slo", "outage<10s",
		"--system-cmd", program+" standin kafka --in-memory --topic t:4 --listen "+addr, "--fault", "2s:stop=system,2s").wantOneOf(t, 0, 3, 4).document(t)
	assert.Must(t, d.Faults != nil && len(d.Faults.Scores) == 2, "got the scores %+v, want those of a fault and a heal", d.Faults)
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
				assert.True(t, n.Noticed == nil && n.Back == nil && n.Drained == nil, "a run that only reads has times that it cannot know: %s", n.times())
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
			assert.True(t, s.AtS >= 1.4 && s.BoundS >= 0.4, "a command of a second at 1 s is marked at %v s ± %v s", s.AtS, s.BoundS)
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
	assert.Must(t, fault.Kind == "fault" && heal.Kind == "heal" && fault.Name == "restart system" && len(fault.Lanes) == 6 && fault.Worst >= 0,
		"got a %s %q with %d partitions, the worst %d, and a %s", fault.Kind, fault.Name, len(fault.Lanes), fault.Worst, heal.Kind)
	worst := fault.Lanes[fault.Worst]
	t.Logf("%s; the worst, %s; problems %q", fault.Whole.times(), worst.times(), d.Problems)
	// The others notice after 4 s that a node is gone, and then lead its partitions.
	within(t, "blackout of the worst partition", worst.Blackout, 0.5, 30)
	assert.True(t, d.Totals.Acked > 0, "nothing was acked")
}
