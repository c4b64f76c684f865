package franz

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A recordPool reuses the memory of records and of decompressed batches, which are
// only counted, so that the garbage collector has less to do.
type recordPool struct {
	records, bytes sync.Pool // of *[]kgo.Record, *[]byte
}

var (
	_ kgo.PoolRecords         = (*recordPool)(nil)
	_ kgo.PoolDecompressBytes = (*recordPool)(nil)
)

// GetRecords implements kgo.PoolRecords.
func (p *recordPool) GetRecords(n int) []kgo.Record {
	if s, ok := p.records.Get().(*[]kgo.Record); ok && cap(*s) >= n {
		return (*s)[:n]
	}
	return make([]kgo.Record, n)
}

// PutRecords implements kgo.PoolRecords.
func (p *recordPool) PutRecords(s []kgo.Record) { p.records.Put(&s) }

// GetDecompressBytes implements kgo.PoolDecompressBytes.
func (p *recordPool) GetDecompressBytes([]byte, kgo.CompressionCodecType) []byte {
	if s, ok := p.bytes.Get().(*[]byte); ok {
		return *s
	}
	return nil
}

// PutDecompressBytes implements kgo.PoolDecompressBytes.
func (p *recordPool) PutDecompressBytes(s []byte) { p.bytes.Put(&s) }
