package trust

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/host"
	"carronade/protocol"
	"carronade/units"
)

// The bounds of the rules on processors. docs/doctor.md explains each.
const (
	leastProcessors      = 2    // the generator's threads, and those of the Go runtime
	leastProcessorsLocal = 4    // the same, with a system on the same machine
	leastTasks           = 64   // threads: those of the Go runtime, and one for each sending thread
	mostOthers           = 0.10 // of all processors, used by other programs
	mostLate             = time.Millisecond
	noteLate             = 250 * time.Microsecond
	mostClockRead        = 500 * time.Nanosecond
)

func processors(f *MachineFacts) protocol.Finding {
	n := f.Host.Cores
	c := protocol.Finding{Check: "processors", Found: fmt.Sprintf("the generator may use %s", units.Plural(n, "processor"))}
	const fix = "use a larger machine, or another one for the target"
	switch {
	case n < leastProcessors:
		c.Level, c.Fix = protocol.LevelWarning, fix
		c.Effect = "sending, reading answers and the Go runtime share one: events are sent late"
	case n < leastProcessorsLocal && f.local():
		c.Level, c.Fix = protocol.LevelNote, fix
		c.Found += ", which the target on this machine needs too"
		c.Effect = "the two slow each other down at high rates"
	}
	return c
}

// processorLimit is about the lowest quota of the process's control groups (CFS bandwidth control).
func processorLimit(f *MachineFacts) protocol.Finding {
	limit := f.Host.CPULimit
	c := protocol.Finding{Check: "processor limit", Found: "the container has no processor limit"}
	if f.Host.OS != "linux" {
		return unknown(c.Check, "processor limits of containers cannot be read on "+osName(f.Host.OS))
	}
	const fix = "raise or remove the container's processor limit (docker --cpus, Kubernetes limits.cpu), or that of the control group above it (CPUQuota= of systemd)"
	if w := f.Window; w != nil && w.Throttled > 0 {
		c.Level, c.Fix = protocol.LevelWarning, fix
		c.Found = fmt.Sprintf("the container's processor limit stopped its programs for %s within %s", units.FormatDuration(w.Throttled.Round(time.Millisecond)), units.FormatDuration(w.Length.Round(time.Millisecond)))
		c.Effect = "the generator stands still for up to 100 ms at a time: events are sent late"
		return c
	}
	if limit <= 0 || limit >= float64(f.Host.Cores) {
		return c
	}
	c.Found = fmt.Sprintf("the container's processor limit is %s of %s", strconv.FormatFloat(limit, 'g', 3, 64), units.Plural(f.Host.Cores, "processor"))
	c.Effect = "when its programs have used that much, they stand still for the rest of 100 ms"
	c.Level, c.Fix = protocol.LevelNote, fix
	if limit < leastProcessors {
		c.Level = protocol.LevelWarning
	}
	return c
}

// taskLimit is about the processes and threads that the control groups allow.
func taskLimit(f *MachineFacts) protocol.Finding {
	const check = "thread limit"
	s := &f.State
	if f.Host.OS != "linux" || !s.Read {
		return unknown(check, "limits of the number of threads cannot be read on "+osName(f.Host.OS))
	}
	c := protocol.Finding{Check: check, Found: "the container has no limit of processes and threads"}
	if s.TaskLimit == 0 {
		return c
	}
	left := s.TaskLimit - min(s.TaskLimit, s.Tasks)
	c.Found = fmt.Sprintf("%d more processes and threads may be started: the container's limit is %d", left, s.TaskLimit)
	if left < leastTasks {
		c.Level = protocol.LevelWarning
		c.Effect = "the program ends if it cannot start a thread; a system that it starts needs its own, too"
		c.Fix = "raise the limit (docker --pids-limit, TasksMax= of systemd, podPidsLimit of the kubelet)"
	}
	return c
}

func otherLoad(f *MachineFacts) protocol.Finding {
	const check = "other load"
	w := f.Window
	if w == nil || w.Busy < 0 {
		return unknown(check, "the load of other programs cannot be read on "+osName(f.Host.OS))
	}
	others := max(0, w.Busy-w.Own)
	// The load is that of the machine, of which a container may have a few processors.
	all := max(f.Host.Cores, f.State.Processors)
	c := protocol.Finding{Check: check, Found: fmt.Sprintf("other programs use %.2f of %s", others, units.Plural(all, "processor"))}
	if f.State.Read {
		c.Found += fmt.Sprintf("; %d threads want to run, and the load average of a minute is %.2f", max(0, f.State.Runnable-1), f.State.Load)
	}
	if others >= mostOthers*float64(all) {
		c.Level = protocol.LevelWarning
		c.Effect = "the generator waits for processors: events are sent late, answers are read late, and runs differ"
		c.Fix = "stop the other programs (top shows them), or measure from another machine"
	}
	return c
}

