package payload

import (
	"encoding/binary"
	"math/bits"

	"carronade/internal/splitmix"
)

const (
	golden = splitmix.Golden
	// Multiples of it modulo 2^64.
	golden2 = golden * 2 & (1<<64 - 1)
	golden3 = golden * 3 & (1<<64 - 1)
	golden4 = golden * 4 & (1<<64 - 1)

	wyKey = 0xe7037ed1a0b428db // the multiplier key of wyhash, by Wang Yi
)

// mix returns a 64-bit number for a seed and an index: a bijection of the seed for each index.
func mix(seed, n uint64) uint64 { return splitmix.Mix(seed + n*golden) }

// word is the step of wyrand: one multiplication, folded. Its input may be a counter,
// so words are independent of each other and the processor computes several at once.
// fillRandom is fast because of that.
func word(x uint64) uint64 {
	hi, lo := bits.Mul64(x, x^wyKey)
	return hi ^ lo
}

// below maps a random number to 0..n-1 by multiplication (Lemire 2019, without
// the rejection: the bias is below n/2^64).
func below(u, n uint64) uint64 {
	hi, _ := bits.Mul64(u, n)
	return hi
}

// unit maps a random number to [0, 1), in steps of 2^-53.
func unit(u uint64) float64 { return float64(u>>11) * 0x1p-53 }

// fillRandom fills b with bytes that no codec compresses. x is the random number of the
// event. With fresh events it runs for every event, so it writes four independent words
// at a time.
func fillRandom(b []byte, x uint64) {
	for len(b) >= 32 {
		binary.LittleEndian.PutUint64(b[0:8], word(x))
		binary.LittleEndian.PutUint64(b[8:16], word(x+golden))
		binary.LittleEndian.PutUint64(b[16:24], word(x+golden2))
		binary.LittleEndian.PutUint64(b[24:32], word(x+golden3))
		x += golden4
		b = b[32:]
	}
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, word(x))
		x += golden
		b = b[8:]
	}
	w := word(x)
	for i := range b {
		b[i] = byte(w)
		w >>= 8
	}
}

// digits returns the number of decimal digits of n.
func digits(n uint64) int {
	d := 1
	for ; n >= 10; n /= 10 {
		d++
	}
	return d
}

const pairs = "00010203040506070809101112131415161718192021222324252627282930313233343536373839" +
	"40414243444546474849505152535455565758596061626364656667686970717273747576777879" +
	"8081828384858687888990919293949596979899"

// appendName appends n in a radix of at most 36, with leading zeros to a width of at
// most 63, into which n fits.
func appendName(dst []byte, n uint64, width int, radix uint64) []byte {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyz"
	var b [63]byte
	name := b[:width]
	for i := len(name) - 1; i >= 0; i-- {
		name[i] = letters[n%radix]
		n /= radix
	}
	return append(dst, name...)
}

// appendDecimal appends n with leading zeros to a width of at most 20.
func appendDecimal(dst []byte, n uint64, width int) []byte {
	var b [20]byte
	for ; width > len(b); width-- {
		dst = append(dst, '0')
	}
	i := len(b)
	for n >= 100 {
		p := n % 100 * 2
		n /= 100
		i -= 2
		b[i], b[i+1] = pairs[p], pairs[p+1]
	}
	i -= 2
	b[i], b[i+1] = pairs[n*2], pairs[n*2+1]
	if n < 10 {
		i++
	}
	for i > len(b)-width {
		i--
		b[i] = '0'
	}
	return append(dst, b[i:]...)
}

// belowInt is below for signed numbers, and 0 if n is below 1.
func belowInt(u uint64, n int64) int64 {
	if n < 1 {
		return 0
	}
	return int64(below(u, uint64(n)))
}
