package trust

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// good are the facts of a machine on which nothing is wrong.
func good() MachineFacts {
	f := MachineFacts{
		OtherFiles: 40,
		Host: host.Host{
			OS: "linux", Cores: 8, Memory: 16 << 30, Clock: "tsc", Governor: "performance",
			Limits: host.Limits{OpenFiles: 20000, LocalPorts: 28232, SendBuffer: 4 << 20, RecvBuffer: 6 << 20},
		},
		State: host.State{
			Read: true, Available: 8 << 30, Load: 0.1, Runnable: 1, Clocks: []string{"tsc", "hpet"}, SendBufferMax: 212992, RecvBufferMax: 212992,
			Sync: host.ClockSync{Known: true, Synchronized: true, MaxError: time.Millisecond},
		},
		Window: &MachineWindow{
			Length: 600 * time.Millisecond, Busy: 0.05, Own: 0.03, Late: []time.Duration{20e3, 40e3, 60e3}, Wait: time.Millisecond,
			ClockRead: 40, Loopback: 2e9,
		},
		Clients: 1, Measured: true,
	}
	f.Host.HugePages = "madvise"
	f.Host.Network = []host.Interface{{Name: "eth0", Mbit: 10000}, {Name: "eth1", Mbit: 100}, {Name: "eth2"}, {Name: "eth3", Mbit: 1000}}
	return f
}

var (
	here = []host.Route{{Here: true}}
	away = []host.Route{{Interface: "eth0"}}
)

