package trust

import (
	"context"
	"time"

	"carronade/internal/host"
	"carronade/load"
	"carronade/protocol"
)

// How long the measurements of ReadMachine take.
const (
	window       = 600 * time.Millisecond // for what others use: in steps of 10 ms
	wait         = time.Millisecond       // of a sending thread, in between
	loopbackSpan = 100 * time.Millisecond
	clockReads   = 2000
)

// ReadMachine reads and measures the facts about this machine, within about 0.7 s. The fields of MachineFacts
// about the run remain zero.
func ReadMachine(ctx context.Context) MachineFacts {
	f := MachineFacts{Host: host.Describe(), Window: &MachineWindow{}}
	w := f.Window
	before, look := host.ReadState(), Look()
	late := load.Lateness(ctx, wait, window)
	*w = look.window(ctx)
	w.Late, w.Wait = late, wait
	f.State = host.ReadState()
	w.Swapped = moved(&before, &f.State)
	w.ClockRead = clockRead()
	if speed, err := host.LoopbackSpeed(ctx, loopbackSpan); err == nil {
		w.Loopback = speed
	}
	return f
}

// moved is how many bytes were swapped between two states.
func moved(before, after *host.State) uint64 {
	return after.SwapMoved - min(before.SwapMoved, after.SwapMoved)
}

// clockRead measures how long reading the clock takes: the least of a few means, since others
// may interrupt.
func clockRead() time.Duration {
	least := time.Hour
	for range 5 {
		start := time.Now()
		for range clockReads / 5 {
			_ = time.Now()
		}
		least = min(least, time.Since(start)/(clockReads/5))
	}
	return least
}

// MachineRemarks returns texts for the report of a run: what was wrong with the machine and mattered to
// the run, of what needs no window of its own. before and after are from the beginning and the
// end of the run, which took that length; the buffers are those that it requested, in bytes. What
// the run itself measures (steal, throttling, steps of the clock) is not repeated.
func MachineRemarks(machine *host.Host, before, after *host.State, length time.Duration, sendBuffer, recvBuffer int64) []string {
	f := &MachineFacts{
		Host: *machine, State: *after, SendBuffer: sendBuffer, RecvBuffer: recvBuffer,
		Window: &MachineWindow{Length: length, Busy: -1, Swapped: moved(before, after)},
	}
	var out []string
	for _, check := range []func(*MachineFacts) protocol.Finding{clockSource, governor, swap, socketBuffers} {
		if c := check(f); c.Level >= protocol.LevelWarning {
			out = append(out, sentence(&c))
		}
	}
	return out
}

// sentence is a finding as one text, as warnings of reports are written.
func sentence(c *protocol.Finding) string {
	text := c.Found
	if c.Effect != "" {
		text += ": " + c.Effect
	}
	if c.Fix != "" {
		text += "; " + c.Fix
	}
	return text
}
