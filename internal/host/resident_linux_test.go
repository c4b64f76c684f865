package host

import (
	"os"
	"syscall"
	"testing"

	"carronade/test/testkit/assert"
)

// Memory of its own counts, and that of a process that does not exist is not known.
func TestResident(t *testing.T) {
	before := Resident(os.Getpid())
	b, err := syscall.Mmap(-1, 0, 64<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	assert.OK(t, err)
	defer syscall.Munmap(b)
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
	after := Resident(os.Getpid())
	assert.True(t, before > 0 && after >= before+48<<20, "got %d and then %d bytes", before, after)
	assert.Equal(t, Resident(1<<30), 0, "bytes of a process that does not exist")
	for CPUOf(os.Getpid()) == 0 {
	}
	assert.Equal(t, CPUOf(1<<30), 0, "processor time of a process that does not exist")
}
