package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"carronade/internal/secret"
	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// canary is a secret that must not appear anywhere.
const canary = "kestrel-5519"

// sh runs git in a folder, with a fixed author.
func sh(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(testkit.Program(t, "git"), append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = append(cleanEnv(os.Environ()), "GIT_CONFIG_NOSYSTEM=1", "GIT_COMMITTER_DATE=2018-05-18T10:21:00+02:00")
	out, err := cmd.CombinedOutput()
	assert.OK(t, err, "git %v: %s", args, out)
	return strings.TrimSpace(string(out))
}

func write(t testing.TB, name, text string) {
	t.Helper()
	assert.OK(t, os.MkdirAll(filepath.Dir(name), 0o755))
	assert.OK(t, os.WriteFile(name, []byte(text), 0o644))
}

// project creates a repository with a file that names its commit.
func project(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "My Server")
	write(t, filepath.Join(dir, "which"), "first\n")
	sh(t, dir, "init", "--quiet")
	sh(t, dir, "add", ".")
	sh(t, dir, "commit", "--quiet", "-m", "first")
	return dir
}

func commit(t testing.TB, dir, text string) string {
	t.Helper()
	write(t, filepath.Join(dir, "which"), text+"\n")
	sh(t, dir, "commit", "--quiet", "-am", text)
	return sh(t, dir, "rev-parse", "HEAD")
}

func TestRead(t *testing.T) {
	dir := project(t)
	head := sh(t, dir, "rev-parse", "HEAD")
	index, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
	assert.OK(t, err)
	// If a file looks modified, a plain git status would rewrite the index.
	assert.OK(t, os.Chtimes(filepath.Join(dir, "which"), time.Now(), time.Unix(1_500_000_000, 0)))
	f := assert.Value(ReadGit(t.Context(), filepath.Join(dir, ".")))(t)
	assert.True(t, f.Branch == "main" && f.Revision == head && !f.Dirty && f.Untracked == 0, "got %+v, want main at %s, clean", f, head)
	want := time.Date(2018, 5, 18, 8, 21, 0, 0, time.UTC)
	assert.True(t, f.Date.Equal(want), "got the date %v, want %v", f.Date, want)
	m := f.Map()
	assert.True(t, m["branch"] == "main" && m["revision"] == head && m["revision_date"] == "2018-05-18T08:21:00Z" &&
		m["unstaged_changes"] == false, "got %v", m)
	write(t, filepath.Join(dir, "new"), "x")
	if f, err = ReadGit(t.Context(), dir); err != nil || f.Dirty || f.Untracked != 1 {
		t.Errorf("got %+v, %v with a new file, want one untracked and not dirty", f, err)
	}
	write(t, filepath.Join(dir, "which"), "changed")
	f, err = ReadGit(t.Context(), dir)
	assert.True(t, err == nil && f.Dirty, "got %+v, %v with a change, want dirty", f, err)
	after, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
	assert.True(t, err == nil && string(after) == string(index), "reading rewrote the user's index")
	sh(t, dir, "stash", "--quiet")
	sh(t, dir, "checkout", "--quiet", "--detach")
	f, err = ReadGit(t.Context(), dir)
	assert.True(t, err == nil && f.Branch == "main", "got %+v, %v detached at the head of main, want main", f, err)
	commit(t, dir, "of no branch")
	f, err = ReadGit(t.Context(), dir)
	assert.True(t, err == nil && f.Branch == "", "got %+v, %v detached, want no branch", f, err)
	_, ok := f.Map()["branch"]
	assert.True(t, !ok, "got a branch for a commit that is in none")
}

func TestReadFails(t *testing.T) {
	empty, plainDir := t.TempDir(), t.TempDir()
	sh(t, empty, "init", "--quiet")
	write(t, filepath.Join(plainDir, "file"), "x")
	tests := []struct{ name, dir, want string }{
		{"missing", filepath.Join(plainDir, "nowhere"), "no such file"},
		{"a file", filepath.Join(plainDir, "file"), "it is a file"},
		{"no repository", plainDir, "not a git repository"},
		{"no commit", empty, "no commit yet"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := ReadGit(t.Context(), test.dir)
			protocoltest.Explained(t, err, test.want, "")
		})
	}
}

