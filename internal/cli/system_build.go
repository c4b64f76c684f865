package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/system"
	"carronade/protocol"
)

const systemBuildLong = `Checks out a revision of a repository and builds it, as carronade run does with
--system-git, --system-checkout and --system-build. Runs with the same settings
then use this build. The folder itself is only read: the revision is built in
a worktree in the user's cache folder.

Without --make nothing is built: the revision is only fetched and checked out.`

const systemBuildExample = `
  carronade system build server --checkout v8.19.0 --make make
  carronade system build server --fetch fork --checkout fork/fast --make make`

// systemBuildCommand returns the command that builds a revision without a run.
func (s *session) systemBuildCommand() *cobra.Command {
	var (
		o       system.BuildOrder
		verbose bool
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use: "build DIR", Short: "check out a revision and build it",
		Long: systemBuildLong, Example: systemBuildExample,
		Args: cmdutil.Args(1, 1, "the folder of a git repository"),
	}
	f := cmd.Flags()
	f.StringVar(&o.Fetch, "fetch", "", "fetch this `REMOTE` of the repository first")
	f.StringVar(&o.Revision, "checkout", "", "the `REVISION`: a branch, REMOTE/BRANCH, a tag or a commit (default: HEAD)")
	f.StringVar(&o.Branch, "branch", "", "the `NAME` of its branch (default: the branch that contains it)")
	f.StringVar(&o.Command, "make", "", "build it with `CMD`; {tree} is its folder, {image} a name for an image")
	f.DurationVar(&o.Within, "within", system.DefaultBuildWithin, "how long the build may take: a `DURATION`")
	f.BoolVarP(&verbose, "verbose", "v", false, "show what the build prints, on stderr")
	f.BoolVar(&asJSON, "json", false, "the result as JSON")
	cmd.RunE = cmdutil.Run(func(cmd *cobra.Command, args []string) error {
		if strings.HasPrefix(o.Fetch, "-") {
			return &protocol.Error{Err: fmt.Errorf("--fetch: %q is not the name of a remote", o.Fetch), Hint: "git remote lists them"}
		}
		o.Dir = args[0]
		o.Logf = s.note
		if verbose {
			o.Output = func(line string) { fmt.Fprintln(s.Err, line) }
		}
		b, err := system.MakeBuild(cmd.Context(), o)
		if err != nil {
			return err
		}
		defer b.Release()
		if asJSON {
			m := b.Map()
			m["tree"], m["cached"] = b.Tree, b.Cached
			delete(m, "unstaged_changes") // of a worktree of a revision
			return cmdutil.WriteJSON(s.out, m)
		}
		_, err = fmt.Fprintf(s.out, "branch    %s\nrevision  %s of %s\ntree      %s\n", cmp.Or(b.Branch, "none"), b.Revision, b.Date.UTC().Format(time.DateTime+" UTC"), b.Tree)
		if err != nil || o.Command == "" {
			return err
		}
		took := fmt.Sprintf("took %s", b.Took.Round(time.Millisecond))
		if b.Cached {
			took = "was built before"
		}
		_, err = fmt.Fprintf(s.out, "build     %s\n", took)
		return err
	})
	return cmd
}
