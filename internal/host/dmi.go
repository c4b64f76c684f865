package host

import (
	"encoding/binary"
	"strings"
)

// memoryModules reads the memory devices (type 17) in a table of SMBIOS (DSP0134
// 7.18), as the kernel shows it in /sys/firmware/dmi/tables/DMI. Empty banks are
// left out.
func memoryModules(table []byte) []Module {
	var out []Module
	for len(table) >= 4 && len(out) < 4*maxListed {
		kind, length := table[0], int(table[1])
		if length < 4 || length > len(table) {
			break
		}
		fields := table[:length]
		rest := table[length:]
		// Strings follow, each ended by a zero byte, and then another zero
		// byte.
		end := 0
		for end+1 < len(rest) && (rest[end] != 0 || rest[end+1] != 0) {
			end++
		}
		if kind == 17 {
			if m, ok := memoryModule(fields, strings.Split(string(rest[:min(end, len(rest))]), "\x00")); ok {
				out = append(out, m)
			}
		}
		if kind == 127 { // the end of the table
			break
		}
		table = rest[min(end+2, len(rest)):]
	}
	return out
}

var memoryTypes = map[byte]string{0x12: "DDR", 0x13: "DDR2", 0x18: "DDR3", 0x1a: "DDR4", 0x1d: "LPDDR3", 0x1e: "LPDDR4", 0x20: "HBM", 0x21: "HBM2", 0x22: "DDR5", 0x23: "LPDDR5"}

func memoryModule(f []byte, words []string) (m Module, ok bool) {
	word := func(at int) int {
		if at+2 > len(f) {
			return 0
		}
		return int(binary.LittleEndian.Uint16(f[at:]))
	}
	switch size := word(0x0c); {
	case size == 0 || size == 0xffff: // empty, or unknown
		return m, false
	case size == 0x7fff && len(f) >= 0x20:
		m.Bytes = uint64(binary.LittleEndian.Uint32(f[0x1c:])&0x7fffffff) << 20
	case size&0x8000 != 0:
		m.Bytes = uint64(size&0x7fff) << 10
	default:
		m.Bytes = uint64(size) << 20
	}
	if len(f) > 0x12 {
		m.Type = memoryTypes[f[0x12]]
	}
	rated := known(word(0x15))
	if m.Speed = known(word(0x20)); m.Speed == 0 { // the configured speed, or else the maximum
		m.Speed = rated
	}
	if rated != m.Speed {
		m.Rated = rated
	}
	text := func(at int) string {
		if at >= len(f) {
			return ""
		}
		if n := int(f[at]); n > 0 && n <= len(words) {
			return strings.TrimSpace(words[n-1])
		}
		return ""
	}
	m.Locator, m.Bank, m.Maker, m.Part = text(0x10), text(0x11), text(0x17), text(0x1a)
	if len(f) > 0x0e {
		m.Form = memoryForms[f[0x0e]]
	}
	if len(f) > 0x1b {
		m.Rank = int(f[0x1b] & 0xf)
	}
	// The bits besides the data are for error correction.
	total, data := known(word(0x08)), known(word(0x0a))
	m.ECC = data > 0 && total > data
	return m, m.Bytes > 0
}

var memoryForms = map[byte]string{0x09: "DIMM", 0x0d: "SODIMM", 0x0b: "row of chips", 0x0f: "FB-DIMM", 0x10: "die"}

// known is a number of a table, where 0xffff is an unknown one.
func known(n int) int {
	if n == 0xffff {
		return 0
	}
	return n
}
