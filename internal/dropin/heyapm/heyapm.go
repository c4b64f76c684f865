// Package heyapm is the drop-in for hey-apm: its load and its flags, its profiles, and what
// it printed.
package heyapm

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"

	"carronade/internal/dropin"
	"carronade/internal/place"
)

// Tool is hey-apm: the single-run mode of 2018 with its profiles, and the generator of
// 2019 to 2023 with its counts, depending on the flags. The tool's shell is not included.
// Facts about the tool come from its source (elastic/hey-apm). The profiles have the
// numbers and kinds of events per request of those in its source, but none of their
// bytes.
var Tool = dropin.Tool{
	Name: "hey-apm", Short: "APM Server: profiles of requests (2018), and an agent's events (2023)", Kind: "apm",
	OneDash: true,
	Main:    runHey,
}

const heyDiffers = `
Profiles are generated from their descriptions, with fresh ids (--strict: the
same body repeated); the health check is not sent. Of the shell's commands there
is
  test <duration> <events> <spans> <frames> <concurrency> [-E name=value ...]
       [--mem 4g]
  dump <file> <events> <spans> <frames>
  elasticsearch reset --yes
in carronade shell there are all. dump writes the body of a request of test, and
reset deletes the indices apm-* in the Elasticsearch of -apm-es-url. test is
for a running server, or one that -system-cmd starts. With -apm-es-url it counts
documents, with -system-pid or another --system flag of carronade before test it
has the server's memory, and with -es-url it saves its report there. The counts
of 2023 are of events sent and events that the server accepted. -bench prints
its results; carronade verify judges them. See docs/coming-from/hey-apm.md.
`

func runHey(ctx context.Context, p *dropin.Program) (int, error) {
	var o heyOptions
	fs := o.flagSet(p.Called)
	o.systemFlags(fs)
	if code, done := dropin.ParseGoFlags(p, fs, new(heyOptions).flagSet(p.Called), heyDiffers); done {
		return code, nil
	}
	generation, given, err := chooseHeyGeneration(fs, p.Generation)
	if err != nil {
		return 1, err
	}
	if o.esURL != "" {
		if _, err := place.OfServer(o.esURL, "", ""); err != nil {
			return 1, fmt.Errorf("-es-url: %w", err)
		}
	}
	r := &heyRun{heyOptions: &o, p: p, log: &heyLogger{w: p.Err}, given: given}
	defer r.secrets.close()
	test := fs.Arg(0) == "test"
	switch fs.Arg(0) {
	case "dump":
		size, err := o.dumpBody(fs.Args()[1:])
		if err != nil {
			return 1, err
		}
		fmt.Fprintf(p.Out, "%s written to disk\n", decimalBytes(float64(size)))
		return 0, nil
	case "elasticsearch":
		list, docs, err := r.reset(ctx, fs.Args()[1:])
		if err != nil {
			return 1, err
		}
		fmt.Fprintf(p.Out, "deleted %d indices with %d docs\n", len(list), docs)
		return 0, nil
	}
	if instead, ok := heyShell[fs.Arg(0)]; ok {
		return 1, fmt.Errorf("%s is a command of the shell, which is not available here: %s", fs.Arg(0), instead)
	}
	if len(o.system) > 0 && !test {
		return 1, fmt.Errorf("%s is for test; for other loads, use carronade run apm+http://HOST:8200", o.system[0].Flag)
	}
	if fs.NArg() > 0 && !test {
		fmt.Fprintf(p.Err, "warning: %s is ignored: hey-apm takes flags, and here the shell's test\n", strings.Join(fs.Args(), " "))
	}
	switch {
	case generation == hey2023:
		return (&heyAgents{heyRun: r}).main(ctx)
	case test:
		return (&heyLegacy{r}).test(ctx, fs.Args()[1:])
	}
	return (&heyLegacy{r}).main(ctx)
}

// A heyRun is a command line with what it needs to run.
type heyRun struct {
	*heyOptions
	p       *dropin.Program
	log     *heyLogger
	given   map[string]bool // flags
	secrets secretRefs
}

// heyShell contains the shell's other commands and their replacements.
var heyShell = map[string]string{
	"apm":     "-system-cmd, -system-git, -system-fetch, -system-checkout and -system-build before test",
	"cancel":  "an interrupt ends a test",
	"collate": "carronade collate",
	"define":  "workload files and your own shell",
	"help":    "--help",
	"status":  "carronade run says what it finds",
	"verify":  "carronade verify",
}

// heyTestFlags are the flags of 2023 that are allowed with test, of 2018.
var heyTestFlags = map[string]bool{"apm-es-url": true, "apm-es-auth": true, "es-url": true, "es-auth": true}

// chooseHeyGeneration derives the generation from the given flags.
func chooseHeyGeneration(fs *flag.FlagSet, asked string) (generation string, given map[string]bool, err error) {
	given = dropin.GivenFlags(fs)
	var old, recent string
	test := fs.Arg(0) == "test"
	fs.Visit(func(f *flag.Flag) {
		switch {
		case heyFlags2018[f.Name]:
			old = f.Name
		case test && heyTestFlags[f.Name]:
		case heyFlags2023[f.Name]:
			recent = f.Name
		}
	})
	switch {
	case test && recent != "":
		return "", nil, fmt.Errorf("test belongs to %s and -%s to %s: use arguments of one generation", hey2018, recent, hey2023)
	case test && asked == hey2023:
		return "", nil, fmt.Errorf("--generation %s has no test", asked)
	case asked != "" && asked != hey2018 && asked != hey2023:
		return "", nil, fmt.Errorf("--generation %s: hey-apm has %s and %s", asked, hey2018, hey2023)
	case old != "" && recent != "":
		return "", nil, fmt.Errorf("-%s belongs to %s and -%s to %s: use flags of one generation", old, hey2018, recent, hey2023)
	case asked == hey2018 && recent != "":
		return "", nil, fmt.Errorf("--generation %s has no -%s", asked, recent)
	case asked == hey2023 && old != "":
		return "", nil, fmt.Errorf("--generation %s has no -%s", asked, old)
	case asked == hey2023 || recent != "":
		return hey2023, given, nil
	}
	return hey2018, given, nil
}

// apmTarget converts a server's URL to a target: http://h:8200/prefix to
// apm+http://h:8200/prefix. The default port is the scheme's.
func apmTarget(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", fmt.Errorf("invalid URL %.40q", text)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("%q is not an http or https URL", u.Redacted())
	case u.User != nil:
		return "", fmt.Errorf("%s: a URL must not contain a user: give a header or a secret", u.Redacted())
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return "apm+" + u.Scheme + "://" + host + strings.TrimRight(u.Path, "/"), nil
}

// A heyLogger writes lines as Go's package log does, with a source position.
type heyLogger struct {
	w io.Writer
}

func (s *heyLogger) printf(format string, args ...any) {
	dropin.GoLogf(s.w, "main.go:1: "+format, args...)
}

// interrupted logs the tool's message about an interrupt.
func (s *heyLogger) interrupted() { s.printf("[error] caught signal, stopping work") }
