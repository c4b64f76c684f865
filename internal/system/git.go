package system

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"carronade/internal/host"
	"carronade/internal/secret"
	"carronade/protocol"
)

// git runs git in a folder and returns its output, without the last line end.
// It never prompts, and takes no optional lock: a plain `git status` would
// rewrite the index of the user's folder.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...) //nolint:gosec // arguments, not a shell's text
	cmd.Env = append(cleanEnv(host.Environ()), "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "SSH_ASKPASS=true", "LC_ALL=C")
	cmd.WaitDelay = time.Second
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("git %s: %w", args[0], ctx.Err())
		}
		var m secret.Mask
		if text := strings.TrimSpace(words.String()); text != "" {
			lines := strings.Split(m.Text(text), "\n")
			return "", fmt.Errorf("git %s: %s", args[0], strings.Join(lines[max(0, len(lines)-3):], "; "))
		}
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

// cleanEnv removes the variables that would make git use another repository than
// the folder's: a run may be started from a hook.
func cleanEnv(env []string) []string {
	out := make([]string, 0, len(env))
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX":
		default:
			out = append(out, e)
		}
	}
	return out
}

// GitFacts describe the revision of a folder.
type GitFacts struct {
	Dir       string
	Branch    string    // for a detached HEAD one that contains it; "" if none does
	Revision  string    // the commit's full name
	Date      time.Time // when it was committed
	Dirty     bool      // tracked files differ from the revision, staged or not
	Untracked int       // files that git neither tracks nor ignores
}

// ReadGit reads the git state of the folder dir. It changes nothing there. A
// folder that is missing, is not in a repository or has no commit is a
// *protocol.Error.
func ReadGit(ctx context.Context, dir string) (GitFacts, error) {
	f := GitFacts{Dir: dir}
	fail := func(err error, hint string) (GitFacts, error) {
		return GitFacts{}, &protocol.Error{Doing: "read the git folder " + dir, Err: err, Hint: hint}
	}
	if _, err := exec.LookPath("git"); err != nil {
		return fail(errors.New("git is not installed"), "install git, or leave out --system-git")
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		f.Dir = abs
		var st os.FileInfo
		if st, err = os.Stat(abs); err == nil && !st.IsDir() {
			err = errors.New("it is a file")
		}
	}
	if err != nil {
		return fail(host.Reason(err), "give the folder of a git repository: --system-git DIR")
	}
	out, err := git(ctx, f.Dir, "status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--ignore-submodules=none")
	if err != nil {
		return fail(err, "give the folder of a git repository: --system-git DIR")
	}
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "# branch.oid "):
			f.Revision = strings.TrimPrefix(line, "# branch.oid ")
		case strings.HasPrefix(line, "# branch.head "):
			f.Branch = strings.TrimPrefix(line, "# branch.head ")
		case strings.HasPrefix(line, "? "):
			f.Untracked++
		case line != "" && line[0] != '#':
			f.Dirty = true
		}
	}
	if f.Branch == "(detached)" {
		f.Branch = branchWith(ctx, f.Dir, f.Dir, f.Revision)
	}
	if f.Revision == "" || f.Revision == "(initial)" {
		return fail(errors.New("it has no commit yet"), "commit what you want to test")
	}
	if f.Date, err = dateOf(ctx, f.Dir, f.Revision); err != nil {
		return fail(err, "")
	}
	return f, nil
}

func dateOf(ctx context.Context, dir, revision string) (time.Time, error) {
	out, err := git(ctx, dir, "show", "--no-patch", "--no-show-signature", "--format=%cI", revision, "--")
	if err != nil {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339, out)
	if err != nil {
		return time.Time{}, fmt.Errorf("git printed an invalid date: %w", err)
	}
	return t, nil
}

// Map returns the facts for a report: branch, revision, revision_date and
// unstaged_changes.
func (f *GitFacts) Map() map[string]any {
	m := map[string]any{
		"revision":         f.Revision,
		"revision_date":    f.Date.UTC().Format(time.RFC3339),
		"unstaged_changes": f.Dirty,
	}
	if f.Branch != "" {
		m["branch"] = f.Branch
	}
	return m
}

// GitRemotes are the names of the remotes of the repository in a folder; none if it is
// not a repository.
func GitRemotes(ctx context.Context, dir string) []string {
	out, err := git(ctx, dir, "remote")
	if err != nil {
		return nil
	}
	return strings.Fields(out)
}

// GitBranches are the names of the branches of the repository in a folder, and of its remotes as REMOTE/BRANCH;
// none if it is not a repository.
func GitBranches(ctx context.Context, dir string) []string {
	out, err := git(ctx, dir, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads", "refs/remotes")
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(strings.Fields(out), func(name string) bool { return strings.HasSuffix(name, "/HEAD") })
}

// DescribeCommit describes a revision of the repository in a folder in one line: its short name
// and the first line of its message.
func DescribeCommit(ctx context.Context, dir, revision string) (string, error) {
	return git(ctx, dir, "log", "-1", "--oneline", "--no-decorate", "--no-color", "--no-show-signature", "--end-of-options", revision, "--")
}

// ResolveCommit returns the full name of the commit that a branch, a tag or a short name of the
// repository in a folder means.
func ResolveCommit(ctx context.Context, dir, revision string) (string, error) {
	return git(ctx, dir, "rev-parse", "--quiet", "--verify", "--end-of-options", revision+"^{commit}")
}
