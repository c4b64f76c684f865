package units

import (
	"errors"
	"strings"
)

const wantSize = "bytes, or a number with B, KiB, MiB, GiB, TiB (powers of 1024; K, M, G, T alone mean the same) " +
	"or kB, MB, GB, TB (powers of 1000), such as 1500, 64KiB or 1.5GiB"

// sizeUnits are in lower case; ParseSize checks where case matters.
var sizeUnits = map[string]int64{
	"": 1, "b": 1,
	"k": 1 << 10, "kib": 1 << 10, "kb": 1e3,
	"m": 1 << 20, "mib": 1 << 20, "mb": 1e6,
	"g": 1 << 30, "gib": 1 << 30, "gb": 1e9,
	"t": 1 << 40, "tib": 1 << 40, "tb": 1e12,
}

// ParseSize parses a size in bytes: "1500", "64KiB", "1.5GiB", "10MB". KiB, MiB, GiB
// and TiB are powers of 1024; kB, MB, GB and TB are powers of 1000. A letter alone (4k,
// 64K, 1G) is a power of 1024, as in dd, fio and the JVM. Units may be in any case, but
// Kb, Mb, Gb and Tb are refused, because many take them for bits. A fraction of a unit
// is rounded to the nearest byte; a fraction of a byte is an error.
func ParseSize(s string) (int64, error) {
	bad := func(why error) (int64, error) { return 0, newError("size", s, why, wantSize) }
	n, unit, err := number(s)
	if err != nil {
		return bad(err)
	}
	if len(unit) == 2 && unit[1] == 'b' && strings.ContainsRune("KMGT", rune(unit[0])) {
		return bad(errors.New("may mean bits"))
	}
	by, ok := sizeUnits[strings.ToLower(unit)]
	if !ok {
		return bad(notUnit(unit, "size"))
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
