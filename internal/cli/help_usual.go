package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/workload"
	"carronade/protocol"
)

// usual are the settings that --help shows. With a target, it also shows all options of its
// kind.
var usual = []struct {
	title string
	names []string
}{
	{"what to do", []string{"op", "verify", "repeat"}},
	{"pace", []string{"rate", "shape", "concurrency"}},
	{"when to stop", []string{"for", "count", "warmup"}},
	{"limits that decide the exit code", []string{"slo", "abort-on-fail", "failure-rate"}},
	{"events and batches", []string{"size", "key", "batch-events", "linger", "max-in-flight", "clients"}},
	{"report", []string{"json", "json-file", "full", "quiet", "web", "label", "store"}},
	{"system under test", []string{"system-cmd", "system-pid"}},
}

// usualSections returns the usual settings, the options of the kind if there is only one, the
// command's own flags, and where the rest is.
func usualSections(cmd *cobra.Command, kinds []protocol.Kind) []section {
	more := section{title: "more", column: textColumn + 4}
	if len(kinds) != 1 {
		more.rows = append(more.rows, row{"carronade run TARGET --help", "with the flags of the target's kind"})
	}
	more.rows = append(more.rows,
		row{"--" + helpAllFlag, "all flags"},
		row{"carronade help SUBJECT", "limits, slo, shapes, events, units, files"},
	)
	var out []section
	for _, group := range usual {
		sec := section{title: group.title, column: textColumn}
		for _, name := range group.names {
			if f := cmd.Flags().Lookup(name); f != nil {
				if _, ok := cmdutil.SettingOf(f); f.Hidden || !ok { // a flag of the command's own is among the others
					continue
				}
			}
			if s := usualSetting(name, kinds); s != nil {
				sec.rows = append(sec.rows, settingRow(s))
			}
		}
		if len(sec.rows) > 0 {
			out = append(out, sec)
		}
	}
	if len(kinds) == 1 {
		out = append(out, byHeading(workload.Table(kinds[0]), kinds[0].Name())...)
	}
	if own := ownFlags(cmd, "schema", helpAllFlag); len(own.rows) > 0 {
		out = append(out, own)
	}
	return append(out, more)
}

// usualSetting returns a setting of the load or, if there are several kinds, the option of one of
// them with the shortest text, without the default, in which they differ. It returns nil for the
// option of the only kind, which has a section for them.
func usualSetting(name string, kinds []protocol.Kind) *workload.Setting {
	find := func(table []workload.Setting) *workload.Setting {
		if i := slices.IndexFunc(table, func(s workload.Setting) bool { return s.Name == name }); i >= 0 {
			return &table[i]
		}
		return nil
	}
	found := find(loadTable(kinds))
	if found != nil && found.Kind != "" {
		return nil
	}
	for _, k := range kinds {
		if s := find(workload.Table(k)); s != nil && s.Kind != "" && (found == nil || len(s.Help) < len(found.Help)) {
			s.Default = ""
			found = s
		}
	}
	return found
}

// firstParagraphs returns the first n paragraphs of a text.
func firstParagraphs(text string, n int) string {
	parts := strings.Split(text, "\n\n")
	return strings.Join(parts[:min(n, len(parts))], "\n\n")
}

const helpAllFlag = "help-all"

// bindHelpAll adds the flag --help-all.
func (s *session) bindHelpAll(fs *pflag.FlagSet) {
	f := fs.VarPF(helpAll{s, fs}, helpAllFlag, "", "show all flags")
	f.NoOptDefVal = "true"
}

// helpAll is the value of --help-all. It sets --help too, which the parser handles before it
// checks the arguments.
type helpAll struct {
	s     *session
	flags *pflag.FlagSet
}

func (h helpAll) Set(text string) (err error) {
	if h.s.helpAll, err = strconv.ParseBool(text); err != nil {
		return fmt.Errorf("must be true or false, not %q", text)
	}
	return h.flags.Set("help", text)
}

func (h helpAll) String() string   { return "" }
func (h helpAll) Type() string     { return "bool" }
func (h helpAll) IsBoolFlag() bool { return true }
