//go:build !linux

package socket

import "net"

// A vector contains the pieces of one write.
type vector struct {
	segs net.Buffers
}

func (w *Writer) setup() {}

func (v *vector) direct() bool { return false }

// Reset removes the pieces.
func (v *vector) Reset() { v.segs = v.segs[:0] }

// Add adds the pieces without their first skip bytes, as far as there is room, and
// returns how many bytes it added. The pieces must not change until Write returns.
func (v *vector) Add(segs [][]byte, skip int) int {
	n := 0
	for _, seg := range segs {
		if skip >= len(seg) {
			skip -= len(seg)
			continue
		}
		seg = seg[skip:]
		skip = 0
		if len(v.segs) == mostPieces {
			break
		}
		v.segs = append(v.segs, seg)
		n += len(seg)
	}
	return n
}

func (w *Writer) send(bool) (int, error) { return 0, nil }

// Later returns false: writes are not made together here.
func (w *Writer) Later(func(n int, err error)) bool { return false }
