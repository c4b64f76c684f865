package mongoose

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"carronade/internal/dropin"
)

// fixed formats a number for a column of n characters: as an integer if only an
// integer fits, otherwise with digits removed, before the exponent if there is one.
func fixed(x float64, n int) string {
	s := dropin.JavaDouble(x)
	switch {
	case x > math.Pow10(n-2) && x < math.Pow10(n):
		return strconv.FormatInt(int64(x), 10)
	case x < math.Pow10(2-n):
		return "0"
	case len(s) <= n:
		return s
	}
	mantissa, exponent, has := strings.Cut(s, "E")
	if !has {
		return s[:n]
	}
	return mantissa[:n-1-len(exponent)] + "E" + exponent
}

// left and right pad to n characters, or cut a longer text: left keeps its end,
// right its beginning.
func left(s string, n int) string {
	if len(s) >= n {
		return s[len(s)-n:]
	}
	return strings.Repeat(" ", n-len(s)) + s
}

func right(s string, n int) string {
	if len(s) >= n {
		return s[:n]
	}
	return s + strings.Repeat(" ", n-len(s))
}

// bytesText formats a size as mongoose does: without decimals if it is an integer,
// otherwise with three, two or one decimals below 10, 100 and 1024 of a unit.
func bytesText(n uint64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return strconv.FormatUint(n, 10) + "B"
	}
	unit, x := -1, float64(n)
	for rest := n; rest >= 1024; rest >>= 10 {
		unit++
		x /= 1024
	}
	decimals := 1
	switch {
	case x == math.Trunc(x):
		decimals = 0
	case x < 10:
		decimals = 3
	case x < 100:
		decimals = 2
	}
	return fmt.Sprintf("%.*f%cB", decimals, x, units[unit])
}
