//go:build conformance

package acceptance

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/host"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

func (d *document) verify(t testing.TB) (ok, cannotTell bool, text string) {
	t.Helper()
	for _, c := range d.Checks {
		if c.Name == "verify" {
			return c.OK, c.CannotTell, c.Text
		}
	}
	t.Fatal("the report has no check verify")
	return false, false, ""
}

// checkBalance checks that every acked event is accounted for once, in total and in each partition.
func (d *document) checkBalance(t testing.TB) {
	t.Helper()
	l := d.Ledger
	if got := l.Read + l.Lost + l.Unread + l.Compacted; got != l.Acked || l.Duplicated+l.Reordered+l.Corrupted+l.Recovered+l.Inexact+l.Foreign != 0 {
		t.Errorf("%d of %d events are accounted for: %+v", got, l.Acked, *l)
	}
	for _, g := range l.Logs {
		assert.Equal(t, g.Read+g.Lost+g.Unread+g.Compacted, g.Acked, "%s: events that are accounted for: %+v", g.Log, g)
	}
}

// TestVerifiedRemoved deletes the head of one of two partitions during a run that is read back afterwards:
// the deleted events are unread, not lost, because it is unknown whether they were there.
func TestVerifiedRemoved(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	const most = 5000
	for _, flags := range [][]string{
		{"--engine", "wire"},
		{"--engine", "wire", "--compression", "lz4"},
		{"--engine", "client"},
		{"--engine", "client", "--transactions", "--acks", "all"},
	} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			topic := broker.CreateTopic(t, 2, 1)
			// Batches of 13, so that the deletion cuts one in two.
			s := start(t, append([]string{"run", topicURL(broker, topic), "--verify", "--concurrency", "20", "--batch-events", "13", "--for", "4s", "--json"}, flags...)...)
			s.awaitStderr(progressText)
			// In the middle of the run, however much a busy machine has sent until then.
			removed := int64(0)
			for deadline := time.Now().Add(2500 * time.Millisecond); removed < most && (removed < 200 || time.Now().Before(deadline)); {
				pause(t, 50*time.Millisecond)
				removed = min(most, broker.EndOffsets(t, topic)[0])
			}
			assert.OK(t, host.Pause(s.cmd.Process.Pid)) // it must not read back before the events are removed
			var at kadm.Offsets
			at.Add(kadm.Offset{Topic: topic, Partition: 0, At: removed})
			res, err := broker.Admin(t).DeleteRecords(t.Context(), at)
			assert.Must(t, err == nil && res.Error() == nil, "%v %v", err, res.Error())
			assert.OK(t, host.Continue(s.cmd.Process.Pid))
			d := s.wait(runTimeout).wantUnlessSlow(t, 4).document(t)
			l := d.Ledger
			// With transactions, some of the offsets are those of commit markers.
			minUnread := uint64(removed)
			if l.Committed > 0 {
				minUnread -= 100
			}
			if l.Unread != l.Removed || l.Unread > uint64(removed) || l.Unread < minUnread || l.Lost != 0 || l.Logs[0].Unread != l.Unread || l.Logs[1].Unread != 0 {
				t.Errorf("%d events were removed: %+v", removed, *l)
			}
			d.checkBalance(t)
			ok, cannotTell, text := d.verify(t)
			want := fmt.Sprintf("cannot tell: %s of %s were removed before they were read (retention or deletion)", thousands(l.Unread), thousands(l.Acked))
			assert.True(t, !ok && cannotTell && text == want, "got %q (%v, %v), want %q", text, ok, cannotTell, want)
		})
	}
}

