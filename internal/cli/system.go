package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/checkout"
	"carronade/internal/command"
	"carronade/units"
)

const systemLong = `Builds of systems under test, which carronade run keeps by revision
(--system-git, --system-checkout, --system-build). They lie in the user's cache
folder, and those used longest ago go first when there are too many.`

const pruneExample = `
  carronade system prune
  carronade system prune --builds 3
  carronade system prune --bytes 1GiB
  carronade system prune --all`

// systemCommand shows and bounds the cache of builds.
func (s *session) systemCommand() *cobra.Command {
	return command.Group("system", "builds of systems under test that are kept", systemLong, s.systemListCommand(), s.systemPruneCommand())
}

func (s *session) systemListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "the builds, what was used last first",
		Args: command.Args(0, 0, "nothing"),
		RunE: command.Run(func(*cobra.Command, []string) error {
			list, err := checkout.List("")
			if err != nil {
				return err
			}
			if asJSON {
				if list == nil {
					list = []checkout.Entry{}
				}
				return command.WriteJSON(s.out, list)
			}
			if len(list) == 0 {
				s.note("no build is kept; carronade run makes them: --system-git DIR --system-checkout REV --system-build CMD")
				return nil
			}
			buildsText(s.out, list)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// buildsText writes a line a build.
func buildsText(w io.Writer, list []checkout.Entry) {
	fmt.Fprintf(w, "%-12s  %-16s  %-16s  %10s  %s\n", "revision", "repository", "branch", "size", "used")
	for _, e := range list {
		note := ""
		switch {
		case e.Failed:
			note = "  failed"
		case e.InUse:
			note = "  in use"
		}
		fmt.Fprintf(w, "%-12.12s  %-16.16s  %-16.16s  %10s  %s%s\n", e.Revision, filepath.Base(e.Repository), e.Branch,
			units.FormatSize(e.Bytes), e.Used.Local().Format("2006-01-02 15:04"), note)
	}
}

func (s *session) systemPruneCommand() *cobra.Command {
	var (
		builds int
		bytes  string
		all    bool
	)
	cmd := &cobra.Command{
		Use: "prune", Short: "remove the builds used longest ago",
		Long: fmt.Sprintf(`Removes builds until the rest is within the bound, those used longest ago first,
and none that a run is using. Without flags the bound is the one that runs keep:
%d builds and %s.`, checkout.DefaultBound.Builds, units.FlagSize(checkout.DefaultBound.Bytes)),
		Example: pruneExample,
		Args:    command.Args(0, 0, "nothing"),
		RunE: command.Run(func(*cobra.Command, []string) error {
			bound, err := pruneBound(builds, bytes, all)
			if err != nil {
				return err
			}
			removed, n, err := checkout.Prune("", bound)
			if err != nil {
				return err
			}
			for _, e := range removed {
				fmt.Fprintf(s.out, "removed %.12s of %s, built %s\n", e.Revision, filepath.Base(e.Repository), e.Built.Local().Format(time.DateOnly))
				if e.Image != "" {
					s.note("its image %s is the engine's, and was left", e.Image)
				}
			}
			s.note("%d removed, %s freed", len(removed), units.FormatSize(n))
			return nil
		}),
	}
	cmd.Flags().IntVar(&builds, "builds", 0, "keep `N` builds at most")
	cmd.Flags().StringVar(&bytes, "bytes", "", "keep builds of this `SIZE` together at most")
	cmd.Flags().BoolVar(&all, "all", false, "keep none")
	return cmd
}

// pruneBound is how much is to be kept.
func pruneBound(builds int, bytes string, all bool) (checkout.Bound, error) {
	if all {
		if builds != 0 || bytes != "" {
			return checkout.Bound{}, &command.Words{Err: fmt.Errorf("--all keeps none, so --builds and --bytes say nothing"), Hint: "give one or the other"}
		}
		return checkout.Bound{Builds: -1, Bytes: -1}, nil
	}
	b := checkout.Bound{Builds: builds}
	if builds < 0 {
		return b, &command.Words{Err: fmt.Errorf("--builds: %d is less than none", builds), Hint: "--all keeps none"}
	}
	if bytes != "" {
		n, err := units.ParseSize(bytes)
		if err == nil && n <= 0 {
			err = fmt.Errorf("%s is nothing", bytes)
		}
		if err != nil {
			return b, &command.Words{Err: fmt.Errorf("--bytes: %w", err), Hint: "such as --bytes 1GiB; --all keeps none"}
		}
		b.Bytes = n
	}
	return b, nil
}
