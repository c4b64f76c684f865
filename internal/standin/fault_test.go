package standin

import (
	"errors"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestStallLeft(t *testing.T) {
	s := Stall{Every: 10 * time.Second, Length: time.Second}
	tests := []struct {
		name  string
		stall Stall
		since time.Duration
		want  time.Duration
	}{
		{"none", Stall{}, time.Hour, 0},
		{"start", s, 0, 0},
		{"in what would be one before the first", s, 500 * time.Millisecond, 0},
		{"just before", s, 10*time.Second - 1, 0},
		{"begins", s, 10 * time.Second, time.Second},
		{"within", s, 10*time.Second + 300*time.Millisecond, 700 * time.Millisecond},
		{"ends", s, 11 * time.Second, 0},
		{"the third", s, 30*time.Second + 999*time.Millisecond, time.Millisecond},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.stall.left(test.since); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// hurt runs f in virtual time with both ends of a connection of which there
// hurts.
func hurt(t *testing.T, opts KafkaOptions, f func(t *testing.T, here, there net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		here, inner := net.Pipe()
		faults := newFaults(opts, time.Now())
		there, err := (&faultListener{Listener: oneListener{inner}, f: faults}).Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer here.Close()
		defer there.Close()
		f(t, here, there)
	})
}

type oneListener struct{ c net.Conn }

func (l oneListener) Accept() (net.Conn, error) { return l.c, nil }
func (l oneListener) Close() error              { return nil }
func (l oneListener) Addr() net.Addr            { return pipeAddr("") }

func TestDelay(t *testing.T) {
	hurt(t, KafkaOptions{Delay: 5 * time.Millisecond}, func(t *testing.T, here, there net.Conn) {
		begin := time.Now()
		go func() {
			for range 3 {
				if _, err := there.Write([]byte("x")); err != nil {
					t.Error(err)
				}
				time.Sleep(2 * time.Millisecond)
			}
		}()
		var got []time.Duration
		var b [1]byte
		for range 3 {
			if _, err := io.ReadFull(here, b[:]); err != nil {
				t.Fatal(err)
			}
			got = append(got, time.Since(begin))
		}
		// Each is held back for itself: they do not queue behind each other.
		want := []time.Duration{5 * time.Millisecond, 7 * time.Millisecond, 9 * time.Millisecond}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("arrivals (-want +got):\n%s", diff)
		}
	})
}

func TestDelayClosed(t *testing.T) {
	hurt(t, KafkaOptions{Delay: time.Hour}, func(t *testing.T, _, there net.Conn) {
		for there.(*faultConn).waiting <= delayBytes {
			if _, err := there.Write(make([]byte, 16<<20)); err != nil {
				t.Fatal(err)
			}
		}
		full := make(chan error)
		go func() { _, err := there.Write([]byte("one too many")); full <- err }()
		synctest.Wait()
		select {
		case err := <-full:
			t.Fatalf("got %v from a write beyond the bound, want it to wait", err)
		default:
		}
		there.Close()
		if err := <-full; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v, want %v", err, net.ErrClosed)
		}
	})
}

func TestStall(t *testing.T) {
	stall := Stall{Every: 10 * time.Second, Length: time.Second}
	tests := []struct {
		name  string
		delay time.Duration
		at    time.Duration // when the client writes
		want  time.Duration // when the answer arrives
	}{
		{"before", 0, time.Second, time.Second},
		{"within", 0, 10*time.Second + 200*time.Millisecond, 11 * time.Second},
		{"after", 0, 11 * time.Second, 11 * time.Second},
		{"the second", 0, 20 * time.Second, 21 * time.Second},
		{"the answer runs into it", 100 * time.Millisecond, 9950 * time.Millisecond, 11 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			hurt(t, KafkaOptions{Stall: stall, Delay: test.delay}, func(t *testing.T, here, there net.Conn) {
				begin := time.Now()
				go func() {
					var b [1]byte
					for {
						if _, err := there.Read(b[:]); err != nil {
							return
						}
						if _, err := there.Write(b[:]); err != nil {
							return
						}
					}
				}()
				time.Sleep(test.at)
				if _, err := here.Write([]byte("x")); err != nil {
					t.Fatal(err)
				}
				var b [1]byte
				if _, err := io.ReadFull(here, b[:]); err != nil {
					t.Fatal(err)
				}
				if got := time.Since(begin); got != test.want {
					t.Errorf("answered at %v, want %v", got, test.want)
				}
			})
		})
	}
}

