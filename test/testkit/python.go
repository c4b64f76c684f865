package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// pythonPackages are the readers. The download has 60 MB, the cache needs 300 MB.
var pythonPackages = []string{"duckdb==2.0.0", "pandas==3.1.1", "pyarrow==26.0.1"}

// pythonLibrary returns the directory of the packages, and the Python that uses them. The
// first call on a machine fetches them; later ones find them in the user's cache.
// Several processes may call it at the same time.
var pythonLibrary = sync.OnceValues(func() (l struct{ python, dir string }, err error) {
	if l.python, err = exec.LookPath("python3"); err != nil {
		return l, errors.New("testkit: Python is missing, which the readers of Parquet need; install it: apt-get install python3-venv, or run scripts/deps as root")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	version, err := runPython(ctx, l.python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
	if err != nil {
		return l, fmt.Errorf("testkit: ask Python for its version: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return l, fmt.Errorf("testkit: find the user's cache directory: %w", err)
	}
	// Packages are built for one version of Python.
	name := "parquet-py" + strings.TrimSpace(version)
	for _, p := range pythonPackages {
		_, v, _ := strings.Cut(p, "==")
		name += "-" + v
	}
	l.dir, err = fetchPython(ctx, l.python, filepath.Join(cache, "carronade"), name)
	return l, err
})

// fetchPython returns parent/name, and creates it with pip if it is missing. The directory
// appears by a rename, so it is complete or absent; if several processes fetch at the
// same time, the first one to finish wins.
func fetchPython(ctx context.Context, python, parent, name string) (string, error) {
	dir := filepath.Join(parent, name)
	if completePython(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("testkit: make the cache: %w", err)
	}
	stage, err := os.MkdirTemp(parent, name+".part-*")
	if err != nil {
		return "", fmt.Errorf("testkit: make room in the cache: %w", err)
	}
	defer os.RemoveAll(stage)
	// A virtual environment has pip even if the system's Python has none or refuses
	// to install packages.
	env := filepath.Join(stage, "env")
	if _, err := runPython(ctx, python, "-m", "venv", env); err != nil {
		return "", fmt.Errorf("testkit: make a Python environment (apt-get install python3-venv, or scripts/deps as root): %w", err)
	}
	site := filepath.Join(stage, "site")
	args := append([]string{"-m", "pip", "install", "--quiet", "--no-compile", "--only-binary=:all:", "--target", site}, pythonPackages...)
	if _, err := runPython(ctx, filepath.Join(env, "bin", "python3"), args...); err != nil {
		return "", fmt.Errorf("testkit: fetch %s with pip (a network or an index in pip's settings is needed once): %w", strings.Join(pythonPackages, " "), err)
	}
	if err := os.Rename(site, dir); err != nil && !completePython(dir) {
		return "", fmt.Errorf("testkit: put the packages into the cache: %w", err)
	}
	if !completePython(dir) {
		return "", fmt.Errorf("testkit: %s is incomplete; remove it", dir)
	}
	return dir, nil
}

// completePython reports whether dir contains the readers.
func completePython(dir string) bool {
	for _, p := range pythonPackages {
		name, _, _ := strings.Cut(p, "==")
		if _, err := os.Stat(filepath.Join(dir, name, "__init__.py")); err != nil {
			return false
		}
	}
	return true
}

// runPython runs a program to its end and returns its stdout; an error contains its output.
func runPython(ctx context.Context, exe string, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", filepath.Base(exe), err, out.Bytes(), errs.Bytes())
	}
	return out.String(), nil
}
