package system

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"carronade/internal/host"
	"carronade/internal/secret"
	"carronade/protocol"
)

// A BuildOrder is a revision to be checked out and built.
type BuildOrder struct {
	Dir      string // folder of the user's repository; it is only read
	Revision string // a branch, REMOTE/BRANCH, a tag or a commit; "" is HEAD
	Branch   string // its branch; "": Revision if it is a branch, else one that contains it
	Fetch    string // a remote of the repository to fetch from first; "": none
	// Command builds it: the shell runs it in the worktree. {revision},
	// {branch} and {image} are replaced. "": only the worktree is made.
	Command string
	Env     []string // NAME=VALUE in addition to those of this process

	Cache  string        // the cache folder; "" is the user's own
	Bound  CacheBound    // of the cache; zero fields mean those of DefaultCacheBound
	Within time.Duration // how long a build may take; 0 is DefaultBuildWithin

	Mask   *secret.Mask                     // of what is logged; nil: only what looks like a secret is hidden
	Output func(line string)                // gets the build's output, masked; may be nil
	Logf   func(format string, args ...any) // prints progress; may be nil

	// Launched is called as soon as the build's command was started, with a
	// function that kills it and all its group; may be nil.
	Launched func(kill func())
}

// DefaultBuildWithin is how long a build may take.
const DefaultBuildWithin = 30 * time.Minute

// maxErrorLines is how many of a failed build's last lines its error shows.
const maxErrorLines = 5

// A Build is a revision, built in its own worktree. The cache does not remove
// it before Release.
type Build struct {
	GitFacts
	Tree   string // the worktree
	Log    string // the file with the build's output; see BuildOutput
	Image  string // {image}: a name and tag for the revision, for a build that makes an image
	Cached bool   // it was built before
	Took   time.Duration

	printed  int64 // bytes that it printed; 0: unknown
	lockFile *os.File
}

// expand replaces {tree}, {revision}, {branch} and {image}.
func (b *Build) expand(s string) string {
	return strings.NewReplacer("{tree}", b.Tree, "{revision}", b.Revision, "{branch}", b.Branch, "{image}", b.Image).Replace(s)
}

// Release lets the cache remove the build. It may be called twice.
func (b *Build) Release() {
	if b.lockFile != nil {
		b.lockFile.Close()
		b.lockFile = nil
	}
}

// MakeBuild checks out a revision and builds it, or finds it built. If two runs need
// the same build at the same time, it is built once. A build that fails is an
// error with its last lines, and its output is stored.
func MakeBuild(ctx context.Context, o BuildOrder) (*Build, error) {
	if o.Mask == nil {
		o.Mask = new(secret.Mask)
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	o.Revision = cmp.Or(o.Revision, "HEAD")
	cache, err := cacheFolder(o.Cache)
	if err != nil {
		return nil, err
	}
	user, err := ReadGit(ctx, o.Dir)
	if err != nil {
		return nil, err
	}
	r, err := openRepo(ctx, cache, user.Dir)
	if err != nil {
		return nil, &protocol.Error{Doing: "use the repository in " + user.Dir, Err: err, Hint: "the cache is in " + cache + "; carronade system prune --all empties it"}
	}
	if o.Fetch != "" {
		o.Logf("fetching %s", o.Fetch)
		if err := r.fetch(ctx, o.Fetch); err != nil {
			return nil, err
		}
	}
	b := &Build{}
	b.Revision, b.Branch, err = r.resolve(ctx, o.Revision, o.Fetch)
	if err != nil {
		return nil, err
	}
	if b.Branch = cmp.Or(o.Branch, b.Branch); b.Branch == "" {
		b.Branch = branchWith(ctx, r.git, r.user, b.Revision)
	}
	if b.Date, err = dateOf(ctx, r.git, b.Revision); err != nil {
		return nil, &protocol.Error{Doing: "read the revision " + b.Revision, Err: err}
	}
	key := b.Revision[:12] + "-" + o.key(b.Branch)
	home := filepath.Join(r.home, key)
	b.Dir, b.Tree, b.Log = user.Dir, filepath.Join(home, "tree"), filepath.Join(home, "build.log")
	b.Image = "carronade-" + filepath.Base(r.home) + ":" + key
	o.Command = b.expand(o.Command)
	if err := b.make(ctx, &o, r, home); err != nil {
		b.Release()
		return nil, err
	}
	if _, _, err := PruneBuilds(cache, o.Bound); err != nil {
		o.Logf("the cache could not be pruned: %v", err)
	}
	return b, nil
}

// key distinguishes the builds of one revision: by the command, by its environment, and
// by the branch, if the command depends on it.
func (o *BuildOrder) key(branch string) string {
	parts := append([]string{o.Command}, o.Env...)
	if strings.Contains(o.Command, "{branch}") || strings.Contains(o.Command, branchEnv) {
		parts = append(parts, branch)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:4])
}

// branchEnv is the variable with the branch, for the build.
const branchEnv = "CARRONADE_BRANCH"

