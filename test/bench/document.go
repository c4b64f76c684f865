package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.elastic.co/apm/v2"

	"carronade/test/testkit/kafkatest"
)

// Measure measures every chosen group, each in a benchmark of its name, so that a
// failure does not stop the others.
func (u *Suite) Measure(b *testing.B) {
	for _, g := range groups {
		if u.Rows != nil && !u.Rows.MatchString(g.name) {
			continue
		}
		before := len(u.lines)
		b.Run(strings.ReplaceAll(g.name, "/", "."), func(b *testing.B) { g.measure(u, b) })
		if len(u.lines) == before {
			u.lines = append(u.lines, line{Work: g.name, Fault: "the group failed; its output is above the table"})
		}
	}
}

// Failed returns the lines that miss their bound or were not measured.
func (u *Suite) Failed() (names []string) {
	for i := range u.lines {
		if v := u.lines[i].verdict(); v == "**no**" || v == "not measured" {
			names = append(names, fmt.Sprintf("%s, %s: %s", u.lines[i].Work, u.lines[i].name(), v))
		}
	}
	return names
}

// Document is the table with the information needed to assess it.
func (u *Suite) Document(b testing.TB) string {
	var t strings.Builder
	fmt.Fprintf(&t, "Measured %s, %d alternating rounds", time.Now().UTC().Format("2006-01-02"), u.Runs)
	if u.Scale != 1 {
		fmt.Fprintf(&t, ", at %g of the usual length: **a quick look, not a result**", u.Scale)
	}
	fmt.Fprintf(&t, ", %s in all. Median (lowest - highest).\n\n", time.Since(u.began).Round(time.Second))
	t.WriteString(Table(u.lines))
	t.WriteString("\n")
	for _, l := range u.machine(b) {
		fmt.Fprintf(&t, "- %s\n", l)
	}
	fmt.Fprintf(&t, "- the sink of the %s reads with %s\n", tcpBare, sinkMethod)
	return t.String()
}

// Commands lists the command lines, as first run. They are too long for the page.
func (u *Suite) Commands() string {
	return "The commands, as first run ($DIR is a temporary folder):\n\n" + strings.Join(u.commands, "\n") + "\n"
}

// The lines of a page that enclose its table.
const (
	tableBegins = "<!-- the table: make bench BENCH_OUT=docs/performance.md -->\n"
	tableEnds   = "<!-- the table ends -->\n"
)

// Publish writes a document into a file: between the two lines above if the file has
// them, else it replaces the file.
func Publish(path, text string) error {
	page, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the page for the table: %w", err)
	}
	if before, rest, ok := strings.Cut(string(page), tableBegins); ok {
		_, after, ok := strings.Cut(rest, tableEnds)
		if !ok {
			return fmt.Errorf("%s has the line before the table, but not the one after it: %s", path, strings.TrimSpace(tableEnds))
		}
		text = before + tableBegins + "\n" + text + "\n" + tableEnds + after
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// machine describes the machine and the versions of the programs.
func (u *Suite) machine(b testing.TB) (out []string) {
	ask := func(name string, args ...string) string {
		e, err := runProcess(b.Context(), false, name, args...)
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(string(e.out) + e.stderr)
	}
	var h struct {
		OS           string `json:"os"`
		Distribution string `json:"distribution"`
		Kernel       string `json:"kernel"`
		CPU          string `json:"cpu"`
		Cores        int    `json:"cores"`
		Memory       uint64 `json:"memory_bytes"`
		Clock        string `json:"clock"`
	}
	if text := ask(u.program, "host", "--json"); json.Unmarshal([]byte(text), &h) == nil {
		out = append(out, fmt.Sprintf("machine: %s, %d cores, %.0f GiB, clock %s; %s, kernel %s; client, server and this harness share it",
			h.CPU, h.Cores, float64(h.Memory)/(1<<30), h.Clock, h.Distribution, h.Kernel))
	}
	if now := readMachineLoad(); now.total > u.load.total {
		out = append(out, fmt.Sprintf("load average at the start: %.2f; used by other guests of the host during the run: %.1f %% of the processors' time",
			u.load.load, 100*float64(now.steal-u.load.steal)/float64(now.total-u.load.total)))
	}
	first := func(s string) string { s, _, _ = strings.Cut(s, "\n"); return s }
	versions := []string{ask(u.program, "version"), "Kafka " + kafkatest.Version, first(ask("java", "-version"))}
	if m := regexp.MustCompile(`twmb/franz-go\s+(v\S+)`).FindStringSubmatch(ask("go", "version", "-m", u.program)); m != nil {
		versions = append(versions, "franz-go "+m[1])
	}
	if m := regexp.MustCompile(`Version (\S+).*librdkafka (\S+)`).FindStringSubmatch(ask(kcat, "-V")); m != nil {
		versions = append(versions, fmt.Sprintf("kcat %s (librdkafka %s)", m[1], m[2]))
	}
	// wrk prints its version in its usage.
	if m := regexp.MustCompile(`(?m)^wrk (?:debian/)?(\S+)`).FindStringSubmatch(ask("wrk", "-v")); m != nil {
		versions = append(versions, "wrk "+m[1])
	}
	versions = append(versions, "Elastic's Go agent "+apm.AgentVersion)
	return append(out, "versions: "+strings.Join(versions, "; "))
}

// A machineLoad is the load of this machine by others (proc(5): /proc/loadavg, and
// the first line of /proc/stat, in ticks).
type machineLoad struct {
	load         float64
	steal, total uint64
}

// readMachineLoad is zero without /proc.
func readMachineLoad() (b machineLoad) {
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		b.load, _ = strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	}
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return b
	}
	head, _, _ := strings.Cut(string(text), "\n")
	for i, f := range strings.Fields(head) {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			continue // the line's name
		}
		if i <= 8 { // user time includes the others
			b.total += n
		}
		if i == 8 {
			b.steal = n
		}
	}
	return b
}
