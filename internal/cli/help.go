package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/layout"
	"carronade/internal/workload"
	"carronade/protocol"
)

// Help fits 80 columns: names in the first column, texts from a fixed one on.
const (
	helpWidth     = layout.Columns - 1
	textColumn    = 28
	commandColumn = 14
)

// A manual is the help of a command before layout: as text here, as a man page in man.go.
type manual struct {
	about    string // paragraphs
	usage    string
	sections []section
	examples string
}

// A section is a heading with its rows.
type section struct {
	title  string
	column int
	rows   []row
}

// A row is a command or a flag, and its text.
type row struct{ name, text string }

// settingsPage marks commands whose flags are settings, shown by heading. Their --help shows the
// usual ones, and --help-all all.
const settingsPage = "settings"

// help prints the help of a command; args are the arguments besides --help. The parser also
// comes here with an unknown command, which is an error.
func (s *session) help(cmd *cobra.Command, args []string) {
	switch rest := cmd.Flags().Args(); {
	case len(rest) == 0:
	case cmd.HasAvailableSubCommands():
		s.helpError = cmdutil.Unknown(cmd, rest[0])
		return
	case cmd.ValidateArgs(nil) == nil: // too few arguments are fine: the user asks what they are
		if s.helpError = cmd.ValidateArgs(rest); s.helpError != nil {
			return
		}
	}
	var b strings.Builder
	p := makeManual(cmd, s.pick(args), s.helpAll)
	fmt.Fprintf(&b, "%s\n\nusage: %s\n", p.about, p.usage)
	for _, sec := range p.sections {
		fmt.Fprintf(&b, "\n%s\n", sec.title)
		for _, r := range sec.rows {
			writeRow(&b, sec.column, r.name, r.text)
		}
	}
	if p.examples != "" {
		b.WriteString("\nexamples\n" + p.examples + "\n")
	}
	_, _ = io.WriteString(cmd.OutOrStdout(), b.String()) // a closed stdout is reported at the end
}

// makeManual collects the help of a command, with the options of the kinds: all of them, or the
// usual ones.
func makeManual(cmd *cobra.Command, kinds []protocol.Kind, all bool) manual {
	p := manual{
		about:    strings.TrimSpace(cmd.Long),
		usage:    cmd.UseLine(),
		examples: strings.Trim(cmd.Example, "\n"),
	}
	if p.about == "" {
		p.about = sentence(cmd.Short)
	}
	switch {
	case cmd.HasAvailableSubCommands():
		p.usage = cmd.CommandPath() + " COMMAND"
		p.sections = commandSections(cmd)
	case hasFlags(cmd):
		p.usage += " [FLAGS]"
	}
	switch {
	case cmd.Annotations[settingsPage] != "" && all:
		p.sections = append(p.sections, settingSections(cmd, kinds)...)
	case cmd.Annotations[settingsPage] != "":
		p.about = firstParagraphs(p.about, 2)
		p.sections = append(p.sections, usualSections(cmd, kinds)...)
	case cmd.HasParent():
		p.sections = append(p.sections, flagSections(cmd.LocalFlags())...)
	}
	return p
}

// hasFlags reports whether a command has flags that help shows, besides --help.
func hasFlags(cmd *cobra.Command) (has bool) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { has = has || shown(f) })
	return has
}

// pick returns the kinds whose options the help shows: that of a target given
// together with --help, else all.
func (s *session) pick(args []string) []protocol.Kind {
	for _, a := range args {
		scheme, _, ok := strings.Cut(a, "://")
		if !ok {
			continue
		}
		for _, k := range s.Kinds {
			if slices.Contains(k.Schemes(), scheme) {
				return []protocol.Kind{k}
			}
		}
	}
	return s.Kinds
}

func commandSections(cmd *cobra.Command) []section {
	groups := cmd.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "commands"}}
	}
	var out []section
	for _, g := range groups {
		sec := section{title: g.Title, column: commandColumn}
		for _, c := range cmd.Commands() {
			// Cobra does not count its help command among the available ones.
			if c.GroupID == g.ID && (c.IsAvailableCommand() || c.Name() == "help") {
				sec.rows = append(sec.rows, row{c.Name(), c.Short})
				sec.column = max(sec.column, len(c.Name())+4)
			}
		}
		out = append(out, sec)
	}
	return out
}

