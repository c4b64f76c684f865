package standin

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/standin"
	"carronade/internal/standin/standintest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestFaultsReachClients checks that a real client sees the faults in the options.
func TestFaultsReachClients(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		standintest.Late(t, func(t *testing.T, delay time.Duration, stall standin.Stall) func() {
			opts := opts
			opts.Delay, opts.Stall, opts.Topics = delay, stall, []Topic{{"t", 1}}
			cl := client(t, start(t, opts))
			return func() { assert.OK(t, cl.ProduceSync(testkit.Minute(t), values(1)...).FirstErr()) }
		})
		t.Run("error", func(t *testing.T) {
			opts := opts
			rule := assert.Value(ParseErrorRule("too-large@20%"))(t)
			opts.Errors = []ErrorRule{rule}
			s := start(t, opts)
			cl := client(t, s, kgo.DisableIdempotentWrite(), kgo.RecordRetries(0), kgo.MaxBufferedRecords(1))
			const n = 1000
			failed := 0
			for _, r := range values(n) {
				err := cl.ProduceSync(testkit.Minute(t), r).FirstErr()
				switch {
				case errors.Is(err, kerr.MessageTooLarge):
					failed++
				case err != nil:
					t.Fatal(err)
				}
			}
			if got := s.Counts(); got.Events != uint64(n-failed) || got.Refused != uint64(failed) {
				t.Errorf("counted %d accepted and %d refused, want %d and %d", got.Events, got.Refused, n-failed, failed)
			}
			// Six standard deviations of the binomial; the draw is seeded.
			assert.True(t, math.Abs(float64(failed)-200) <= 6*math.Sqrt(n*0.2*0.8), "%d of %d failed, want about 200", failed, n)
		})
	})
}

func TestParse(t *testing.T) {
	rule := func(s string) (any, error) { return ParseErrorRule(s) }
	top := func(s string) (any, error) { return ParseTopic(s) }
	login := func(s string) (any, error) { return ParseLogin(s) }
	t.Setenv("STANDIN_PASSWORD", "from the environment")
	for _, test := range []struct {
		name  string
		parse func(string) (any, error)
		in    string
		want  any
		err   string
	}{
		{"alias", rule, "timeout@1%", ErrorRule{Name: "request-timed-out", What: 7, Share: 0.01}, ""},
		{"Kafka's name", rule, "not-leader-or-follower@100%", ErrorRule{Name: "not-leader-or-follower", What: 6, Share: 1}, ""},
		{"upper case", rule, "Not-Enough-Replicas@0.5%", ErrorRule{Name: "not-enough-replicas", What: 19, Share: 0.005}, ""},
		{"rule without share", rule, "timeout", nil, "want NAME@SHARE"},
		{"share as a part of one", rule, "timeout@0.25", ErrorRule{Name: "request-timed-out", What: 7, Share: 0.25}, ""},
		{"share above 100%", rule, "timeout@101%", nil, "more than the whole"},
		{"share that is not a number", rule, "timeout@NaN%", nil, "a number"},
		{"no such error", rule, "sleepy@1%", nil, `Kafka has no error "sleepy"`},
		{"topic", top, "orders", Topic{"orders", 0}, ""},
		{"topic with partitions", top, "orders:12", Topic{"orders", 12}, ""},
		{"topic with no partitions", top, "orders:0", nil, "NAME:PARTITIONS"},
		{"topic with too many partitions", top, "orders:2000000000", nil, "with 1 to 10000"},
		{"no topic", top, ":3", nil, "NAME:PARTITIONS"},
		{"login", login, "plain:alice:se:cret", Login{"PLAIN", "alice", "se:cret"}, ""},
		{"login from the environment", login, "PLAIN:alice:env:STANDIN_PASSWORD", Login{"PLAIN", "alice", "from the environment"}, ""},
		{"login from a missing variable", login, "PLAIN:alice:env:STANDIN_NOTHING", nil, "STANDIN_NOTHING"},
		{"login from a missing file", login, "PLAIN:alice:file:/nowhere/at/all", nil, "/nowhere/at/all"},
		{"login without password", login, "PLAIN:alice", nil, "want MECHANISM:USER:PASSWORD"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.parse(test.in)
			if test.err != "" {
				assert.ErrorHas(t, err, test.err)
				return
			}
			assert.OK(t, err)
			assert.Same(t, got, test.want)
		})
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		opts Options
		want string
	}{
		{"the zero value", Options{}, ""},
		{"no port", Options{Listen: "localhost"}, "want host:port"},
		{"partitions", Options{Partitions: -1}, "-1 partitions"},
		{"event size", Options{EventSize: -1}, "events of -1 bytes"},
		{"batch", Options{EventSize: 1 << 20, BatchEvents: 1000}, "batches of 1000 events"},
		{"events", Options{Events: 1 << 63}, "at most 2^62"},
		{"retain", Options{Retain: -1}, "-1 bytes kept"},
		{"message", Options{MaxMessage: 1 << 40}, "record batches"},
		{"delay", Options{Delay: -1}, "a delay of"},
		{"key without certificate", Options{TLS: standin.TLS{Key: "k"}}, "both a certificate and its key"},
		{"authority without certificate", Options{TLS: standin.TLS{ClientCA: "ca"}}, "needs TLS"},
		{"a record of TLS", Options{Record: "r", TLS: standin.TLS{Cert: "c", Key: "k"}}, "cannot be combined with TLS"},
		{"login with discard", Options{Discard: true, SASL: []Login{{"PLAIN", "u", "p"}}}, "does not support logins"},
		{"mechanism", Options{SASL: []Login{{"GSSAPI", "u", "p"}}}, "GSSAPI"},
		{"errors", Options{Errors: []ErrorRule{{Name: "a", What: 1, Share: 0.6}, {Name: "b", What: 2, Share: 0.6}}}, "100% in sum"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.opts.Check()
			if test.want == "" {
				assert.True(t, err == nil, "got %v, want none", err)
				return
			}
			assert.ErrorHas(t, err, test.want)
		})
	}
	assert.True(t, slices.IsSorted(mechanisms), "the mechanisms are shown to users: keep them sorted")
}