func TestMachine(t *testing.T) {
	const ok, unknown, note, warning, fault = protocol.LevelOK, protocol.LevelUnknown, protocol.LevelNote, protocol.LevelWarning, protocol.LevelError
	for _, tt := range []struct {
		name  string
		plant func(f *MachineFacts)
		check string
		level protocol.Level
		want  string // in the text
	}{
		{"one processor", func(f *MachineFacts) { f.Host.Cores = 1 }, "processors", warning, "1 processor"},
		{"two, and the target here", func(f *MachineFacts) { f.Host.Cores, f.Target, f.Routes = 2, true, here }, "processors", note, "2 processors"},
		{"two, and the target elsewhere", func(f *MachineFacts) { f.Host.Cores, f.Target, f.Routes = 2, true, away }, "processors", ok, "2 processors"},

		{"a limit", func(f *MachineFacts) { f.Host.CPULimit = 4 }, "processor limit", note, "limit is 4 of 8"},
		{"a low limit", func(f *MachineFacts) { f.Host.CPULimit = 1.5 }, "processor limit", warning, "limit is 1.5 of 8"},
		{"a limit above", func(f *MachineFacts) { f.Host.CPULimit = 16 }, "processor limit", ok, "no processor limit"},
		{"throttled", func(f *MachineFacts) { f.Host.CPULimit, f.Window.Throttled = 4, 90*time.Millisecond }, "processor limit", warning, "stopped its programs for 90 ms within 600 ms"},
		{"limits elsewhere", func(f *MachineFacts) { f.Host.OS = "darwin" }, "processor limit", unknown, "macOS"},

		{"few threads are left", func(f *MachineFacts) { f.State.TaskLimit, f.State.Tasks = 100, 60 }, "thread limit", warning, "40 more processes and threads may be started: the container's limit is 100"},
		{"no thread is left", func(f *MachineFacts) { f.State.TaskLimit, f.State.Tasks = 100, 101 }, "thread limit", warning, "0 more"},
		{"a limit of threads", func(f *MachineFacts) { f.State.TaskLimit, f.State.Tasks = 1000, 60 }, "thread limit", ok, "940 more"},
		{"no limit of threads", func(*MachineFacts) {}, "thread limit", ok, "no limit"},
		{"threads not known", func(f *MachineFacts) { f.Host.OS, f.State.Read = "darwin", false }, "thread limit", unknown, "macOS"},

		{"others", func(f *MachineFacts) { f.Window.Busy, f.State.Runnable, f.State.Load = 3.03, 5, 4.25 }, "other load", warning, "3.00 of 8 processors; 4 threads want to run, and the load average of a minute is 4.25"},
		{"hardly others", func(f *MachineFacts) { f.Window.Busy = 0.7 }, "other load", ok, "0.67 of 8"},
		{"a few processors of many", func(f *MachineFacts) { f.Host.Cores, f.State.Processors, f.Window.Busy = 2, 64, 1.03 }, "other load", ok, "1.00 of 64 processors"},
		{"own load", func(f *MachineFacts) { f.Window.Busy, f.Window.Own = 3, 2.9 }, "other load", ok, "0.10 of 8"},
		{"load not known", func(f *MachineFacts) { f.Window.Busy = -1 }, "other load", unknown, ""},

		{"steal", func(f *MachineFacts) { f.Window.Steal = 0.05 }, "steal", warning, "5.0%"},
		{"a little steal", func(f *MachineFacts) { f.Host.Virtual, f.Window.Steal = true, 0.01 }, "steal", ok, "1.0%"},
		{"steal not known", func(f *MachineFacts) { f.Window = nil }, "steal", unknown, ""},

		{"late timers", func(f *MachineFacts) { f.Window.Late = []time.Duration{1e6, 2e6, 3e6} }, "timers", warning, "2 ms late at the median"},
		{"slow timers", func(f *MachineFacts) { f.Window.Late = []time.Duration{3e5, 3e5, 5e6} }, "timers", note, "5 ms at most"},
		{"timers not measured", func(f *MachineFacts) { f.Window.Late = nil }, "timers", unknown, ""},

		{"a slow clock", func(f *MachineFacts) { f.Host.Clock, f.Window.ClockRead = "hpet", 1200 }, "clock source", warning, "hpet; reading it takes 1200 ns"},
		{"a slow clock without another", func(f *MachineFacts) { f.Host.Clock, f.State.Clocks = "acpi_pm", []string{"acpi_pm"} }, "clock source", warning, "a faster clock source"},
		{"a slow clock with another", func(f *MachineFacts) { f.Host.Clock = "hpet" }, "clock source", warning, "echo tsc > /sys"},
		{"a clock of a virtual machine", func(f *MachineFacts) { f.Host.Clock = "kvm-clock" }, "clock source", ok, "kvm-clock"},
		{"a clock read once, by accident slowly", func(f *MachineFacts) { f.Window.ClockRead = 900 }, "clock source", ok, "900 ns"},
		{"an unnamed slow clock", func(f *MachineFacts) { f.Host.Clock, f.Window.ClockRead = "", 900 }, "clock source", warning, "900 ns"},
		{"an unnamed clock", func(f *MachineFacts) { f.Host.Clock = "" }, "clock source", ok, "40 ns"},
		{"no clock", func(f *MachineFacts) { f.Host.Clock, f.Window = "", nil }, "clock source", unknown, ""},

		{"powersave", func(f *MachineFacts) { f.Host.Governor, f.State.GovernorDriver = "powersave", "acpi-cpufreq" }, "governor", warning, "cpupower frequency-set"},
		{"powersave of a driver that decides itself", func(f *MachineFacts) { f.Host.Governor, f.State.GovernorDriver = "powersave", "intel_pstate" }, "governor", note, ""},
		{"ondemand", func(f *MachineFacts) { f.Host.Governor = "ondemand" }, "governor", note, "ondemand"},
		{"some in powersave", func(f *MachineFacts) {
			f.Host.Governor, f.State.GovernorDriver = "performance, powersave", "acpi-cpufreq"
		}, "governor", warning, "cpupower frequency-set"},
		{"two kinds of cores", func(f *MachineFacts) { f.Host.Governor = "performance, schedutil" }, "governor", note, "have the governors performance, schedutil"},
		{"no governor", func(f *MachineFacts) { f.Host.Governor = "" }, "governor", unknown, ""},
		{"no governor in a virtual machine", func(f *MachineFacts) { f.Host.Governor, f.Host.Virtual = "", true }, "governor", unknown, "the host of this virtual machine"},

		{"little memory", func(f *MachineFacts) { f.State.Available = 100 << 20 }, "memory", warning, "100 MiB"},
		{"a container with little memory", func(f *MachineFacts) {
			f.Host.MemoryLimit, f.State.GroupLimit, f.State.GroupMemory = 300<<20, 300<<20, 10<<20
		}, "memory", warning, "290 MiB of the container's 300 MiB"},
		{"a full group above a container with memory", func(f *MachineFacts) {
			f.Host.MemoryLimit, f.State.GroupLimit, f.State.GroupMemory = 2<<30, 4<<30, 4<<30-1<<20
		}, "memory", warning, "1 MiB of the container's 4 GiB"},
		{"a full container", func(f *MachineFacts) {
			f.Host.MemoryLimit, f.State.GroupLimit, f.State.GroupMemory = 2<<30, 2<<30, 2<<30-1<<20
		}, "memory", warning, "1 MiB of the container's 2 GiB"},
		{"a small limit above the groups that can be seen", func(f *MachineFacts) { f.State.Available, f.Host.MemoryLimit = 60<<30, 300<<20 }, "memory", warning, "at most 300 MiB of memory are available: the limit of the container"},
		{"a large one", func(f *MachineFacts) { f.State.Available, f.Host.MemoryLimit = 60<<30, 2<<30 }, "memory", ok, "at most 2 GiB of memory are available"},
		{"one below the limit of a group that can be seen", func(f *MachineFacts) {
			f.State.Available, f.Host.MemoryLimit, f.State.GroupLimit = 60<<30, 300<<20, 8<<30
		}, "memory", warning, "at most 300 MiB of memory are available"},
		{"a container with memory", func(f *MachineFacts) { f.Host.MemoryLimit, f.State.GroupLimit = 2<<30, 2<<30 }, "memory", ok, "2 GiB of the container's 2 GiB"},
		{"memory not known", func(f *MachineFacts) { f.State.Read = false }, "memory", unknown, ""},

		{"swap at rest", func(f *MachineFacts) { f.State.SwapUsed = 1 << 30 }, "swap", note, "1 GiB of swap space are in use"},
		{"swapping", func(f *MachineFacts) { f.State.SwapUsed, f.Window.Swapped = 1<<30, 8<<20 }, "swap", warning, "8 MiB went to the disk or came from it within 600 ms"},
		{"a page", func(f *MachineFacts) { f.Window.Swapped = 4096 }, "swap", ok, "no swap space"},
		{"swap not known", func(f *MachineFacts) { f.State.Read = false }, "swap", unknown, ""},

		{"huge pages, the target elsewhere", func(f *MachineFacts) { f.Host.HugePages, f.Target, f.Routes = "always", true, away }, "huge pages", ok, "always"},
		{"huge pages, the target here", func(f *MachineFacts) { f.Host.HugePages, f.Target, f.Routes = "always", true, here }, "huge pages", note, "echo madvise"},
		{"huge pages not known", func(f *MachineFacts) { f.Host.HugePages = "" }, "huge pages", unknown, ""},

		{"too few files", func(f *MachineFacts) { f.Connections, f.Host.Limits.OpenFiles = 1000, 1024 }, "open files", fault, "1024, and the run needs about 1040"},
		{"few files", func(f *MachineFacts) { f.Clients, f.Host.Limits.OpenFiles = 800, 1024 }, "open files", note, "ulimit -n 1680"},
		{"files without a limit", func(f *MachineFacts) { f.Host.Limits.OpenFiles = 1 << 63 }, "open files", ok, "not limited"},
		{"files not known", func(f *MachineFacts) { f.Host.Limits.OpenFiles = 0 }, "open files", unknown, ""},

		{"too few ports", func(f *MachineFacts) { f.Clients = 30000 }, "local ports", fault, "needs 30000"},
		{"few ports", func(f *MachineFacts) { f.Clients = 20000 }, "local ports", note, "28232"},
		{"ports not known", func(f *MachineFacts) { f.Host.Limits.LocalPorts = 0 }, "local ports", unknown, ""},

		{"a buffer that is not granted", func(f *MachineFacts) { f.SendBuffer = 1 << 20 }, "socket buffers", warning, "--send-buffer is 1 MiB, and the kernel grants 208 KiB (net.core.wmem_max)"},
		{"another buffer that is not granted", func(f *MachineFacts) { f.RecvBuffer = 1 << 20 }, "socket buffers", warning, "sysctl -w net.core.rmem_max=1048576"},
		{"a buffer that is granted", func(f *MachineFacts) { f.SendBuffer = 1 << 17 }, "socket buffers", ok, ""},
		{"small buffers over a network", func(f *MachineFacts) { f.Host.Limits.SendBuffer, f.Target, f.Routes = 1<<17, true, away }, "socket buffers", warning, "128 KiB to send"},
		{"small buffers at home", func(f *MachineFacts) { f.Host.Limits.SendBuffer, f.Target, f.Routes = 1<<17, true, here }, "socket buffers", ok, ""},
		{"buffers not known", func(f *MachineFacts) { f.Host.Limits.SendBuffer = 0 }, "socket buffers", unknown, ""},

		{"a slow loopback", func(f *MachineFacts) { f.Window.Loopback = 50e6 }, "loopback", warning, "47.7 MiB/s"},
		{"the loopback not measured", func(f *MachineFacts) { f.Window.Loopback = 0 }, "loopback", unknown, ""},
		{"a target elsewhere", func(f *MachineFacts) { f.Target, f.Routes = true, away }, "network", ok, "eth0, with 10000 Mbit/s"},
		{"a slow network", func(f *MachineFacts) { f.Target, f.Routes = true, []host.Route{{Interface: "eth1"}} }, "network", warning, "11.9 MiB/s"},
		{"a usual network", func(f *MachineFacts) { f.Target, f.Routes = true, []host.Route{{Interface: "eth3"}} }, "network", note, "1000 Mbit/s"},
		{"one address here, one elsewhere", func(f *MachineFacts) { f.Target, f.Routes = true, append(slices.Clone(here), away...) }, "network", ok, "eth0"},
		{"a network that does not report its speed", func(f *MachineFacts) { f.Target, f.Routes = true, []host.Route{{Interface: "eth2"}} }, "network", unknown, "eth2"},
		{"no way", func(f *MachineFacts) { f.Target = true }, "network", unknown, ""},

		{"no synchronization", func(f *MachineFacts) { f.State.Sync.Synchronized = false }, "time synchronization", note, "nothing synchronizes"},
		{"a bad synchronization", func(f *MachineFacts) { f.State.Sync.MaxError = time.Second }, "time synchronization", note, "within 1 s"},
		{"synchronization not known", func(f *MachineFacts) { f.State.Sync.Known = false }, "time synchronization", unknown, ""},
		{"no calibration", func(f *MachineFacts) { f.Measured = false }, "calibration", note, "carronade calibrate"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := good()
			tt.plant(&f)
			all := MachineFindings(&f)
			i := slices.IndexFunc(all, func(c protocol.Finding) bool { return c.Check == tt.check })
			assert.Must(t, i >= 0, "no finding %q", tt.check)
			c := all[i]
			assert.True(t, c.Level == tt.level && strings.Contains(sentence(&c), tt.want), "got %v: %s, want %v: %s", c.Level, sentence(&c), tt.level, tt.want)
			assert.True(t, c.Level < note || c.Effect != "" && c.Fix != "", "%+v lacks its effect or what changes it", c)
		})
	}
}

