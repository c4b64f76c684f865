package conn

import "carronade/internal/conn/socket"

// A Window has the requests of a lane or a link in order, by running numbers. Their answers
// come in this order. The zero value is empty. Its user does not change the fields.
type Window[R any] struct {
	Head   uint64 // the oldest request that is not removed
	Next   uint64 // the first that is not written completely; below Head if its answer came before its write returned
	End    uint64 // requests below it are written, or being written
	Tail   uint64 // the next one
	Offset int    // bytes of request Next that were written

	ring  []R     // its size is a power of two
	parts []piece // what is being written, by request
}

// A piece is what one write has of a request.
type piece struct {
	bytes int
	last  bool // it has the request's end
}

// At returns a request in the window, valid until the next Push.
func (w *Window[R]) At(n uint64) *R { return &w.ring[n&uint64(len(w.ring)-1)] }

// Push adds a request at the end.
func (w *Window[R]) Push(r R) {
	w.Reserve()
	*w.At(w.Tail) = r
	w.Tail++
}

// Reserve makes room for one more request, so that the next Push allocates nothing.
func (w *Window[R]) Reserve() {
	if w.Tail-w.Head < uint64(len(w.ring)) {
		return
	}
	ring := make([]R, max(4, 2*len(w.ring)))
	for n := w.Head; n < w.Tail; n++ {
		ring[n&uint64(len(ring)-1)] = *w.At(n)
	}
	w.ring = ring
}

// Pop removes the oldest request.
func (w *Window[R]) Pop() R {
	var none R
	at := w.At(w.Head)
	r := *at
	*at = none
	w.Head++
	return r
}

// Load gives a writer as much of the requests as fits, and returns its size in bytes. pieces
// returns the bytes of a request, and how many they are.
func (w *Window[R]) Load(out *socket.Writer, pieces func(r *R) ([][]byte, int)) (total int) {
	w.parts = w.parts[:0]
	skip, whole := w.Offset, true
	for w.End = w.Next; whole && w.End < w.Tail; w.End++ {
		segs, size := pieces(w.At(w.End))
		n := out.Add(segs, skip)
		whole = n == size-skip
		w.parts = append(w.parts, piece{n, whole})
		total += n
		skip = 0
	}
	return total
}

// Begin replaces Load where request Next alone is written by other means; n is the size of
// what is left of it, in bytes.
func (w *Window[R]) Begin(n int) { w.parts, w.End = append(w.parts[:0], piece{n, true}), w.Next+1 }

// Written notes that the first n bytes of what was loaded were written, and that no more of
// it is being written. began is called for each of these requests that is in the window.
func (w *Window[R]) Written(n int, began func(r *R)) {
	for _, p := range w.parts {
		if n == 0 {
			break
		}
		if w.Next >= w.Head {
			began(w.At(w.Next))
		}
		if n < p.bytes || !p.last {
			w.Offset += min(n, p.bytes)
			break
		}
		n -= p.bytes
		w.Next++
		w.Offset = 0
	}
	w.parts, w.End = w.parts[:0], w.Next
}

// BeingWritten reports whether request n is being written, so that its bytes are in use.
func (w *Window[R]) BeingWritten(n uint64) bool { return w.Next <= n && n < w.End }

// Begun reports whether a byte of request n was written, as far as is known.
func (w *Window[R]) Begun(n uint64) bool { return n < w.Next || n == w.Next && w.Offset > 0 }

// Rewind begins anew with the oldest request, on another connection, or at the end. A write
// that has not returned has no effects on the window any more.
func (w *Window[R]) Rewind() { w.Next, w.End, w.Offset, w.parts = w.Head, w.Head, 0, w.parts[:0] }
