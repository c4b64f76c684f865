package measure

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
)

// A shelf keeps bytes in a file, where they take no memory of the process: the collector
// lets the heap grow by as much as is in use, so bytes in memory would count twice. The
// file is made when it is first needed. It has no name, and ends with the process. The zero
// value is ready, and safe for concurrent use.
type shelf struct {
	mu   sync.Mutex
	file *os.File
	end  uint32   // blocks of the file
	free []uint32 // those that nothing uses
	full bool     // the file could not be made, or written: nothing more is kept
}

// shelfBlock is the size in bytes of the blocks of the file. What is kept takes as many as it
// needs, not necessarily neighbours.
const shelfBlock = 1 << 10

// A shelved is what a shelf keeps: immutable bytes. Its blocks are free again when nothing
// refers to it any more.
type shelved struct {
	shelf  *shelf
	blocks []uint32
}

// put keeps a copy of b. It returns nil if that is not possible, such as on a full disk or
// without a folder for temporary files.
func (s *shelf) put(b []byte) *shelved {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil && !s.full {
		var err error
		s.file, err = namelessFile()
		s.full = err != nil
	}
	if s.full {
		return nil
	}
	k := &shelved{shelf: s, blocks: make([]uint32, (len(b)+shelfBlock-1)/shelfBlock)}
	reused := copy(k.blocks, s.free[len(s.free)-min(len(s.free), len(k.blocks)):])
	s.free = s.free[:len(s.free)-reused]
	slices.Sort(k.blocks[:reused]) // neighbours are written together
	for i := range k.blocks[reused:] {
		k.blocks[reused+i] = s.end
		s.end++
	}
	if err := k.each(0, b, s.file.WriteAt); err != nil {
		s.full = true // what is kept already can still be read
		return nil
	}
	runtime.AddCleanup(k, s.release, k.blocks)
	return k
}

// release makes blocks free.
func (s *shelf) release(blocks []uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, blocks...)
}

// read returns n bytes of what was put, from an offset on. It panics if the file cannot be
// read, since a measurement must not go on with numbers that are missing.
func (k *shelved) read(from, n int) []byte {
	b := make([]byte, n)
	if err := k.each(from, b, k.shelf.file.ReadAt); err != nil {
		panic(fmt.Sprintf("measure: read the series back from its temporary file: %v", err))
	}
	runtime.KeepAlive(k)
	return b
}

// each calls transfer with parts of b, which begins at an offset, and where they are in the
// file.
func (k *shelved) each(from int, b []byte, transfer func(b []byte, at int64) (int, error)) error {
	for len(b) > 0 {
		i, within := from/shelfBlock, from%shelfBlock
		n := shelfBlock - within
		for j := i + 1; n < len(b) && k.blocks[j] == k.blocks[j-1]+1; j++ {
			n += shelfBlock
		}
		n = min(n, len(b))
		if _, err := transfer(b[:n], int64(k.blocks[i])*shelfBlock+int64(within)); err != nil {
			return err
		}
		b, from = b[n:], from+n
	}
	return nil
}

// namelessFile makes a temporary file that only this process has.
func namelessFile() (*os.File, error) {
	f, err := os.CreateTemp("", "carronade-series-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil { // some systems do not remove an open file
		f.Close()
		_ = os.Remove(f.Name())
		return nil, err
	}
	return f, nil
}
