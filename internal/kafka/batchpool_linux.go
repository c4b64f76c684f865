package kafka

import "golang.org/x/sys/unix"

// offHeap returns n bytes that the garbage collector neither scans nor counts.
// They live until freeOffHeap.
func offHeap(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
}

func freeOffHeap(b []byte) error { return unix.Munmap(b) }
