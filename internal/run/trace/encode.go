package trace

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// This file has the encodings of values in pages
// (https://parquet.apache.org/docs/file-format/data-pages/encodings/).

// A block of differences has several groups, each with a width of its own.
const (
	blockSize = 128
	groupSize = 32
)

// appendDeltas appends integers as DELTA_BINARY_PACKED: the first one, and then for each
// block the least difference between neighbours, and by how much the others exceed it. It
// returns the least and the most of the integers as well.
func appendDeltas(dst []byte, values []int64) (out []byte, least, most int64) {
	dst = binary.AppendUvarint(dst, blockSize)
	dst = binary.AppendUvarint(dst, blockSize/groupSize)
	dst = binary.AppendUvarint(dst, uint64(len(values)))
	if len(values) == 0 {
		return binary.AppendVarint(dst, 0), math.MaxInt64, math.MinInt64
	}
	last := values[0]
	dst = binary.AppendVarint(dst, last)
	least, most = last, last
	var block [blockSize]int64
	for rest := values[1:]; len(rest) > 0; {
		n := min(len(rest), blockSize)
		step := rest[0] - last
		low, differ := step, int64(0)
		for i, v := range rest[:n] {
			d := v - last
			block[i], last = d, v
			low, differ = min(low, d), differ|(d^step)
			least, most = min(least, v), max(most, v)
		}
		rest = rest[n:]
		if n < blockSize { // filled up with zeros, of which the first follows the last value
			low, differ = min(low, -last), 1
			if n+1 < blockSize {
				low = min(low, 0)
			}
		}
		dst = binary.AppendVarint(dst, low)
		widths := len(dst)
		dst = append(dst, make([]byte, blockSize/groupSize)...)
		if differ == 0 { // equal steps, as those of most columns
			continue
		}
		for i := 0; i < n; i += groupSize {
			group := block[i : i+groupSize]
			clear(group[min(n-i, groupSize):])
			over := int64(0)
			for k := range group[:min(n-i, groupSize)] {
				group[k] -= low
				over |= group[k]
			}
			width := bits.Len64(uint64(over))
			dst[widths+i/groupSize] = byte(width)
			dst = appendPacked(dst, group, width)
		}
	}
	return dst, least, most
}

// appendRuns appends values of up to this many bits as RLE: runs of equal values, and packed
// ones between them. Both have a multiple of eight values, but for the runs at the end. ends
// reports whether eight values end what is packed, given the first of the eight before.
func appendRuns[T byte | int32](dst []byte, values []T, width int, ends func(before T, next []T) bool) []byte {
	if width == 0 { // all are 0
		return appendRun(dst, len(values), 0, width)
	}
	whole := len(values) &^ 7
	for i := 0; i < whole; {
		j := i
		for j < whole && all(values[j:j+8], values[i]) {
			j += 8
		}
		if i < j {
			dst = appendRun(dst, j-i, uint32(values[i]), width)
			i = j
			continue
		}
		for j += 8; j < whole && !ends(values[j-8], values[j:j+8]); {
			j += 8
		}
		dst = binary.AppendUvarint(dst, uint64(j-i)/8<<1|1)
		dst = appendPacked(dst, values[i:j], width)
		i = j
	}
	for i := whole; i < len(values); {
		j := i + 1
		for j < len(values) && values[j] == values[i] {
			j++
		}
		dst = appendRun(dst, j-i, uint32(values[i]), width)
		i = j
	}
	return dst
}

// levelsEnd and indicesEnd decide as the library did that wrote traces first: with the same
// rows, a file has the same bytes.
func levelsEnd(before byte, next []byte) bool { return all(next, before) }

func indicesEnd(_ int32, next []int32) bool {
	b := (*[8]int32)(next)
	return b[0] == b[1] && b[0] == b[2] && b[0] == b[3] && b[4] == b[5] && b[4] == b[6] && b[4] == b[7]
}

// all reports whether eight values are v.
func all[T byte | int32](values []T, v T) bool {
	b := (*[8]T)(values)
	return b[0] == v && b[1] == v && b[2] == v && b[3] == v && b[4] == v && b[5] == v && b[6] == v && b[7] == v
}

// appendRun appends n times a value, which takes whole bytes.
func appendRun(dst []byte, n int, v uint32, width int) []byte {
	dst = binary.AppendUvarint(dst, uint64(n)<<1)
	word := binary.LittleEndian.AppendUint32(dst, v)
	return word[:len(dst)+(width+7)/8]
}

// appendPacked appends a multiple of eight values, in as many bits each.
func appendPacked[T byte | int32 | int64](dst []byte, values []T, width int) []byte {
	at := len(dst)
	end := at + len(values)*width/8
	dst = slices.Grow(dst, end+8-at)[:end+8]
	word, used := uint64(0), 0
	for _, v := range values {
		word |= uint64(v) << used
		if used += width; used >= 64 {
			binary.LittleEndian.PutUint64(dst[at:], word)
			at += 8
			used -= 64
			word = uint64(v) >> (width - used)
		}
	}
	binary.LittleEndian.PutUint64(dst[at:], word)
	return dst[:end]
}
