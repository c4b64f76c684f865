package standin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"carronade/internal/standin"
	"carronade/internal/standin/standintest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// written makes a data folder with 30 events of a producer, in batches of ten, in partition t-0, and returns it with the batches.
// The group g has committed an offset.
func written(t testing.TB) (dir string, batches [][]byte) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	s := assert.Value(Start(Options{Listen: "127.0.0.1:0", DataDir: dir, Topics: []Topic{{"t", 1}}}))(t)
	defer s.Close()
	cl := assert.Value(kgo.NewClient(kgo.SeedBrokers(s.Addr()), kgo.DefaultProduceTopic("t")))(t)
	for range 3 {
		assert.OK(t, cl.ProduceSync(t.Context(), values(10)...).FirstErr())
	}
	var offsets kadm.Offsets
	offsets.AddOffset("t", 0, 12, -1)
	assert.OK(t, kadm.NewClient(cl).CommitAllOffsets(t.Context(), "g", offsets))
	cl.Close()
	assert.OK(t, s.Close())
	data := assert.Value(os.ReadFile(segmentFile(dir)))(t)
	return dir, split(t, data)
}

// split returns the batches in data, which must all be complete.
func split(t testing.TB, data []byte) (batches [][]byte) {
	t.Helper()
	whole, at := 0, 0
	n := wholeBatches(data, func(storedBatch) { whole++ })
	assert.Must(t, n == len(data), "%d of %d bytes are batches", n, len(data))
	for range whole {
		size := 12 + int(binary.BigEndian.Uint32(data[at+8:]))
		batches = append(batches, data[at:at+size])
		at += size
	}
	return batches
}

func segmentFile(dir string) string { return filepath.Join(dir, "partitions", "t-0", "0.dat") }

// killed makes the folder look as if its broker had been killed.
func killed(t *testing.T, dir string) {
	t.Helper()
	assert.OK(t, os.Remove(filepath.Join(dir, windowsFile)))
}

// TestOneBrokerPerFolder: two brokers on one folder would overwrite each other's events. A
// folder is free again when its broker has closed.
func TestOneBrokerPerFolder(t *testing.T) {
	t.Parallel()
	opts := Options{DataDir: t.TempDir(), MaxMessage: 1 << 20, Retain: 1 << 20}
	first := assert.Value(startBroker(opts, "127.0.0.1:1"))(t)
	_, err := startBroker(opts, "127.0.0.1:2")
	assert.ErrorHas(t, err, "another stand-in uses the folder", "a second broker")
	assert.OK(t, first.close())
	assert.OK(t, assert.Value(startBroker(opts, "127.0.0.1:2"))(t).close())
}

