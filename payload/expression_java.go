package payload

import (
	"bytes"
	"math"
	"strconv"
)

// Conversions of numbers as in Java, where they differ from Go.

// truncated returns a real number without its fraction, the nearest integer if it is out
// of range, and 0 for NaN.
func truncated(v float64) int64 {
	switch {
	case math.IsNaN(v):
		return 0
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v <= math.MinInt64:
		return math.MinInt64
	}
	return int64(v)
}

// narrowed returns a number as an int of 32 bits: the low bits of an integer.
func narrowed(v int64) int64 { return int64(int32(v)) }

// appendReal appends a number in the shortest digits that identify it in the given
// number of bits: 12.5, or 1.25E10 below 0.001 and from ten million on. There is always
// a digit after the point.
func appendReal(dst []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, "NaN"...)
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...)
	}
	at := len(dst)
	if a := math.Abs(v); a == 0 || a >= 1e-3 && a < 1e7 {
		dst = strconv.AppendFloat(dst, v, 'f', -1, bits)
		if bytes.IndexByte(dst[at:], '.') < 0 {
			dst = append(dst, ".0"...)
		}
		return dst
	}
	var scratch [32]byte
	s := strconv.AppendFloat(scratch[:0], v, 'e', -1, bits)
	e := bytes.IndexByte(s, 'e')
	dst = append(dst, s[:e]...)
	if bytes.IndexByte(s[:e], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	dst = append(dst, 'E')
	exp := s[e+1:]
	if exp[0] == '-' {
		dst = append(dst, '-')
	}
	exp = bytes.TrimLeft(exp[1:], "0")
	return append(dst, exp...)
}

// appendRounded appends a number that is not negative as Java's Formatter does with %f and
// %e: its shortest digits, as appendReal has them, are rounded half up, or zeros follow them.
func appendRounded(dst []byte, v float64, verb byte, precision int) []byte {
	var scratch [32]byte
	s := strconv.AppendFloat(scratch[:0], v, 'e', -1, 64)
	e := bytes.IndexByte(s, 'e')
	point, _ := strconv.Atoi(string(s[e+1:]))
	point++ // the digits that are before the point
	digits := s[:1]
	if e > 2 {
		digits = append(digits, s[2:e]...)
	}
	if v == 0 {
		point = 1
	}
	keep := precision + 1
	if verb == 'f' {
		keep = precision + point
	}
	up := keep >= 0 && keep < len(digits) && digits[keep] >= '5'
	digits = digits[:max(0, min(keep, len(digits)))]
	if up {
		i := len(digits) - 1
		for ; i >= 0 && digits[i] == '9'; i-- {
			digits[i] = '0'
		}
		if i >= 0 {
			digits[i]++
		} else { // all were nines, or there are none
			digits = append(digits[:0], append([]byte{'1'}, digits...)...)
			point++
		}
	}
	digit := func(i int) byte {
		if i < 0 || i >= len(digits) {
			return '0'
		}
		return digits[i]
	}
	before := point
	if verb == 'e' {
		before = 1
	}
	if before <= 0 {
		dst = append(dst, '0')
	}
	for i := range before {
		dst = append(dst, digit(i))
	}
	if precision > 0 {
		dst = append(dst, '.')
		for i := range precision {
			dst = append(dst, digit(before+i))
		}
	}
	if verb == 'e' {
		sign, exp := byte('+'), point-1
		if exp < 0 {
			sign, exp = '-', -exp
		}
		dst = append(dst, 'e', sign)
		if exp < 10 {
			dst = append(dst, '0')
		}
		dst = strconv.AppendInt(dst, int64(exp), 10)
	}
	return dst
}
