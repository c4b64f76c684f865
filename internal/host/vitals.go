package host

import (
	"bytes"
	"context"
	"os"
	"slices"
	"time"

	"carronade/measure"
)

// Metrics watches this machine during a measurement: processors, steal,
// pressure, memory, disks and network. It belongs to one goroutine. On Linux a
// reading costs about ten system calls and only the memory of the figures; on
// other systems it returns nothing.
//
// It is the machine on which Carronade runs; the system under test may be on
// another.
type Metrics struct {
	sources hostSources
	before  hostCounters
	at      time.Time
	now     func() time.Time
}

// hostCounters are counters since the machine's start, except available.
type hostCounters struct {
	busy, wait, steal, all  uint64 // ticks of all processors
	cpu, memory, io         uint64 // microseconds in which some task was delayed
	pressed                 bool   // the kernel has these
	available               uint64 // bytes
	diskRead, diskWritten   uint64 // bytes
	diskQueue               uint64 // milliseconds of requests in the disks, summed over requests
	faults, swapped         uint64 // page faults that waited for a disk; pages written to swap
	paging                  bool   // the kernel has these
	throttled               uint64 // nanoseconds, of this program's control group
	limited                 bool   // the group has a processor limit
	received, sent, looping uint64 // bytes
}

// NewMetrics begins to watch.
func NewMetrics() *Metrics {
	v := &Metrics{now: time.Now}
	v.sources.open()
	v.before, v.at = v.sources.read(), v.now()
	return v
}

// Figures returns the machine's activity since the last call, or since
// NewMetrics. It is a protocol.Figures.
func (v *Metrics) Figures(context.Context) ([]measure.Figure, error) {
	now, at := v.sources.read(), v.now()
	out := now.figures(&v.before, at.Sub(v.at))
	v.before, v.at = now, at
	return out, nil
}

// Close closes the files that are kept open.
func (v *Metrics) Close() { v.sources.close() }

func (v *hostCounters) figures(before *hostCounters, span time.Duration) []measure.Figure {
	s := span.Seconds()
	if v.all == 0 || s <= 0 {
		return nil
	}
	out := make([]measure.Figure, 0, 16)
	ticks := func(now, then uint64) float64 { return (time.Duration(now-min(now, then)) * tick).Seconds() }
	share := func(name string, part, whole float64) {
		if whole > 0 {
			out = append(out, measure.Figure{Name: name, Unit: "%", Value: min(100, 100*part/whole)})
		}
	}
	rate := func(name string, now, then uint64) {
		out = append(out, measure.Figure{Name: name, Unit: "bytes/s", Value: float64(now-min(now, then)) / s})
	}
	out = append(out, measure.Figure{Name: "CPU", Unit: "cores", Value: ticks(v.busy, before.busy) / s})
	all := ticks(v.all, before.all)
	share("steal", ticks(v.steal, before.steal), all)
	share("I/O wait", ticks(v.wait, before.wait), all)
	if v.pressed {
		micro := func(now, then uint64) float64 { return float64(now-min(now, then)) / 1e6 }
		share("CPU pressure", micro(v.cpu, before.cpu), s)
		share("memory pressure", micro(v.memory, before.memory), s)
		share("I/O pressure", micro(v.io, before.io), s)
	}
	out = append(out, measure.Figure{Name: "memory available", Unit: "bytes", Value: float64(v.available)})
	rate("disk read", v.diskRead, before.diskRead)
	rate("disk written", v.diskWritten, before.diskWritten)
	out = append(out, measure.Figure{Name: "disk queue", Unit: "requests", Value: float64(v.diskQueue-min(v.diskQueue, before.diskQueue)) / 1e3 / s})
	if v.paging {
		out = append(out,
			measure.Figure{Name: "page faults", Unit: "1/s", Value: float64(v.faults-min(v.faults, before.faults)) / s},
			measure.Figure{Name: "paged out", Unit: "bytes/s", Value: float64(v.swapped-min(v.swapped, before.swapped)) * float64(os.Getpagesize()) / s})
	}
	if v.limited {
		share("throttled", float64(v.throttled-min(v.throttled, before.throttled))/1e9, s)
	}
	rate("received", v.received, before.received)
	rate("sent", v.sent, before.sent)
	rate("loopback", v.looping, before.looping)
	return out
}

const tick = 10 * time.Millisecond // of /proc/stat and /proc/PID/stat: USER_HZ is 100 everywhere (time(7))

// parseCPU reads the first line of /proc/stat (proc_stat(5)). Guest time is
// already part of user time.
func (v *hostCounters) parseCPU(b []byte) {
	b, ok := bytes.CutPrefix(b, []byte("cpu "))
	if !ok {
		return
	}
	for column := range 8 {
		n, rest, ok := number(b)
		if !ok {
			return
		}
		b = rest
		v.all += n
		switch column {
		case 3: // idle
		case 4:
			v.wait = n
		case 7:
			v.steal = n
		default:
			v.busy += n
		}
	}
}

// pressure reads the "some" line of a file in /proc/pressure (PSI,
// Documentation/accounting/psi.rst).
func pressure(b []byte) (microseconds uint64, ok bool) {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	if !bytes.HasPrefix(line, []byte("some ")) {
		return 0, false
	}
	i := bytes.LastIndex(line, []byte("total="))
	if i < 0 {
		return 0, false
	}
	n, _, ok := number(line[i+len("total="):])
	return n, ok
}

// parseDisks sums /proc/diskstats over the wanted disks; sectors there have 512
// bytes, whatever the device's own size is.
func (v *hostCounters) parseDisks(b []byte, wanted [][]byte) {
	for l := range bytes.Lines(b) {
		_, l, ok := number(l)
		if !ok {
			continue
		}
		if _, l, ok = number(l); !ok {
			continue
		}
		l = bytes.TrimLeft(l, " ")
		i := bytes.IndexByte(l, ' ')
		if i < 0 || !contains(wanted, l[:i]) {
			continue
		}
		l = l[i:]
		for column := range 11 {
			n, rest, ok := number(l)
			if !ok {
				break
			}
			l = rest
			switch column {
			case 2:
				v.diskRead += n * 512
			case 6:
				v.diskWritten += n * 512
			case 10:
				v.diskQueue += n
			}
		}
	}
}

func contains(list [][]byte, b []byte) bool {
	return slices.ContainsFunc(list, func(e []byte) bool { return bytes.Equal(e, b) })
}