// TestTornTail cuts the files at each place where a kill can, and checks that all
// complete batches are back, and that what is produced afterwards stays.
func TestTornTail(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	for _, test := range []struct {
		name string
		tear func(t *testing.T, dir string, batches [][]byte)
		said string
		want int
	}{
		{"nothing", func(*testing.T, string, [][]byte) {}, "30 events in 1 partition were recovered", 30},
		{"the head of a batch", func(t *testing.T, dir string, b [][]byte) {
			extend(t, segmentFile(dir), b[0][:7])
		}, "partition t-0: cut off the last 7 bytes of ", 30},
		{"half a batch", func(t *testing.T, dir string, b [][]byte) {
			shorten(t, segmentFile(dir), len(b[2])/2)
		}, "partition t-0: cut off the last ", 20},
		{"a batch without its entry", func(t *testing.T, dir string, _ [][]byte) {
			shorten(t, strings.TrimSuffix(segmentFile(dir), "dat")+"idx", 4)
		}, "30 events in 1 partition were recovered", 30},
		{"a commit", func(t *testing.T, dir string, _ [][]byte) {
			extend(t, filepath.Join(dir, "groups.log"), []byte{200, 0, 0, 0, 1, 2, 3, 4, 1, 0, '{'})
		}, "groups.log: cut off the last 11 bytes of ", 30},
		{"a producer", func(t *testing.T, dir string, _ [][]byte) {
			extend(t, filepath.Join(dir, "pids.log"), []byte{200})
		}, "pids.log: cut off the last 1 byte of ", 30},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, batches := written(t)
			killed(t, dir)
			test.tear(t, dir, batches)
			for i := range 2 { // the second start must find nothing to fix
				var log bytes.Buffer
				s := assert.Value(Start(Options{Listen: "127.0.0.1:0", DataDir: dir, Log: &log}))(t)
				assert.True(t, i != 0 || strings.Contains(log.String(), test.said), "it said %q, want %q", log.String(), test.said)
				if i == 1 && (strings.Contains(log.String(), "cut off") || !strings.Contains(log.String(), "was killed; ")) {
					t.Errorf("the second time it said %q", log.String())
				}
				cl := client(t, s, kgo.ConsumeTopics("t"))
				assert.OK(t, cl.ProduceSync(testkit.Minute(t), values(5)...).FirstErr())
				assert.Equal(t, len(consume(testkit.Minute(t), t, cl, test.want+5*(i+1))), test.want+5*(i+1), "events")
				offsets, err := kadm.NewClient(cl).FetchOffsets(testkit.Minute(t), "g")
				o, ok := offsets.Lookup("t", 0)
				assert.True(t, err == nil && ok && o.At == 12, "got offset %d of the group, %v, want 12", o.At, err)
				cl.Close()
				assert.OK(t, s.Close())
				killed(t, dir)
			}
			index := assert.Value(os.ReadFile(strings.TrimSuffix(segmentFile(dir), "dat") + "idx"))(t)
			want := indexEntrySize * (test.want/10 + 2)
			assert.True(t, len(index) == want, "the index has %d bytes, want %d", len(index), want)
		})
	}
}

func extend(t *testing.T, path string, b []byte) {
	t.Helper()
	f := assert.Value(os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0))(t)
	defer f.Close()
	assert.Value(f.Write(b))(t)
}

func shorten(t *testing.T, path string, by int) {
	t.Helper()
	assert.OK(t, os.Truncate(path, assert.Value(os.Stat(path))(t).Size()-int64(by)))
}

// TestSaysWhatSurvives checks what a broker says about its data when it starts.
func TestSaysWhatSurvives(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, test := range []struct {
		opts Options
		want string // a regular expression
	}{
		{Options{DataDir: t.TempDir()}, `acked events survive kill -9, but not a power failure \(see --fsync\)`},
		{Options{DataDir: t.TempDir(), Fsync: true}, `acked events survive kill -9, and each batch is flushed to the disk before its ack \(--fsync\)`},
		{Options{}, `until the stand-in stops; --data-dir keeps them`},
		{Options{InMemory: true}, `in memory, until the end of this process`},
		{Options{Discard: true}, `discarded`},
	} {
		var log bytes.Buffer
		test.opts.Listen, test.opts.Log = "127.0.0.1:0", &log
		assert.OK(t, assert.Value(Start(test.opts))(t).Close())
		assert.True(t, regexp.MustCompile("^the data are .*"+test.want+"\n$").MatchString(log.String()),
			"it said %q, want %q", log.String(), test.want)
	}
	for _, opts := range []Options{{DataDir: "d", InMemory: true}, {DataDir: "d", Discard: true}, {Fsync: true, InMemory: true}, {Fsync: true}} {
		assert.True(t, opts.Check() != nil, "%+v: got no error, want one", opts)
	}
}

// TestLoginsOfOptions starts a broker on the data of one with other logins.
func TestLoginsOfOptions(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	for _, password := range []string{"first", "second"} {
		s := assert.Value(Start(Options{Listen: "127.0.0.1:0", DataDir: dir, SASL: []Login{{"PLAIN", "alice", password}}}))(t)
		cl := client(t, s, kgo.SASL(plain.Auth{User: "alice", Pass: password}.AsMechanism()))
		assert.OK(t, cl.Ping(testkit.Minute(t)), "with the %s password", password)
		cl.Close()
		assert.OK(t, s.Close())
	}
	info := assert.Value(os.Stat(dir))(t)
	got := info.Mode().Perm() & 0o077
	assert.True(t, os.PathSeparator != '/' || got == 0, "others may read the data and the logins: %v", info.Mode())
}

