package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"carronade/internal/serve/jobs"
	"carronade/internal/system"
)

// change is apm switch: it records the branch and the revision to test. With -c, -m
// or -u it builds them as a job.
func (s *session) change(kind string, args []string) error {
	v := s.system[kind]
	if v.Dir == "" {
		return hinted(errors.New("no repository is in use"), useHint(kind)+" with a folder")
	}
	flags, words, err := switchFlags(args)
	if err != nil || len(words) < 1 || len(words) > 2 {
		if err != nil {
			return err
		}
		return s.usage([]string{kind})
	}
	if len(words) == 2 && words[0] == words[1] {
		return errors.New("the branch and the revision are the same")
	}
	ctx, cancel := s.soonCtx()
	defer cancel()
	facts, err := system.ReadGit(ctx, v.Dir)
	if err != nil {
		return err
	}
	remotes := system.GitRemotes(ctx, v.Dir)
	remote, branch := "", words[0]
	if before, after, ok := strings.Cut(words[0], "/"); ok && (slices.Contains(remotes, before) || slices.Contains(knownRemotes, before)) {
		remote, branch = before, after
	}
	c := change{Branch: branch}
	if len(words) == 2 {
		c.Revision = words[1]
	}
	if v.Docker {
		flags = map[rune]bool{'f': flags['f'] || remote != "", 'c': true, 'm': true, 'v': flags['v']}
	}
	build := []string{"system", "build", v.Dir, "--branch", branch}
	if flags['f'] {
		remote = cmp.Or(remote, "origin")
		if !slices.Contains(remotes, remote) {
			return hinted(fmt.Errorf("the repository has no remote %s", remote), remoteHint(v.Dir, remote))
		}
		build = append(build, "--fetch", remote)
	}
	switch {
	case c.Revision != "" && flags['c']:
		c.Checkout = c.Revision
	case flags['c'] && remote != "":
		c.Checkout = remote + "/" + branch
	case flags['c']:
		c.Checkout = branch
	case flags['m'] || flags['u']:
		c.Checkout = facts.Revision
	}
	if !flags['c'] && c.Revision != "" && !strings.HasPrefix(facts.Revision, c.Revision) {
		return hinted(fmt.Errorf("the current tree is at %.12s and not at %s", facts.Revision, cut(c.Revision, 40)), kind+" switch -c checks it out")
	}
	if kind != "apm" && v.Cmd == "" && c.Checkout != "" {
		return hinted(errors.New("nothing says how to start a build"), kind+" use URL DIR --cmd CMD")
	}
	if c.Build = v.build(flags); c.Build != "" {
		build = append(build, "--make", c.Build)
	}
	if c.Checkout != "" {
		build = append(build, "--checkout", c.Checkout)
	}
	if flags['v'] {
		build = append(build, "-v")
	}
	if !flags['f'] && !s.isBranch(ctx, v.Dir, cmp.Or(remote, "origin"), branch) {
		return hinted(fmt.Errorf("the repository has no branch %s", cut(words[0], 60)), kind+" switch -f fetches branches")
	}
	changed := *v
	changed.Switch, changed.Before, changed.Switching = c, c, nil
	if c.Checkout != "" || flags['f'] {
		job, err := s.submitted(jobs.Request{System: s.systemOf(kind), Typed: typed(append([]string{kind, "switch"}, args...)), Args: build})
		if err != nil {
			return err
		}
		changed.Before, changed.Switching = s.tested(v)
		changed.Switching = append(changed.Switching, switching{job.ID, c})
	}
	s.system[kind] = &changed
	if err := s.home.save(kind, &changed); err != nil || len(changed.Switching) > 0 {
		return err
	}
	s.say("using %s", s.branchLine(&changed))
	return nil
}

// isBranch reports whether a repository has a branch, of its own or of a remote.
func (s *session) isBranch(ctx context.Context, dir, remote, name string) bool {
	for _, ref := range []string{name, remote + "/" + name} {
		if _, err := system.ResolveCommit(ctx, dir, ref); err == nil {
			return true
		}
	}
	return false
}

// tested is what the last switch that ended has set, nothing if it failed, and those that have not
// ended.
func (s *session) tested(v *server) (now change, open []switching) {
	if len(v.Switching) == 0 {
		return v.Before, nil
	}
	ctx, cancel := s.soonCtx()
	defer cancel()
	list, err := s.Queue.Jobs(ctx, jobs.Filter{})
	if err != nil {
		return v.Before, v.Switching
	}
	now = v.Before
	for i, w := range v.Switching {
		at := slices.IndexFunc(list, func(j jobs.Job) bool { return j.ID == w.Job })
		switch {
		case at < 0 || list[at].State == jobs.Done && list[at].Exit == 0: // the queue forgets jobs that ended long ago
			now = w.To
		case list[at].State == jobs.Queued || list[at].State == jobs.Running:
			return now, v.Switching[i:]
		default:
			now = change{}
		}
	}
	return now, nil
}

// knownRemotes are those that the tool added to the repository.
var knownRemotes = []string{"axw", "graphaelli", "jalvz", "roncohen", "simitt"}

func remoteHint(dir, remote string) string {
	if slices.Contains(knownRemotes, remote) {
		return "git -C " + dir + " remote add " + remote + " https://github.com/" + remote + "/apm-server.git"
	}
	return "git -C " + dir + " remote add " + remote + " URL"
}

// switchFlags reads the flags of apm switch. Letters may be joined: -fcm.
func switchFlags(args []string) (flags map[rune]bool, words []string, err error) {
	flags = map[rune]bool{}
	long := map[string]rune{"--fetch": 'f', "--checkout": 'c', "--make-update": 'u', "--make": 'm', "--verbose": 'v'}
	for _, a := range args {
		switch letter, ok := long[a]; {
		case ok:
			flags[letter] = true
		case strings.HasPrefix(a, "-") && len(a) > 1:
			for _, r := range a[1:] {
				if !strings.ContainsRune("fcumv", r) {
					return nil, nil, fmt.Errorf("apm switch has no flag %s: it has -f -c -u -m -v", cut(a, 40))
				}
				flags[r] = true
			}
		default:
			words = append(words, a)
		}
	}
	return flags, words, nil
}

// build is the command that builds a checked-out revision, "" if none does.
func (v *server) build(flags map[rune]bool) string {
	makes := v.Make
	switch {
	case v.Docker && makes == "":
		return dockerMake
	case v.Docker:
		return makes
	case makes == "":
		makes = defaultMake
	}
	switch {
	case flags['u'] && flags['m']:
		return updateMake + " && " + makes
	case flags['u']:
		return updateMake
	case flags['m']:
		return makes
	}
	return ""
}
