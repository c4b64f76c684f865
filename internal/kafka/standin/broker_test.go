package standin

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"carronade/internal/standin"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

func TestSecurity(t *testing.T) {
	t.Parallel()
	own := testkit.NewAuthority("test")
	cert, key := own.Files(t)
	tlsOpt := kgo.DialTLSConfig(&tls.Config{RootCAs: own.Pool(), MinVersion: tls.VersionTLS12})
	mutual := kgo.DialTLSConfig(&tls.Config{RootCAs: own.Pool(), MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own.Pair()}})
	login := func(user, pass string) kgo.Opt {
		return kgo.SASL(scram.Auth{User: user, Pass: pass}.AsSha256Mechanism())
	}
	alice := []Login{{"SCRAM-SHA-256", "alice", "secret"}, {"PLAIN", "bob", "open"}}
	for _, test := range []struct {
		name string
		opts Options
		with []kgo.Opt
		ok   bool
	}{
		{"TLS", Options{TLS: standin.TLS{Cert: cert, Key: key}}, []kgo.Opt{tlsOpt}, true},
		{"TLS, discard", Options{TLS: standin.TLS{Cert: cert, Key: key}, Discard: true}, []kgo.Opt{tlsOpt}, true},
		{"TLS, plaintext client", Options{TLS: standin.TLS{Cert: cert, Key: key}}, nil, false},
		{"plaintext, TLS client", Options{}, []kgo.Opt{tlsOpt}, false},
		{"client certificate", Options{TLS: standin.TLS{Cert: cert, Key: key, ClientCA: cert}}, []kgo.Opt{mutual}, true},
		{"no client certificate", Options{TLS: standin.TLS{Cert: cert, Key: key, ClientCA: cert}}, []kgo.Opt{tlsOpt}, false},
		{"SCRAM", Options{SASL: alice}, []kgo.Opt{login("alice", "secret")}, true},
		{"PLAIN", Options{SASL: alice}, []kgo.Opt{kgo.SASL(plain.Auth{User: "bob", Pass: "open"}.AsMechanism())}, true},
		{"SCRAM over TLS", Options{SASL: alice, TLS: standin.TLS{Cert: cert, Key: key}}, []kgo.Opt{tlsOpt, login("alice", "secret")}, true},
		{"wrong password", Options{SASL: alice}, []kgo.Opt{login("alice", "guess")}, false},
		{"no login", Options{SASL: alice}, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.opts.Listen, test.opts.InMemory = "127.0.0.1:0", true
			test.opts.Topics = []Topic{{"t", 1}}
			s := start(t, test.opts)
			ctx, timeout := testkit.Minute(t), time.Minute
			if !test.ok {
				timeout = 500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			err := client(t, s, append(test.with, kgo.RetryTimeout(timeout))...).ProduceSync(ctx, values(10)...).FirstErr()
			assert.Equal(t, (err == nil), test.ok, "got %v", err)
			want := uint64(0)
			if test.ok {
				want = 10
			}
			assert.Equal(t, s.Counts().Events, want, "counted events")
		})
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	cert, key := testkit.NewAuthority("test").Files(t)
	for _, test := range []struct {
		name string
		opts Options
	}{
		{"no such certificate", Options{TLS: standin.TLS{Cert: "/nowhere", Key: "/nowhere"}}},
		{"an invalid authority", Options{TLS: standin.TLS{Cert: cert, Key: key, ClientCA: key}}},
		{"no such address", Options{Listen: "256.0.0.1:0"}},
		{"a folder that is a file", Options{Listen: "127.0.0.1:0", DataDir: filepath.Join(cert, "data")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if s, err := Start(test.opts); err == nil {
				s.Close()
				t.Error("it started, want an error")
			}
		})
	}
}

// TestDataKept starts a broker with the data of an earlier one.
func TestDataKept(t *testing.T) {
	t.Parallel()
	opts := Options{Listen: "127.0.0.1:0", DataDir: t.TempDir()}
	s := assert.Value(Start(opts))(t)
	assert.OK(t, client(t, s).ProduceSync(testkit.Minute(t), values(100)...).FirstErr())
	assert.OK(t, s.Close())
	cl := client(t, start(t, opts), kgo.ConsumeTopics("t"))
	assert.Equal(t, len(consume(testkit.Minute(t), t, cl, 100)), 100, "records back")
}

// TestRetained produces more than may be kept and waits until the data are within
// the bound. After Close, the folder must be gone.
func TestRetained(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	const retain = 4 << 20
	s := assert.Value(Start(Options{Listen: "127.0.0.1:0", Retain: retain, Topics: []Topic{{"t", 1}}}))(t)
	defer s.Close()
	assert.OK(t, bare(s.Addr(), produceFrame("t", 0, 1000, 500), 5, 64))
	got := s.Counts().Bytes
	assert.Must(t, got >= 6*retain, "produced %d bytes, too few for this test", got)
	testkit.Until(t, "no more than about what it retains is on the disk", func() bool { return used(t) <= 2*retain })
	assert.OK(t, s.Close())
	assert.Equal(t, used(t), 0, "bytes left")
}

