package workload

import (
	"strconv"
	"time"

	"carronade/protocol"
)

const groupFleet = "several machines"

// fleetTable has the settings of runs that several machines fire together, the same for every
// kind.
func fleetTable() []Setting {
	opt := func(name, word, help string) Setting {
		return Setting{Option: protocol.Option{Name: name, Word: word, Group: groupFleet, Help: help}, FlagOnly: true}
	}
	fleet := opt("fleet", "FILE", "agents send, as one: those of carronade fleet start on this machine, or of its operator FILE")
	fleet.Bare = "local"
	agents := opt("fleet-agents", "NAME,...", "only these agents, separated by commas (default: all that are connected)")
	reader := opt("fleet-reader", "NAME", "with --verify or --op roundtrip: this agent sends nothing, and reads what the others send")
	keep := opt("keep-going", "", "when an agent is lost, the others go on; its share counts as unsent")
	keep.Type = protocol.Bool
	least := opt("min-agents", "", "with --keep-going: end the run when fewer agents are left")
	least.Type, least.check = protocol.Int, countBetween(1, 1000)
	clock := opt("max-clock-error", "", "do not start if a clock is known less exactly than this (default: 10ms)")
	clock.Type, clock.check = protocol.Duration, durationBetween(time.Microsecond, time.Second)
	return []Setting{fleet, agents, reader, keep, least, clock}
}

// SetClients sets the number of clients, as a preset does: for a run of which the number
// of machines decides it. It is for a workload that is not in use yet.
func (w *Workload) SetClients(n int) {
	v := w.values["clients"]
	v.texts = []string{strconv.Itoa(n)}
	if v.from == FromDefault {
		v.from = FromPreset
	}
	w.values["clients"] = v
}