// snapshot returns all files of a folder, to check that they do not change.
func snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	assert.OK(t, filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		out[name] = string(data)
		return err
	}))
	return out
}

func TestMake(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("builds are written for sh")
	}
	dir, cache := project(t), t.TempDir()
	first := sh(t, dir, "rev-parse", "HEAD")
	sh(t, dir, "tag", "v1")
	second := commit(t, dir, "second")
	sh(t, dir, "checkout", "--quiet", "-b", "feature/x")
	third := commit(t, dir, "third")
	sh(t, dir, "checkout", "--quiet", "main")
	write(t, filepath.Join(dir, "which"), "not committed")
	before := snapshot(t, dir)
	count := filepath.Join(t.TempDir(), "count")
	order := func(rev string) BuildOrder {
		return BuildOrder{
			Dir: dir, Revision: rev, Cache: cache, Env: []string{"COUNT=" + count, "PASSWORD=" + canary},
			Command: `echo run >> "$COUNT"; echo "with PASSWORD=$PASSWORD"; cp which built; test "$CARRONADE_REVISION" = {revision}`,
		}
	}
	for _, test := range []struct {
		name, rev, branch, revision, which string
		cached                             bool
	}{
		{"HEAD", "", "main", second, "second", false},
		{"again, by its branch", "main", "main", second, "second", true},
		{"a tag", "v1", "main", first, "first", false},
		{"a short commit", first[:10], "main", first, "first", true},
		{"before HEAD", "HEAD~1", "main", first, "first", true},
		{"the commit of another branch", third, "feature/x", third, "third", false},
		{"a branch with a slash", "feature/x", "feature/x", third, "third", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := assert.Value(MakeBuild(t.Context(), order(test.rev)))(t)
			defer b.Release()
			assert.True(t, b.Revision == test.revision && b.Branch == test.branch && b.Cached == test.cached && !b.Dirty,
				"got %+v, want %s of %q, cached %v", b, test.revision, test.branch, test.cached)
			got, err := os.ReadFile(filepath.Join(b.Tree, "built"))
			assert.True(t, err == nil && string(got) == test.which+"\n", "got %q, %v built, want %q", got, err, test.which)
			log, err := os.ReadFile(b.Log)
			assert.True(t, err == nil && !strings.Contains(string(log), canary) && strings.Contains(string(log), "with PASSWORD=***"),
				"got the log %q, %v, want the secret masked", log, err)
			assert.Equal(t, b.expand("{tree}/x {branch} {revision} {image}"), b.Tree+"/x "+b.Branch+" "+b.Revision+" "+b.Image)
		})
	}
	runs, err := os.ReadFile(count)
	assert.True(t, err == nil && strings.Count(string(runs), "run") == 3, "got %q, %v, want three builds", runs, err)
	after := snapshot(t, dir)
	for name, was := range before {
		assert.Equal(t, after[name], was, "%s in the user's folder", name)
	}
	assert.Equal(t, len(after), len(before), "files in the user's folder")
}

func TestMakeFetches(t *testing.T) {
	upstream, cache := project(t), t.TempDir()
	dir := filepath.Join(t.TempDir(), "clone")
	sh(t, t.TempDir(), "clone", "--quiet", "--origin", "axw", upstream, dir)
	sh(t, upstream, "checkout", "--quiet", "-b", "trace-apm-server")
	want := commit(t, upstream, "traced")
	sh(t, upstream, "checkout", "--quiet", "main")
	main := commit(t, upstream, "further")
	if _, err := MakeBuild(t.Context(), BuildOrder{Dir: dir, Revision: "axw/trace-apm-server", Cache: cache}); err == nil || !strings.Contains(err.Error(), "no such branch, tag or commit") {
		t.Errorf("got %v before it was fetched, want no such branch", err)
	}
	for _, rev := range []string{"axw/trace-apm-server", "trace-apm-server"} {
		b := assert.Value(MakeBuild(t.Context(), BuildOrder{Dir: dir, Revision: rev, Fetch: "axw", Cache: cache}))(t)
		b.Release()
		assert.True(t, b.Revision == want && b.Branch == "trace-apm-server",
			"%s: got %s of %q, want %s of trace-apm-server", rev, b.Revision, b.Branch, want)
	}
	b := assert.Value(MakeBuild(t.Context(), BuildOrder{Dir: dir, Revision: "main", Fetch: "axw", Cache: cache}))(t)
	b.Release()
	assert.Equal(t, b.Revision, main, "revision, which is the fetched one")
	got := sh(t, dir, "branch", "--remotes")
	assert.True(t, !strings.Contains(got, "trace-apm-server"), "got %q in the user's repository, want nothing fetched there", got)
	_, err := MakeBuild(t.Context(), BuildOrder{Dir: dir, Fetch: "origin", Cache: cache})
	assert.True(t, err != nil && strings.Contains(err.Error(), "no such remote"), "got %v, want no such remote", err)
	sh(t, dir, "remote", "add", "dead", "https://me:"+canary+"@127.0.0.1:1/x.git")
	_, err = MakeBuild(t.Context(), BuildOrder{Dir: dir, Fetch: "dead", Cache: cache})
	assert.True(t, err != nil && !strings.Contains(err.Error(), canary), "got %v, want an error without the login", err)
}

