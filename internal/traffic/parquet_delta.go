package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

var (
	errDelta     = errors.New("its delta encoding is damaged")
	errDeltaMany = errors.New("its delta encoding has more values than the page")
	errDeltaLong = errors.New("its values are too long together: each repeats the one before it")
)

// checkDelta checks the values of a page in one of the delta encodings. In them the number of
// values, and the length of what each repeats from the one before it, do not depend on the bytes
// of the page, so a small page could fill the memory. optional: the column has definition levels.
// Values may have most bytes together. The page's size was checked.
func checkDelta(page *io.SectionReader, codec format.CompressionCodec, h *format.PageHeader, optional bool, most int64) error {
	encoding, count := h.DataPageHeader.V.Encoding, h.DataPageHeader.V.NumValues
	if h.Type == format.DataPageV2 {
		encoding, count = h.DataPageHeaderV2.V.Encoding, h.DataPageHeaderV2.V.NumValues
	}
	switch encoding {
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray, format.DeltaByteArray:
	default:
		return nil
	}
	values, err := pageValues(page, codec, h, optional)
	if err != nil || len(values) == 0 {
		return err
	}
	rest, sum, err := deltaSum(values, int64(count))
	if err != nil || encoding == format.DeltaBinaryPacked {
		return err
	}
	if encoding == format.DeltaByteArray {
		_, suffixes, err := deltaSum(rest, int64(count))
		if err != nil {
			return err
		}
		sum += suffixes
	}
	if sum > uint64(most) {
		return errDeltaLong
	}
	return nil
}

// pageValues returns the decompressed values of a page, without its levels.
func pageValues(page *io.SectionReader, codec format.CompressionCodec, h *format.PageHeader, optional bool) ([]byte, error) {
	b := make([]byte, page.Size())
	if _, err := io.ReadFull(page, b); err != nil {
		return nil, err
	}
	packed := true
	if v2 := &h.DataPageHeaderV2; h.Type == format.DataPageV2 {
		b = b[v2.V.RepetitionLevelsByteLength+v2.V.DefinitionLevelsByteLength:] // checkPage has found that they fit
		packed = !v2.V.IsCompressed.Valid || v2.V.IsCompressed.V
	}
	if packed && codec != format.Uncompressed && len(b) > 0 {
		var err error
		if b, err = parquet.LookupCompressionCodec(codec).Decode(nil, b); err != nil {
			return nil, err
		}
	}
	if h.Type == format.DataPageV2 || !optional {
		return b, nil
	}
	if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
		return nil, errDelta
	}
	return b[4+binary.LittleEndian.Uint32(b):], nil
}

// deltaSum returns the sum of numbers in the encoding DELTA_BINARY_PACKED that are not negative,
// or a larger one, and what follows them. It fails if there are more than most. Negative ones,
// which are not lengths, count as none.
func deltaSum(b []byte, most int64) (rest []byte, sum uint64, err error) {
	var head [3]uint64 // values in a block, parts of a block, values
	for i := range head {
		n, k := binary.Uvarint(b)
		if k <= 0 {
			return nil, 0, errDelta
		}
		head[i], b = n, b[k:]
	}
	value, k := binary.Varint(b)
	if k <= 0 || head[0] == 0 || head[0] > 1<<20 || head[1] == 0 || head[0]%head[1] != 0 {
		return nil, 0, errDelta
	}
	b = b[k:]
	if head[2] > uint64(max(most, 0)) {
		return nil, 0, errDeltaMany
	}
	add := func() {
		var carry uint64
		length := int32(value) // the library has lengths of 32 bits, which wrap around
		if sum, carry = bits.Add64(sum, uint64(max(length, 0)), 0); carry > 0 {
			sum = 1<<64 - 1
		}
	}
	left, part := head[2], head[0]/head[1]
	if left > 0 {
		add()
		left--
	}
	for left > 0 {
		least, k := binary.Varint(b)
		if k <= 0 || uint64(len(b)-k) < head[1] {
			return nil, 0, errDelta
		}
		widths := b[k : k+int(head[1])]
		b = b[k+int(head[1]):]
		for _, width := range widths {
			if left == 0 {
				break // the parts of the last block that have no values are left out
			}
			bytes := part * uint64(width) / 8
			if width > 64 {
				return nil, 0, fmt.Errorf("%w: %d bits", errDelta, width)
			}
			here := b[:min(bytes, uint64(len(b)))]
			for i := uint64(0); i < part && left > 0; i++ {
				value += least + int64(bitsAt(here, i*uint64(width), uint(width)))
				add()
				left--
			}
			b = b[len(here):]
		}
	}
	return b, sum, nil
}

// bitsAt returns n bits, at most 64, from bit at on, the lowest first; zeros beyond the end.
func bitsAt(b []byte, at uint64, n uint) (v uint64) {
	for got := uint(0); got < n; {
		i, skip := at/8, uint(at%8)
		take := min(8-skip, n-got)
		if i < uint64(len(b)) {
			v |= uint64(b[i]) >> skip & (1<<take - 1) << got
		}
		got += take
		at += uint64(take)
	}
	return v
}
