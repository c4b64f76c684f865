package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
)

func (s *session) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "which build this is",
		Long: `Which build this is: the version, the commit, the version of Go and the
platform; as JSON also the modules that the program contains.`,
		Args: cmdutil.Args(0, 0, "nothing"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := thisBuild()
			if asJSON {
				return cmdutil.WriteJSON(cmd.OutOrStdout(), b)
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "carronade", b)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// A buildInfo is what the Go toolchain recorded about a build.
type buildInfo struct {
	Version  string        `json:"version"` // devel outside a repository
	Commit   string        `json:"commit,omitempty"`
	Time     string        `json:"time,omitempty"`     // of the commit
	Modified bool          `json:"modified,omitempty"` // built from files that differ from the commit
	Go       string        `json:"go"`
	Platform string        `json:"platform"` // GOOS/GOARCH
	Modules  []buildModule `json:"modules"`
}

type buildModule struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Sum     string `json:"sum,omitempty"` // as in go.sum
}

func thisBuild() buildInfo {
	b := buildInfo{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Modules: []buildModule{}}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Modules = append(b.Modules, buildModule{Path: m.Path, Version: m.Version, Sum: m.Sum})
	}
	return b
}

// String is one line, with a short commit.
func (b buildInfo) String() string {
	revision := ""
	if len(b.Commit) >= 12 {
		revision = " " + b.Commit[:12]
	}
	if b.Modified {
		revision += "+changes"
	}
	return fmt.Sprintf("%s%s %s %s", b.Version, revision, b.Go, b.Platform)
}

// version names this build in one line.
func version() string { return thisBuild().String() }
