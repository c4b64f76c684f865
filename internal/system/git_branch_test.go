package system

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/internal/host"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// The branch of a revision that several contain is the default branch, else the one
// whose head is nearest.
func TestBranchOfARevision(t *testing.T) {
	upstream := project(t)
	first := sh(t, upstream, "rev-parse", "HEAD")
	sh(t, upstream, "checkout", "--quiet", "-b", "feature/x")
	second := commit(t, upstream, "second")
	sh(t, upstream, "checkout", "--quiet", "-b", "release")
	third := commit(t, upstream, "third")
	sh(t, upstream, "branch", "also-release")
	sh(t, upstream, "checkout", "--quiet", "-b", "later")
	commit(t, upstream, "fourth")
	sh(t, upstream, "checkout", "--quiet", "--detach")
	lost := commit(t, upstream, "lost")
	sh(t, upstream, "tag", "lost")

	trunk := filepath.Join(t.TempDir(), "trunk") // a clone whose remote has another default branch, and no local main
	sh(t, upstream, "checkout", "--quiet", "release")
	sh(t, t.TempDir(), "clone", "--quiet", upstream, trunk)

	for _, tt := range []struct {
		name, dir, revision, given, want string
	}{
		{"the default branch contains it", upstream, first, "", "main"},
		{"the head of one, in others", upstream, second, "", "feature/x"},
		{"the head of two", upstream, third, "", "also-release"},
		{"in none", upstream, lost, "", ""},
		{"given", upstream, first, "mine", "mine"},
		{"the remote's default branch", trunk, first, "", "release"},
		{"a remote branch", trunk, sh(t, upstream, "rev-parse", "later"), "", "later"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := MakeBuild(t.Context(), BuildOrder{Dir: tt.dir, Revision: tt.revision, Branch: tt.given, Cache: t.TempDir()})
			assert.OK(t, err)
			b.Release()
			assert.True(t, b.Branch == tt.want && b.Revision == tt.revision,
				"got %.12s of %q, want %.12s of %q", b.Revision, b.Branch, tt.revision, tt.want)
			has := b.Map()["branch"]
			assert.True(t, tt.want == "" || has == tt.want, "got the fact %v, want %q", has, tt.want)
		})
	}
}

// A build whose command depends on the branch is made once for each branch; another is
// shared.
func TestBuildOfAnotherBranch(t *testing.T) {
	t.Setenv(host.OwnEnv+"HEY_APM_1", canary)
	dir, cache := project(t), t.TempDir()
	for _, tt := range []struct {
		command string
		want    string // what the build of the second branch wrote
	}{
		{"echo {branch} >out", "second"},
		{`echo "$CARRONADE_BRANCH" >out`, "second"},
		{"env >out", "first"},
	} {
		var text []byte
		for _, branch := range []string{"first", "second"} {
			b, err := MakeBuild(t.Context(), BuildOrder{Dir: dir, Branch: branch, Command: tt.command, Cache: cache})
			assert.OK(t, err)
			text, err = os.ReadFile(filepath.Join(b.Tree, "out"))
			b.Release()
			assert.OK(t, err)
		}
		if got := string(text); !strings.Contains(got, tt.want) || strings.Contains(got, canary) {
			t.Errorf("%s: got %q, want %q", tt.command, got, tt.want)
		}
	}
}

// A revision in very many branches needs few calls of git, also of one that counts the
// commits of one branch at a time.
func TestBranchOfManyBranches(t *testing.T) {
	git := testkit.Program(t, "git")
	dir := project(t)
	first := sh(t, dir, "rev-parse", "HEAD")
	sh(t, dir, "checkout", "--quiet", "-b", "near")
	commit(t, dir, "second")
	sh(t, dir, "checkout", "--quiet", "-b", "far")
	commit(t, dir, "third")
	far := sh(t, dir, "rev-parse", "HEAD")
	for i := range 300 {
		write(t, filepath.Join(dir, ".git", "refs", "heads", fmt.Sprintf("b%03d", i)), far+"\n")
	}
	sh(t, dir, "branch", "--quiet", "-D", "main")
	// This git answers %(ahead-behind) if it is new, else it fails as an old one does.
	for _, isNew := range []bool{false, true} {
		bin, calls := t.TempDir(), filepath.Join(t.TempDir(), "calls")
		script := "#!/bin/sh\necho call >>'" + calls + "'\ncase \"$*\" in *ahead-behind*)\n"
		if isNew {
			script += "echo 'refs/heads/near 1 0'; echo 'refs/heads/far 2 0'; exit 0;;\nesac\n"
		} else {
			script += "echo 'fatal: unknown field name: ahead-behind' >&2; exit 128;;\nesac\n"
		}
		script += "exec '" + git + "' \"$@\"\n"
		assert.OK(t, os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755))
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		got := branchWith(t.Context(), dir, dir, first)
		text := assert.Value(os.ReadFile(calls))(t)
		if n := strings.Count(string(text), "call"); n > 60 || isNew && n > 5 || !isNew && got == "" || isNew && got != "near" {
			t.Errorf("new: %v: got %q after %d calls", isNew, got, n)
		}
	}
}
