package system

import (
	"os"
	"syscall"
	"testing"
)

// Memory of its own counts, and that of a process that does not exist is not known.
func TestResident(t *testing.T) {
	before := Resident(os.Getpid())
	b, err := syscall.Mmap(-1, 0, 64<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(b)
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
	if after := Resident(os.Getpid()); before == 0 || after < before+48<<20 {
		t.Errorf("got %d and then %d bytes", before, after)
	}
	if got := Resident(1 << 30); got != 0 {
		t.Errorf("got %d bytes of a process that does not exist", got)
	}
	for CPUOf(os.Getpid()) == 0 {
	}
	if got := CPUOf(1 << 30); got != 0 {
		t.Errorf("a process that does not exist took %v", got)
	}
}