// On a good machine nothing is worth a note, and every check says something, once.
func TestGoodMachine(t *testing.T) {
	f := good()
	seen := map[string]bool{}
	for _, c := range MachineFindings(&f) {
		assert.True(t, c.Level == protocol.LevelOK && c.Found != "" && !seen[c.Check], "got %+v", c)
		seen[c.Check] = true
	}
	// Nothing is known of another system, and nothing is called fine or wrong there but what was measured.
	other := MachineFacts{Host: host.Host{OS: "windows", Cores: 4}, Window: &MachineWindow{Busy: -1}}
	for _, c := range MachineFindings(&other) {
		assert.True(t, c.Level == protocol.LevelUnknown || slices.Contains([]string{"processors", "calibration"}, c.Check),
			"got %+v of a system about which nothing is known", c)
	}
}

func TestMachineRemarks(t *testing.T) {
	f := good()
	for _, tt := range []struct {
		name  string
		plant func(h *host.Host, after *host.State)
		send  int64
		want  []string // beginnings
	}{
		{"nothing", func(*host.Host, *host.State) {}, 0, nil},
		{"a slow clock", func(h *host.Host, _ *host.State) { h.Clock = "hpet" }, 0, []string{"the clock source is hpet: "}},
		{"powersave", func(h *host.Host, _ *host.State) { h.Governor = "powersave" }, 0, []string{"the processors' governor is powersave: "}},
		{"swap at rest", func(_ *host.Host, s *host.State) { s.SwapUsed = 1 << 30 }, 0, nil},
		{"swapping", func(_ *host.Host, s *host.State) { s.SwapMoved += 64 << 20 }, 0, []string{"memory is being swapped: 64 MiB "}},
		{"a buffer", func(*host.Host, *host.State) {}, 8 << 20, []string{"--send-buffer is 8 MiB, "}},
		{"what the run measures itself", func(h *host.Host, _ *host.State) { h.CPULimit = 1 }, 0, nil},
		{"another system", func(h *host.Host, s *host.State) { *h, *s = host.Host{OS: "darwin", Cores: 4}, host.State{} }, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			machine, before := f.Host, f.State
			before.SwapMoved = 1 << 30
			after := before
			tt.plant(&machine, &after)
			got := MachineRemarks(&machine, &before, &after, 10*time.Second, tt.send, 0)
			assert.Must(t, len(got) == len(tt.want), "got %q, want %q", got, tt.want)
			for i := range got {
				assert.True(t, strings.HasPrefix(got[i], tt.want[i]), "got %q, want %q", got[i], tt.want[i])
			}
		})
	}
}

