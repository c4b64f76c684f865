package cli

import (
	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/cli/reports"
)

const rootLong = `Carronade is a load tester for systems that take in events. It sends events and
reports, with evidence, how the system coped.`

// root builds the tree of commands. A tree serves one command line, since flags keep their
// values.
func (s *session) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "carronade",
		Long:          rootLong,
		Example:       rootExample,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cmdutil.Unknown(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if err := s.permittedCommand(cmd, args); err != nil {
				return err
			}
			return s.pprof.start()
		},
	}
	s.pprof.bind(root.PersistentFlags())
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpFunc(s.help)
	root.SetUsageFunc(func(cmd *cobra.Command) error { s.help(cmd, nil); return nil })
	root.SetFlagErrorFunc(flagFault)
	root.AddGroup(
		&cobra.Group{ID: "start", Title: "start here"},
		&cobra.Group{ID: "reports", Title: "reports"},
		&cobra.Group{ID: "tools", Title: "tools"},
		&cobra.Group{ID: "more", Title: "more"},
	)
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	stored := s.reportTools()
	add("start", s.demoCommand(), s.runCommand(), s.findCommand(), s.scenarioCommand(), s.markCommand(), s.calibrateCommand(), s.doctorCommand())
	add("tools", s.profileCommand())
	add("tools", s.ownCommands()...)
	add("reports", reports.Command(stored, s.replayCommand()), reports.Explain(stored), reports.Collate(stored), reports.Compare(stored), reports.Verify(stored))
	add("tools", s.serveCommand(), s.shellCommand(), s.fleetCommand(), s.agentCommand())
	add("tools", s.standinCommand(), s.systemCommand(), s.hostCommand(), s.configCommand(), s.asCommand())
	add("more", s.versionCommand(), s.scenarioChildCommand())
	root.SetHelpCommand(s.helpCommand())
	root.SetHelpCommandGroupID("more")
	root.SetCompletionCommandGroupID("more")
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Short = "completion for bash, zsh, fish and powershell"
			c.Long = sentence(c.Short)
		}
	}
	plainUse(root)
	return root
}

// Help lists commands in the order in which they are added, roughly the order in which users
// meet them. The switch is global in cobra.
func init() { cobra.EnableCommandSorting = false }

// plainUse stops cobra from adding [flags] to the usage line, and keeps flags in the order of
// definition.
func plainUse(cmd *cobra.Command) {
	cmd.DisableFlagsInUseLine = true
	cmd.Flags().SortFlags = false
	cmd.LocalFlags().SortFlags = false
	for _, c := range cmd.Commands() {
		plainUse(c)
	}
}
