package run

import (
	"math"

	"carronade/internal/host"
	"carronade/internal/workload"
	"carronade/protocol"
)

// callerBytes is what a batch that a closed loop keeps in flight takes in the engine, and rather too little:
// a million of them take 870 MiB more than one where each is answered alone, and 11 MiB where batches that are
// sent together share what is known of them.
//
// These take no memory that grows with a setting: the series (rows are joined from some thousand on), the
// ledger (ledgerBytes), samples (mostSamples), batches that may be in flight and are not, and the queue of a
// pipeline (2,000,000 events take 6 MiB more than 1,000).
const callerBytes = 100

// MachineRoom is what a run may take of this machine now.
func MachineRoom() protocol.Room {
	free := host.FreeMemory()
	r := protocol.Room{Memory: int64(min(free.Bytes, math.MaxInt64)), From: "this machine has %s free", Open: int64(host.OpenFiles())}
	switch {
	case free.Container:
		r.From = "the limit of the container leaves %s"
	case free.Whole:
		r.From = "this machine has %s"
	}
	if most := host.Describe().Limits.OpenFiles; most < 1<<53 {
		r.Files = int64(most)
	}
	return r
}

// Fits checks that what a workload takes of the machine is there. It makes nothing.
func Fits(w *workload.Workload, room protocol.Room) error {
	needs, err := Needs(w)
	if err != nil {
		return err
	}
	return room.Check(needs)
}

// Needs returns what a workload takes of the machine.
func Needs(w *workload.Workload) ([]protocol.Need, error) {
	spec, err := w.Spec()
	if err != nil {
		return nil, err
	}
	return needs(w, &spec), nil
}

func needs(w *workload.Workload, spec *protocol.Spec) []protocol.Need {
	needs := []protocol.Need{{Setting: "concurrency", Number: int64(spec.Concurrency), Bytes: callerBytes}}
	if of := w.Kind.Capabilities().Needs; of != nil {
		needs = append(needs, of(*spec)...)
	}
	return needs
}