// TestFlags parses every flag, and checks that flags show values in the form in
// which they may be given.
func TestFlags(t *testing.T) {
	t.Parallel()
	var got Options
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	got.Bind(fs)
	args := []string{
		"--listen", "127.0.0.1:1", "--advertise", "a:2", "--discard", "--partitions", "4", "--topic", "x:5", "--topic", "y",
		"--data-dir", "/d", "--fsync", "--in-memory", "--retain", "10MiB", "--max-message", "2MiB",
		"--events", "10m", "--event-size", "1KiB", "--batch-events", "7",
		"--delay", "5ms", "--stall", "10s/1s", "--server", "rate=5/s", "--collapse", "--credits", "1m@6/s", "--warm", "3s", "--error", "timeout@1%", "--error", "too-large@2%", "--seed", "9", "--record", "r",
		"--tls-cert", "c", "--tls-key", "k", "--tls-client-ca", "ca", "--sasl", "PLAIN:u:secret",
	}
	given := map[string]bool{}
	for _, a := range args {
		given[strings.TrimPrefix(a, "--")] = true
	}
	fs.VisitAll(func(f *pflag.Flag) {
		assert.True(t, given[f.Name], "--%s is not tried here", f.Name)
	})
	assert.OK(t, fs.Parse(args))
	limited := standin.CapacityOptions{
		Server:   standin.CapacitySettings{Rate: 5, Service: standin.Service{Kind: standin.Exponential}, Servers: 1, Queue: 100_000},
		Collapse: time.Second, Credits: standin.Credits{For: time.Minute, Rate: 6}, Warm: 3 * time.Second,
	}
	want := Options{
		Listen: "127.0.0.1:1", Advertise: "a:2", Discard: true, Partitions: 4, Topics: []Topic{{"x", 5}, {"y", 0}},
		DataDir: "/d", Fsync: true, InMemory: true, Retain: 10 << 20, MaxMessage: 2 << 20,
		Events: 1e7, EventSize: 1024, BatchEvents: 7,
		Delay: 5 * time.Millisecond, Stall: standin.Stall{Every: 10 * time.Second, Length: time.Second}, Capacity: limited,
		Errors: []ErrorRule{{Name: "request-timed-out", What: 7, Share: 0.01}, {Name: "message-too-large", What: 10, Share: 0.02}}, Seed: 9, Record: "r",
		TLS: standin.TLS{Cert: "c", Key: "k", ClientCA: "ca"}, SASL: []Login{{"PLAIN", "u", "secret"}},
	}
	assert.Same(t, got, want)
	shown := map[string]string{}
	fs.VisitAll(func(f *pflag.Flag) { shown[f.Name] = f.Value.String() })
	for name, want := range map[string]string{
		"retain": "10MiB", "events": "10,000,000", "delay": "5ms", "stall": "10s/1s", "sasl": "PLAIN:u",
		"topic": "x:5,y:0", "error": "request-timed-out@1%,message-too-large@2%",
	} {
		assert.Equal(t, shown[name], want, "--%s shows", name)
	}
	var large Options
	fs = pflag.NewFlagSet("test", pflag.ContinueOnError)
	large.Bind(fs)
	assert.OK(t, fs.Parse([]string{"--event-size", "1MiB", "--in-memory"}))
	assert.OK(t, large.Check(), "large events")
	assert.Equal(t, large.withDefaults().Retain, 128<<20, "bytes kept in memory")
	for _, bad := range [][]string{{"--event-size", "1GiB"}, {"--retain", "much"}, {"--delay", "5"}, {"--error", "x@1%"}} {
		var opts Options
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		opts.Bind(fs)
		assert.True(t, fs.Parse(bad) != nil, "%v is accepted, want an error", bad)
	}
}
