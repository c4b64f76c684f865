package cli

import (
	"github.com/spf13/cobra"

	"carronade/internal/command"
	"carronade/internal/fault"
	"carronade/internal/system"
)

// relayCommand is the process through which a run connects that delays its connections. Only the
// program itself starts it.
func (s *session) relayCommand() *cobra.Command {
	return &cobra.Command{
		Use: fault.RelayCommand, Hidden: true, Args: command.Args(0, 0, "nothing"),
		RunE: func(*cobra.Command, []string) error {
			if code := fault.RelayMain(s.In, s.Program.Out, s.Err); code != system.ExitOK {
				return exitCode{Code: code}
			}
			return nil
		},
	}
}