// report is one with a finding of each level.
func report() *Examination {
	r := &Examination{Schema: ExaminationSchema, Target: "kafka://a:9092/t", Answered: true}
	f := good()
	f.Host.Clock, f.Measured, f.Host.Governor = "hpet", false, ""
	r.Add(AboutMachine, MachineFindings(&f))
	r.Add(AboutTarget, []protocol.Finding{
		{Check: "topic", Level: protocol.LevelError, Found: "the topic t has no leader\x1b[31m", Effect: "events fail", Fix: "start the brokers"},
		{Check: "brokers", Found: strings.Repeat("a long text ", 30)},
	})
	return r
}

func TestExaminationText(t *testing.T) {
	r := report()
	for _, full := range []bool{false, true} {
		var b bytes.Buffer
		assert.OK(t, r.Text(&b, layout.Style{}, 0, full))
		text := b.String()
		for l := range strings.Lines(text) {
			assert.True(t, layout.Width(strings.TrimRight(l, "\n")) <= layout.Columns,
				"a line of more than %d columns: %s", layout.Columns, l)
		}
		assert.True(t, !strings.Contains(text, "\x1b"), "a control character of a system is printed")
		assert.True(t, full == strings.Contains(text, "a long text") && strings.HasPrefix(text, "1 error, 1 warning, 1 note on this machine and kafka://a:9092/t\n"),
			"full %v: got\n%s", full, text)
		worst, second := strings.Index(text, "error   "), strings.Index(text, "warning   ")
		assert.True(t, full || worst <= second && strings.Contains(text, "\n  fine          processors, ") &&
			strings.Contains(text, "not known     governor\n"), "got\n%s", text)
		// A command that has room in a line can be copied from one line.
		assert.True(t, strings.Contains(text, "    echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource\n"), "the command is broken:\n%s", text)
	}
	fine := &Examination{}
	f := good()
	fine.Add(AboutMachine, MachineFindings(&f))
	var b bytes.Buffer
	if err := fine.Text(&b, layout.Style{}, 60, false); err != nil || fine.Spoils() || !strings.HasPrefix(b.String(), "nothing was found that would disturb a measurement on this\nmachine\n") {
		t.Errorf("got %v and\n%s", err, b.String())
	}
}

