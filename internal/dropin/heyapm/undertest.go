package heyapm

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/dropin"
	"carronade/internal/report"
	"carronade/internal/store/elastic"
	"carronade/internal/workload"
)

// The shell knew the server's process and its Elasticsearch from commands before a
// test. Here they are flags: those of 2023 for Elasticsearch, and carronade's own
// for the system.

// systemPrefix begins the names of the settings for the system under test.
const systemPrefix = "system-"

// systemFlags adds carronade's flags for the system under test, which test takes.
func (o *heyOptions) systemFlags(fs *flag.FlagSet) {
	for _, s := range workload.Table(nil) {
		if !strings.HasPrefix(s.Name, systemPrefix) {
			continue
		}
		add := func(text string) error {
			o.system = append(o.system, dropin.Setting{Name: s.Name, Flag: "-" + s.Name, Text: text})
			return nil
		}
		if s.Placeholder() == "" { // a boolean
			fs.BoolFunc(s.Name, s.Help, add)
		} else {
			fs.Func(s.Name, s.Help, add)
		}
	}
}

// starts reports whether the flags describe a server that the test starts.
func (o *heyOptions) starts() bool {
	return slices.ContainsFunc(o.system, func(s dropin.Setting) bool { return s.Name == "system-cmd" || s.Name == "system-image" })
}

// serverFlags reads the words after a test's arguments: settings of the server that
// it starts, and the server's memory limit.
func (o *heyOptions) serverFlags(words []string) error {
	if len(words) > 0 && !o.starts() {
		return fmt.Errorf("%s: flags for the server, such as %s, need a server that is started here: give -system-cmd 'COMMAND' before test", heyTestForm, words[0])
	}
	for i := 0; i < len(words); i += 2 {
		name := words[i]
		if name != "-E" && name != "--mem" && name != "-mem" {
			return fmt.Errorf("%s: %s is neither -E NAME=VALUE nor --mem SIZE; put other flags of the server into -system-cmd", heyTestForm, name)
		}
		if i+1 == len(words) {
			return fmt.Errorf("%s: %s has no value", heyTestForm, name)
		}
		text := words[i+1]
		if name == "-E" {
			o.system = append(o.system, dropin.Setting{Name: "system-flag", Flag: "-E", Text: text})
			continue
		}
		bytes, err := parseDecimalBytes(text)
		if err != nil {
			return fmt.Errorf("%s: --mem: %w", heyTestForm, err)
		}
		o.system = append(o.system, dropin.Setting{Name: "system-mem", Flag: "--mem", Text: strconv.FormatInt(bytes, 10)})
	}
	return nil
}

// parseDecimalBytes reads a size as the shell did, in powers of a thousand.
func parseDecimalBytes(text string) (int64, error) {
	number, by := strings.ToLower(text), int64(1)
	for suffix, times := range map[string]int64{"k": 1e3, "m": 1e6, "g": 1e9} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			number, by = rest, times
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > 1<<62/by {
		return 0, errors.New("a size is a number followed by k, m or g, such as 4g")
	}
	return n * by, nil
}

// underTest adds the server, its Elasticsearch and that of the reports to a
// workload.
func (t *heyLegacy) underTest(d *workload.Document) {
	for _, s := range t.system {
		d.Add(s.Name, s.Flag, s.Text)
	}
	if t.esURL != "" {
		d.Add("store", "-es-url", t.reportStore())
	}
	if t.indexURL == "" {
		return
	}
	d.Add("index", "-apm-es-url", t.indexURL)
	d.Add("index-pattern", "-apm-es-url", elastic.APMDocuments) // as in the shell
	if t.indexAuth != "" {
		const flag = "-apm-es-auth"
		user, password := t.login(flag, t.indexAuth)
		d.Add("index-user", flag, user)
		d.Add("index-password", flag, password)
	}
}

// indexedLine is the line about the documents indexed of those accepted.
func indexedLine(x *report.Indexed, strict bool, elapsed float64) string {
	perS, share := x.PerS, 0.0
	if strict {
		perS = dropin.PerSecond(float64(max(x.Docs, 0)), elapsed)
	}
	if x.Share != nil {
		share = *x.Share
	}
	return fmt.Sprintf("%d docs indexed (%.2f / sec)  (%.2f%% of expected)\n", x.Docs, perS, 100*share)
}

// memoryLines are the lines about the server's peak memory and its efficiency; none
// if the server was not observed. The tool counted 1,000 bytes as a KiB, and used
// the time of the whole test instead of that of the load.
func memoryLines(s *report.System, strict bool, accepted float64) string {
	if s == nil || s.PeakRSSBytes == 0 {
		return ""
	}
	peak, efficiency := float64(s.PeakRSSBytes), 0.0
	if s.Efficiency != nil {
		efficiency = *s.Efficiency
	}
	if strict {
		peak *= 1000. / 1024
		efficiency = 60 * accepted / peak
	}
	return fmt.Sprintf("%s (max RSS)\n%.3f memory efficiency (accepted data volume per minute / memory used)\n", decimalBytes(peak), efficiency)
}

// branchOf is the branch of the server, if known.
func branchOf(s *report.System) string {
	if s != nil {
		if name, ok := s.Facts["branch"].(string); ok && name != "" {
			return name
		}
	}
	return "unknown"
}
