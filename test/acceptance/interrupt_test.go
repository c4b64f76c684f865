//go:build conformance

package acceptance

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// TestInterrupted presses Ctrl-C at each stage of a run. Once events are sent, there
// is a report each time; nothing hangs.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	url := topicURL(broker, broker.CreateTopic(t, 2, 1))
	t.Run("connecting", func(t *testing.T) {
		t.Parallel()
		l := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer l.Close()
		s := start(t, "run", "kafka://"+l.Addr().String()+"/t", "--count", "1", "--json")
		_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute))
		c, err := l.Accept() // now it waits for an answer
		assert.Must(t, err == nil, "%v; it said:\n%s", err, s.stderrText())
		defer c.Close()
		s.signal(os.Interrupt)
		s.wait(15*time.Second).want(t, 130)
	})
	for _, engine := range engines {
		t.Run(engine+"/warming up", func(t *testing.T) {
			t.Parallel()
			s := start(t, "run", url, "--engine", engine, "--rate", "1000/s", "--warmup", "60s", "--for", "1m", "--json")
			s.awaitStderr(progressText)
			s.signal(os.Interrupt)
			d := s.wait(15*time.Second).want(t, 130).document(t)
			if all := d.wholeRun(); all.Acked == 0 || d.Totals.Sent != 0 {
				t.Errorf("the whole run counts %+v, its measurement %+v", all, d.Totals.counts)
			}
		})
		t.Run(engine+"/measuring", func(t *testing.T) {
			t.Parallel()
			s := start(t, "run", url, "--engine", engine, "--rate", "1000/s", "--for", "1m", "--json")
			s.awaitStderr(progressText)
			s.signal(os.Interrupt)
			d := s.wait(15*time.Second).want(t, 130).document(t)
			assert.True(t, d.Totals.Acked > 0 && d.Totals.Acked == d.Totals.Sent && d.Stopped != "",
				"stopped by %q with %+v", d.Stopped, d.Totals.counts)
		})
		t.Run(engine+"/full speed", func(t *testing.T) {
			t.Parallel()
			s := start(t, "run", url, "--engine", engine, "--json")
			s.awaitStderr(progressText)
			s.signal(os.Interrupt)
			d := s.wait(15*time.Second).want(t, 130).document(t)
			assert.True(t, d.Totals.Acked != 0, "nothing was acked: %+v", d.Totals.counts)
		})
		t.Run(engine+"/consuming", func(t *testing.T) {
			t.Parallel()
			s := start(t, "run", url, "--engine", engine, "--op", "consume", "--idle-timeout", "1m", "--json")
			s.awaitStderr(progressText)
			s.signal(os.Interrupt)
			s.wait(15*time.Second).want(t, 130).document(t)
		})
	}
	t.Run("text", func(t *testing.T) {
		t.Parallel()
		s := start(t, "run", url, "--rate", "1000/s", "--for", "1m")
		s.awaitStderr(progressText)
		s.signal(os.Interrupt)
		if e := s.wait(15*time.Second).want(t, 130); !strings.Contains(e.stdout, "interrupted") {
			t.Errorf("the report does not say that it was interrupted:\n%s", e.stdout)
		}
	})
}

