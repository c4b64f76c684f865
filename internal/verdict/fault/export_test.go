package fault

// Chunks returns how many chunks are kept.
func (r *Recorder) Chunks() (n int) {
	for _, s := range r.shards {
		n += len(s.chunks)
	}
	return n
}
