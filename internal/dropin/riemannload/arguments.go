package riemannload

import (
	"fmt"
	"strconv"
	"strings"

	"carronade/internal/dropin"
)

// riemannOptions are the tool's flags.
type riemannOptions struct {
	workers, batch, connections int
	netty, buffer               string // as given; "": not given
	reports                     string
	addr                        string   // host:port
	furtherAddrs                []string // further addresses
}

// riemannFlags are the flags' names, short and long.
var riemannFlags = []struct{ short, long string }{
	{"w", "client-workers"},
	{"b", "batch-size"},
	{"c", "connections"},
	{"n", "netty-workers"},
	{"s", "buffer-size"},
	{"r", "reports-dir"},
}

// riemannUsage is what the tool's option parser prints to stdout.
const riemannUsage = `usage: load-test
 -b,--batch-size <arg>       number of Events to send in each Msg, default
                             is 1
 -c,--connections <arg>      number of concurrent connections, if not
                             specified then equal to -w
 -n,--netty-workers <arg>    number of netty worker threads, if not
                             specified then equal to -w
 -r,--reports-dir <arg>      base directory for generated reports, default
                             is ./<timestamp>
 -s,--buffer-size <arg>      netty pipeline buffer size in bytes, default
                             is 1
 -w,--client-workers <arg>   number of client workers, default is 1
`

// A riemannUnparsed error is about an argument that the option parser rejects; the tool
// then prints its usage.
type riemannUnparsed string

func (u riemannUnparsed) Error() string { return string(u) }

// parseRiemann reads arguments as the tool's POSIX parser does: -w 2, -w2,
// --client-workers 2 and --client-workers=2. Any other argument is an address; only
// the first is used.
func parseRiemann(args []string) (o riemannOptions, err error) {
	given := map[string]string{}
	var rest []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			rest = append(rest, args[i+1:]...)
			break
		}
		if arg == "-" || !strings.HasPrefix(arg, "-") {
			rest = append(rest, arg)
			continue
		}
		name, value, has := riemannFlagOf(arg)
		if name == "" {
			return o, riemannUnparsed("Unrecognized option: " + arg)
		}
		if !has {
			if i++; i == len(args) {
				return o, riemannUnparsed("Missing argument for option: " + name)
			}
			value = args[i]
		}
		if _, twice := given[name]; !twice { // the first is used
			given[name] = value
		}
	}
	o = riemannOptions{workers: 1, batch: 1, reports: ".", addr: "localhost:5555"}
	for _, f := range []struct {
		name string
		to   *int
	}{{"w", &o.workers}, {"b", &o.batch}, {"c", &o.connections}} {
		if err := parseRiemannInt(given, f.name, f.to); err != nil {
			return o, err
		}
		if _, ok := given["c"]; f.name == "w" && !ok {
			o.connections = o.workers
		}
	}
	var unused int
	if err := parseRiemannInt(given, "n", &unused); err != nil {
		return o, err
	}
	o.netty, o.buffer = given["n"], given["s"]
	if dir, ok := given["r"]; ok {
		o.reports = dir
	}
	if len(rest) > 0 {
		o.addr, o.furtherAddrs = rest[0], rest[1:]
	}
	return o, o.check()
}

// riemannFlagOf finds an argument's flag, and its value if the argument contains it.
func riemannFlagOf(arg string) (short, value string, has bool) {
	text := strings.TrimLeft(arg, "-")
	name, value, has := strings.Cut(text, "=")
	for _, f := range riemannFlags {
		if name == f.long || name == f.short {
			return f.short, value, has
		}
	}
	for _, f := range riemannFlags { // a short one followed by its value
		if !strings.HasPrefix(arg, "--") && strings.HasPrefix(text, f.short) {
			return f.short, text[1:], true
		}
	}
	return "", "", false
}

func parseRiemannInt(given map[string]string, name string, to *int) error {
	text, ok := given[name]
	if !ok {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return &dropin.Exception{Class: "java.lang.NumberFormatException", Text: fmt.Sprintf("For input string: %q", text), Hint: "-" + name + " wants a whole number"}
	}
	*to = int(n)
	return nil
}

// check finds values with which the tool would have failed later or hung.
func (o *riemannOptions) check() error {
	for _, f := range []struct {
		name string
		n    int
	}{{"w", o.workers}, {"b", o.batch}, {"c", o.connections}} {
		if f.n < 1 {
			return &dropin.Exception{Class: "java.lang.IllegalArgumentException", Text: fmt.Sprintf("-%s %d", f.name, f.n), Hint: "-" + f.name + " wants 1 or more"}
		}
	}
	host, port, ok := strings.Cut(o.addr, ":")
	if strings.Count(o.addr, ":") > 1 { // IPv6, with its host in brackets
		host, port, ok = strings.Cut(strings.TrimPrefix(o.addr, "["), "]:")
	}
	if n, err := strconv.ParseUint(port, 10, 16); !ok || host == "" || err != nil || n == 0 {
		return &dropin.Exception{Class: "java.lang.IllegalStateException", Hint: fmt.Sprintf("%q is not an address HOST:PORT", o.addr)}
	}
	return nil
}
