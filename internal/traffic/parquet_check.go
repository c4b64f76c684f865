package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// The library allocates what lengths in a file say. So they are checked before it sees them.

// Limits of a file of Parquet.
const (
	maxFooter = 32 << 20
	maxPage   = 256 << 20
)

var (
	errThrift = errors.New("a length does not fit")
	errDeep   = errors.New("it is nested too deeply")
	errMany   = errors.New("it has more parts than its length allows")
)

// checkFooter checks all lengths in the footer.
func checkFooter(in io.ReaderAt, length int64) error {
	var end [8]byte
	if length < 12 {
		return errors.New("the file is too short")
	}
	if _, err := in.ReadAt(end[:], length-8); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(end[:4]))
	if string(end[4:]) != "PAR1" || n > length-12 || n > maxFooter {
		return errors.New("the file does not end as Parquet does: it may be truncated")
	}
	b := make([]byte, n)
	if _, err := in.ReadAt(b, length-8-n); err != nil {
		return err
	}
	_, err := newThrift(len(b)).structure(b, 0)
	return err
}

// checkPages checks the pages of a column in a row group. The codec is the one that the library
// uses: that of the column's first row group. optional: values may be missing. The values of a
// page may have most bytes together.
func checkPages(in io.ReaderAt, length int64, codec format.CompressionCodec, meta *format.ColumnMetaData, optional bool, most int64) error {
	at := meta.DataPageOffset
	if d := meta.DictionaryPageOffset; d > 0 && d < at {
		at = d
	}
	size := meta.TotalCompressedSize
	if at < 4 || size < 0 || at > length || size > length-at {
		return fmt.Errorf("a column of %d bytes at %d does not fit", size, at)
	}
	return checkChunk(in, at, at+size, codec, optional, most)
}

// maxPageValues limits the values of a page.
const maxPageValues = 1 << 24

// maxPageHeader limits the header of a page.
const maxPageHeader = 16 << 20

// checkChunk checks the headers of pages from at on, up to end, and that pages are not larger than
// they say when they are decompressed.
func checkChunk(in io.ReaderAt, at, end int64, codec format.CompressionCodec, optional bool, most int64) error {
	buffer := make([]byte, 64<<10)
	for at < end {
		n, err := in.ReadAt(buffer[:min(int64(len(buffer)), end-at)], at)
		if n == 0 {
			return fmt.Errorf("a page: %w", err)
		}
		size, err := newThrift(n).structure(buffer[:n], 0)
		if errors.Is(err, errThrift) && n == len(buffer) && n < maxPageHeader {
			buffer = make([]byte, 4*n) // it has the smallest and the largest value of the page
			continue
		}
		if err != nil {
			return fmt.Errorf("a page's header: %w", err)
		}
		var h format.PageHeader
		if err := thrift.Unmarshal(new(thrift.CompactProtocol), buffer[:size], &h); err != nil {
			return fmt.Errorf("a page's header: %w", err)
		}
		at += int64(size)
		if h.CompressedPageSize < 0 || int64(h.CompressedPageSize) > end-at || h.UncompressedPageSize < 0 || h.UncompressedPageSize > maxPage {
			return fmt.Errorf("a page of %d bytes, %d compressed, does not fit", h.UncompressedPageSize, h.CompressedPageSize)
		}
		if n := max(h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues, h.DictionaryPageHeader.V.NumValues); n > maxPageValues {
			return fmt.Errorf("a page of %d values is not within %d", n, maxPageValues)
		}
		page := func() *io.SectionReader { return io.NewSectionReader(in, at, int64(h.CompressedPageSize)) }
		if err := checkPage(page(), codec, &h); err != nil {
			return fmt.Errorf("a page: %w", err)
		}
		if err := checkDelta(page(), codec, &h, optional, most); err != nil {
			return fmt.Errorf("a page: %w", err)
		}
		at += int64(h.CompressedPageSize)
	}
	return nil
}

// A thriftCheck checks values in Thrift's compact protocol. Structs in lists take much more memory
// than an empty one has bytes, so their number is limited.
type thriftCheck struct{ structs int }

// newThrift returns a check of that many bytes.
func newThrift(length int) *thriftCheck { return &thriftCheck{structs: 10_000 + length/16} }

// structure returns the length of the struct at the beginning of b, in Thrift's compact
// protocol. Everything in it fits into b.
func (t *thriftCheck) structure(b []byte, depth int) (int, error) {
	if depth > 32 {
		return 0, errDeep
	}
	at := 0
	for {
		if at >= len(b) {
			return 0, errThrift
		}
		head := b[at]
		at++
		if head == 0 {
			return at, nil
		}
		if head>>4 == 0 { // the field's number follows
			_, n := binary.Varint(b[at:])
			if n <= 0 {
				return 0, errThrift
			}
			at += n
		}
		if kind := head & 15; kind > 2 { // true and false are in the type
			n, err := t.value(b[at:], kind, depth)
			if err != nil {
				return 0, err
			}
			at += n
		}
	}
}

// value returns the length of a value of a type.
func (t *thriftCheck) value(b []byte, kind byte, depth int) (int, error) {
	fits := func(n int) (int, error) {
		if n > len(b) {
			return 0, errThrift
		}
		return n, nil
	}
	switch kind {
	case 1, 2, 3: // a byte
		return fits(1)
	case 4, 5, 6: // integers
		_, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, errThrift
		}
		return n, nil
	case 7: // a double
		return fits(8)
	case 8: // bytes
		length, n := binary.Uvarint(b)
		if n <= 0 || length > uint64(len(b)-n) {
			return 0, errThrift
		}
		return n + int(length), nil
	case 9, 10:
		return t.list(b, depth)
	case 12:
		return t.structure(b, depth+1)
	}
	return 0, fmt.Errorf("type %d is not used by Parquet", kind)
}

func (t *thriftCheck) list(b []byte, depth int) (int, error) {
	if len(b) == 0 || depth > 32 {
		return 0, errThrift
	}
	count, at := uint64(b[0]>>4), 1
	if count == 15 {
		long, n := binary.Uvarint(b[1:])
		if n <= 0 {
			return 0, errThrift
		}
		count, at = long, at+n
	}
	if count > uint64(len(b)) { // each has a byte at least
		return 0, errThrift
	}
	if b[0]&15 == 12 {
		if count > uint64(t.structs) {
			return 0, errMany
		}
		t.structs -= int(count)
	}
	for range count {
		n, err := t.value(b[at:], b[0]&15, depth+1)
		if err != nil {
			return 0, err
		}
		at += n
	}
	return at, nil
}