func TestMakeOfAShallowClone(t *testing.T) {
	upstream, cache := project(t), t.TempDir()
	head := commit(t, upstream, "second")
	dir := filepath.Join(t.TempDir(), "shallow")
	sh(t, t.TempDir(), "clone", "--quiet", "--depth", "1", "file://"+upstream, dir)
	b := assert.Value(MakeBuild(t.Context(), BuildOrder{Dir: dir, Cache: cache, Command: "git log --oneline"}))(t)
	defer b.Release()
	assert.Equal(t, b.Revision, head)
}

func TestMakeFails(t *testing.T) {
	dir, cache := project(t), t.TempDir()
	for _, test := range []struct {
		name  string
		order BuildOrder
		want  []string
	}{
		{"no such revision", BuildOrder{Revision: "nope"}, []string{"no such branch, tag or commit", "--system-fetch"}},
		{"a dash", BuildOrder{Revision: "--upload-pack=x"}, []string{"does not begin with a dash"}},
		{"the build fails", BuildOrder{Command: "echo broken with token=" + canary + "; exit 3"}, []string{"exit status 3", "broken with token=***", "its output is in "}},
		{"the build takes too long", BuildOrder{Command: "echo begun; sleep 1000", Within: 300 * time.Millisecond}, []string{"it took longer than 300ms"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.order.Dir, test.order.Cache = dir, cache
			_, err := MakeBuild(t.Context(), test.order)
			var e *protocol.Error
			assert.Must(t, errors.As(err, &e), "got %v, want a *target.Error", err)
			text := e.Error() + " " + e.Hint
			for _, want := range test.want {
				assert.True(t, strings.Contains(text, want), "got %q, want it to contain %q", text, want)
			}
			assert.True(t, !strings.Contains(text, canary), "got %q, which contains the secret", text)
			if _, log, ok := strings.Cut(e.Hint, "its output is in "); ok && test.order.Within == 0 {
				got, err := os.ReadFile(log)
				assert.True(t, err == nil && string(got) == "broken with token=***\n", "got the log %q, %v, want the build's output", got, err)
			}
		})
	}
	all, err := CachedBuilds(cache)
	assert.True(t, err == nil && len(all) == 2 && all[0].Failed, "got %+v, %v, want the two failed builds", all, err)
	// A failed build is built again.
	marker := filepath.Join(t.TempDir(), "marker")
	o := BuildOrder{Dir: dir, Cache: cache, Command: "test -e " + marker}
	_, err = MakeBuild(t.Context(), o)
	assert.Must(t, err != nil, "the build passed, want it to fail")
	write(t, marker, "")
	b := assert.Value(MakeBuild(t.Context(), o))(t)
	b.Release()
	assert.True(t, !b.Cached, "a failed build was taken from the cache")
}

func TestMakeIsCanceled(t *testing.T) {
	dir := project(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := MakeBuild(ctx, BuildOrder{Dir: dir, Cache: t.TempDir(), Command: "echo begun; sleep 1000", Output: func(string) { cancel() }})
	assert.True(t, errors.Is(err, context.Canceled), "got %v, want it canceled", err)
}

// If several runs need the same build at the same time, it is built once.
func TestMakeAtOnce(t *testing.T) {
	dir, cache := project(t), t.TempDir()
	count := filepath.Join(t.TempDir(), "count")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			b, err := MakeBuild(t.Context(), BuildOrder{Dir: dir, Cache: cache, Command: "echo run >> " + count + "; sleep 0.2"})
			if err != nil {
				t.Error(err)
				return
			}
			b.Release()
		})
	}
	all.Wait()
	got, err := os.ReadFile(count)
	assert.True(t, err == nil && string(got) == "run\n", "got %q, %v, want one build", got, err)
}

