package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/workload"
	"carronade/target"
)

// Help fits 80 columns: names in the first, what they do from textColumn on.
const (
	helpWidth  = 79
	textColumn = 28
)

// page is the help of any command: what it does, how it is written, its
// commands, its flags, examples.
func (s *session) page(cmd *cobra.Command, args []string) {
	var b strings.Builder
	about := cmd.Long
	if about == "" {
		about = sentence(cmd.Short)
	}
	b.WriteString(strings.TrimSpace(about) + "\n\n")
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "usage: %s COMMAND\n", cmd.CommandPath())
	} else {
		fmt.Fprintf(&b, "usage: %s\n", usage(cmd))
	}
	if cmd.HasAvailableSubCommands() {
		writeCommands(&b, cmd)
	}
	if cmd.Annotations[settingsPage] != "" {
		writeSettings(&b, cmd, s.pick(args))
	} else if cmd.HasAvailableLocalFlags() && cmd.HasParent() {
		writeFlags(&b, "flags", cmd.LocalFlags())
		writeBound(&b, cmd.LocalFlags())
	}
	if cmd.Example != "" {
		b.WriteString("\nexamples\n" + strings.Trim(cmd.Example, "\n") + "\n")
	}
	io.WriteString(cmd.OutOrStdout(), b.String())
}

// settingsPage marks commands whose flags are settings, shown by heading.
const settingsPage = "settings"

func usage(cmd *cobra.Command) string {
	u := cmd.UseLine()
	if cmd.HasAvailableLocalFlags() && !strings.Contains(u, "[FLAGS]") {
		u += " [FLAGS]"
	}
	return u
}

// pick returns the kinds whose options the help shows: that of a target given
// beside --help, else all.
func (s *session) pick(args []string) []target.Kind {
	for _, a := range args {
		scheme, _, ok := strings.Cut(a, "://")
		if !ok {
			continue
		}
		for _, k := range s.Kinds {
			if slices.Contains(k.Schemes(), scheme) {
				return []target.Kind{k}
			}
		}
	}
	return s.Kinds
}

func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	groups := cmd.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "commands"}}
	}
	for _, g := range groups {
		fmt.Fprintf(b, "\n%s\n", g.Title)
		for _, c := range cmd.Commands() {
			if c.GroupID == g.ID && (c.IsAvailableCommand() || c.Name() == "help") {
				writeRow(b, 14, c.Name(), c.Short)
			}
		}
	}
}

// writeSettings writes the load's settings and those of the kinds by heading,
// and then the command's own flags.
func writeSettings(b *strings.Builder, cmd *cobra.Command, kinds []target.Kind) {
	shown := map[string]bool{"help": true}
	write := func(title string, rows []workload.Setting) {
		if len(rows) == 0 {
			return
		}
		fmt.Fprintf(b, "\n%s\n", title)
		for i := range rows {
			shown[rows[i].Name] = true
			writeSetting(b, &rows[i])
		}
	}
	table := workload.Table(nil)
	if len(kinds) == 1 {
		table = workload.Table(kinds[0])
	}
	sections(table, "", write)
	for _, k := range kinds {
		var own []workload.Setting
		for _, s := range workload.Table(k) {
			if s.Kind != "" {
				own = append(own, s)
			}
		}
		sections(own, k.Name(), write)
	}
	rest := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, ok := f.Value.(*setting); !ok && !shown[f.Name] {
			rest.AddFlag(f)
		}
	})
	writeFlags(b, "others", rest)
}

// sections groups settings by heading, headings in the order of their first
// row. Rows of a kind that belong to another section are left out.
func sections(table []workload.Setting, kind string, write func(title string, rows []workload.Setting)) {
	var titles []string
	rows := make(map[string][]workload.Setting)
	for _, s := range table {
		if s.Kind != kind {
			continue
		}
		title := s.Group
		if kind != "" {
			title = strings.TrimSuffix(kind+": "+s.Group, ": ")
		}
		if rows[title] == nil {
			titles = append(titles, title)
		}
		rows[title] = append(rows[title], s)
	}
	for _, t := range titles {
		write(t, rows[t])
	}
}

// writeBound writes the flags that are settings of a kind, by heading.
func writeBound(b *strings.Builder, fs *pflag.FlagSet) {
	var rows []workload.Setting
	fs.VisitAll(func(f *pflag.Flag) {
		if s, ok := f.Value.(*setting); ok && s.Kind != "" {
			rows = append(rows, s.Setting)
		}
	})
	if len(rows) == 0 {
		return
	}
	sections(rows, rows[0].Kind, func(title string, rows []workload.Setting) {
		fmt.Fprintf(b, "\n%s\n", title)
		for i := range rows {
			writeSetting(b, &rows[i])
		}
	})
}

func writeSetting(b *strings.Builder, s *workload.Setting) {
	name := "--" + s.Name
	if p := s.Placeholder(); p != "" {
		name += " " + p
	}
	text := s.Help
	if s.Default != "" && s.Type != target.Bool {
		text += " [" + s.Default + "]"
	}
	writeRow(b, textColumn, name, text)
}

func writeFlags(b *strings.Builder, title string, fs *pflag.FlagSet) {
	first := true
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		own, isSetting := f.Value.(*setting)
		if isSetting && own.Kind != "" {
			return
		}
		if first {
			fmt.Fprintf(b, "\n%s\n", title)
			first = false
		}
		if isSetting {
			writeSetting(b, &own.Setting)
			return
		}
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
			name += " " + strings.ToUpper(word)
		}
		if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" && f.DefValue != "0s" && f.DefValue != "[]" && !strings.Contains(text, "default") {
			text += " [" + f.DefValue + "]"
		}
		writeRow(b, textColumn, name, text)
	})
}

// writeRow writes a name and, from the column on, the text that belongs to it,
// wrapped; a name that reaches into the column gets a line of its own.
func writeRow(b *strings.Builder, column int, name, text string) {
	line := "  " + name
	if len(line) > column-2 {
		b.WriteString(line + "\n")
		line = ""
	}
	for _, part := range wrap(text, helpWidth-column) {
		fmt.Fprintf(b, "%-*s%s\n", column, line, part)
		line = ""
	}
}

// wrap breaks a text between words into lines of at most so many letters; a
// longer word stands alone.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// sentence makes one of a short description.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
