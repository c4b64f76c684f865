package ledger

import (
	"encoding/binary"
	"slices"
)

// A history contains the keys of the most recently matched pieces, by which copies of
// them are recognized. Without stamps nothing else distinguishes a copy from a foreign
// piece.
type history struct {
	max     int        // number of keys to remember; up to two blocks more are kept
	blocks  []keyBlock // the oldest first; all but the last one are full
	checked int        // how many of the oldest blocks were compared with the pieces that were read but not identified
	evicted bool       // some keys were forgotten

	// Keys that were forgotten, after a piece with the same key was read somewhere
	// else.
	copied map[key]bool
}

// A keyBlock has keys in the order in which they were added: each the number of events, as
// a uvarint, and the sum. A key takes some five bytes, and a ledger has a million.
type keyBlock struct {
	keys int
	data []byte
}

// blockKeys is how many keys a block has.
func (h *history) blockKeys() int { return max(h.max/64, 64) }

// remember adds the key of a matched piece.
func (g *log) remember(k key) {
	h := &g.history
	if n := len(h.blocks); n == 0 || h.blocks[n-1].keys == h.blockKeys() {
		g.beginBlock()
	}
	b := &h.blocks[len(h.blocks)-1]
	before := cap(b.data)
	b.data = binary.AppendUvarint(b.data, uint64(uint32(k.n)))
	b.data = binary.LittleEndian.AppendUint32(b.data, k.sum)
	b.keys++
	if c := cap(b.data); c != before {
		g.grow(int64(c - before))
	}
}

// beginBlock begins a block, in the place of the oldest one if there are enough. Before half
// of the history is forgotten, it is compared with the pieces that were read but not
// identified.
func (g *log) beginBlock() {
	h := &g.history
	n := len(h.blocks)
	var b keyBlock
	switch {
	case (n-1)*h.blockKeys() >= h.max:
		if h.checked == 0 {
			h.checked = n / 2
			g.copies(h.blocks[:h.checked])
		}
		h.checked--
		h.evicted = true
		b.data = h.blocks[0].data[:0]
		h.blocks = slices.Delete(h.blocks, 0, 1)
	case n > 0: // the first one may remain small
		b.data = make([]byte, 0, len(h.blocks[n-1].data))
		g.grow(int64(cap(b.data)))
	}
	h.blocks = append(h.blocks, b)
}

// each calls f with every key.
func (b *keyBlock) each(f func(key)) {
	for rest := b.data; len(rest) > 0; {
		n, size := binary.Uvarint(rest)
		f(key{binary.LittleEndian.Uint32(rest[size:]), int32(uint32(n))})
		rest = rest[size+4:]
	}
}

// copies records which of the keys belong to pieces that were read but not identified.
func (g *log) copies(blocks []keyBlock) {
	if g.orphans == 0 {
		return
	}
	open := g.openKeys()
	for i := range blocks {
		blocks[i].each(func(k key) {
			if !open[k] {
				return
			}
			if g.history.copied == nil {
				g.history.copied = map[key]bool{}
			}
			g.history.copied[k] = true
		})
	}
}

// openKeys returns the keys of the pieces that were read but not identified.
func (g *log) openKeys() map[key]bool {
	open := make(map[key]bool, g.orphans)
	for _, w := range g.windows {
		for _, e := range w.entries() {
			if e.state == arrived {
				open[key{e.sum, e.n}] = true
			}
		}
	}
	return open
}

// known returns which of the open keys belong to matched pieces.
func (g *log) known() map[key]bool {
	found := map[key]bool{}
	if g.orphans == 0 {
		return found
	}
	open := g.openKeys()
	for i := range g.history.blocks {
		g.history.blocks[i].each(func(k key) {
			if open[k] {
				found[k] = true
			}
		})
	}
	for k := range g.history.copied {
		found[k] = true
	}
	return found
}
