package ledger

// A history contains the keys of the most recently matched pieces, by which copies of
// them are recognized. Without stamps nothing else distinguishes a copy from a foreign
// piece.
type history struct {
	max     int
	keys    []key
	at      int  // index of the next to be overwritten
	evicted bool // some keys were overwritten

	// Keys that were overwritten, after a piece with the same key was read somewhere
	// else.
	copied map[key]bool
}

// remember adds the key of a matched piece. Before half of the history is overwritten,
// it is compared with the pieces that were read but not identified.
func (g *log) remember(k key) {
	h := &g.history
	if len(h.keys) < h.max {
		before := cap(h.keys)
		h.keys = append(h.keys, k)
		if c := cap(h.keys); c != before {
			g.grow(int64(c-before) * 8)
		}
		return
	}
	if h.at == 0 || h.at == h.max/2 {
		end := h.max / 2
		if h.at > 0 {
			end = h.max
		}
		g.copies(h.keys[h.at:end])
		h.evicted = true
	}
	h.keys[h.at] = k
	if h.at++; h.at == h.max {
		h.at = 0
	}
}

// copies records which of the keys belong to pieces that were read but not identified.
func (g *log) copies(keys []key) {
	if g.orphans == 0 {
		return
	}
	open := g.openKeys()
	for _, k := range keys {
		if open[k] {
			if g.history.copied == nil {
				g.history.copied = map[key]bool{}
			}
			g.history.copied[k] = true
		}
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
	for _, k := range g.history.keys {
		if open[k] {
			found[k] = true
		}
	}
	for k := range g.history.copied {
		found[k] = true
	}
	return found
}
