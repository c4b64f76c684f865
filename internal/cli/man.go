package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"carronade/protocol"
)

// ManPages returns the program's man pages by file name, made from the texts of --help: one
// for each command, and one for the subjects of help. They use man(7) macros, which every man
// reads.
func ManPages(kinds []protocol.Kind) map[string]string {
	s := &session{Program: &Program{Kinds: kinds}}
	root := s.root()
	pages := make(map[string]string)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		pages[name+".1"] = manPage(name, cmd, kinds)
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() && c.Name() != "completion" {
				walk(c)
			}
		}
	}
	walk(root)
	var b strings.Builder
	manHead(&b, "carronade-subjects", "7", "targets, shapes, units, words: the subjects of carronade help")
	for _, sub := range subjects() {
		fmt.Fprintf(&b, ".SH %s\n%s.nf\n%s.fi\n", strings.ToUpper(roff(sub.name)), roffText(sentence(sub.short)), roffLines(sub.text(s)))
	}
	pages["carronade-subjects.7"] = b.String()
	return pages
}

func manHead(b *strings.Builder, name, section, short string) {
	fmt.Fprintf(b, ".TH %q %q \"\" \"Carronade\" \"Carronade\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(name), section, roff(name), roff(short))
}

func manPage(name string, cmd *cobra.Command, kinds []protocol.Kind) string {
	p := makeManual(cmd, kinds, true)
	short := cmd.Short
	if short == "" {
		short = "a load tester for systems that take in events"
	}
	var b strings.Builder
	manHead(&b, name, "1", short)
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.SH DESCRIPTION\n%s", roff(p.usage), roffText(p.about))
	for _, sec := range p.sections {
		fmt.Fprintf(&b, ".SH %s\n", strings.ToUpper(roff(sec.title)))
		for _, r := range sec.rows {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s", roff(r.name), roffText(r.text))
		}
	}
	if p.examples != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s.fi\n", roffLines(p.examples))
	}
	if cmd.HasParent() {
		b.WriteString(".SH SEE ALSO\n.BR carronade (1),\n.BR carronade-subjects (7)\n")
	} else {
		b.WriteString(".SH EXIT STATUS\n.nf\n" + roffLines(exitText) + ".fi\n.SH SEE ALSO\n.BR carronade-run (1),\n.BR carronade-subjects (7)\n")
	}
	return b.String()
}

// roff escapes text: roff interprets backslashes, dashes, and quotes at the beginning of a
// line.
func roff(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`).Replace(s)
}

// roffText is running text; an empty line begins a paragraph.
func roffText(s string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(s), "\n") {
		if line = strings.TrimSpace(line); line == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(escapeDot(roff(line)) + "\n")
	}
	return b.String()
}

// roffLines is preformatted text.
func roffLines(s string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.Trim(s, "\n"), "\n") {
		b.WriteString(escapeDot(roff(line)) + "\n")
	}
	return b.String()
}

// escapeDot escapes a line that begins with a dot, which would be an instruction.
func escapeDot(line string) string {
	if strings.HasPrefix(line, ".") {
		return `\&` + line
	}
	return line
}