func TestExaminationJSON(t *testing.T) {
	b := assert.Value(json.Marshal(report()))(t)
	var back Examination
	err := json.Unmarshal(b, &back)
	assert.True(t, err == nil && back.Worst == protocol.LevelError && len(back.Findings) == len(report().Findings), "got %+v and %v", back, err)
	assert.True(t, strings.Contains(string(b), `{"about":"target","check":"topic","level":"error","found":"the topic t`), "got %s", b)
	assert.True(t, json.Unmarshal([]byte(`{"worst": "terrible"}`), &back) != nil, "an unknown level is accepted")
}

// ReadMachine ends within its time, and finds out what this system shows.
func TestReadMachine(t *testing.T) {
	f := ReadMachine(t.Context())
	w := f.Window
	assert.True(t, f.Host.Cores >= 1 && w.Length > 0 && len(w.Late) != 0 && w.ClockRead > 0 && w.Loopback > 0, "got %+v", w)
	assert.True(t, f.Host.OS != "linux" || w.Busy >= 0 && f.State.Read, "the files of this machine are not read: %+v", f.State)
}

func TestIsCommand(t *testing.T) {
	for text, want := range map[string]bool{
		"echo tsc > /sys/x": true, "sudo sysctl -w a=1": true, "some-configs --alter --topic t": true,
		"give --compression lz4": false, "stop the other programs": false, "carronade calibrate": false, "": false, "re-elect leaders": false,
	} {
		assert.Equal(t, isCommand(text), want, "%q", text)
	}
}