func TestCache(t *testing.T) {
	dir, cache := project(t), t.TempDir()
	var builds []*Build
	for _, text := range []string{"a", "b", "c"} {
		commit(t, dir, text)
		b := assert.Value(MakeBuild(t.Context(), BuildOrder{Dir: dir, Cache: cache, Command: "head -c 100000 /dev/zero > big", Bound: CacheBound{Builds: 3}}))(t)
		builds = append(builds, b)
		old := time.Now().Add(time.Duration(len(builds)-10) * time.Hour)
		assert.OK(t, os.Chtimes(filepath.Join(filepath.Dir(b.Tree), entryFile), old, old))
	}
	all, err := CachedBuilds(cache)
	assert.Must(t, err == nil && len(all) == 3, "got %d, %v, want three builds", len(all), err)
	assert.True(t, all[0].Revision == builds[2].Revision && all[0].InUse && all[0].Bytes >= 100_000 &&
		(all[0].Branch == "" || all[0].Branch == "main"), "got %+v first, want the one used last, in use", all[0])
	if removed, _, err := PruneBuilds(cache, CacheBound{Builds: -1}); err != nil || len(removed) != 0 {
		t.Errorf("got %v, %v, want nothing removed that is in use", removed, err)
	}
	builds[0].Release()
	builds[1].Release()
	removed, bytes, err := PruneBuilds(cache, CacheBound{Builds: 2})
	assert.True(t, err == nil && len(removed) == 1 && removed[0].Revision == builds[0].Revision && bytes >= 100_000,
		"got %+v, %d bytes, %v, want the oldest removed", removed, bytes, err)
	if _, err := os.Stat(builds[0].Tree); err == nil {
		t.Error("its worktree is still there")
	}
	if removed, _, err = PruneBuilds(cache, CacheBound{Bytes: 150_000}); err != nil || len(removed) != 1 || removed[0].Revision != builds[1].Revision {
		t.Errorf("got %+v, %v, want the older of two removed for its bytes", removed, err)
	}
	builds[2].Release()
	builds[2].Release() // twice is harmless
	removed, _, err = PruneBuilds(cache, CacheBound{Builds: -1})
	assert.True(t, err == nil && len(removed) == 1, "got %+v, %v, want the last removed", removed, err)
	left, _ := os.ReadDir(cache)
	assert.True(t, len(left) == 0, "got %v left, want an empty cache", left)
	// A revision that was removed is built again.
	b, err := MakeBuild(t.Context(), BuildOrder{Dir: dir, Cache: cache})
	assert.Must(t, err == nil && !b.Cached, "got %+v, %v, want it built again", b, err)
	b.Release()
}

func TestCacheBoundsItself(t *testing.T) {
	dir, cache := project(t), t.TempDir()
	for _, text := range []string{"a", "b", "c"} {
		commit(t, dir, text)
		b := assert.Value(MakeBuild(t.Context(), BuildOrder{Dir: dir, Cache: cache, Bound: CacheBound{Builds: 1}}))(t)
		b.Release()
	}
	all, err := CachedBuilds(cache)
	assert.True(t, err == nil && len(all) == 1, "got %d builds, %v, want one", len(all), err)
}

