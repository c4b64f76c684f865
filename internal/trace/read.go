package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"time"

	"carronade/internal/place"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// A Row is a row of a trace, as Columns describes it. Nil fields are null.
type Row struct {
	Lane, Sequence, Attempt, Stream, Event int64
	Key                                    *string
	Phase                                  string
	Due, DueLast, Sent                     *int64
	Done                                   int64
	Requested, Consumed, Partition, Offset *int64
	Events, Bytes, Wire                    int64
	Acked, Failed, Unknown                 int64
	Outcome                                string
	Class                                  *string
	Status                                 *int64
	Retries                                int64
}

// Read calls f with every row of a file, in order, and with the start time of its
// run. A row is valid only during the call. An error of f ends it. The file must be
// one that a Trace wrote: other Parquet files are not supported, and the lengths of
// lists in the footer are not checked.
func Read(path string, f func(started time.Time, r *Row) error) error {
	file, err := place.Open(path)
	if err != nil {
		return fmt.Errorf("read the trace: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil {
		err = readAll(file, info.Size(), f)
	}
	if err != nil {
		return fmt.Errorf("read the trace %s: %w", path, err)
	}
	return nil
}

var (
	errNoTrace = errors.New("it is not a trace")
	errDamaged = errors.New("it is damaged")
)

// readAll reads a file of this many bytes.
func readAll(in io.ReaderAt, size int64, f func(time.Time, *Row) error) error {
	meta, err := readFooter(in, size)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(meta.KeyValueMetadata, func(kv format.KeyValue) bool { return kv.Key == "carronade.started_at" })
	if i < 0 {
		return errNoTrace
	}
	started, err := time.Parse(time.RFC3339Nano, meta.KeyValueMetadata[i].Value)
	if err != nil {
		return fmt.Errorf("its start time: %w", err)
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPageSize))
	if err != nil {
		return err
	}
	defer z.Close()
	r := &reader{z: z}
	for i := range columns {
		r.cols[i].def = &columns[i]
	}
	for i := range meta.RowGroups {
		if err := r.group(in, size, &meta.RowGroups[i], func(row *Row) error { return f(started, row) }); err != nil {
			return err
		}
	}
	return nil
}

// readFooter reads the footer, which locates everything.
func readFooter(in io.ReaderAt, size int64) (*format.FileMetaData, error) {
	var end [8]byte
	if size < int64(len(end)+len(magic)) {
		return nil, errNoTrace
	}
	if _, err := in.ReadAt(end[:], size-int64(len(end))); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(end[:4]))
	if string(end[4:]) != magic || n > size-int64(len(end)+len(magic)) {
		return nil, errNoTrace
	}
	b := make([]byte, n)
	if _, err := in.ReadAt(b, size-int64(len(end))-n); err != nil {
		return nil, err
	}
	meta := new(format.FileMetaData)
	if err := thrift.Unmarshal(&thrift.CompactProtocol{}, b, meta); err != nil {
		return nil, fmt.Errorf("its footer: %w", err)
	}
	return meta, nil
}

// maxPageSize limits a page, which has up to 32,768 rows, for example of keys.
const maxPageSize = 64 << 20

// A reader reads the columns of a row group in parallel: their pages end at the
// same rows.
type reader struct {
	z    *zstd.Decoder
	cols [colCount]cursor
	out  Row
}

// A cursor reads a column.
type cursor struct {
	def   *definition
	chunk []byte // not yet read
	words []string

	// The current page: its rows, and the values not yet read.
	rows    int
	levels  []byte
	ints    []int64
	indices []int32
	plain   []byte

	levelBuf, body []byte
	intBuf         []int64
	indexBuf       []int32

	number int64 // of the row
	text   string
}

