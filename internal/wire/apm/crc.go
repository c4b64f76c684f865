package apm

import (
	"hash/crc32"

	"carronade/internal/wire/crc"
)

// field is that of gzip's checksum: the sum of a long body of which few bytes
// changed is had from those bytes alone.
var field = crc.IEEE

// rawSum is the sum of b without the inversions, so that zeros before b do not
// count.
func rawSum(b []byte) uint32 { return ^crc32.Update(^uint32(0), crc32.IEEETable, b) }