func TestOthers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		window     MachineWindow
		processors int
		want       string
	}{
		{"idle", MachineWindow{Length: 100 * time.Millisecond, Busy: 0.1}, 2, ""},
		{"own", MachineWindow{Length: 100 * time.Millisecond, Busy: 1.9, Own: 1.8}, 2, ""},
		{"busy", MachineWindow{Length: 100 * time.Millisecond, Busy: 2, Own: 0.06}, 2, "other programs use 97% of the processors"},
		{"more than there is", MachineWindow{Length: 100 * time.Millisecond, Busy: 2.4}, 2, "other programs use 100% of the processors"},
		{"too short to tell", MachineWindow{Length: 100 * time.Millisecond, Busy: 0.5}, 2, ""},
		{"long enough", MachineWindow{Length: time.Second, Busy: 0.5}, 2, "other programs use 25% of the processors"},
		{"many processors", MachineWindow{Length: 100 * time.Millisecond, Busy: 16}, 64, "other programs use 25% of the processors"},
		{"stolen", MachineWindow{Length: 100 * time.Millisecond, Steal: 0.4}, 2, "the hypervisor gives 40% of the processors to other machines"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := tt.window.others(tt.processors)
			assert.Equal(t, o.Text(), tt.want)
			assert.Equal(t, o.Disturb, tt.want != "", "disturbs")
		})
	}
	assert.Equal(t, (*Others)(nil).Text(), "")
}

// A run that is cut short while it connects does not wait for the measurement.
func TestOthersCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.True(t, Look().Others(ctx) == nil, "got a measurement")
}