// TestFaultsReachClients checks that what the options ask for is done to a real
// client, by clocks that bound from below only.
func TestFaultsReachClients(t *testing.T) {
	both(t, func(t *testing.T, opts KafkaOptions) {
		t.Run("delay", func(t *testing.T) {
			opts := opts
			opts.Delay = 50 * time.Millisecond
			opts.Topics = []Topic{{"t", 1}}
			cl := client(t, start(t, opts))
			if err := cl.ProduceSync(deadline(t), values(1)...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			if err := cl.ProduceSync(deadline(t), values(1)...).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(begin); got < opts.Delay {
				t.Errorf("answered after %v, want %v at least", got, opts.Delay)
			}
		})
		t.Run("stall", func(t *testing.T) {
			opts := opts
			opts.Stall = Stall{Every: 400 * time.Millisecond, Length: 300 * time.Millisecond}
			opts.Topics = []Topic{{"t", 1}}
			begin := time.Now()
			cl := client(t, start(t, opts))
			longest := time.Duration(0)
			for time.Since(begin) < 1200*time.Millisecond {
				sent := time.Now()
				if err := cl.ProduceSync(deadline(t), values(1)...).FirstErr(); err != nil {
					t.Fatal(err)
				}
				longest = max(longest, time.Since(sent))
			}
			if longest < 200*time.Millisecond {
				t.Errorf("the longest answer took %v, want a stall of %v", longest, opts.Stall.Length)
			}
		})
		t.Run("error", func(t *testing.T) {
			opts := opts
			rule, err := ParseErrorRule("too-large@20%")
			if err != nil {
				t.Fatal(err)
			}
			opts.Errors = []ErrorRule{rule}
			s := start(t, opts)
			cl := client(t, s, kgo.DisableIdempotentWrite(), kgo.RecordRetries(0), kgo.MaxBufferedRecords(1))
			const n = 1000
			failed := 0
			for _, r := range values(n) {
				err := cl.ProduceSync(deadline(t), r).FirstErr()
				switch {
				case errors.Is(err, kerr.MessageTooLarge):
					failed++
				case err != nil:
					t.Fatal(err)
				}
			}
			if got := s.Counts(); got.Events != uint64(n-failed) || got.Refused != uint64(failed) {
				t.Errorf("counted %d taken and %d refused, want %d and %d", got.Events, got.Refused, n-failed, failed)
			}
			// Six standard deviations of the binomial; and the draw is seeded.
			if math.Abs(float64(failed)-200) > 6*math.Sqrt(n*0.2*0.8) {
				t.Errorf("%d of %d failed, want about 200", failed, n)
			}
		})
	})
}

func TestParse(t *testing.T) {
	stall := func(s string) (any, error) { return ParseStall(s) }
	rule := func(s string) (any, error) { return ParseErrorRule(s) }
	top := func(s string) (any, error) { return ParseTopic(s) }
	login := func(s string) (any, error) { return ParseLogin(s) }
	t.Setenv("STANDIN_PASSWORD", "from the environment")
	tests := []struct {
		name  string
		parse func(string) (any, error)
		in    string
		want  any
		err   string
	}{
		{"stall", stall, "10s/1s", Stall{10 * time.Second, time.Second}, ""},
		{"stall without length", stall, "10s", nil, "want EVERY/LENGTH"},
		{"stall without unit", stall, "10/1", nil, "without a unit"},
		{"stall of bad length", stall, "10s/x", nil, `duration "x"`},
		{"stall longer than its period", stall, "1s/1s", nil, "below the 1 s"},
		{"stall of nothing", stall, "1s/0s", nil, "above 0"},
		{"alias", rule, "timeout@1%", ErrorRule{"request-timed-out", 7, 0.01}, ""},
		{"Kafka's name", rule, "not-leader-or-follower@100%", ErrorRule{"not-leader-or-follower", 6, 1}, ""},
		{"upper case", rule, "Not-Enough-Replicas@0.5%", ErrorRule{"not-enough-replicas", 19, 0.005}, ""},
		{"rule without share", rule, "timeout", nil, "want NAME@SHARE"},
		{"share as a part of one", rule, "timeout@0.25", ErrorRule{"request-timed-out", 7, 0.25}, ""},
		{"share above all", rule, "timeout@101%", nil, "more than the whole"},
		{"share that is no number", rule, "timeout@NaN%", nil, "a number"},
		{"no such error", rule, "sleepy@1%", nil, `Kafka has no error "sleepy"`},
		{"topic", top, "orders", Topic{"orders", 0}, ""},
		{"topic with partitions", top, "orders:12", Topic{"orders", 12}, ""},
		{"topic with no partitions", top, "orders:0", nil, "NAME:PARTITIONS"},
		{"no topic", top, ":3", nil, "NAME:PARTITIONS"},
		{"login", login, "plain:alice:se:cret", Login{"PLAIN", "alice", "se:cret"}, ""},
		{"login from the environment", login, "PLAIN:alice:env:STANDIN_PASSWORD", Login{"PLAIN", "alice", "from the environment"}, ""},
		{"login from nowhere", login, "PLAIN:alice:env:STANDIN_NOTHING", nil, "STANDIN_NOTHING"},
		{"login from no file", login, "PLAIN:alice:file:/nowhere/at/all", nil, "/nowhere/at/all"},
		{"login without password", login, "PLAIN:alice", nil, "want MECHANISM:USER:PASSWORD"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.parse(test.in)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got error %v, want one with %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	tests := []struct {
		name string
		opts KafkaOptions
		want string
	}{
		{"the zero value", KafkaOptions{}, ""},
		{"no port", KafkaOptions{Listen: "localhost"}, "want host:port"},
		{"partitions", KafkaOptions{Partitions: -1}, "-1 partitions"},
		{"event size", KafkaOptions{EventSize: -1}, "events of -1 bytes"},
		{"batch", KafkaOptions{EventSize: 1 << 20, BatchEvents: 1000}, "batches of 1000 events"},
		{"events", KafkaOptions{Events: 1 << 63}, "at most 2^62"},
		{"retain", KafkaOptions{Retain: -1}, "-1 bytes kept"},
		{"message", KafkaOptions{MaxMessage: 1 << 40}, "record batches"},
		{"delay", KafkaOptions{Delay: -1}, "a delay of"},
		{"key without certificate", KafkaOptions{TLSKey: "k"}, "both a certificate and its key"},
		{"authority without certificate", KafkaOptions{TLSClientCA: "ca"}, "needs TLS"},
		{"login with discard", KafkaOptions{Discard: true, SASL: []Login{{"PLAIN", "u", "p"}}}, "knows no logins"},
		{"mechanism", KafkaOptions{SASL: []Login{{"GSSAPI", "u", "p"}}}, "GSSAPI"},
		{"errors", KafkaOptions{Errors: []ErrorRule{{"a", 1, 0.6}, {"b", 2, 0.6}}}, "100% in sum"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.opts.Check()
			if test.want == "" {
				if err != nil {
					t.Errorf("got %v, want none", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
	if !slices.IsSorted(mechanisms) {
		t.Error("the mechanisms are shown to people: keep them sorted")
	}
}

// TestFlags reads every flag, and shows what was read as it may be given.
func TestFlags(t *testing.T) {
	var got KafkaOptions
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	got.Bind(fs)
	args := []string{
		"--listen", "127.0.0.1:1", "--advertise", "a:2", "--discard", "--partitions", "4", "--topic", "x:5", "--topic", "y",
		"--data-dir", "/d", "--in-memory", "--retain", "10MiB", "--max-message", "2MiB",
		"--events", "10m", "--event-size", "1KiB", "--batch-events", "7",
		"--delay", "5ms", "--stall", "10s/1s", "--error", "timeout@1%", "--error", "too-large@2%", "--seed", "9",
		"--tls-cert", "c", "--tls-key", "k", "--tls-client-ca", "ca", "--sasl", "PLAIN:u:secret",
	}
	given := map[string]bool{}
	for _, a := range args {
		given[strings.TrimPrefix(a, "--")] = true
	}
	fs.VisitAll(func(f *pflag.Flag) {
		if !given[f.Name] {
			t.Errorf("--%s is not tried here", f.Name)
		}
	})
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	want := KafkaOptions{
		Listen: "127.0.0.1:1", Advertise: "a:2", Discard: true, Partitions: 4, Topics: []Topic{{"x", 5}, {"y", 0}},
		DataDir: "/d", InMemory: true, Retain: 10 << 20, MaxMessage: 2 << 20,
		Events: 1e7, EventSize: 1024, BatchEvents: 7,
		Delay: 5 * time.Millisecond, Stall: Stall{10 * time.Second, time.Second},
		Errors: []ErrorRule{{"request-timed-out", 7, 0.01}, {"message-too-large", 10, 0.02}}, Seed: 9,
		TLSCert: "c", TLSKey: "k", TLSClientCA: "ca", SASL: []Login{{"PLAIN", "u", "secret"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	shown := map[string]string{}
	fs.VisitAll(func(f *pflag.Flag) { shown[f.Name] = f.Value.String() })
	for name, want := range map[string]string{
		"retain": "10 MiB", "events": "10,000,000", "delay": "5 ms", "stall": "10 s/1 s", "sasl": "PLAIN:u",
		"topic": "x:5,y:0", "error": "request-timed-out@1%,message-too-large@2%",
	} {
		if shown[name] != want {
			t.Errorf("--%s shows %q, want %q", name, shown[name], want)
		}
	}
	var large KafkaOptions
	fs = pflag.NewFlagSet("test", pflag.ContinueOnError)
	large.Bind(fs)
	if err := fs.Parse([]string{"--event-size", "1MiB", "--in-memory"}); err != nil {
		t.Fatal(err)
	}
	if err := large.Check(); err != nil {
		t.Errorf("large events: %v", err)
	}
	if got := large.withDefaults().Retain; got != 128<<20 {
		t.Errorf("got %d bytes kept in memory, want 128 MiB", got)
	}
	for _, bad := range [][]string{{"--event-size", "1GiB"}, {"--retain", "much"}, {"--delay", "5"}, {"--error", "x@1%"}} {
		var opts KafkaOptions
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		opts.Bind(fs)
		if err := fs.Parse(bad); err == nil {
			t.Errorf("%v is taken, want an error", bad)
		}
	}
}