func steal(f *MachineFacts) protocol.Finding {
	const check = "steal"
	w := f.Window
	if w == nil || w.Busy < 0 {
		return unknown(check, "processor time that a hypervisor takes cannot be read on "+osName(f.Host.OS))
	}
	c := protocol.Finding{Check: check, Found: fmt.Sprintf("the hypervisor gave %.1f%% of the processors' time to others", w.Steal*100)}
	if !f.Host.Virtual && w.Steal == 0 {
		c.Found = "no hypervisor takes processor time"
	}
	if w.Steal >= host.LeastStolen {
		c.Level = protocol.LevelWarning
		c.Effect = "the generator stands still at those moments: times are too long, and runs differ"
		c.Fix = "use a machine with fewer other guests, or with processors of its own"
	}
	return c
}

// lateness is about the waits of sending threads: what a sleep costs here.
func lateness(f *MachineFacts) protocol.Finding {
	const check = "timers"
	w := f.Window
	if w == nil || len(w.Late) == 0 {
		return unknown(check, "how late the machine wakes a thread was not measured")
	}
	at := func(share float64) time.Duration { return w.Late[int(share*float64(len(w.Late)-1))] }
	p50, p90, most := at(0.5), at(0.9), at(1)
	round := func(d time.Duration) string { return units.FormatDuration(d.Round(time.Microsecond)) }
	c := protocol.Finding{Check: check, Found: fmt.Sprintf("a thread that waits for %s wakes %s late at the median, %s at p90, %s at most", units.FormatDuration(w.Wait), round(p50), round(p90), round(most))}
	switch {
	case p90 >= mostLate:
		c.Level = protocol.LevelWarning
	case p90 >= noteLate:
		c.Level = protocol.LevelNote
	}
	if c.Level > protocol.LevelOK {
		c.Effect = "events are sent that much after they are due, and the report says so (send delay)"
		c.Fix = "stop other programs, or use a machine of its own; on a virtual machine also look at its host"
	}
	return c
}

// Clock sources, by how they are read (Documentation/timers): in user space, or with a system
// call that also waits for a device.
var (
	fastClocks = []string{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "timebase", "tod", "riscv_clocksource", "stp"}
	slowClocks = []string{"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"}
)

func clockSource(f *MachineFacts) protocol.Finding {
	const check = "clock source"
	name := f.Host.Clock
	cost := ""
	var read time.Duration
	if f.Window != nil {
		read = f.Window.ClockRead
	}
	if read > 0 {
		cost = fmt.Sprintf("; reading it takes %d ns", read.Nanoseconds())
	}
	c := protocol.Finding{Check: check, Found: "the clock source is " + name + cost}
	slow := slices.Contains(slowClocks, name)
	switch {
	case name == "" && read == 0:
		return unknown(check, "the clock source cannot be read on "+osName(f.Host.OS))
	case name == "" && read < mostClockRead:
		c.Found = "the kernel does not say which clock source it uses" + cost
	case slow, read >= mostClockRead && !slices.Contains(fastClocks, name):
		c.Level = protocol.LevelWarning
		c.Effect = "the clock is read several times for each batch: the generator reaches lower rates, and short times are too long"
		c.Fix = "use a machine or a kernel with a faster clock source"
		for _, fast := range fastClocks {
			if slices.Contains(f.State.Clocks, fast) {
				c.Fix = "echo " + fast + " > /sys/devices/system/clocksource/clocksource0/current_clocksource" // as root
				break
			}
		}
		if name == "" {
			c.Found = "reading the clock takes " + units.FormatDuration(read)
		}
	}
	return c
}

// managing are drivers under which the governor powersave is the usual one and lets the
// processor's own logic choose the frequency.
var managing = []string{"intel_pstate", "amd-pstate-epp", "amd-pstate"}

func governor(f *MachineFacts) protocol.Finding {
	const check = "governor"
	name := f.Host.Governor
	c := protocol.Finding{Check: check, Found: "the processors' governor is " + name}
	all := strings.Split(name, ", ")
	if len(all) > 1 {
		c.Found = "the processors have the governors " + name
	}
	fixed := !slices.ContainsFunc(all, func(g string) bool { return g != "performance" && g != "userspace" })
	const fix = "sudo cpupower frequency-set -g performance"
	switch {
	case name == "" && f.Host.OS == "linux" && f.Host.Virtual:
		return unknown(check, "the host of this virtual machine decides on the processors' frequency")
	case name == "":
		return unknown(check, "the governor of the processors' frequency cannot be read")
	case slices.Contains(all, "powersave") && !slices.Contains(managing, f.State.GovernorDriver):
		c.Level, c.Fix = protocol.LevelWarning, fix
		c.Effect = "the processors run at their lowest frequency: rates are lower and times longer than this machine can do"
	case !fixed:
		c.Level, c.Fix = protocol.LevelNote, fix
		c.Effect = "the frequency follows the load with a delay: the first seconds, and low rates, are slower"
	}
	return c
}

var osNames = map[string]string{"linux": "Linux", "darwin": "macOS", "windows": "Windows", "freebsd": "FreeBSD"}

func osName(os string) string {
	if name := osNames[os]; name != "" {
		return name
	}
	return os
}