// make keeps the build's lock until Release: exclusively while it builds, then
// shared with others that use it.
func (b *Build) make(ctx context.Context, o *BuildOrder, r *repo, home string) error {
	for {
		b.Release()
		if err := os.MkdirAll(home, 0o755); err != nil {
			return fmt.Errorf("make the build's folder: %w", err)
		}
		name := filepath.Join(home, "lock")
		lockFile, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return fmt.Errorf("lock the build: %w", err)
		}
		b.lockFile = lockFile
		if err := waitLock(ctx, lockFile, true); err != nil {
			return err
		}
		if !isCurrent(lockFile, name) {
			continue // pruned in the meantime
		}
		if e, err := readEntry(home); err == nil && !e.Failed {
			b.Cached, b.Took, b.printed = true, e.Took, e.Printed
			e.touch()
			o.Logf("revision %.12s was built before", b.Revision)
			return nil
		}
		// It is not built: lock it exclusively, and then check again.
		if err := waitLock(ctx, lockFile, false); err != nil {
			return err
		}
		if e, err := readEntry(home); err == nil && !e.Failed || !isCurrent(lockFile, name) {
			continue
		}
		if err := b.build(ctx, o, r, home); err != nil {
			return err
		}
		return waitLock(ctx, lockFile, true)
	}
}

// isCurrent reports whether an open file is still the one with this name.
func isCurrent(f *os.File, name string) bool {
	a, err1 := f.Stat()
	b, err2 := os.Stat(name)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

func (b *Build) build(ctx context.Context, o *BuildOrder, r *repo, home string) error {
	start := time.Now()
	if err := b.checkOut(ctx, r); err != nil {
		return &protocol.Error{Doing: "check out revision " + b.Revision, Err: err, Hint: "the cache is in " + r.home + "; carronade system prune --all empties it"}
	}
	e := CachedBuild{
		Home: home, Repository: b.Dir, Branch: b.Branch, Revision: b.Revision, Date: b.Date,
		Command: o.Mask.Text(o.Command), Image: b.Image, Built: start,
	}
	if o.Command == "" || !strings.Contains(o.Command, b.Image) {
		e.Image = ""
	}
	if o.Command != "" {
		o.Logf("building revision %.12s", b.Revision)
		if err := b.command(ctx, o); err != nil {
			e.Failed, e.Took = true, time.Since(start)
			_ = os.RemoveAll(b.Tree)
			_ = e.write()
			return err
		}
	}
	b.Took = time.Since(start)
	e.Took, e.Printed = b.Took, b.printed
	e.Bytes = host.FolderSize(home)
	if err := e.write(); err != nil {
		return fmt.Errorf("keep the build: %w", err)
	}
	return nil
}

// checkOut creates the worktree anew.
func (b *Build) checkOut(ctx context.Context, r *repo) error {
	unlock, err := lock(ctx, filepath.Join(r.home, "repo.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.RemoveAll(b.Tree); err != nil {
		return err
	}
	if _, err := git(ctx, r.git, "worktree", "prune"); err != nil {
		return err
	}
	_, err = git(ctx, r.git, "-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false", "worktree", "add", "--quiet", "--force", "--detach", b.Tree, b.Revision)
	return err
}

// command runs the build, with its output masked into its log.
func (b *Build) command(ctx context.Context, o *BuildOrder) error {
	within := o.Within
	if within <= 0 {
		within = DefaultBuildWithin
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("it took longer than %v", within))
	defer cancel()
	log, err := os.OpenFile(b.Log, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("keep the build's output: %w", err)
	}
	defer log.Close()
	out := newBuildLog(log, maxLog, logEnd)
	var last []string
	words := host.Shell(o.Command)
	cmd := exec.Command(words[0], words[1:]...) //nolint:gosec,noctx // the user's command; killed below with all its group
	cmd.Dir = b.Tree
	cmd.Env = append(append(cleanEnv(host.Environ()), "CARRONADE_REVISION="+b.Revision, branchEnv+"="+b.Branch, "CARRONADE_IMAGE="+b.Image), o.Env...)
	child, err := host.StartChild(cmd, func(line string) {
		line = o.Mask.Text(o.Mask.WithoutCut(line, host.MaxLine))
		out.add(line)
		if last = append(last, line); len(last) > maxErrorLines {
			last = last[1:]
		}
		if o.Output != nil {
			o.Output(line)
		}
	})
	if err == nil {
		if o.Launched != nil {
			o.Launched(child.Kill)
		}
		select {
		case <-child.Done():
			err = child.Err()
		case <-ctx.Done():
			child.Terminate()
			select {
			case <-child.Done():
			case <-time.After(2 * time.Second):
			}
			child.Kill()
			<-child.Done()
			err = context.Cause(ctx)
		}
		// Processes that the build left running in its group would keep its
		// output open.
		child.Kill()
		select {
		case <-child.Drained():
		case <-time.After(5 * time.Second):
			return errors.New("build: a process that it started is still writing")
		}
	}
	b.printed = out.printed
	if e := out.finish(); err == nil {
		err = e
	}
	if err == nil {
		return nil
	}
	if len(last) > 0 {
		err = fmt.Errorf("%w; its last output: %s", err, strings.Join(last, " | "))
	}
	return &protocol.Error{Doing: fmt.Sprintf("build revision %.12s", b.Revision), Err: err, Hint: "its output is in " + b.Log}
}
