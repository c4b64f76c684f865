package kafka

import (
	"hash/crc32"

	"carronade/internal/wire/crc"
)

// A batch's checksum covers its header and its records. The header changes
// with each sending (time, producer, sequence), the records of a batch encoded
// ahead do not. So that stamping a batch costs one product and the sum of 40
// bytes, instead of reading all of it, which is 5 us and more for 107 KB, its sum
// is joined from both.

var field = crc.Castagnoli

// A Sum is the checksum of bytes that do not change, ready to follow others.
type Sum struct {
	crc   uint32
	shift uint32
}

// SumOf computes the sum of b, reading all of it.
func SumOf(b []byte) Sum {
	return Sum{crc: crc32.Checksum(b, castagnoli), shift: field.Shift(len(b))}
}

// SumAt is the sum of n bytes whose CRC-32C is known.
func SumAt(sum uint32, n int) Sum { return Sum{crc: sum, shift: field.Shift(n)} }

// After is the CRC-32C of bytes with the sum head, followed by those of s.
func (s Sum) After(head uint32) uint32 { return field.Multiply(s.shift, head) ^ s.crc }

// CRC is the CRC-32C of the bytes themselves.
func (s Sum) CRC() uint32 { return s.crc }

// UpdateCRC continues a CRC-32C over b; it begins at 0.
func UpdateCRC(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }

// Seal writes the checksum into head, a batch's header that is followed by
// records with the sum s, and returns it.
func Seal(head []byte, s Sum) uint32 {
	sum := s.After(crc32.Checksum(head[atAttributes:HeaderSize], castagnoli))
	head[atCRC], head[atCRC+1], head[atCRC+2], head[atCRC+3] = byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum)
	return sum
}