// TestInterruptedFrozen presses Ctrl-C while a broker is frozen: in the drain, and twice.
func TestInterruptedFrozen(t *testing.T) {
	t.Parallel()
	c := kafkatest.Start(t, kafkatest.Config{Heap: "512m"})
	for _, engine := range engines {
		begin := func(t *testing.T, flags ...string) *session {
			topic := c.CreateTopic(t, 1, 1)
			s := start(t, append([]string{"run", topicURL(c, topic), "--engine", engine, "--rate", "200/s", "--for", "3s", "--drain", "6s", "--json"}, flags...)...)
			s.awaitStderr(progressText)
			c.Node(1).Freeze(t)
			t.Cleanup(func() { c.Node(1).Thaw(t) })
			return s
		}
		t.Run(engine+"/draining", func(t *testing.T) {
			s := begin(t)
			pause(t, 4*time.Second) // the measurement is over, and answers are missing
			s.signal(os.Interrupt)
			d := s.wait(15*time.Second).want(t, 130).document(t)
			assert.True(t, d.Totals.Unknown+d.Totals.Unsent != 0, "the frozen broker left no event unanswered: %+v", d.Totals.counts)
		})
		t.Run(engine+"/twice", func(t *testing.T) {
			s := begin(t, "--drain", "60s")
			pause(t, time.Second) // so that something is in flight
			s.signal(os.Interrupt)
			pause(t, 300*time.Millisecond)
			s.signal(os.Interrupt)
			s.wait(20*time.Second).want(t, 130) // the drain would last a minute
		})
	}
	t.Run("reading back", func(t *testing.T) {
		topic := c.CreateTopic(t, 1, 1)
		s := start(t, "run", topicURL(c, topic), "--for", "3s", "--size", "1KiB", "--verify", "--json")
		s.awaitStderr("reading back", "read back", "verif")
		c.Node(1).Freeze(t)
		t.Cleanup(func() { c.Node(1).Thaw(t) })
		s.signal(os.Interrupt)
		d := s.wait(15*time.Second).want(t, 130).document(t)
		assert.True(t, d.Totals.Acked > 0 && d.Ledger != nil && d.Ledger.Lost == 0,
			"totals %+v, ledger %+v: unread events are not lost", d.Totals.counts, d.Ledger)
	})
}

// TestDiskFull writes the results to a full device.
func TestDiskFull(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Logf("this system has no /dev/full: a file that cannot be written replaces it")
	}
	t.Parallel()
	broker := kafkatest.Shared(t)
	url := topicURL(broker, broker.CreateTopic(t, 1, 1))
	full := func(t *testing.T) string {
		if _, err := os.Stat("/dev/full"); err == nil {
			return "/dev/full"
		}
		return filepath.Join(t.TempDir(), "no", "such", "file")
	}
	t.Run("hdr", func(t *testing.T) {
		e := run(t, "run", url, "--rate", "1000/s", "--for", "2s", "--hdr", full(t), "--json", "--quiet").want(t, 2).says(t, "error:", "space")
		d := e.document(t)
		assert.True(t, d.Totals.Acked == 2000, "the run did not continue: %+v", d.Totals.counts)
	})
	t.Run("json file", func(t *testing.T) {
		e := run(t, "run", url, "--count", "100", "--json-file", full(t), "--quiet").want(t, 2).says(t, "error:", "space")
		assert.True(t, strings.Contains(e.stdout, "acked"), "the report is not on stdout:\n%s", e.stdout)
	})
	t.Run("stdout", func(t *testing.T) {
		out := assert.Value(os.OpenFile(full(t), os.O_WRONLY, 0))(t)
		defer out.Close()
		s := prepare(t, "run", url, "--count", "100", "--json", "--quiet")
		s.cmd.Stdout = out
		s.begin()
		s.wait(runTimeout).want(t, 2).says(t, "error:", "space")
	})
}

// TestStdoutClosed closes the program's stdout before it has printed anything, as
// head does: it ends without a message.
func TestStdoutClosed(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	url := topicURL(broker, broker.CreateTopic(t, 1, 1))
	for _, form := range []string{"--json", "--quiet"} {
		t.Run(form, func(t *testing.T) {
			read, write, err := os.Pipe()
			assert.OK(t, err)
			s := prepare(t, "run", url, "--count", "100", form)
			s.cmd.Stdout = write
			s.begin()
			write.Close()
			read.Close()
			e := s.wait(runTimeout)
			for _, unwanted := range []string{"panic", "broken pipe", "error:"} {
				assert.True(t, !strings.Contains(e.stderr, unwanted), "it prints %q:\n%s", unwanted, e.stderr)
			}
		})
	}
}

// TestTerminated ends the program as a service manager does.
func TestTerminated(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	s := start(t, "run", topicURL(broker, broker.CreateTopic(t, 1, 1)), "--rate", "100/s", "--for", "1m", "--json")
	s.awaitStderr(progressText)
	s.signal(syscall.SIGTERM)
	s.wait(15*time.Second).want(t, 130).document(t)
}
