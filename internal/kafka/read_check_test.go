package kafka

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/payload"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestChecksValues: values that a run sent as pieces of a ring are right, those of others are
// not, and are not in the list of what was read.
func TestChecksValues(t *testing.T) {
	t.Parallel()
	const events, numbers = 500, "${math:absInt64(int64:xorShift(this.last()) % 1000000)}%{7}"
	for name, tt := range map[string]struct{ key, codec, engine string }{
		"keys":       {"number(36," + numbers + ",n-)", "none", cluster.EngineWire},
		"no keys":    {"none", "none", cluster.EngineWire},
		"compressed": {"number(36," + numbers + ",n-)", "lz4", cluster.EngineWire},
		"client":     {"number(36," + numbers + ",n-)", "none", cluster.EngineClient},
	} {
		t.Run(name, func(t *testing.T) {
			c := eventsCluster(t, 2, kfake.NumBrokers(1))
			s := spec(t, fakeURL(c.ListenAddrs()), map[string][]string{
				"payload": {"ring(64KiB," + numbers + ",7a42d9c483244167)"}, "size": {"20-300"}, "key": {tt.key},
				"compression": {tt.codec}, "engine": {tt.engine}, "fresh": {"true"},
			})
			sess := assert.Value(open(t, s))(t)
			ctx := testkit.Minute(t)
			if r, err := load.Fire(ctx, load.Plan{BatchEvents: 9, Concurrency: 3, Measurement: load.Limits{Events: events}}, sess.Target()); err != nil || r.Measurement.Acked < events {
				t.Fatal(err, r)
			}
			names := ""
			if tt.key != "none" {
				names = "names(36,n-),"
			}
			list := filepath.Join(t.TempDir(), "list")
			check := map[string][]string{"check-values": {"ring(64KiB," + names + "7a42d9c483244167)"}, "items-out": {list}, "decode": {"true"}}
			r, _ := fireReads(t, c, load.Plan{BatchEvents: 50}, check)
			assert.Must(t, r.Measurement.Acked >= events && r.Measurement.Counts.Failed == 0,
				"%d read, %d failed: %v", r.Measurement.Acked, r.Measurement.Counts.Failed, r.Failures)
			good := r.Measurement.Acked
			// Another program's records, and one of ours with a bit changed.
			gen, err := payload.New(payload.Spec{Size: "100", Payload: "ring(64KiB," + numbers + ",7a42d9c483244167)"})
			assert.OK(t, err)
			altered := gen.AppendValue(nil, 3)
			altered[50] ^= 4
			putEvents(t, c, []*kgo.Record{
				{Key: []byte("n-1"), Value: []byte("another program's value")},
				{Key: []byte("other"), Value: altered},
				{Value: gen.AppendValue(nil, 3)}, // without a key, but of the ring
			})
			r, sess2 := fireReads(t, c, load.Plan{BatchEvents: 50}, check)
			if r.Measurement.Acked != good+1 || r.Measurement.Counts.Failed != 2 || r.Classes["protocol"] != 2 || !strings.Contains(fmt.Sprint(r.Failures), "its value is not the one that was sent") {
				t.Errorf("%d of %d read, %d failed: %v", r.Measurement.Acked, good+3, r.Measurement.Counts.Failed, r.Failures)
			}
			assert.OK(t, sess2.(interface{ Finish() error }).Finish())
			n := len(recordsIn(t, list))
			assert.True(t, uint64(n) == good+1, "%d records are listed, want the %d that were right", n, good+1)
		})
	}
}

// TestChecksList: with a list, each record has the value of its own line, whatever the order
// and the batches are.
func TestChecksList(t *testing.T) {
	t.Parallel()
	c := eventsCluster(t, 2)
	gen := assert.Value(payload.New(payload.Spec{Size: "10-90", Payload: "ring(1000,${this.last() + 1}%{-1},ff)"}))(t)
	putEvents(t, c, records(100, 2, func(i int) *kgo.Record { return &kgo.Record{Value: gen.AppendValue(nil, uint64(i))} }))
	var places, lines strings.Builder
	for i := 99; i >= 0; i-- { // record i is at offset i/2 of partition i%2
		fmt.Fprintf(&places, "%d,%d\n", i%2, i/2)
		size := gen.Size(uint64(i))
		if i == 17 {
			size--
		}
		fmt.Fprintf(&lines, "t/%d,%s,%d,0/0\n", i, strconv.FormatInt(int64(i), 16), size)
	}
	list := filepath.Join(t.TempDir(), "items.csv")
	assert.OK(t, os.WriteFile(list, []byte(lines.String()), 0o600))
	r, _ := fireReads(t, c, load.Plan{BatchEvents: 10, Measurement: load.Limits{Events: 200}}, map[string][]string{
		"items-in": {writeList(t, places.String())}, "check-values": {"ring(1000,list(" + list + "),ff)"}, "clients": {"2"}, "recycle": {"true"},
	})
	if n := r.Measurement.Acked + r.Measurement.Counts.Failed; n < 200 || r.Measurement.Counts.Failed < 1 || r.Measurement.Counts.Failed > 2+n/100 {
		t.Errorf("%d read, %d failed: %v; want one in a hundred to fail", r.Measurement.Acked, r.Measurement.Counts.Failed, r.Failures)
	}
	s := spec(t, fakeURL(c.ListenAddrs()), map[string][]string{"items-in": {writeList(t, "0,1\n")}, "check-values": {"ring(1000,list(" + list + "),ff)"}})
	s.Op = cluster.OpRead
	_, err := open(t, s)
	assert.ErrorHas(t, err, "the list of check-values has 100 items, and 1 are read", "another list")
}