func used(t *testing.T) (n int64) {
	t.Helper()
	_ = filepath.WalkDir(os.TempDir(), func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // removed in between
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n
}

// TestProduceAllocates checks that the discard broker allocates no memory for a
// request. The client is in the same process and allocates none either.
func TestProduceAllocates(t *testing.T) {
	s := start(t, Options{Listen: "127.0.0.1:0", Discard: true, Topics: []Topic{{"t", 1}}})
	frame := produceFrame("t", 0, 1000, 100)
	assert.OK(t, bare(s.Addr(), frame, 5, 100))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const n = 2000
	assert.OK(t, bare(s.Addr(), frame, 5, n))
	runtime.ReadMemStats(&after)
	got := float64(after.Mallocs-before.Mallocs) / n
	assert.True(t, got <= 0.25, "a request allocates %.2f times, want 0 (connecting aside)", got)
}

// checkBatches parses record batches and checks each: lengths, checksum, and every record in it.
func checkBatches(t testing.TB, data []byte) (batches []kmsg.RecordBatch) {
	t.Helper()
	for len(data) > 0 {
		size := int(binary.BigEndian.Uint32(data[8:])) + 12
		assert.Must(t, size <= len(data), "a batch of %d bytes in %d", size, len(data))
		var b kmsg.RecordBatch
		assert.OK(t, b.ReadFrom(data[:size]))
		assert.Equal(t, uint32(b.CRC), crc32.Checksum(data[21:size], crc32.MakeTable(crc32.Castagnoli)), "checksum")
		assert.True(t, b.Magic == 2 && b.NumRecords == b.LastOffsetDelta+1,
			"got %d records of format %d up to %d", b.NumRecords, b.Magic, b.LastOffsetDelta)
		rest := b.Records
		for i := range b.NumRecords {
			n, used := binary.Varint(rest)
			var r kmsg.Record
			assert.OK(t, r.ReadFrom(rest[:used+int(n)]), "record %d", i)
			assert.True(t, r.OffsetDelta == i && r.Key == nil, "record %d has delta %d, key %q", i, r.OffsetDelta, r.Key)
			rest = rest[used+int(n):]
		}
		assert.True(t, len(rest) == 0, "%d bytes after the last record", len(rest))
		batches = append(batches, b)
		data = data[size:]
	}
	return batches
}

func TestSynthetic(t *testing.T) {
	for _, c := range []struct{ events, size int }{{1, 1}, {1, 1 << 20}, {10, 0}, {300, 100}, {70000, 3}} {
		t.Run(fmt.Sprintf("%dx%d", c.events, c.size), func(t *testing.T) {
			b := newSynthetic(c.events, c.size, time.UnixMilli(1700000000000))
			for _, k := range []int{1, c.events / 2, c.events - 1, c.events} {
				if k < 1 {
					continue
				}
				data := append([]byte(nil), b.data[:b.size(k)]...)
				b.head(data[:batchHead], 12345, k)
				got := checkBatches(t, data)
				assert.True(t, len(got) == 1 && got[0].FirstOffset == 12345 && int(got[0].NumRecords) == k,
					"got %d batches, want one of %d records at 12345", len(got), k)
				assert.Equal(t, got[0].MaxTimestamp, 1700000000000, "time")
			}
		})
	}
}

func kcat(t *testing.T, in string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(testkit.Minute(t), testkit.Program(t, "kcat"), args...)
	cmd.Stdin = strings.NewReader(in)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("kcat %s: %v\n%s", strings.Join(args, " "), err, errs.Bytes())
	}
	return out.String()
}