func FuzzEntry(f *testing.F) {
	f.Add([]byte(`{"revision":"x","took_ns":1}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, data []byte) {
		home := t.TempDir()
		write(t, filepath.Join(home, entryFile), string(data))
		_, _ = readEntry(home)
	})
}

// A long output is stored with its beginning and its end, in whole lines.
func TestBuildLog(t *testing.T) {
	const line = "line 00" // 8 bytes with its end
	for _, tt := range []struct {
		name        string
		lines       int
		first, last []int // which are stored: from, to
		dropped     int64
	}{
		{"short", 5, []int{0, 5}, nil, 0},
		{"as long as the beginning", 10, []int{0, 10}, nil, 0},
		{"longer by what is kept of the end", 17, []int{0, 10}, []int{10, 17}, 0},
		{"longer", 18, []int{0, 10}, []int{14, 18}, 32},
		{"longer, between two cuts", 20, []int{0, 10}, []int{14, 20}, 32},
		{"much longer", 50, []int{0, 10}, []int{46, 50}, 36 * 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			l := newBuildLog(&out, 10*(len(line)+1), 4*(len(line)+1))
			for i := range tt.lines {
				l.add(fmt.Sprintf("line %02d", i))
			}
			assert.OK(t, l.finish())
			var want strings.Builder
			for i := tt.first[0]; i < tt.first[1]; i++ {
				fmt.Fprintf(&want, "line %02d\n", i)
			}
			if tt.dropped > 0 {
				fmt.Fprintf(&want, "... %d bytes, not kept ...\n", tt.dropped)
			}
			for i := 0; tt.last != nil && i < tt.last[1]-tt.last[0]; i++ {
				fmt.Fprintf(&want, "line %02d\n", tt.last[0]+i)
			}
			got := out.String()
			assert.True(t, got == want.String(), "got\n%swant\n%s", got, want.String())
			assert.Equal(t, l.printed, int64(tt.lines*8), "bytes printed")
		})
	}
}

// The output of a build is the end of what it printed, without secrets, also when it was built before.
func TestOutput(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("builds are written for sh")
	}
	dir, cache := project(t), t.TempDir()
	write(t, filepath.Join(dir, "Makefile"), "all:\n\t@echo making with $$TOKEN\n\t@echo a warning >&2\n\t@echo made\n")
	sh(t, dir, "add", ".")
	sh(t, dir, "commit", "--quiet", "-m", "make")
	for _, tt := range []struct {
		name, command, want string
	}{
		{"make", "make -s", "making with ***\na warning\nmade\n"},
		{"a build that prints nothing", "true", ""},
		{"no build", "", ""},
	} {
		for _, cached := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, cached %v", tt.name, cached), func(t *testing.T) {
				var mask secret.Mask
				mask.Add(canary)
				b := assert.Value(MakeBuild(t.Context(), BuildOrder{Dir: dir, Cache: cache, Command: tt.command, Env: []string{"TOKEN=" + canary}, Mask: &mask}))(t)
				defer b.Release()
				assert.Equal(t, b.Cached, cached, "cached")
				assert.True(t, b.printed == int64(len(tt.want)), "got %d bytes printed, want %d", b.printed, len(tt.want))
				got, cut, err := b.output()
				assert.True(t, err == nil && string(got) == tt.want && cut == 0, "got %q after %d bytes, %v, want %q", got, cut, err, tt.want)
			})
		}
	}
}

// The end of a long output is whole lines, and what came before it is counted.
func TestOutputOfALongBuild(t *testing.T) {
	name := filepath.Join(t.TempDir(), "build.log")
	line := strings.Repeat("x", 1023) + "\n"
	for _, tt := range []struct {
		name, before, first string
		lines               int
		printed             int64 // 0: by an earlier version, which did not count it
		want                int
		cut                 int64
	}{
		{"all", "", "", 1024, 1 << 20, 1024, 0},
		{"a line more", "first\n", "", 1024, 1<<20 + 6, 1024, 6},
		{"a line that is cut", "first\n", "part of a line ", 1024, 1<<20 + 21, 1023, 1024 + 21},
		{"not all was stored", "first\n... 100 bytes, not kept ...\n", "", 1024, 1<<20 + 106, 1024, 106},
		{"not counted", "first\n", "", 1024, 0, 1024, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			write(t, name, tt.before+tt.first+strings.Repeat(line, tt.lines))
			b := Build{Log: name, printed: tt.printed}
			got, cut, err := b.output()
			assert.True(t, err == nil && string(got) == strings.Repeat(line, tt.want) && cut == tt.cut,
				"got %d bytes after %d, %v, want %d lines after %d", len(got), cut, err, tt.want, tt.cut)
		})
	}
	assert.OK(t, os.Remove(name))
	assert.OK(t, os.Mkdir(name, 0o755))
	b := Build{Log: name}
	_, _, err := b.output()
	assert.True(t, err != nil && strings.Contains(err.Error(), "read the output of the build: is a directory"), "got %v of a folder", err)
}
