//go:build conformance

package acceptance

import (
	"context"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// neverRead checks the report of a round trip of which some events were never read: they have an age in the
// end-to-end times, lag behind, and are in the first line.
func neverRead(t *testing.T, e ended) *document {
	t.Helper()
	d := e.document(t)
	if d.Totals.Unread == 0 || d.Totals.Consumed+d.Totals.Unread != d.Totals.Acked {
		t.Errorf("acked %d, consumed %d, unread %d", d.Totals.Acked, d.Totals.Consumed, d.Totals.Unread)
	}
	if d.EndToEnd == nil || d.EndToEnd.Censored != d.Totals.Unread || d.EndToEnd.Count != d.Totals.Consumed {
		t.Errorf("the end-to-end times are %+v", d.EndToEnd)
	}
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
				other, err := kgo.NewClient(append(broker.ClientOpts(), kgo.TransactionalID("open-"+topic), kgo.DefaultProduceTopic(topic))...)
				assert.OK(t, err)
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