func TestKcat(t *testing.T) {
	t.Parallel()
	testkit.OnlyConformance(t, "kcat; Java's client and franz-go have the same in make test")
	forBoth(t, func(t *testing.T, opts Options) {
		opts.Topics = []Topic{{"t", 1}}
		s := start(t, opts)
		const n = 1000
		var in strings.Builder
		for i := range n {
			fmt.Fprintln(&in, "line", i)
		}
		for i, args := range [][]string{nil, {"-z", "lz4"}, {"-z", "snappy", "-X", "enable.idempotence=true"}, {"-X", "acks=0"}} {
			kcat(t, in.String(), append([]string{"-P", "-b", s.Addr(), "-t", "t"}, args...)...)
			want := uint64((i + 1) * n)
			// Without acks kcat does not wait until they have arrived.
			testkit.Until(t, "the events have arrived", func() bool { return s.Counts().Events >= want })
			assert.Equal(t, s.Counts().Events, want, "with %v events in all", args)
		}
		want := 4 * n
		if opts.Discard {
			want += int(opts.Events)
		}
		got := strings.Split(strings.TrimSpace(kcat(t, "", "-C", "-q", "-e", "-b", s.Addr(), "-t", "t", "-o", "beginning")), "\n")
		assert.Must(t, len(got) == want, "got %d lines back, want %d", len(got), want)
		last := got[len(got)-1]
		assert.True(t, opts.Discard || last == "line 999", "got last line %q", last)
		// A group, from its start to the end of the partition.
		group := kcat(t, "", "-q", "-e", "-b", s.Addr(), "-G", "g", "-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=6000", "t")
		assert.Equal(t, strings.Count(group, "\n"), want, "lines of a group")
	})
}

var (
	sent     = regexp.MustCompile(`(?m)^(\d+) records sent, .* 99\.9th`)
	consumed = regexp.MustCompile(`(?m)^[-0-9: ]+, [-0-9: ]+, [0-9.]+, [0-9.]+, (\d+), `)
)

func number(t *testing.T, pattern *regexp.Regexp, out string) int {
	t.Helper()
	m := pattern.FindStringSubmatch(out)
	assert.Must(t, m != nil, "no %s in:\n%s", pattern, out)
	n := assert.Value(strconv.Atoi(m[1]))(t)
	return n
}

// TestJavaTools runs Kafka's performance tools against both stand-ins.
func TestJavaTools(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Java process several times; not with -short")
	}
	forBoth(t, func(t *testing.T, opts Options) {
		opts.Events = 200_000
		s := start(t, opts)
		const n = 200_000
		out := kafkatest.Tool(t, "ProducerPerformance", "--topic", "perf", "--num-records", strconv.Itoa(n),
			"--record-size", "100", "--throughput", "-1", "--bootstrap-server", s.Addr())
		assert.Equal(t, number(t, sent, out), n, "records that the producer sent:\n%s", out)
		assert.Equal(t, s.Counts().Events, n, "counted events")
		for _, protocol := range []string{"classic", "consumer"} {
			out := kafkatest.Tool(t, "ConsumerPerformance", "--topic", "perf", "--num-records", strconv.Itoa(n), "--group", "g-"+protocol,
				"--command-property", "group.protocol="+protocol, "--bootstrap-server", s.Addr())
			got := number(t, consumed, out)
			assert.True(t, got >= n, "the consumer (%s groups) read %d, want %d:\n%s", protocol, got, n, out)
		}
	})
}

// produceFrame is a produce request, version 12, with one batch of the given records and size each.
func produceFrame(topic string, partition int32, records, size int) []byte {
	batch := newSynthetic(records, size, time.UnixMilli(1)).data
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(12)
	req.Acks, req.TimeoutMillis = 1, 30000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = partition, batch
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return frameOf(req)
}

func frameOf(req kmsg.Request) []byte {
	frame := make([]byte, 4, 64)
	frame = binary.BigEndian.AppendUint16(frame, uint16(req.Key()))
	frame = binary.BigEndian.AppendUint16(frame, uint16(req.GetVersion()))
	frame = append(frame, 0, 0, 0, 1, 0, 4, 'b', 'a', 'r', 'e')
	if req.IsFlexible() {
		frame = append(frame, 0)
	}
	frame = req.AppendTo(frame)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

// bare is a minimal producer: it writes one frame n times, with at most inflight of them unanswered.
func bare(addr string, frame []byte, inflight, n int) error {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	free := make(chan struct{}, inflight)
	failed := make(chan error, 1)
	go func() {
		buf := make([]byte, 64<<10)
		r, w := 0, 0
		for range n {
			for w-r < 4 || w-r < 4+int(binary.BigEndian.Uint32(buf[r:])) {
				w = copy(buf, buf[r:w])
				r = 0
				m, err := nc.Read(buf[w:])
				if err != nil {
					failed <- err
					return
				}
				w += m
			}
			size := 4 + int(binary.BigEndian.Uint32(buf[r:]))
			// After head and tags: count, name, count, index, error.
			at := r + 9 + 1 + 2 + 1 + 4
			if code := binary.BigEndian.Uint16(buf[at:]); code != 0 {
				failed <- fmt.Errorf("refused with code %d", code)
				return
			}
			r += size
			<-free
		}
		failed <- nil
	}()
	for range n {
		select {
		case free <- struct{}{}:
		case err := <-failed:
			return err
		}
		if _, err := nc.Write(frame); err != nil {
			return err
		}
	}
	return <-failed
}