// TestTopicsOfOptions starts a broker on the data of one with other topics.
func TestTopicsOfOptions(t *testing.T) {
	t.Parallel()
	dir, _ := written(t)
	s := assert.Value(Start(Options{Listen: "127.0.0.1:0", DataDir: dir, Topics: []Topic{{"t", 1}, {"u", 4}}}))(t)
	assert.Equal(t, len(s.(*front).broker.cluster.PartitionInfos("u")), 4, "partitions of the new topic")
	assert.OK(t, s.Close())
	want := "topic t exists with 1 partitions, not 3"
	if s, err := Start(Options{Listen: "127.0.0.1:0", DataDir: dir, Topics: []Topic{{"t", 3}}}); err == nil || !strings.Contains(err.Error(), want) {
		if err == nil {
			s.Close()
		}
		t.Errorf("got %v, want %q", err, want)
	}
}

// FuzzRecover damages one file of a data folder and starts a broker on it. It may refuse the folder, but must serve only batches
// that were written, each as it was as far as its checksum goes, and all of those before the damage.
func FuzzRecover(f *testing.F) {
	dir, batches := written(f)
	var files []string
	assert.OK(f, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	}))
	contents := make(map[string][]byte)
	for i, path := range files {
		data := assert.Value(os.ReadFile(path))(f)
		contents[path] = data
		for _, at := range []int{0, len(data) / 3, len(data) - 1} {
			f.Add(uint8(i), uint32(at), byte(0x55), false, true)
			f.Add(uint8(i), uint32(at), byte(1), true, false)
		}
	}
	var running sync.Mutex // the folder is shared
	f.Fuzz(func(t *testing.T, which uint8, at uint32, flip byte, truncate, clean bool) {
		running.Lock()
		defer running.Unlock()
		assert.OK(t, os.RemoveAll(dir))
		damaged := files[int(which)%len(files)]
		for path, data := range contents {
			if path == damaged {
				data = slices.Clone(data)
				at = min(at, uint32(max(len(data)-1, 0)))
				if truncate {
					data = data[:at]
				} else if len(data) > 0 {
					data[at] ^= flip
				}
			} else if filepath.Base(path) == windowsFile && !clean {
				continue
			}
			assert.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
			assert.OK(t, os.WriteFile(path, data, 0o600))
		}
		b, err := startBroker(Options{DataDir: dir}.withDefaults(), "127.0.0.1:1")
		if err != nil {
			return
		}
		defer func() { assert.OK(t, b.close()) }()
		got := stored(t, b)
		assert.Must(t, len(got) <= len(batches), "got %d batches, want at most %d", len(got), len(batches))
		for i := range got {
			// A batch's checksum does not cover its offset and leader epoch.
			assert.True(t, bytes.Equal(got[i][16:], batches[i][16:]), "batch %d differs from what was written", i)
		}
		if damaged == segmentFile(dir) {
			for i, end := 0, 0; i < len(batches); i++ {
				if end += len(batches[i]); end <= int(at) && len(got) <= i {
					t.Errorf("got %d batches; the damage is at %d, after batch %d", len(got), at, i)
				}
			}
		}
	})
}

// stored reads the batches of partition t-0, if it is there.
func stored(t *testing.T, b *broker) [][]byte {
	t.Helper()
	info := b.cluster.PartitionInfo("t", 0)
	if info == nil {
		return nil
	}
	conn := assert.Value(b.dial(pipeAddr("127.0.0.1:1")))(t)
	defer conn.Close()
	req := kmsg.NewPtrFetchRequest()
	req.SetVersion(12)
	req.MaxBytes = 1 << 20
	req.SessionEpoch = -1
	part := kmsg.NewFetchRequestTopicPartition()
	part.FetchOffset, part.PartitionMaxBytes, part.CurrentLeaderEpoch = info.LogStartOffset, 1<<20, -1
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.Partitions = "t", append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	resp := kmsg.NewPtrFetchResponse()
	assert.OK(t, ask(conn, req, resp))
	return split(t, resp.Topics[0].Partitions[0].RecordBatches)
}

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

// TestFlags parses every flag, and checks that flags show values in the form in which they may be given.
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
	fs.VisitAll(func(f *pflag.Flag) { assert.True(t, given[f.Name], "--%s is not tried here", f.Name) })
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
