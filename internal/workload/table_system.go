package workload

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"carronade/internal/secret"
	"carronade/protocol"
)

const groupSystem = "system under test"

// The settings that select the system under test, of which one is allowed.
var systemKinds = []string{"system-cmd", "system-pid", "system-container", "system-image"}

// HasSystem reports whether the run has a system under test, which it starts or finds,
// watches, and reports on.
func (w *Workload) HasSystem() bool {
	return slices.ContainsFunc(systemKinds, w.Has) || w.Has("system-git") || w.Has("revision") || w.Has("system-vars") || w.Has("system-metrics") || w.Has("system-gc-log")
}

// systemTable has the settings about the system under test, the same for every kind.
func systemTable() []Setting {
	opt := func(name string, t protocol.Type, word, help string) Setting {
		return Setting{Option: protocol.Option{Name: name, Type: t, Word: word, Group: groupSystem, Help: help}}
	}
	independent := func(s Setting) Setting { s.Independent = true; return s }
	with := func(s Setting, check func(string) error) Setting { s.check = check; return s }
	masked := func(s Setting) Setting { s.Show = showCommand; return s }
	shown := func(show func(string) string, s Setting) Setting { s.Show = show; return s }
	return []Setting{
		independent(masked(opt("system-cmd", protocol.String, "CMD", "start it: a program and its arguments, in quotes"))),
		with(opt("system-pid", protocol.Int, "PID", "watch this process and its children"), countBetween(1, 1<<31-1)),
		opt("system-container", protocol.String, "NAME", "watch this container"),
		independent(opt("system-image", protocol.String, "IMAGE", "start a container of this image")),
		{Option: protocol.Option{Name: "system-arg", Type: protocol.List, Word: "ARG", Group: groupSystem, Help: "an argument for the image's command (repeatable)", Show: showText}, showAll: showArgs},
		shown(showNamed, with(opt("system-env", protocol.List, "K=V", "set in its environment; V may be env:NAME or file:PATH"), checkNamed)),
		opt("system-dir", protocol.String, "DIR", "its working folder"),
		shown(showNamed, with(independent(opt("system-flag", protocol.List, "K=V", "a flag of the system, distinguished in reports (repeatable)")), checkNamed)),
		opt("system-flag-format", protocol.String, "FORMAT", "format of its flags (default: -E {name}={value})"),
		shown(showText, opt("system-ready", protocol.String, "WHEN", "start when URL answers, port:N accepts, or log:TEXT is printed")),
		with(opt("system-ready-within", protocol.Duration, "", "timeout of that (default: 1m)"), durationBetween(time.Millisecond, 24*time.Hour)),
		with(opt("system-stop-within", protocol.Duration, "", "time between TERM and KILL (default: 10s)"), durationBetween(time.Millisecond, time.Hour)),
		with(independent(opt("system-mem", protocol.Size, "", "memory limit")), sizeAtLeast(1<<20)),
		with(independent(opt("system-cpus", protocol.Float, "N", "processor limit, such as 1.5")), checkProcessors),
		{Option: protocol.Option{Name: "system-engine", Choices: []string{"docker", "podman"}, Group: groupSystem, Help: "container engine (default: the one installed)"}},
		opt("system-publish", protocol.List, "PORTS", "a port of the image's container: 127.0.0.1:8200:8200"),

		opt("system-git", protocol.String, "DIR", "the repository it comes from: branch and revision are reported"),
		with(opt("revision", protocol.String, "TEXT", "its revision, without a repository: a version, a build, a change of its settings"), checkRevision),
		with(opt("system-branch", protocol.String, "NAME", "the branch of the revision (default: the branch that contains it)"), checkBranch),
		independent(opt("system-checkout", protocol.String, "REV", "build this revision, in a separate worktree")),
		shown(showText, with(opt("system-fetch", protocol.String, "REMOTE", "fetch this remote first"), checkRemote)),
		shown(showText, opt("system-build", protocol.String, "CMD", "how to build it; {tree} is its folder, {image} a name for an image")), // for a shell, so it stays as typed
		with(opt("system-build-within", protocol.Duration, "", "timeout of the build (default: 30m)"), durationBetween(time.Second, 24*time.Hour)),

		{Option: protocol.Option{Name: "system-verbose", Type: protocol.Bool, Group: groupSystem, Help: "show what its build and the system print, on stderr"}, Short: "v", Aside: true},
		{Option: protocol.Option{Name: "system-log", Word: "FILE", Group: groupSystem, Help: "write what the system prints to FILE while it runs, the last 10 MiB"}, Aside: true},

		shown(showText, opt("system-vars", protocol.String, "URL", "read its expvar metrics, once per interval")),
		shown(showText, opt("system-metrics", protocol.String, "URL", "read its metrics in Prometheus's text format, once per interval")),
		opt("system-names", protocol.List, "NAME", "which of those metrics, with * as wildcard (repeatable; default: all)"),
		{Option: protocol.Option{Name: "system-header", Type: protocol.List, Word: "K=REF", Group: groupSystem, Help: "a header for both; the value is env:NAME or file:PATH", Show: showHeader}, check: checkHeader},
		opt("system-gc-log", protocol.String, "FILE", "read GC pauses from a JVM's unified log; %p and * are wildcards"),
		opt("system-jvm-gc", protocol.Bool, "", "make the JVM of --system-cmd write one"),
		opt("system-host", protocol.List, "FILE", "another machine's description, from carronade host --json"),
	}
}

