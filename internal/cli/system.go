package cli

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/system"
	"carronade/protocol"
	"carronade/units"
)

const systemLong = `Builds of systems under test, which carronade run keeps by revision
(--system-git, --system-checkout, --system-build). They are in the user's cache
folder; when there are too many, the least recently used are removed first.`

const pruneExample = `
  carronade system prune
  carronade system prune --builds 3
  carronade system prune --bytes 1GiB
  carronade system prune --all`

// systemCommand returns the command that lists and prunes cached builds.
func (s *session) systemCommand() *cobra.Command {
	return cmdutil.Group("system", "cached builds of systems under test", systemLong, s.systemBuildCommand(), s.systemListCommand(), s.systemPruneCommand())
}

func (s *session) systemListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "list the builds, most recently used first",
		Args: cmdutil.Args(0, 0, "nothing"),
		RunE: cmdutil.Run(func(*cobra.Command, []string) error {
			list, err := system.CachedBuilds("")
			if err != nil {
				return err
			}
			if asJSON {
				if list == nil {
					list = []system.CachedBuild{}
				}
				return cmdutil.WriteJSON(s.out, list)
			}
			if len(list) == 0 {
				s.note("there are no builds; carronade run makes them: --system-git DIR --system-checkout REV --system-build CMD")
				return nil
			}
			buildsText(s.out, list)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// buildsText writes one line per build. If some builds made images, those are in the
// last column: images with their revisions.
func buildsText(w io.Writer, list []system.CachedBuild) {
	images := slices.ContainsFunc(list, func(e system.CachedBuild) bool { return e.Image != "" })
	column := ""
	if images {
		column = "              image" // after the time
	}
	fmt.Fprintf(w, "%-12s  %-16s  %-16s  %10s  %s%s\n", "revision", "repository", "branch", "size", "used", column)
	for _, e := range list {
		note := ""
		switch {
		case e.Failed:
			note = "  failed"
		case e.InUse:
			note = "  in use"
		}
		image := ""
		if images {
			image = "  " + cmp.Or(e.Image, "-")
		}
		fmt.Fprintf(w, "%-12.12s  %-16.16s  %-16.16s  %10s  %s%s%s\n", e.Revision, filepath.Base(e.Repository), e.Branch,
			units.FormatSize(e.Bytes), e.Used.Local().Format("2006-01-02 15:04"), image, note)
	}
}

func (s *session) systemPruneCommand() *cobra.Command {
	var (
		builds int
		bytes  string
		all    bool
	)
	cmd := &cobra.Command{
		Use: "prune", Short: "remove the least recently used builds",
		Long: fmt.Sprintf(`Removes builds until the rest is within the limit, the least recently used
first, and none that a run is using. Without flags the limit is the one that
runs use: %d builds and %s.`, system.DefaultCacheBound.Builds, units.FlagSize(system.DefaultCacheBound.Bytes)),
		Example: pruneExample,
		Args:    cmdutil.Args(0, 0, "nothing"),
		RunE: cmdutil.Run(func(*cobra.Command, []string) error {
			bound, err := pruneBound(builds, bytes, all)
			if err != nil {
				return err
			}
			removed, n, err := system.PruneBuilds("", bound)
			if err != nil {
				return err
			}
			for _, e := range removed {
				fmt.Fprintf(s.out, "removed %.12s of %s, built %s\n", e.Revision, filepath.Base(e.Repository), e.Built.Local().Format(time.DateOnly))
				if e.Image != "" {
					s.note("its image %s belongs to the container engine and was kept", e.Image)
				}
			}
			s.note("%d removed, %s freed", len(removed), units.FormatSize(n))
			return nil
		}),
	}
	cmd.Flags().IntVar(&builds, "builds", 0, "keep at most `N` builds")
	cmd.Flags().StringVar(&bytes, "bytes", "", "keep builds of at most this total `SIZE`")
	cmd.Flags().BoolVar(&all, "all", false, "keep none")
	return cmd
}

// pruneBound returns the cache limit that the flags set.
func pruneBound(builds int, bytes string, all bool) (system.CacheBound, error) {
	if all {
		if builds != 0 || bytes != "" {
			return system.CacheBound{}, &protocol.Error{Err: fmt.Errorf("--all cannot be combined with --builds or --bytes"), Hint: "give one or the other"}
		}
		return system.CacheBound{Builds: -1, Bytes: -1}, nil
	}
	b := system.CacheBound{Builds: builds}
	if builds < 0 {
		return b, &protocol.Error{Err: fmt.Errorf("--builds: %d is negative", builds), Hint: "--all keeps none"}
	}
	if bytes != "" {
		n, err := units.ParseSize(bytes)
		if err == nil && n <= 0 {
			err = fmt.Errorf("%s is not above 0", bytes)
		}
		if err != nil {
			return b, &protocol.Error{Err: fmt.Errorf("--bytes: %w", err), Hint: "such as --bytes 1GiB; --all keeps none"}
		}
		b.Bytes = n
	}
	return b, nil
}
