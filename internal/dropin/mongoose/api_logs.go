package mongoose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"carronade/internal/dropin"
)

// pageSize is the most of a log that one answer has, in bytes.
const pageSize = 1 << 20

// logFiles are the files of steps that the API has, by mongoose's names of them.
var logFiles = []struct{ name, file, what string }{
	{"Cli", "cli.args.log", "the arguments of the command line"},
	{"Config", "config.yaml", "all options of the step"},
	{"Errors", errorsFile, "messages of a run of this API that are errors or warnings"},
	{"OpTraces", "op.trace.csv", "a row for each operation"},
	{"metrics.File", "metrics.csv", "the metrics, periodically"},
	{"metrics.FileTotal", "metrics.total.csv", "the metrics at the end of the step"},
	{"metrics.threshold.File", "metrics.threshold.csv", "the metrics above the threshold, periodically"},
	{"metrics.threshold.FileTotal", "metrics.threshold.total.csv", "the metrics above the threshold, at its end"},
	{"Messages", messagesFile, "what a run of this API prints"},
	{"Scenario", scenarioFile, "the scenario of a run of this API"},
}

// The files that only runs of the API have.
const (
	messagesFile = "messages.log"
	errorsFile   = "errors.log"
	scenarioFile = "scenario.txt"
)

// logRoot is the folder with the folders of steps.
func logRoot(is43 bool) (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the files of the step: %w", err)
	}
	version := version42
	if is43 {
		version = version43
	}
	return filepath.Join(home, ".mongoose", version, "log"), nil
}

// logged returns the program of a run, which writes into files in the folder of its step.
func (a *api) logged(v *values, now time.Time, script []byte) (*dropin.Program, func(), error) {
	root, err := logRoot(a.is43())
	if err != nil {
		return nil, nil, err
	}
	id := v.text("load-step-id")
	if id == "" { // each step of the scenario has its own
		id = "none_" + now.UTC().Format(stamp)
	}
	if !plainName(id) {
		return nil, nil, fmt.Errorf("load-step-id: %q is not a valid folder name", id)
	}
	dir := filepath.Join(root, id)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.MkdirAll(a.files, 0o755)); err != nil {
		return nil, nil, err
	}
	out, err := os.OpenFile(filepath.Join(dir, messagesFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, err
	}
	errs, err := os.OpenFile(filepath.Join(dir, errorsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil && len(script) > 0 {
		err = os.WriteFile(filepath.Join(dir, scenarioFile), append(script, '\n'), 0o644)
	}
	if err != nil {
		out.Close()
		return nil, nil, err
	}
	own := *a.program
	own.Args, own.Color, own.In = nil, false, bytes.NewReader(nil)
	lock := new(sync.Mutex)
	own.Out, own.Err = &lockedWriter{mu: lock, w: out}, &lockedWriter{mu: lock, w: errs}
	return &own, func() {
		out.Close()
		errs.Close()
	}, nil
}

// plainName reports whether a text is the name of a folder in another one.
func plainName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, `/\`)
}

// listLogs answers with the names of logs, and what they have.
func (a *api) listLogs(w http.ResponseWriter, _ *http.Request) {
	all := map[string]string{}
	for _, l := range logFiles {
		all[l.name] = l.what
	}
	writeJSON(w, all)
}

// logPath is the file that a request names; otherwise the request is answered.
func (a *api) logPath(w http.ResponseWriter, r *http.Request) (string, bool) {
	step, name := r.PathValue("step"), r.PathValue("name")
	i := slices.IndexFunc(logFiles, func(l struct{ name, file, what string }) bool { return l.name == name })
	if i < 0 || !plainName(step) {
		http.Error(w, fmt.Sprintf("log %q does not exist: GET /logs lists them", name), http.StatusNotFound)
		return "", false
	}
	for _, is43 := range []bool{a.is43(), !a.is43()} {
		root, err := logRoot(is43)
		if err != nil {
			continue
		}
		path := filepath.Join(root, step, logFiles[i].file)
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			return path, true
		}
	}
	http.Error(w, fmt.Sprintf("step %q has no log %s", step, name), http.StatusNotFound)
	return "", false
}

// getLog answers with a page of a log: its beginning, or the range that was asked for.
func (a *api) getLog(w http.ResponseWriter, r *http.Request) {
	path, ok := a.logPath(w, r)
	if !ok {
		return
	}
	file, err := os.Open(path)
	if err != nil {
		http.Error(w, "the log cannot be read", http.StatusInternalServerError)
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		http.Error(w, "the log cannot be read", http.StatusInternalServerError)
		return
	}
	size, from, to, status := info.Size(), int64(0), info.Size(), http.StatusOK
	if text := r.Header.Get("Range"); text != "" {
		if from, to, ok = byteRange(text, size); !ok {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", size))
			http.Error(w, fmt.Sprintf("the range %q is not one of the %d bytes", text, size), http.StatusRequestedRangeNotSatisfiable)
			return
		}
		status = http.StatusPartialContent
	}
	to = min(to, from+pageSize)
	if status == http.StatusPartialContent {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, size))
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Accept-Ranges", "bytes")
	w.Header().Set("Content-Length", strconv.FormatInt(to-from, 10))
	w.WriteHeader(status)
	io.Copy(w, io.NewSectionReader(file, from, to-from)) //nolint:errcheck // who asked has gone
}

// byteRange parses a single range of bytes of a file: from, up to, and excluding, to.
func byteRange(text string, size int64) (from, to int64, ok bool) {
	spec, is := strings.CutPrefix(text, "bytes=")
	first, last, has := strings.Cut(spec, "-")
	if !is || !has || strings.Contains(spec, ",") {
		return 0, 0, false
	}
	number := func(s string) int64 {
		n, err := strconv.ParseUint(s, 10, 62)
		if err != nil {
			ok = false
		}
		return int64(n) //nolint:gosec // 62 bits
	}
	ok = true
	switch {
	case first == "": // the last bytes
		n := number(last)
		return max(0, size-n), size, ok && n > 0 && size > 0
	case last == "":
		from, to = number(first), size
	default:
		from, to = number(first), min(number(last)+1, size)
	}
	return from, to, ok && from < to
}

// deleteLog removes a log.
func (a *api) deleteLog(w http.ResponseWriter, r *http.Request) {
	path, ok := a.logPath(w, r)
	if !ok {
		return
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		http.Error(w, "the log cannot be removed", http.StatusInternalServerError)
	}
}
