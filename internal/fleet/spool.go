package fleet

import (
	"errors"
	"fmt"
	"slices"
)

// A Spool keeps what an agent has to deliver until the operator has it, over the end of
// the process. It is used by one agent, from one goroutine.
//
// A run consists of a header, records that are numbered from 1, and an end. Begin fails
// with ErrSpooled if the run is there already.
type Spool interface {
	Begin(run string, header []byte) error
	// Append adds the next record and returns its number.
	Append(run string, data []byte) (uint64, error)
	// End adds the end of a run and makes everything durable.
	End(run string, end []byte) error
	// Look returns the state of a run; ErrNotSpooled without it.
	Look(run string) (Spooled, error)
	// Read returns one record.
	Read(run string, number uint64) ([]byte, error)
	// Remove deletes a run. A run that does not exist is not an error.
	Remove(run string) error
	// Runs returns the names of all runs, sorted.
	Runs() ([]string, error)
}

// Spooled is what a spool has of a run.
type Spooled struct {
	Header  []byte
	Records uint64
	End     []byte // nil: the process ended before its run did
}

// Errors of a Spool.
var (
	ErrSpooled    = errors.New("the spool has this run already")
	ErrNotSpooled = errors.New("the spool does not have this run")
)

// NewMemorySpool returns a spool that ends with the process.
func NewMemorySpool() *MemorySpool { return &MemorySpool{runs: map[string]*memoryRun{}} }

// A MemorySpool is a Spool in memory.
type MemorySpool struct{ runs map[string]*memoryRun }

type memoryRun struct {
	header, end []byte
	records     [][]byte
}

// Begin implements Spool.
func (s *MemorySpool) Begin(run string, header []byte) error {
	if s.runs[run] != nil {
		return ErrSpooled
	}
	s.runs[run] = &memoryRun{header: slices.Clone(header)}
	return nil
}

// Append implements Spool.
func (s *MemorySpool) Append(run string, data []byte) (uint64, error) {
	r := s.runs[run]
	if r == nil {
		return 0, ErrNotSpooled
	}
	r.records = append(r.records, slices.Clone(data))
	return uint64(len(r.records)), nil
}

// End implements Spool.
func (s *MemorySpool) End(run string, end []byte) error {
	r := s.runs[run]
	if r == nil {
		return ErrNotSpooled
	}
	r.end = slices.Clone(end)
	return nil
}

// Look implements Spool.
func (s *MemorySpool) Look(run string) (Spooled, error) {
	r := s.runs[run]
	if r == nil {
		return Spooled{}, ErrNotSpooled
	}
	return Spooled{Header: r.header, Records: uint64(len(r.records)), End: r.end}, nil
}

// Read implements Spool.
func (s *MemorySpool) Read(run string, number uint64) ([]byte, error) {
	r := s.runs[run]
	if r == nil {
		return nil, ErrNotSpooled
	}
	if number == 0 || number > uint64(len(r.records)) {
		return nil, fmt.Errorf("the spool has no record %d of run %s", number, run)
	}
	return r.records[number-1], nil
}

// Remove implements Spool.
func (s *MemorySpool) Remove(run string) error {
	delete(s.runs, run)
	return nil
}

// Runs implements Spool.
func (s *MemorySpool) Runs() ([]string, error) {
	var names []string
	for name := range s.runs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}