// showCommand masks the secrets of a command.
func showCommand(text string) string {
	var m secret.Mask
	return m.Line(text)
}

// showArgs masks the secrets of arguments: whether one is secret may depend on the flag before
// it.
func showArgs(args []string) []string {
	var m secret.Mask
	return m.Args(args)
}

// showText masks the login of an address, or what looks like a secret in other text.
func showText(text string) string {
	var m secret.Mask
	return m.Text(text)
}

// showNamed masks what looks like a secret in the value of NAME=VALUE.
func showNamed(text string) string {
	var m secret.Mask
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return m.Text(text)
	}
	return name + "=" + m.Value(name, value)
}

// checkProcessors rejects values below the kernel's minimum, a hundredth of a processor.
func checkProcessors(text string) error {
	if n, err := strconv.ParseFloat(text, 64); err != nil || n < 0.01 || n > 1<<16 {
		return &protocol.Error{Err: fmt.Errorf("must be a number of processors from 0.01 on, not %s", text), Hint: "leave it out for no limit"}
	}
	return nil
}

// checkRevision accepts a short text in one line.
func checkRevision(text string) error {
	const most = 100
	if strings.TrimSpace(text) != text || text == "" || utf8.RuneCountInString(text) > most || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return &protocol.Error{Err: fmt.Errorf("must be a text of 1 to %d characters in one line, without blanks around it", most), Hint: "such as 4.1.0-rc2, or 'heap 8g'"}
	}
	return nil
}

// checkBranch accepts a name in one line.
func checkBranch(text string) error {
	if checkRevision(text) != nil || strings.ContainsFunc(text, unicode.IsSpace) || strings.HasPrefix(text, "-") {
		return &protocol.Error{Err: errors.New("must be the name of a branch"), Hint: "such as main, or feature/x"}
	}
	return nil
}

// checkRemote accepts only names of remotes: an address may contain a login.
func checkRemote(text string) error {
	if strings.ContainsAny(text, ":@ ") || strings.HasPrefix(text, "-") {
		return &protocol.Error{Err: errors.New("must be the name of a remote of the repository, such as origin"), Hint: "git remote -v lists them; git remote add makes one of an address"}
	}
	return nil
}

// showHeader returns a header as its name and the reference of its value.
func showHeader(text string) string {
	name, _, _ := strings.Cut(text, "=")
	if checkHeader(text) == nil {
		return text
	}
	return name + "=" + secret.Hidden
}

// checkHeader accepts only a value by reference. The error does not repeat the value.
func checkHeader(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || !secret.IsReference(value) {
		return &protocol.Error{Err: errors.New("must be NAME=env:VARIABLE or NAME=file:PATH"), Hint: "headers may contain secrets, and the process list shows the command line"}
	}
	return nil
}

// checkNamed accepts NAME=VALUE, but no plain secret under a name that says that it is one. The
// error does not repeat the value.
func checkNamed(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || strings.TrimSpace(name) == "" {
		return errors.New("must be NAME=VALUE")
	}
	if secret.Is(name, value) {
		return &protocol.Error{Err: fmt.Errorf("%s looks like a secret, and the process list shows the command line", name), Hint: "give env:VARIABLE or file:PATH as its value"}
	}
	return nil
}

// systemConflicts checks the settings of the system under test against each other.
func (w *Workload) systemConflicts(fault func(name, hint, format string, args ...any)) {
	first := ""
	for _, name := range systemKinds {
		switch {
		case !w.Has(name):
		case first == "":
			first = name
		default:
			fault(name, "give one of them", "--%s already gives the system under test", first)
		}
	}
	needs := func(name string, of ...string) {
		if !w.Has(name) || slices.ContainsFunc(of, w.Has) {
			return
		}
		fault(name, "leave it out, or say what to start", "goes with --%s", strings.Join(of, " or --"))
	}
	for _, name := range []string{"system-env", "system-flag", "system-mem", "system-cpus", "system-ready", "system-ready-within", "system-stop-within"} {
		needs(name, "system-cmd", "system-image")
	}
	needs("system-dir", "system-cmd")
	needs("system-jvm-gc", "system-cmd")
	needs("system-arg", "system-image")
	needs("system-publish", "system-image")
	needs("system-engine", "system-image", "system-container")
	needs("system-flag-format", "system-flag")
	if w.Has("revision") && w.Has("system-git") {
		fault("revision", "leave one of them out", "--system-git already gives the revision")
	}
	needs("system-branch", "system-git", "revision")
	needs("system-checkout", "system-git")
	needs("system-build", "system-git")
	for _, name := range []string{"system-checkout", "system-build"} {
		needs(name, "system-cmd", "system-image")
	}
	needs("system-fetch", "system-checkout")
	needs("system-build-within", "system-build")
	needs("system-verbose", "system-cmd", "system-image")
	needs("system-log", "system-cmd", "system-image")
	needs("system-names", "system-vars", "system-metrics")
	needs("system-header", "system-vars", "system-metrics")
}
