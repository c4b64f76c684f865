package wire

import (
	"hash/crc32"

	"carronade/internal/crc"
)

// field is the finite field of gzip's checksum. With it, the sum of a long body is
// updated from only the bytes that changed.
var field = crc.IEEE

// rawSum is the sum of b without the inversions, so that zeros before b do not
// change it.
func rawSum(b []byte) uint32 { return ^crc32.Update(^uint32(0), crc32.IEEETable, b) }
