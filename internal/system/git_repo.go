package system

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"carronade/protocol"
)

// A repo is the cache's repository for one of the user's: it uses the user's
// objects and copies the user's branches and tags, so that any revision can be
// checked out without changing a file of the user's.
type repo struct {
	user string // the user's folder
	home string // in the cache: repo.git, and a folder for each build
	git  string // home/repo.git
}

// fetched is the prefix of references that were fetched from remotes. The
// user's own branches are in refs/heads, tags in refs/tags.
const fetched = "refs/remotes/"

// usersRemotes is the prefix of the remote branches that the user's repository knows.
const usersRemotes = "refs/user/"

// openRepo creates or updates the cache's repository for the user's folder dir.
func openRepo(ctx context.Context, cache, dir string) (*repo, error) {
	common, err := git(ctx, dir, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return nil, err
	}
	top, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		top = strings.TrimSuffix(common, "/.git") // a bare repository has no top level
	}
	sum := sha256.Sum256([]byte(common))
	home := filepath.Join(cache, safeName(strings.TrimSuffix(filepath.Base(top), ".git"))+"-"+hex.EncodeToString(sum[:4]))
	r := &repo{user: dir, home: home, git: filepath.Join(home, "repo.git")}
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache's folder: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(home, "repo.lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if _, err := os.Stat(filepath.Join(r.git, "HEAD")); err != nil {
		if err := os.RemoveAll(r.git); err != nil {
			return nil, err
		}
		// No template: the user's may contain hooks, which would run at
		// checkouts.
		if _, err := git(ctx, home, "init", "--quiet", "--bare", "--template=", r.git); err != nil {
			return nil, err
		}
	}
	if err := r.useObjects(common); err != nil {
		return nil, err
	}
	if _, err := git(ctx, r.git, "fetch", "--quiet", "--prune", "--force", "--no-write-fetch-head", "--no-auto-maintenance", common,
		"+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*", "+refs/remotes/*:"+usersRemotes+"*"); err != nil {
		return nil, err
	}
	return r, nil
}

// useObjects lets the cache's repository find the user's objects, and the end
// of the user's history if it is shallow.
func (r *repo) useObjects(common string) error {
	info := filepath.Join(r.git, "objects", "info")
	if err := os.MkdirAll(info, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(info, "alternates"), []byte(filepath.Join(common, "objects")+"\n"), 0o644); err != nil {
		return err
	}
	shallow, err := os.ReadFile(filepath.Join(common, "shallow"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.git, "shallow"), shallow, 0o644)
}

// fetch gets the branches and tags of one of the user's remotes into the
// cache's repository. The remote's address may contain a login, which no error
// shows.
func (r *repo) fetch(ctx context.Context, remote string) error {
	doing := "fetch the remote " + remote
	address, err := git(ctx, r.user, "remote", "get-url", remote)
	if err != nil {
		names, _ := git(ctx, r.user, "remote")
		hint := "the repository has no remotes; add one with git remote add"
		if names != "" {
			hint = "the repository's remotes are " + strings.ReplaceAll(names, "\n", ", ")
		}
		return &protocol.Error{Doing: doing, Err: errors.New("the repository has no such remote"), Hint: hint}
	}
	if !strings.Contains(address, ":") && !filepath.IsAbs(address) {
		address = filepath.Join(r.user, address)
	}
	unlock, err := lock(ctx, filepath.Join(r.home, "repo.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := git(ctx, r.git, "fetch", "--quiet", "--prune", "--force", "--no-write-fetch-head", "--no-auto-maintenance", "--tags", address,
		"+refs/heads/*:"+fetched+remote+"/*"); err != nil {
		return &protocol.Error{Doing: doing, Err: err, Hint: "try git fetch " + remote + " in that folder: it must work without a prompt"}
	}
	return nil
}

// resolve finds the commit of rev, and the branch's name without its remote.
// References that were fetched for this run take precedence over those of the
// user's repository.
func (r *repo) resolve(ctx context.Context, rev, remote string) (revision, branch string, err error) {
	if strings.HasPrefix(rev, "-") {
		return "", "", &protocol.Error{Doing: "find the revision " + rev, Err: errors.New("a revision does not begin with a dash"), Hint: "give a branch, a tag or a commit"}
	}
	tries := []struct{ ref, branch string }{}
	if remote != "" {
		short := strings.TrimPrefix(rev, remote+"/")
		tries = append(tries, struct{ ref, branch string }{fetched + remote + "/" + short, short})
	}
	tries = append(tries, struct{ ref, branch string }{"refs/heads/" + rev, rev}, struct{ ref, branch string }{fetched + rev, afterSlash(rev)},
		struct{ ref, branch string }{usersRemotes + rev, afterSlash(rev)}, struct{ ref, branch string }{rev, ""})
	for _, t := range tries {
		out, err := git(ctx, r.git, "rev-parse", "--quiet", "--verify", "--end-of-options", t.ref+"^{commit}")
		if err == nil && out != "" {
			return out, t.branch, nil
		}
	}
	if rev == "HEAD" || strings.HasPrefix(rev, "HEAD~") || strings.HasPrefix(rev, "HEAD^") || strings.HasPrefix(rev, "@") {
		// The HEAD of the user's folder: the cache's repository has none.
		out, err := git(ctx, r.user, "rev-parse", "--quiet", "--verify", "--end-of-options", rev+"^{commit}")
		if err == nil && out != "" {
			branch := ""
			if rev == "HEAD" || rev == "@" {
				branch, _ = git(ctx, r.user, "symbolic-ref", "--quiet", "--short", "HEAD")
			}
			return out, branch, nil
		}
	}
	return "", "", &protocol.Error{
		Doing: "find the revision " + rev, Err: errors.New("the repository in " + r.user + " has no such branch, tag or commit"),
		Hint: "a branch of a remote is REMOTE/BRANCH; add --system-fetch REMOTE to get what is new there",
	}
}

// afterSlash returns a remote branch's name without its remote.
func afterSlash(s string) string {
	if _, after, ok := strings.Cut(s, "/"); ok {
		return after
	}
	return s
}

// safeName returns a name that is valid for files and for images.
func safeName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name)
	name = strings.Trim(name, "-._")
	if name == "" {
		return "system"
	}
	return name[:min(len(name), 40)]
}
