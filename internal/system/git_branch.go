package system

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
)

// branchWith names the branch of a revision that was not given as a branch: one that
// contains it, "" if none does. Of several it is the default branch; without that one,
// the branch with the fewest commits after the revision (none, if the revision is its
// head), a branch of the folder before one of a remote, and the first by name. Of very
// many branches, an old git counts the commits of the oldest only.
//
// dir is the repository with the branches, user the folder that knows which branch is
// its remotes' default.
func branchWith(ctx context.Context, dir, user, revision string) string {
	// The oldest heads first: a branch that ends soon after the revision ends early.
	out, err := git(ctx, dir, "for-each-ref", "--contains", revision, "--sort=committerdate", "--format=%(objectname) %(refname)", "refs/heads", usersRemotes, fetched)
	if err != nil || out == "" {
		return ""
	}
	var all []branch
	for line := range strings.SplitSeq(out, "\n") {
		head, ref, _ := strings.Cut(line, " ")
		if name, ok := strings.CutPrefix(ref, "refs/heads/"); ok {
			all = append(all, branch{head, ref, name, false})
			continue
		}
		name := afterSlash(strings.TrimPrefix(strings.TrimPrefix(ref, usersRemotes), fetched))
		if name != "HEAD" { // another name of the remote's default branch
			all = append(all, branch{head, ref, name, true})
		}
	}
	for _, name := range defaultBranches(ctx, user) {
		if slices.ContainsFunc(all, func(b branch) bool { return b.name == name }) {
			return name
		}
	}
	after := commitsAfter(ctx, dir, revision, all)
	all = slices.DeleteFunc(all, func(b branch) bool { _, ok := after[b.ref]; return !ok })
	if len(all) == 0 {
		return ""
	}
	return slices.MinFunc(all, func(a, b branch) int {
		of := func(b branch) int {
			if b.remote {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(after[a.ref], after[b.ref]), cmp.Compare(of(a), of(b)), strings.Compare(a.name, b.name))
	}).name
}

// A branch contains the revision.
type branch struct {
	head, ref, name string
	remote          bool
}

// mostCounted is of how many branches the commits are counted by a git that counts
// those of one at a time.
const mostCounted = 50

// commitsAfter counts the commits of branches after the revision; if one is the
// revision itself, or git is old, not those of all.
func commitsAfter(ctx context.Context, dir, revision string, all []branch) map[string]int {
	after := map[string]int{}
	for _, b := range all {
		if b.head == revision {
			after[b.ref] = 0
		}
	}
	if len(after) > 0 {
		return after
	}
	// Since git 2.41 one command counts all.
	if out, err := git(ctx, dir, "for-each-ref", "--contains", revision, "--format=%(refname) %(ahead-behind:"+revision+")", "refs/heads", usersRemotes, fetched); err == nil {
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) == 3 { // the reference, and how many it is ahead and behind
				after[f[0]], _ = strconv.Atoi(f[1])
			}
		}
		return after
	}
	for _, b := range all[:min(len(all), mostCounted)] {
		if text, err := git(ctx, dir, "rev-list", "--count", revision+".."+b.ref); err == nil {
			after[b.ref], _ = strconv.Atoi(text)
		}
	}
	return after
}

// defaultBranches are the names that the default branch of a folder's repository may
// have, the surest first: that of its remote, and the usual names.
func defaultBranches(ctx context.Context, user string) []string {
	var out []string
	if ref, err := git(ctx, user, "symbolic-ref", "--quiet", fetched+"origin/HEAD"); err == nil {
		out = append(out, strings.TrimPrefix(ref, fetched+"origin/"))
	}
	return append(out, "main", "master")
}