// settingSections returns the load's settings and those of the kinds by heading, and then the
// command's own flags.
func settingSections(cmd *cobra.Command, kinds []protocol.Kind) []section {
	out := byHeading(loadTable(kinds), "")
	for _, k := range kinds {
		out = append(out, byHeading(workload.Table(k), k.Name())...)
	}
	return append(out, ownFlags(cmd))
}

// loadTable returns the load's settings, with a kind's defaults if there is only one.
func loadTable(kinds []protocol.Kind) []workload.Setting {
	if len(kinds) == 1 {
		return workload.Table(kinds[0])
	}
	return workload.Table(nil)
}

// ownFlags returns the flags of a command that are not settings, except those left out.
func ownFlags(cmd *cobra.Command, except ...string) section {
	out := section{title: "others", column: textColumn}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, ok := cmdutil.SettingOf(f); !ok && shown(f) && !slices.Contains(except, f.Name) {
			out.rows = append(out.rows, flagRow(f))
		}
	})
	return out
}

// flagSections returns a command's own flags, and then those that are settings of a kind, by
// heading.
func flagSections(fs *pflag.FlagSet) []section {
	own := section{title: "flags", column: textColumn}
	var bound []workload.Setting
	fs.VisitAll(func(f *pflag.Flag) {
		s, ok := cmdutil.SettingOf(f)
		switch {
		case !shown(f):
		case ok && s.Kind != "":
			bound = append(bound, *s)
		case ok:
			own.rows = append(own.rows, settingRow(s))
		default:
			own.rows = append(own.rows, flagRow(f))
		}
	})
	var out []section
	if len(own.rows) > 0 {
		out = append(out, own)
	}
	if len(bound) > 0 {
		out = append(out, byHeading(bound, bound[0].Kind)...)
	}
	return out
}

// byHeading groups a kind's settings by heading, in the order of first use.
func byHeading(table []workload.Setting, kind string) []section {
	var out []section
	for i := range table {
		s := &table[i]
		if s.Kind != kind {
			continue
		}
		title := s.Group
		if kind != "" {
			title = strings.TrimSuffix(kind+": "+s.Group, ": ")
		}
		at := slices.IndexFunc(out, func(sec section) bool { return sec.title == title })
		if at < 0 {
			at = len(out)
			out = append(out, section{title: title, column: textColumn})
		}
		out[at].rows = append(out[at].rows, settingRow(s))
	}
	return out
}

func settingRow(s *workload.Setting) row {
	r := row{name: "--" + s.Name, text: s.Help}
	if s.Short != "" {
		r.name = "-" + s.Short + ", " + r.name
	}
	switch p := s.Placeholder(); {
	case s.Bare != "": // its value is optional, and not a separate argument
		r.name += "[=" + p + "]"
	case p != "":
		r.name += " " + p
	}
	if s.Default != "" && s.Type != protocol.Bool {
		fallback := s.Default
		if len(fallback) > helpWidth-textColumn-2 { // too long for a line
			fallback = strings.ReplaceAll(fallback, ",", ", ")
		}
		r.text += " [" + fallback + "]"
	}
	return r
}

func shown(f *pflag.Flag) bool { return !f.Hidden && f.Name != "help" }

func flagRow(f *pflag.Flag) row {
	word, text := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	switch word {
	case "":
	case "int", "uint", "int64", "uint64":
		name += " N"
	case "string":
		name += " TEXT"
	default:
		gap := " "
		if f.NoOptDefVal != "" { // its value is optional, and not a separate argument
			word, gap = "="+word+"]", "["
		}
		name += gap + strings.ToUpper(word)
	}
	nothing := []string{"", "0", "0s", "false", "[]"}
	if !slices.Contains(nothing, f.DefValue) && !strings.Contains(text, "default") {
		text += " [" + f.DefValue + "]"
	}
	return row{name, text}
}

// writeRow writes a name and its text, wrapped, from the column on; a name that reaches into
// the column gets a separate line.
func writeRow(b *strings.Builder, column int, name, text string) {
	line := "  " + name
	if len(line) > column-2 {
		b.WriteString(line + "\n")
		line = ""
	}
	for _, part := range layout.Wrap(text, helpWidth-column) {
		fmt.Fprintf(b, "%-*s%s\n", column, line, part)
		line = ""
	}
}

// sentence turns a short description into a sentence.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
