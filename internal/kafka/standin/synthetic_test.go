package standin

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// checkBatches parses record batches and checks each: lengths, checksum, and every
// record in it.
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
	t.Parallel()
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