// TestVerifiedRetentionAndCompaction sends to topics from which a broker with short
// intervals removes events by retention and compaction.
func TestVerifiedRetentionAndCompaction(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Start(t, kafkatest.Config{Heap: "512m", Properties: map[string]string{
		"log.retention.check.interval.ms": "200", "log.segment.delete.delay.ms": "100", "log.cleaner.backoff.ms": "100", "log.initial.task.delay.ms": "100",
	}})
	compact := []string{"segment.bytes=1048576", "segment.ms=500", "min.cleanable.dirty.ratio=0.01", "max.compaction.lag.ms=500"}
	for _, tt := range []struct {
		name            string
		settings, flags []string
		compacts        bool
	}{
		{"retention by size", []string{"segment.bytes=1048576", "retention.bytes=1048576"}, nil, false},
		{"retention by size, client", []string{"segment.bytes=1048576", "retention.bytes=1048576"}, []string{"--engine", "client"}, false},
		{"retention by size, compressed", []string{"segment.bytes=1048576", "retention.bytes=1048576"}, []string{"--compression", "lz4"}, false},
		{"compacted", append(compact, "cleanup.policy=compact"), nil, true},
		{"compacted, fresh", append(compact, "cleanup.policy=compact"), []string{"--fresh"}, true},
		{"compacted, by key", append(compact, "cleanup.policy=compact"), []string{"--partitioner", "murmur2", "--clients", "2"}, true},
		{"compacted, client", append(compact, "cleanup.policy=compact,delete"), []string{"--engine", "client"}, true},
		{"compacted, client, compressed", append(compact, "cleanup.policy=compact"), []string{"--engine", "client", "--compression", "zstd"}, true},
		{"compacted, read as it goes", append(compact, "cleanup.policy=compact"), []string{"--op", "roundtrip", "--rate", "20k/s"}, true},
		{"compacted, read as it goes, client", append(compact, "cleanup.policy=compact"), []string{"--op", "roundtrip", "--engine", "client", "--rate", "10k/s"}, true},
		{"compacted, more keys than memory", append(compact, "cleanup.policy=compact"), []string{"--key", "uniform(400000)", "--fresh", "--for", "15s"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			topic := broker.CreateTopic(t, 2, 1, tt.settings...)
			args := []string{"run", topicURL(broker, topic), "--verify", "--json", "--quiet", "--for", "6s"}
			if !strings.Contains(tt.name, "as it goes") {
				args = append(args, "--concurrency", "20", "--batch-events", "50")
			}
			if tt.compacts {
				args = append(args, "--key", "uniform(500)")
			}
			e := run(t, append(args, tt.flags...)...)
			d := e.wantOneOf(t, 0, 3, 4).document(t)
			l := d.Ledger
			t.Logf("exit %d: %+v", e.code, *l)
			d.checkBalance(t)
			switch {
			case l.Lost != 0:
				t.Error("events are reported as lost")
			case !tt.compacts:
				e.wantUnlessSlow(t, 4)
				assert.True(t, l.Unread > 0 && l.Removed == l.Unread && l.Compacted == 0,
					"events removed by retention are not reported as unread")
			case strings.Contains(tt.name, "more keys"):
				e.wantUnlessSlow(t, 4)
				assert.True(t, l.Unread != 0 && l.Compacted == 0, "events of keys that did not fit into memory are not reported as unread")
			default:
				e.wantUnlessSlow(t, 0)
				assert.True(t, l.Unread == 0 && (l.Compacted != 0 || strings.Contains(tt.name, "as it goes")) &&
					l.Method == "stamps", "events removed by compaction are not reported as compacted")
			}
		})
	}
}

// TestVerifiedTransactions reads back transactions, during the run and after it.
func TestVerifiedTransactions(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	args := []string{"--engine", "client", "--transactions", "--transaction-abort", "20%", "--acks", "all", "--verify", "--json", "--quiet"}
	for _, op := range []string{"produce", "roundtrip"} {
		t.Run(op, func(t *testing.T) {
			topic := broker.CreateTopic(t, 2, 1)
			d := run(t, append([]string{"run", topicURL(broker, topic), "--op", op, "--rate", "4000/s", "--for", "3s", "--clients", "2"}, args...)...).succeeded(t).document(t)
			d.checkLedger(t, 12_000)
			d.checkBalance(t)
			l := d.Ledger
			assert.True(t, l.Committed+l.Aborted == l.Acked && l.CommittedRead == l.Committed && l.Phantom == 0,
				"the ledger does not add up: %+v", *l)
			// A fifth of each client's transactions, to the nearest one. How many events each has depends on time.
			tx, _ := d.Facts["transactions"].(map[string]any)
			committed, _ := tx["committed"].(float64)
			aborted, _ := tx["aborted"].(float64)
			events, _ := tx["aborted_events"].(float64)
			if aborted < 1 || math.Abs(aborted-(committed+aborted)/5) > 2 || events != float64(l.Aborted) {
				t.Errorf("a fifth of the transactions was to be aborted: %v; the ledger %+v", tx, *l)
			}
			got := run(t, "run", topicURL(broker, topic), "--op", "consume", "--isolation", "committed", "--until-end", "--json", "--quiet").wantOneOf(t, 0, 3).document(t)
			assert.Equal(t, got.Totals.Consumed, l.Committed, "committed events: read, and in the ledger")
		})
	}
}

