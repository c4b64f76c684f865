package units

import (
	"errors"
	"strings"
)

const wantSize = "bytes, or a number with KiB, MiB, GiB, TiB (powers of 1024) or kB, MB, GB, TB (powers of 1000), " +
	"such as 1500, 64KiB or 1.5MB"

// decimalSizes must be written exactly so. binarySizes, in lower case, may be in any
// case.
var (
	decimalSizes = map[string]int64{"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
	binarySizes  = map[string]int64{"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
)

// ParseSize parses a size in bytes: "1500", "64KiB", "1.5GiB", "10MB". KiB, MiB, GiB
// and TiB are powers of 1024, in any case; kB, MB, GB and TB are powers of 1000. A
// letter alone (64K) and other cases (64KB, 64kb, 64Kb) are refused: to some tools they
// mean 1024, to others 1000 or bits. A fraction of a unit is rounded to the nearest
// byte; a fraction of a byte is an error.
func ParseSize(s string) (int64, error) {
	bad := func(why error) (int64, error) { return 0, newError("size", s, why, wantSize) }
	n, unit, err := number(s)
	if err != nil {
		return bad(err)
	}
	by, ok := decimalSizes[unit]
	if !ok {
		by, ok = binarySizes[strings.ToLower(unit)]
	}
	if !ok {
		letter := strings.TrimSuffix(strings.ToUpper(unit), "B")
		if len(letter) != 1 || !strings.Contains("KMGT", letter) {
			return bad(notUnit(unit, "size"))
		}
		digits := withoutUnit(s, unit)
		decimal := letter + "B"
		if letter == "K" {
			decimal = "kB"
		}
		return 0, ambiguous("size", s, digits+letter+"iB (powers of 1024)", digits+decimal+" (powers of 1000)")
	}
	if by == 1 && !n.IsInt() {
		return bad(errors.New("has a fraction of a byte"))
	}
	bytes := round(scaled(n, by))
	if !bytes.IsInt64() {
		return bad(errors.New("is out of range (8 EiB)"))
	}
	return bytes.Int64(), nil
}

// FormatSize prints a size in binary units and three significant digits:
// "300 B", "64 KiB", "1.2 GiB".
func FormatSize(bytes int64) string {
	if bytes < 0 {
		if bytes == -1<<63 {
			bytes++
		}
		return "-" + FormatSize(-bytes)
	}
	v := float64(bytes)
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB"}
	for i, u := range units {
		text, shown := significant(v)
		if shown >= 1000 {
			text, shown = whole(v) // 1000 to 1023 of a unit have four digits: "1023 B"
		}
		if shown < 1024 || i == len(units)-1 {
			return text + " " + u
		}
		v /= 1024
	}
	panic("unreachable")
}
