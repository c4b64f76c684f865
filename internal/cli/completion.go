package cli

import (
	"github.com/spf13/cobra"

	"carronade/internal/command"
	"carronade/target"
)

// complete registers the choices of settings with the shell completion.
func complete(cmd *cobra.Command, kinds []target.Kind) {
	for _, s := range command.AllSettings(kinds) {
		var words []string
		switch {
		case len(s.Choices) > 0:
			words = s.Choices
		case s.Word == "FILE":
			continue // shells complete file names themselves
		}
		_ = cmd.RegisterFlagCompletionFunc(s.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
}
