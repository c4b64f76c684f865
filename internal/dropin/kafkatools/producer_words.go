package kafkatools

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"carronade/internal/dropin"
)

// argparseWidth is the number of columns of the tool's messages.
const argparseWidth = 75

// producerSynopsis is the usage line in argparse4j's layout.
func producerSynopsis(g kafkaGeneration) string {
	program, indent := "usage: "+g.program(), len("usage: "+g.program())+1
	var b strings.Builder
	b.WriteString(program)
	at := len(program)
	if indent > 30 { // a long name has a separate line
		indent, at = 7, argparseWidth
	}
	word := func(s string) {
		if at+1+len(s) > argparseWidth {
			fmt.Fprintf(&b, "\n%s%s", strings.Repeat(" ", indent), s)
			at = indent + len(s)
			return
		}
		b.WriteString(" " + s)
		at += 1 + len(s)
	}
	word("[-h]")
	var group []string
	for _, f := range g.flags() {
		s := f.form()
		switch {
		case f.name == "--help":
		case f.oneOf:
			group = append(group, s)
		case f.required:
			word(s)
		default:
			word("[" + s + "]")
		}
	}
	for i, s := range group {
		if i == 0 {
			s = "(" + s
		}
		if i < len(group)-1 {
			s += " |"
		} else {
			s += ")"
		}
		word(s)
	}
	b.WriteString("\n")
	return b.String()
}

// form is a flag with its value.
func (f *producerFlag) form() string {
	switch f.kind {
	case noValue:
		return f.name
	case listValue:
		return fmt.Sprintf("%s %s [%s ...]", f.name, f.meta, f.meta)
	}
	return f.name + " " + f.meta
}

// write writes the usage and an error.
func (e *argparseError) write(w io.Writer, g kafkaGeneration) {
	fmt.Fprint(w, producerSynopsis(g))
	fmt.Fprintln(w, justified(g.program()+": error: "+e.text))
	if e.near != "" {
		fmt.Fprintf(w, "\nDid you mean:\n\t%s\n", e.near)
	}
}

// justified breaks a text after blanks, and after a hyphen before a letter, and
// widens blanks so that all lines but the last end in one column.
func justified(s string) string {
	var lines []string
	line := ""
	for _, piece := range pieces(s + "\n") { // the tool counts the newline, too
		if len(line)+len(piece) > argparseWidth {
			lines = append(lines, widened(strings.Trim(line, " ")))
			line = ""
		}
		line += piece
	}
	return strings.Join(append(lines, strings.TrimSuffix(line, "\n")), "\n")
}

// pieces splits a text where it may be broken.
func pieces(s string) (out []string) {
	begin := 0
	for i := 1; i < len(s); i++ {
		letter := s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z'
		if s[i-1] == ' ' && s[i] != ' ' || s[i-1] == '-' && letter {
			out = append(out, s[begin:i])
			begin = i
		}
	}
	return append(out, s[begin:])
}

// widened distributes a line's missing columns over its blanks; those in the middle
// get the remainder.
func widened(line string) string {
	words := strings.Fields(line)
	blanks := len(words) - 1
	lacks := argparseWidth - len(line)
	if blanks < 1 || lacks < 1 {
		return line
	}
	each, rest := lacks/blanks, lacks%blanks
	from := (blanks - rest + 1) / 2
	var b strings.Builder
	for i, w := range words {
		b.WriteString(w)
		if i == blanks {
			break
		}
		n := 1 + each
		if i >= from && i < from+rest {
			n++
		}
		b.WriteString(strings.Repeat(" ", n))
	}
	return b.String()
}

// writeProducerHelp writes the tool's flags, carronade's, and the differences from the tool.
func writeProducerHelp(w io.Writer, g kafkaGeneration) {
	fmt.Fprintf(w, "%s\n%s\n", producerSynopsis(g), `Sends records to a topic and prints throughput and latency.

flags:`)
	flags := g.flags()
	slices.SortStableFunc(flags, func(a, b producerFlag) int { return strings.Compare(a.name, b.name) })
	for _, f := range flags {
		name := f.name
		if f.kind != noValue {
			name += " " + f.meta
		}
		dropin.HelpRow(w, 28, name, f.help)
	}
	fmt.Fprintf(w, "\n%s%s", dropin.CommonHelp, producerDiffers)
}

const producerDiffers = `
Generations are 2018, 4.1 and 4.3 (or 4.2, the same). A generation sets the
lines and the client's defaults. The default is 4.3. If the servers are given by
--producer-props or --producer.config and no flag is from 4.2, it is 4.1 if some
flag is newer than 2018; otherwise lines have the form of 2018, and the client's
defaults are today's.

Here percentiles are of all records, rounded to the nearest millisecond
(--strict: int(p*n) of 500,000 samples, truncated); with --throughput above 0
times begin when a record is due (--strict: when it is sent); a run with failed
records does not exit with 0; --throughput 0, which would never end, is refused;
and 10,000,000 or more means -1. See docs/coming-from/kafka-tools.md.
`
