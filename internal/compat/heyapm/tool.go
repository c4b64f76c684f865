package heyapm

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"carronade/internal/compat"
)

// Tool is hey-apm.
var Tool = compat.Tool{
	Name: "hey-apm", Short: "APM Server: profiles of requests (2018), and an agent's events (2023)", Kind: "apm",
	OneDash: true,
	Main:    run,
}

const differs = `
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

func run(ctx context.Context, p *compat.Program) (int, error) {
	var o options
	fs := o.flagSet(p.Called)
	var usage bytes.Buffer
	fs.SetOutput(&usage)
	fs.Usage = func() {
		own := new(options).flagSet(p.Called)
		own.SetOutput(&usage)
		fmt.Fprintf(&usage, "Usage of %s:\n", p.Called)
		own.PrintDefaults()
	}
	o.systemFlags(fs)
	switch err := fs.Parse(p.Args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(p.Err, "%s\n%s%s", usage.String(), compat.CommonHelp, differs)
		return 0, nil
	case err != nil:
		p.Err.Write(usage.Bytes()) //nolint:errcheck // stderr is closed
		return 2, nil
	}
	generation, given, err := choose(fs, p.Generation)
	if err != nil {
		return 1, err
	}
	test := fs.Arg(0) == "test"
	switch fs.Arg(0) {
	case "dump":
		size, err := o.dumpBody(fs.Args()[1:])
		if err != nil {
			return 1, err
		}
		fmt.Fprintf(p.Out, "%s written to disk\n", decimal(float64(size)))
		return 0, nil
	case "elasticsearch":
		v := newSecretRefs()
		defer v.close()
		list, docs, err := o.reset(ctx, v, &logger{w: p.Err}, fs.Args()[1:])
		if err != nil {
			return 1, err
		}
		fmt.Fprintf(p.Out, "deleted %d indices with %d docs\n", len(list), docs)
		return 0, nil
	}
	if instead, ok := shell[fs.Arg(0)]; ok {
		return 1, fmt.Errorf("%s is a command of the shell, which is not available here: %s", fs.Arg(0), instead)
	}
	if len(o.system) > 0 && !test {
		return 1, fmt.Errorf("%s is for test; for other loads, use carronade run apm+http://HOST:8200", o.system[0].Flag)
	}
	if fs.NArg() > 0 && !test {
		fmt.Fprintf(p.Err, "warning: %s is ignored: hey-apm takes flags, and here the shell's test\n", strings.Join(fs.Args(), " "))
	}
	s := &logger{w: p.Err}
	v := newSecretRefs()
	defer v.close()
	if generation == gen2018 {
		t := &legacyRun{options: &o, p: p, log: s, secretRefs: v}
		if test {
			return t.test(ctx, fs.Args()[1:], given)
		}
		return t.main(ctx, given)
	}
	return (&agents{options: &o, p: p, log: s, secretRefs: v, given: given}).main(ctx)
}

// shell contains the shell's other commands and their replacements.
var shell = map[string]string{
	"apm":     "-system-cmd, -system-git, -system-fetch, -system-checkout and -system-build before test",
	"cancel":  "an interrupt ends a test",
	"collate": "carronade collate",
	"define":  "workload files and your own shell",
	"help":    "--help",
	"status":  "carronade run says what it finds",
	"verify":  "carronade verify",
}

// besideTest are the flags of 2023 that are allowed with test, of 2018.
var besideTest = map[string]bool{"apm-es-url": true, "apm-es-auth": true, "es-url": true, "es-auth": true}

// choose derives the generation from the given flags.
func choose(fs *flag.FlagSet, asked string) (generation string, given map[string]bool, err error) {
	given = map[string]bool{}
	var old, recent string
	test := fs.Arg(0) == "test"
	fs.Visit(func(f *flag.Flag) {
		given[f.Name] = true
		switch {
		case of2018[f.Name]:
			old = f.Name
		case test && besideTest[f.Name]:
		case of2023[f.Name]:
			recent = f.Name
		}
	})
	switch {
	case test && recent != "":
		return "", nil, fmt.Errorf("test belongs to %s and -%s to %s: use arguments of one generation", gen2018, recent, gen2023)
	case test && asked == gen2023:
		return "", nil, fmt.Errorf("--generation %s has no test", asked)
	case asked != "" && asked != gen2018 && asked != gen2023:
		return "", nil, fmt.Errorf("--generation %s: hey-apm has %s and %s", asked, gen2018, gen2023)
	case old != "" && recent != "":
		return "", nil, fmt.Errorf("-%s belongs to %s and -%s to %s: use flags of one generation", old, gen2018, recent, gen2023)
	case asked == gen2018 && recent != "":
		return "", nil, fmt.Errorf("--generation %s has no -%s", asked, recent)
	case asked == gen2023 && old != "":
		return "", nil, fmt.Errorf("--generation %s has no -%s", asked, old)
	case asked == gen2023 || recent != "":
		return gen2023, given, nil
	}
	return gen2018, given, nil
}

// targetOf converts a server's URL to a target: http://h:8200/prefix to
// apm+http://h:8200/prefix. The default port is the scheme's.
func targetOf(text string) (string, error) {
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

// A logger writes lines as Go's log package does, with a source position.
type logger struct {
	w interface{ Write([]byte) (int, error) }
}

func (s *logger) printf(format string, args ...any) {
	fmt.Fprintf(s.w, "%s main.go:1: %s\n", time.Now().Format("2006/01/02 15:04:05"), fmt.Sprintf(format, args...))
}

// interrupted logs the tool's message about an interrupt.
func (s *logger) interrupted() { s.printf("[error] caught signal, stopping work") }
