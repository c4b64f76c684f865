package cli

import (
	"sync"

	"carronade/internal/run"
	"carronade/internal/scenario"
	"carronade/internal/workload"
	"carronade/protocol"
)

// room is what a run may take of the machine now, and within the limit of the server whose job it is.
func (s *session) room() *protocol.Room {
	room := run.MachineRoom()
	if s.Room != nil {
		room = *s.Room
	}
	if s.rules == nil || s.rules.Memory == 0 {
		return &room
	}
	// Memory that runs of this process have taken counts towards the limit. It may already be missing in the machine's free memory.
	limit, from := s.rules.Memory, "a job of this server may take %s"
	if taken := s.taken.Load(); taken > 0 {
		limit, from = max(1, limit-taken), "the other runs of this job leave it %s"
	}
	if room.Memory == 0 || limit < room.Memory {
		room.Memory, room.From = limit, from
	}
	return &room
}

// take takes what a workload needs from the room of the job, until free is called: steps of a scenario run at the
// same time.
func (s *session) take(w *workload.Workload) (room *protocol.Room, free func(), err error) {
	needs, err := run.Needs(w)
	if err != nil {
		return nil, nil, err
	}
	s.taking.Lock()
	defer s.taking.Unlock()
	room = s.room()
	if err := room.Check(needs); err != nil {
		return nil, nil, err
	}
	n := protocol.MemoryOf(needs)
	s.taken.Add(n)
	return room, sync.OnceFunc(func() { s.taken.Add(-n) }), nil
}

// fitScript checks the memory of a script's process, if it is more than usual.
func (s *session) fitScript(bytes int64) error {
	if bytes <= scenario.DefaultMemory {
		return nil
	}
	const setting = "script-memory"
	return s.room().Check([]protocol.Need{{Setting: setting, Number: 1, Sizes: []protocol.NeedSize{{Setting: setting, Bytes: bytes}}}})
}

// fit checks that what each of the workloads takes of the machine is there, before any of them runs.
func (s *session) fit(ws ...*workload.Workload) error {
	room := s.room()
	for _, w := range ws {
		if err := run.Fits(w, *room); err != nil {
			return err
		}
	}
	return nil
}
