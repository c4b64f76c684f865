//go:build conformance

package acceptance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// enoughRecords is the number of records in which no two have the same value.
const enoughRecords = 100_000

// equalValues reads n records of a topic and returns how many of them have the value
// of an earlier one.
func equalValues(t *testing.T, addr, topic string, n int) (equal int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableClientMetrics())
	assert.OK(t, err)
	defer cl.Close()
	seen := make(map[string]bool, n)
	for read := 0; read < n; {
		fetches := cl.PollFetches(ctx)
		assert.OK(t, fetches.Err(), "read %d of %d records", read, n)
		fetches.EachRecord(func(r *kgo.Record) {
			if read++; seen[string(r.Value)] {
				equal++
			}
			seen[string(r.Value)] = true
		})
	}
	return equal
}

// awaitRecords waits until a topic has n records.
func awaitRecords(t *testing.T, addr, topic string, n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	cl := assert.Value(kgo.NewClient(kgo.SeedBrokers(addr), kgo.DisableClientMetrics()))(t)
	defer cl.Close()
	for has := int64(0); has < n; {
		has = 0
		if ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic); err == nil {
			ends.Each(func(o kadm.ListedOffset) { has += max(o.Offset, 0) })
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the topic has %d records, want %d", has, n)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// The old tools make each message as they send it, so no two are equal. So do the
// drop-ins, with a codec and without.
func TestAsPayloadsDiffer(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory", "--partitions", "2")
	for _, args := range []string{
		"--command-property compression.type=none",
		"--command-property compression.type=gzip",
		"--command-property compression.type=zstd",
		"--transaction-duration-ms 200",
		"--generation 2018 --producer-props compression.type=gzip",
	} {
		t.Run("producer "+args, func(t *testing.T) {
			t.Parallel()
			topic := strings.NewReplacer(" ", "-", "=", "-").Replace("p" + args)
			all := append([]string{"--topic", topic, "--num-records", fmt.Sprint(enoughRecords), "--record-size", "40", "--throughput", "-1"}, strings.Fields(args)...)
			if strings.Contains(args, "--producer-props") { // a list, which it ends
				all = append(all, "bootstrap.servers="+server.addr)
			} else {
				all = append(all, "--bootstrap-server", server.addr)
			}
			runProducer(t, 0, all...)
			n := equalValues(t, server.addr, topic, enoughRecords)
			assert.True(t, n <= 0, "%d of %d records have the value of an earlier one", n, enoughRecords)
		})
	}
	for _, args := range []string{"-size=40", "-message-size=40 -compression=gzip", "-message-size=40 -workers=3"} {
		t.Run("sangrenel "+args, func(t *testing.T) {
			t.Parallel()
			topic := strings.NewReplacer(" ", "-", "=", "-").Replace("s" + args)
			s := start(t, append([]string{"as", "sangrenel", "-brokers=" + server.addr, "-topic=" + topic}, strings.Fields(args)...)...)
			awaitRecords(t, server.addr, topic, enoughRecords)
			s.signal(syscall.SIGINT)
			s.wait(runTimeout).wantOneOf(t, 0, 3)
			n := equalValues(t, server.addr, topic, enoughRecords)
			assert.True(t, n <= 0, "%d of %d messages have the value of an earlier one", n, enoughRecords)
		})
	}
}

// With a codec, a drop-in sends as many bytes as fresh encoding, and its report says that
// all of the codec's work was measured.
func TestAsKafkaProducerWire(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory", "--partitions", "1")
	for _, codec := range []string{"gzip", "zstd"} {
		_, as := runProducer(t, 0, "--topic", "as-"+codec, "--num-records", fmt.Sprint(enoughRecords), "--record-size", "100", "--throughput", "-1",
			"--bootstrap-server", server.addr, "--command-property", "compression.type="+codec)
		file := filepath.Join(t.TempDir(), "report.json")
		run(t, "run", "kafka://"+server.addr+"/fresh-"+codec, "--profile", "java", "--create-topic", "auto", "--payload", "letters", "--size", "100", "--fresh",
			"--compression", codec, "--count", fmt.Sprint(enoughRecords), "--quiet", "--json-file", file).wantOneOf(t, 0, 3)
		data := assert.Value(os.ReadFile(file))(t)
		fresh := assert.Value(parseDocument(string(data)))(t)
		got, want := as.wholeRun(), fresh.wholeRun()
		perRecord, wanted := float64(got.WireBytes)/float64(got.Acked), float64(want.WireBytes)/float64(want.Acked)
		if e := as.Encoding; e.Events != "fresh" || e.Codec != codec || e.CodecMeasured == nil || *e.CodecMeasured != 1 {
			t.Errorf("%s: the report has the encoding %+v", codec, e)
		}
		t.Logf("%s: %.1f bytes a record, fresh %.1f", codec, perRecord, wanted)
		wantClose(t, codec+": bytes a record", perRecord, wanted, wanted/10)
	}
}
