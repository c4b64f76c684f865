package cli

import (
	"carronade/internal/run"
	"carronade/internal/workload"
	"carronade/target"
)

// room is what a run may take of the machine now, and within the limit of the server whose job it is.
func (s *session) room() *target.Room {
	room := run.MachineRoom()
	if s.Room != nil {
		room = *s.Room
	}
	if s.rules != nil && s.rules.Memory > 0 && (room.Memory == 0 || s.rules.Memory < room.Memory) {
		room.Memory, room.From = s.rules.Memory, "a job of this server may take %s"
	}
	return &room
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
