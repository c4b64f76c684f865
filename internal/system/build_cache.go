package system

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"carronade/internal/host"
	"carronade/protocol"
)

// A CachedBuild is one build in the cache.
type CachedBuild struct {
	Home       string        `json:"home"` // its folder
	Repository string        `json:"repository"`
	Branch     string        `json:"branch,omitempty"`
	Revision   string        `json:"revision"`
	Date       time.Time     `json:"revision_date"`
	Command    string        `json:"command,omitempty"` // without secrets
	Image      string        `json:"image,omitempty"`   // if the build makes one
	Built      time.Time     `json:"built"`
	Used       time.Time     `json:"used"` // last
	Took       time.Duration `json:"took_ns"`
	Bytes      int64         `json:"bytes"`                   // on disk when it was built
	Printed    int64         `json:"printed_bytes,omitempty"` // of its command's output; 0: unknown
	Failed     bool          `json:"failed,omitempty"`        // only its output is stored
	InUse      bool          `json:"in_use,omitempty"`
}

// Tree is the worktree of the build.
func (e *CachedBuild) Tree() string { return filepath.Join(e.Home, "tree") }

// A CacheBound limits the cache.
type CacheBound struct {
	Builds int   // maximum number of builds; below 0: none
	Bytes  int64 // maximum of bytes of builds; below 0: none
}

// DefaultCacheBound is the default limit.
var DefaultCacheBound = CacheBound{Builds: 20, Bytes: 20 << 30}

const entryFile = "build.json"

func cacheFolder(dir string) (string, error) {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", &protocol.Error{Doing: "find the user's cache folder", Err: err, Hint: "set HOME or XDG_CACHE_HOME"}
		}
		dir = filepath.Join(user, "carronade", "systems")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", &protocol.Error{Doing: "make the cache " + dir, Err: host.Reason(err), Hint: "builds of systems under test are kept there; it must be writable"}
	}
	return dir, nil
}

func readEntry(home string) (CachedBuild, error) {
	name := filepath.Join(home, entryFile)
	data, err := os.ReadFile(name)
	if err != nil {
		return CachedBuild{}, err
	}
	var e CachedBuild
	if err := json.Unmarshal(data, &e); err != nil {
		return CachedBuild{}, fmt.Errorf("read %s: %w", name, err)
	}
	e.Home = home
	if st, err := os.Stat(name); err == nil {
		e.Used = st.ModTime()
	}
	if _, err := os.Stat(e.Tree()); err != nil {
		e.Failed = true
	}
	return e, nil
}

// write writes the entry atomically: its presence means that the build is done.
func (e *CachedBuild) write() error {
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(e.Home, entryFile)
	if err := os.WriteFile(name+".new", append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func (e *CachedBuild) touch() {
	now := time.Now()
	_ = os.Chtimes(filepath.Join(e.Home, entryFile), now, now)
}

// CachedBuilds returns the builds in the cache, the most recently used first. The cache
// "" is the user's own.
func CachedBuilds(cache string) ([]CachedBuild, error) {
	cache, err := cacheFolder(cache)
	if err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(cache, "*", "*", entryFile))
	if err != nil {
		return nil, err
	}
	var out []CachedBuild
	for _, name := range names {
		e, err := readEntry(filepath.Dir(name))
		if err != nil {
			continue // removed in between, or made by another program
		}
		if unlock := e.lock(); unlock != nil {
			unlock()
		} else {
			e.InUse = true
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b CachedBuild) int {
		return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Home, b.Home))
	})
	return out, nil
}

// lock takes the build's lock exclusively; nil if it is in use.
func (e *CachedBuild) lock() (unlock func()) { return e.lockFile("lock") }

func (e *CachedBuild) lockFile(name string) (unlock func()) {
	f, err := os.OpenFile(filepath.Join(e.Home, name), os.O_RDWR, 0)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return func() {}
		}
		return nil
	}
	if ok, err := host.TryLock(f, false); !ok || err != nil {
		f.Close()
		return nil
	}
	return func() { f.Close() }
}

// PruneBuilds removes the least recently used builds until the rest is within the
// bound, and none that is in use. It returns the removed builds. It does not
// remove their images, which belong to the engine. Zero fields mean those of
// DefaultCacheBound.
func PruneBuilds(cache string, bound CacheBound) (removed []CachedBuild, bytes int64, err error) {
	bound.Builds, bound.Bytes = cmp.Or(bound.Builds, DefaultCacheBound.Builds), cmp.Or(bound.Bytes, DefaultCacheBound.Bytes)
	all, err := CachedBuilds(cache)
	if err != nil {
		return nil, 0, err
	}
	kept := int64(0)
	var errs []error
	for i, e := range all {
		kept += e.Bytes
		if i < bound.Builds && kept <= bound.Bytes {
			continue
		}
		unlock := e.lock()
		if unlock == nil {
			continue
		}
		err := os.RemoveAll(e.Home)
		unlock()
		if err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", e.Home, err))
			continue
		}
		kept -= e.Bytes
		bytes += e.Bytes
		removed = append(removed, e)
	}
	if bound.Builds < 0 || bound.Bytes < 0 {
		errs = append(errs, removeRepos(cache))
	}
	return removed, bytes, errors.Join(errs...)
}

// removeRepos removes the cache's repositories without builds.
func removeRepos(cache string) error {
	cache, err := cacheFolder(cache)
	if err != nil {
		return err
	}
	repos, _ := filepath.Glob(filepath.Join(cache, "*", "repo.git"))
	var errs []error
	for _, r := range repos {
		home := filepath.Dir(r)
		if left, _ := filepath.Glob(filepath.Join(home, "*", "lock")); len(left) > 0 {
			continue
		}
		e := CachedBuild{Home: home}
		unlock := e.lockFile("repo.lock")
		if unlock == nil {
			continue
		}
		errs = append(errs, os.RemoveAll(home))
		unlock()
	}
	return errors.Join(errs...)
}
