package standin

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// written makes a data folder with 30 events of a producer, in batches of ten, in
// partition t-0, and returns it with the batches. The group g has committed an
// offset.
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

// FuzzRecover damages one file of a data folder and starts a broker on it. It may
// refuse the folder, but must serve only batches that were written, each as it was as
// far as its checksum goes, and all of those before the damage.
func FuzzRecover(f *testing.F) {
	dir, batches := written(f)
	var files []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	assert.OK(f, err)
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
