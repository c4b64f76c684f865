package fleet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"carronade/internal/host"
)

// A FileSpool is a Spool in a folder, with one folder for each run, in which one file
// only grows. Each record has a checksum, so that a file whose end was not written, or
// whose disk lies, is read up to there. It survives the end of the process; at the end
// of a run it is synced, so that it survives that of the machine.
//
// What is not a run is left alone. One process at a time uses a folder.
type FileSpool struct {
	dir  string
	lock *os.File
	now  *fileRun // the newest in use
}

// A fileRun is a run of a spool, with the places of its records.
type fileRun struct {
	name    string
	file    *os.File
	size    int64 // up to the last valid record
	header  []byte
	records []place
	end     []byte
}

type place struct {
	at   int64 // of the data
	size int
}

// The kinds of entries in a file.
const (
	entryHeader = 'h'
	entryRecord = 'r'
	entryEnd    = 'e'

	entryHead = 9 // bytes: size of the data, checksum of kind and data, kind
	entryMax  = 1 << 20
	spoolFile = "records"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// OpenSpool opens the spool in a folder, which it creates if necessary. It fails if
// another process uses it.
func OpenSpool(dir string) (*FileSpool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if ok, err := host.TryLock(lock, false); err != nil || !ok {
		lock.Close()
		if err == nil {
			err = fmt.Errorf("another agent uses the spool %s", dir)
		}
		return nil, err
	}
	return &FileSpool{dir: dir, lock: lock}, nil
}

// Close closes the spool. It cannot be used afterwards.
func (s *FileSpool) Close() error {
	s.leave()
	return host.CloseLocked(s.lock)
}

// leave closes the run in use.
func (s *FileSpool) leave() {
	if s.now != nil {
		s.now.file.Close()
		s.now = nil
	}
}

// Begin implements Spool.
func (s *FileSpool) Begin(run string, header []byte) error {
	if !validRun(run) {
		return fmt.Errorf("%q cannot be the name of a run", run)
	}
	if _, err := s.use(run); err == nil {
		return ErrSpooled
	} else if !errors.Is(err, ErrNotSpooled) {
		return err
	}
	s.leave()
	folder := filepath.Join(s.dir, run)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	// A file is there if the process ended within Begin: without a header.
	file, err := os.OpenFile(filepath.Join(folder, spoolFile), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	s.now = &fileRun{name: run, file: file, header: slices.Clone(header)}
	if _, err := s.now.write(entryHeader, header); err != nil {
		s.leave()
		return err
	}
	return errors.Join(host.SyncFolder(folder), host.SyncFolder(s.dir))
}

// Append implements Spool.
func (s *FileSpool) Append(run string, data []byte) (uint64, error) {
	r, err := s.use(run)
	if err != nil {
		return 0, err
	}
	if r.end != nil {
		return 0, fmt.Errorf("run %s has ended", run)
	}
	p, err := r.write(entryRecord, data)
	if err != nil {
		return 0, err
	}
	r.records = append(r.records, p)
	return uint64(len(r.records)), nil
}

// End implements Spool.
func (s *FileSpool) End(run string, end []byte) error {
	r, err := s.use(run)
	if err != nil {
		return err
	}
	if _, err := r.write(entryEnd, end); err != nil {
		return err
	}
	r.end = slices.Clone(end)
	return r.file.Sync()
}

// Look implements Spool.
func (s *FileSpool) Look(run string) (Spooled, error) {
	r, err := s.use(run)
	if err != nil {
		return Spooled{}, err
	}
	return Spooled{Header: r.header, Records: uint64(len(r.records)), End: r.end}, nil
}

// Read implements Spool.
func (s *FileSpool) Read(run string, number uint64) ([]byte, error) {
	r, err := s.use(run)
	if err != nil {
		return nil, err
	}
	if number == 0 || number > uint64(len(r.records)) {
		return nil, fmt.Errorf("the spool has no record %d of run %s", number, run)
	}
	p := r.records[number-1]
	entry := make([]byte, entryHead+p.size)
	if _, err := r.file.ReadAt(entry, p.at-entryHead); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(entry[4:]) != crc32.Checksum(entry[8:], castagnoli) {
		return nil, fmt.Errorf("record %d of run %s in the spool is damaged", number, run)
	}
	return entry[entryHead:], nil
}

// Remove implements Spool.
func (s *FileSpool) Remove(run string) error {
	if !validRun(run) {
		return fmt.Errorf("%q cannot be the name of a run", run)
	}
	if s.now != nil && s.now.name == run {
		s.leave()
	}
	folder := filepath.Join(s.dir, run)
	if err := os.Remove(filepath.Join(folder, spoolFile)); errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return os.Remove(folder)
}

// Runs implements Spool.
func (s *FileSpool) Runs() ([]string, error) {
	entries, err := os.ReadDir(s.dir) // sorted
	var names []string
	for _, e := range entries {
		if !e.IsDir() || !validRun(e.Name()) {
			continue
		}
		if _, err := os.Stat(filepath.Join(s.dir, e.Name(), spoolFile)); err == nil {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Changed returns when a run was last written to.
func (s *FileSpool) Changed(run string) (time.Time, error) {
	if !validRun(run) {
		return time.Time{}, ErrNotSpooled
	}
	info, err := os.Stat(filepath.Join(s.dir, run, spoolFile))
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// RemoveOlder deletes runs that were last written to before a time, and returns their names.
func (s *FileSpool) RemoveOlder(than time.Time) (removed []string, err error) {
	names, err := s.Runs()
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, name := range names {
		changed, err := s.Changed(name)
		if err == nil && !changed.Before(than) {
			continue
		}
		if err == nil {
			err = s.Remove(name)
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		removed = append(removed, name)
	}
	return removed, errors.Join(failed...)
}

// use opens a run.
func (s *FileSpool) use(run string) (*fileRun, error) {
	if s.now != nil && s.now.name == run {
		return s.now, nil
	}
	if !validRun(run) {
		return nil, ErrNotSpooled
	}
	file, err := os.OpenFile(filepath.Join(s.dir, run, spoolFile), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNotSpooled
	} else if err != nil {
		return nil, err
	}
	r := &fileRun{name: run, file: file}
	if err := r.scan(); err != nil {
		file.Close()
		return nil, err
	}
	s.leave()
	s.now = r
	return r, nil
}

// write adds an entry. A write that failed half way is overwritten by the next.
func (r *fileRun) write(kind byte, data []byte) (place, error) {
	if len(data) > entryMax {
		return place{}, fmt.Errorf("an entry of %d bytes: at most %d", len(data), entryMax)
	}
	entry := make([]byte, entryHead, entryHead+len(data))
	entry[8] = kind
	entry = append(entry, data...)
	binary.LittleEndian.PutUint32(entry, uint32(len(data)))
	binary.LittleEndian.PutUint32(entry[4:], crc32.Checksum(entry[8:], castagnoli))
	if _, err := r.file.WriteAt(entry, r.size); err != nil {
		return place{}, err
	}
	p := place{r.size + entryHead, len(data)}
	r.size += int64(len(entry))
	return p, nil
}

// scan finds the entries of a file, up to the first that is not valid.
func (r *fileRun) scan() error {
	in := io.NewSectionReader(r.file, 0, 1<<62)
	head := make([]byte, entryHead)
	for r.end == nil {
		if _, err := io.ReadFull(in, head); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		} else if err != nil {
			return err
		}
		size := binary.LittleEndian.Uint32(head)
		if size > entryMax {
			break
		}
		data := make([]byte, size)
		if _, err := io.ReadFull(in, data); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		} else if err != nil {
			return err
		}
		check := crc32.Update(crc32.Checksum(head[8:], castagnoli), castagnoli, data)
		first := r.size == 0
		if check != binary.LittleEndian.Uint32(head[4:]) || first != (head[8] == entryHeader) {
			break
		}
		switch head[8] {
		case entryHeader:
			r.header = data
		case entryRecord:
			r.records = append(r.records, place{r.size + entryHead, len(data)})
		case entryEnd:
			r.end = data
		default:
			return fmt.Errorf("the spool of run %s is of another version of the program", r.name)
		}
		r.size += entryHead + int64(size)
	}
	if r.header == nil {
		return ErrNotSpooled
	}
	return nil
}
