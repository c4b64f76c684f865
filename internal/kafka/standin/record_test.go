package standin

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestRecord: the record contains what a client produces and consumes, by
// partition and offset, with the times of the answers.
func TestRecord(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		const events = 50
		path := filepath.Join(t.TempDir(), "record.csv")
		opts.Record, opts.Topics, opts.Events, opts.BatchEvents = path, []Topic{{"t", 1}}, 10, 10
		s := start(t, opts)
		cl := client(t, s, kgo.ConsumeTopics("t"), kgo.DefaultProduceTopic("t"))
		assert.OK(t, cl.ProduceSync(testkit.Minute(t), values(events)...).FirstErr())
		want := int64(events)
		if opts.Discard {
			want += 10 // synthetic records at the start
		}
		for got := int64(0); got < want; {
			f := cl.PollFetches(testkit.Minute(t))
			assert.OK(t, f.Err())
			got += int64(f.NumRecords())
		}
		cl.Close()
		assert.OK(t, s.Close())
		rows := testkit.CSV(t, path)
		assert.Must(t, len(rows) >= 3, "%q", rows)
		next := map[string]int64{"produce": want - events, "fetch": 0}
		for _, r := range rows[1:] {
			offset, err1 := strconv.ParseInt(r[5], 10, 64)
			n, err2 := strconv.ParseInt(r[6], 10, 64)
			if err1 != nil || err2 != nil || r[4] != "0" || offset != next[r[2]] {
				t.Fatalf("%q: want the offset %d of partition 0", r, next[r[2]])
			}
			next[r[2]] += n
			assert.True(t, r[7] != "" && r[8] != "" && r[9] != "", "%q is not answered", r)
		}
		assert.True(t, next["produce"] == want && next["fetch"] == want,
			"produced up to %d, fetched up to %d, want %d", next["produce"], next["fetch"], want)
	})
}
