//go:build !linux

package kafka

import "net"

// A vector is the pieces of one write.
type vector struct {
	segs net.Buffers
}

const mostPieces = 1024

// setup leaves all writing to the flusher.
func (k *link) setup() {}

func (v *vector) reset() { v.segs = v.segs[:0] }

// add adds the pieces but for their first skip bytes, as far as there is room,
// and returns how many bytes it added.
func (v *vector) add(segs [][]byte, skip int) int {
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

// send writes the vector.
func (k *link) send(bool) (int, error) { return k.sendBlocking() }