// neverRead checks the report of a round trip of which some events were never read: they have an age in the
// end-to-end times, lag behind, and are in the first line.
func neverRead(t *testing.T, e ended) *document {
	t.Helper()
	d := e.document(t)
	assert.True(t, d.Totals.Unread != 0 && d.Totals.Consumed+d.Totals.Unread == d.Totals.Acked,
		"acked %d, consumed %d, unread %d", d.Totals.Acked, d.Totals.Consumed, d.Totals.Unread)
	assert.True(t, d.EndToEnd != nil && d.EndToEnd.Censored == d.Totals.Unread && d.EndToEnd.Count == d.Totals.Consumed,
		"the end-to-end times are %+v", d.EndToEnd)
	lag := int64(0)
	for _, n := range d.LagEvents {
		lag += n
	}
	assert.True(t, lag >= int64(d.Totals.Unread), "lag %d, unread %d", lag, d.Totals.Unread)
	return d
}

// TestUnreadUnderQuota: a consumer whose quota lets it read a part of what was sent has not read the rest, however
// short the times of that part are.
func TestUnreadUnderQuota(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			topic, id := broker.CreateTopic(t, 1, 1), "reads-slowly-"+engine
			const quota = 2000 // bytes/s
			results, err := broker.Admin(t).AlterClientQuotas(t.Context(), []kadm.AlterClientQuotaEntry{{
				Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &id}},
				Ops:    []kadm.AlterClientQuotaOp{{Key: "consumer_byte_rate", Value: quota}},
			}})
			assert.Must(t, err == nil && len(results) == 1 && results[0].Err == nil, "set a quota: %v, %+v", err, results)
			e := run(t, "run", topicURL(broker, topic), "--op", "roundtrip", "--engine", engine, "--client-id", id, "--rate", "200/s", "--for", "10s",
				"--size", "100", "--drain", "1s", "--slo", "end-to-end.p99<100ms", "--json", "--quiet").want(t, 1)
			d := neverRead(t, e)
			assert.True(t, !d.Checks[0].OK && !d.Checks[0].CannotTell && strings.Contains(d.Checks[0].Text, ">="), "the limit: %+v", d.Checks[0])
		})
	}
}

// TestUnreadBehindTransaction: what lies behind another producer's open transaction is unread to a reader of
// committed events, and not lost. The report says whose transaction it is.
func TestUnreadBehindTransaction(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	for _, engine := range engines {
		for _, verify := range []bool{false, true} {
			name := engine
			if verify {
				name += " verified"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				topic := broker.CreateTopic(t, 1, 1)
				other := assert.Value(kgo.NewClient(append(broker.ClientOpts(), kgo.TransactionalID("open-"+topic), kgo.DefaultProduceTopic(topic))...))(t)
				defer other.Close()
				assert.OK(t, other.BeginTransaction())
				assert.OK(t, other.ProduceSync(t.Context(), kgo.StringRecord("open")).FirstErr())
				defer func() { _ = other.EndTransaction(context.WithoutCancel(t.Context()), kgo.TryAbort) }()
				args := []string{
					"run", topicURL(broker, topic), "--op", "roundtrip", "--engine", engine, "--isolation", "committed", "--rate", "100/s", "--for", "3s",
					"--drain", "2s", "--slo", "end-to-end.p99<1h", "--json", "--quiet",
				}
				if verify {
					args = append(args, "--verify")
				}
				d := neverRead(t, run(t, args...).wantOneOf(t, 3, 4))
				assert.Equal(t, d.Totals.Unread, 300, "unread")
				assert.True(t, !d.Checks[len(d.Checks)-1].OK && d.Checks[len(d.Checks)-1].CannotTell, "the limit: %+v", d.Checks)
				said := strings.Join(d.Warnings, "\n")
				if verify {
					var open bool
					if _, open, said = d.verify(t); !open || d.Ledger.Lost != 0 || d.Ledger.Unread != 300 {
						t.Errorf("the ledger is %+v, verify cannot tell: %v", d.Ledger, open)
					}
				}
				assert.True(t, strings.Contains(said, "because of the open transaction of producer id "), "it says %q", said)
			})
		}
	}
}
