package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/cli/cmdutil"
)

// completes reports whether a command line is a request of a shell's completion.
func completes(args []string) bool {
	return len(args) > 0 && slices.Contains([]string{cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd, "completion"}, args[0])
}

// register gives cobra the choices of all flags below a command. It keeps them, and the whole tree
// with them, until the process ends. So only a process that completes one command line registers them.
func register(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if words, ok := cmdutil.ChoicesOf(f); ok {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	})
	for _, c := range cmd.Commands() {
		register(c)
	}
}
