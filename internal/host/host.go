package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// A Host describes a machine. Its JSON is in every report as `host`; unknown
// fields are left out.
type Host struct {
	Name         string  `json:"name,omitempty"`
	OS           string  `json:"os"`               // as Go names it: linux, darwin, windows
	Kernel       string  `json:"kernel,omitempty"` // its release
	Distribution string  `json:"distribution,omitempty"`
	Arch         string  `json:"arch"`
	CPU          string  `json:"cpu,omitempty"` // the processor's model
	Cores        int     `json:"cores"`         // logical processors this process may use
	CPULimit     float64 `json:"cpu_limit,omitempty"`
	Memory       uint64  `json:"memory_bytes,omitempty"`
	MemoryLimit  uint64  `json:"memory_limit_bytes,omitempty"` // of the container, if less than Memory
	Clock        string  `json:"clock,omitempty"`              // the kernel's clock source
	Governor     string  `json:"governor,omitempty"`           // of the processors' frequency; several are separated by commas
	Virtual      bool    `json:"virtual,omitempty"`            // it runs under a hypervisor
	Go           string  `json:"go"`
	MaxProcs     int     `json:"gomaxprocs"`
	Limits       Limits  `json:"limits"`
	Hardware
}

// Limits are limits of the host that a run may reach. Zero is unknown.
type Limits struct {
	OpenFiles    uint64 `json:"open_files,omitempty"`        // one per connection
	OpenFilesMax uint64 `json:"open_files_max,omitempty"`    // OpenFiles may be raised to this
	LocalPorts   int    `json:"local_ports,omitempty"`       // connections to one address
	SendBuffer   int    `json:"send_buffer_bytes,omitempty"` // largest that TCP uses automatically
	RecvBuffer   int    `json:"recv_buffer_bytes,omitempty"`
}

// Describe describes the host the process runs on. It reads some dozens of files
// and takes a few milliseconds.
func Describe() Host {
	h := Host{
		OS: runtime.GOOS, Arch: runtime.GOARCH,
		Cores: runtime.NumCPU(), Go: runtime.Version(), MaxProcs: runtime.GOMAXPROCS(0),
	}
	h.Name, _ = os.Hostname()
	h.Limits.OpenFiles, h.Limits.OpenFilesMax = openFiles()
	describe(&h)
	return h
}

// maxHostBytes limits the size of a given description.
const maxHostBytes = 1 << 20

// ParseHost reads the output of `carronade host --json` from another machine.
// It ignores unknown fields; a text that does not describe a machine is an
// error.
func ParseHost(data []byte) (Host, error) {
	if len(data) > maxHostBytes {
		return Host{}, fmt.Errorf("it is larger than %d MiB", maxHostBytes>>20)
	}
	var h Host
	if err := json.Unmarshal(data, &h); err != nil {
		return Host{}, fmt.Errorf("it is not what carronade host --json prints: %w", err)
	}
	if h.OS == "" || h.Cores <= 0 {
		return Host{}, errors.New("it is not what carronade host --json prints: it names no system or no processor")
	}
	return h, nil
}

// String is the host in one line, for the user.
func (h Host) String() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if h.CPU != "" {
		add("%d x %s", h.Cores, shortCPU(h.CPU))
	} else {
		add("%d x %s", h.Cores, h.Arch)
	}
	if h.CPULimit > 0 && h.CPULimit < float64(h.Cores) {
		add("limited to %s of them", strconv.FormatFloat(h.CPULimit, 'g', 3, 64))
	}
	if m := h.Memory; m > 0 {
		if h.MemoryLimit > 0 && h.MemoryLimit < m {
			m = h.MemoryLimit
		}
		add("%s", gib(m))
	}
	system := strings.TrimSpace(osNames[h.OS] + " " + shortKernel(h.Kernel))
	if osNames[h.OS] == "" {
		system = h.OS
	}
	add("%s (%s)", system, h.Arch)
	add("%s", h.Go)
	return strings.Join(parts, ", ")
}

var osNames = map[string]string{"linux": "Linux", "darwin": "macOS", "windows": "Windows", "freebsd": "FreeBSD"}

// shortCPU removes the uninformative parts of a processor's name: trademarks,
// "CPU", "Processor", and the nominal frequency.
func shortCPU(name string) string {
	name, _, _ = strings.Cut(name, " @ ")
	var words []string
	for w := range strings.FieldsSeq(strings.NewReplacer("(R)", "", "(TM)", "", "(tm)", "").Replace(name)) {
		if w != "CPU" && w != "Processor" {
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}

// shortKernel is a kernel's release without the builder's suffix.
func shortKernel(release string) string {
	short, _, _ := strings.Cut(release, "-")
	return short
}

func gib(n uint64) string {
	switch v := float64(n) / (1 << 30); {
	case v >= 10:
		return fmt.Sprintf("%.0f GiB", v)
	case v >= 1:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " GiB"
	default:
		return fmt.Sprintf("%.0f MiB", v*1024)
	}
}
