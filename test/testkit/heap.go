package testkit

import "runtime"

// Heap returns the bytes that are in use after a garbage collection.
func Heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one has finalized
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
