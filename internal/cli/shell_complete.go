package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/cli/cmdutil"
)

// completions are the words that may come last in a command line, of which the last one is begun or empty:
// subcommands, flags, and the choices of a flag or an argument. It opens neither a store nor a connection,
// so it may be used for a user of a server, and it is silent: cobra's own completion writes errors to
// stderr, which would be in the line of a terminal.
func (s *session) completions(words []string) (out []string) {
	parser := &session{Program: &Program{Kinds: s.Kinds}} // flags set its fields
	before, word := words[:len(words)-1], words[len(words)-1]
	cmd, rest, err := parser.root().Find(before)
	if err != nil || (cmd.DisableFlagParsing || cmd.HasSubCommands()) && len(rest) > 0 { // a tool's arguments, or no command
		return nil
	}
	cmd.InitDefaultHelpFlag()
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	all.AddFlagSet(cmd.NonInheritedFlags())
	all.AddFlagSet(cmd.InheritedFlags())
	if flag, begun, ok := flagOf(all, before, word); ok {
		found, _ := cmdutil.ChoicesOf(flag)
		for _, text := range found {
			out = append(out, strings.TrimSuffix(word, begun)+text)
		}
		return out
	}
	if strings.HasPrefix(word, "-") {
		all.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Deprecated == "" {
				out = append(out, "--"+f.Name)
			}
		})
		return out
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			out = append(out, c.Name())
		}
	}
	if cmd.ValidArgsFunction == nil || cmd.HasParent() && cmd.Parent().Name() == "report" { // those open the store
		return out
	}
	if cmd.ParseFlags(rest) == nil {
		rest = cmd.Flags().Args()
	}
	found, _ := cmd.ValidArgsFunction(cmd, rest, word)
	return append(out, undescribed(found)...)
}

// flagOf returns the flag whose value is typed, as --NAME=VALUE or after --NAME, and what was typed of it.
func flagOf(all *pflag.FlagSet, before []string, word string) (f *pflag.Flag, begun string, ok bool) {
	if name, value, joined := strings.Cut(word, "="); joined && strings.HasPrefix(name, "--") {
		f = all.Lookup(name[2:])
		return f, value, f != nil
	}
	if len(before) == 0 {
		return nil, "", false
	}
	last := before[len(before)-1]
	if name, long := strings.CutPrefix(last, "--"); long {
		f = all.Lookup(name)
	} else if len(last) == 2 && last[0] == '-' {
		f = all.ShorthandLookup(last[1:])
	}
	return f, word, f != nil && f.NoOptDefVal == ""
}

// undescribed are completions without what a shell shows about them.
func undescribed(found []cobra.Completion) []string {
	out := slices.Clone(found)
	for i := range out {
		out[i], _, _ = strings.Cut(out[i], "\t")
	}
	return out
}