// group reads a row group.
func (r *reader) group(in io.ReaderAt, size int64, g *format.RowGroup, f func(*Row) error) error {
	for i := range r.cols {
		c := &r.cols[i]
		if i >= len(g.Columns) || len(g.Columns[i].MetaData.PathInSchema) != 1 || g.Columns[i].MetaData.PathInSchema[0] != c.def.name {
			return fmt.Errorf("%w: column %d is not %s", errNoTrace, i+1, c.def.name)
		}
		m := &g.Columns[i].MetaData
		at := m.DataPageOffset
		if m.DictionaryPageOffset > 0 {
			at = m.DictionaryPageOffset
		}
		if at < 0 || m.TotalCompressedSize < 0 || at > size || m.TotalCompressedSize > size-at {
			return errDamaged
		}
		c.chunk = slices.Grow(c.chunk[:0], int(m.TotalCompressedSize))[:m.TotalCompressedSize]
		if _, err := in.ReadAt(c.chunk, at); err != nil {
			return err
		}
	}
	for left := g.NumRows; left > 0; {
		rows := 0
		for i := range r.cols {
			c := &r.cols[i]
			if err := c.page(r.z); err != nil {
				return fmt.Errorf("column %s: %w", c.def.name, err)
			}
			if i > 0 && c.rows != rows {
				return errDamaged
			}
			rows = c.rows
		}
		if rows == 0 || int64(rows) > left {
			return errDamaged
		}
		left -= int64(rows)
		for range rows {
			row, err := r.row()
			if err == nil {
				err = f(row)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// page reads the next page of values.
func (c *cursor) page(z *zstd.Decoder) error {
	for {
		var head format.PageHeader
		p := (&thrift.CompactProtocol{}).NewReaderFromBytes(c.chunk)
		if err := thrift.NewDecoder(p).Decode(&head); err != nil {
			return err
		}
		from := p.BytesRead()
		if head.CompressedPageSize < 0 || from+int(head.CompressedPageSize) > len(c.chunk) {
			return errDamaged
		}
		body, err := z.DecodeAll(c.chunk[from:from+int(head.CompressedPageSize)], c.body[:0])
		if err != nil {
			return err
		}
		c.body, c.chunk = body, c.chunk[from+int(head.CompressedPageSize):]
		switch {
		case head.Type == format.DictionaryPage && c.def.words:
			if err := c.dictionary(body); err != nil {
				return err
			}
		case head.Type == format.DataPage && head.DataPageHeader.Valid:
			return c.values(int(head.DataPageHeader.V.NumValues), body)
		default:
			return errDamaged
		}
	}
}

// dictionary reads the page with all words.
func (c *cursor) dictionary(body []byte) error {
	c.words = c.words[:0]
	for len(body) > 0 {
		word, rest, ok := plainText(body)
		if !ok {
			return errDamaged
		}
		c.words, body = append(c.words, string(word)), rest
	}
	return nil
}

// plainText splits the first of several concatenated texts.
func plainText(b []byte) (text, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := int64(binary.LittleEndian.Uint32(b))
	if n > int64(len(b)-4) {
		return nil, nil, false
	}
	return b[4 : 4+n], b[4+n:], true
}

// values decodes a page of this many rows.
func (c *cursor) values(rows int, body []byte) (err error) {
	if rows < 1 || rows > 1<<20 {
		return errDamaged
	}
	c.rows, c.levels, c.ints, c.indices, c.plain = rows, nil, nil, nil, nil
	present := rows
	if c.def.optional {
		levels, rest, ok := plainText(body)
		if !ok {
			return errDamaged
		}
		if c.levelBuf, err = (&rle.Encoding{BitWidth: 1}).DecodeLevels(c.levelBuf, levels); err != nil {
			return err
		}
		if len(c.levelBuf) < rows {
			return errDamaged
		}
		c.levels, body, present = c.levelBuf[:rows], rest, 0
		for _, l := range c.levels {
			present += int(l)
		}
	}
	got := present
	switch {
	case c.def.words:
		if len(body) == 0 || int(body[0]) != bits.Len(uint(max(len(c.words)-1, 0))) {
			return errDamaged
		}
		if present > 0 {
			c.indexBuf, err = (&rle.Encoding{BitWidth: int(body[0])}).DecodeInt32(c.indexBuf, body[1:])
			c.indices, got = c.indexBuf, len(c.indexBuf)
		}
	case c.def.text:
		c.plain = body
	case present > 0:
		c.intBuf, err = (&delta.BinaryPackedEncoding{}).DecodeInt64(c.intBuf, body)
		c.ints, got = c.intBuf, len(c.intBuf)
	}
	if err == nil && got < present {
		err = errDamaged
	}
	return err
}

// next reads the value of the next row, and reports whether it is non-null.
func (c *cursor) next() (present bool, err error) {
	if c.levels != nil {
		present, c.levels = c.levels[0] == 1, c.levels[1:]
		if !present {
			return false, nil
		}
	}
	switch {
	case c.def.words:
		if len(c.indices) == 0 || int(c.indices[0]) >= len(c.words) || c.indices[0] < 0 {
			return false, errDamaged
		}
		c.text, c.indices = c.words[c.indices[0]], c.indices[1:]
	case c.def.text:
		text, rest, ok := plainText(c.plain)
		if !ok {
			return false, errDamaged
		}
		c.text, c.plain = string(text), rest
	default:
		if len(c.ints) == 0 {
			return false, errDamaged
		}
		c.number, c.ints = c.ints[0], c.ints[1:]
	}
	return true, nil
}

// row reads the next value of each column.
func (r *reader) row() (*Row, error) {
	var present [colCount]bool
	for i := range r.cols {
		var err error
		if present[i], err = r.cols[i].next(); err != nil {
			return nil, fmt.Errorf("column %s: %w", r.cols[i].def.name, err)
		}
	}
	number := func(i int) *int64 {
		if present[i] {
			return &r.cols[i].number
		}
		return nil
	}
	text := func(i int) *string {
		if present[i] {
			return &r.cols[i].text
		}
		return nil
	}
	n := func(i int) int64 { return r.cols[i].number }
	r.out = Row{
		Lane: n(colLane), Sequence: n(colSequence), Attempt: n(colAttempt), Stream: n(colStream), Event: n(colEvent),
		Key: text(colKey), Phase: r.cols[colPhase].text, Due: number(colDue), DueLast: number(colDueLast), Sent: number(colSent),
		Done: n(colDone), Requested: number(colRequested), Consumed: number(colConsumed), Partition: number(colPartition), Offset: number(colLogOffset),
		Events: n(colEvents), Bytes: n(colBytes), Wire: n(colWire), Acked: n(colAcked), Failed: n(colFailed), Unknown: n(colUnknown),
		Outcome: r.cols[colOutcome].text, Class: text(colClass), Status: number(colStatus), Retries: n(colRetries),
	}
	return &r.out, nil
}
