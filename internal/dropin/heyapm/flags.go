package heyapm

import (
	"flag"
	"math"
	"strings"
	"time"

	"carronade/internal/dropin"
)

// A repeatedFlag may be given several times; its first value replaces the default.
type repeatedFlag struct {
	list []string
	set  bool
}

func (w *repeatedFlag) String() string { return strings.Join(w.list, " ") }

func (w *repeatedFlag) Set(text string) error {
	if !w.set {
		w.list, w.set = nil, true
	}
	w.list = append(w.list, text)
	return nil
}

// heyOptions are the flags of both generations.
type heyOptions struct {
	run time.Duration

	bases, headers                         repeatedFlag // 2018
	profile                                string
	requests, timeout                      int
	uncompressed, noKeepAlive, noRedirects bool
	describe, dump, shell                  bool

	url, secret, key                   string // 2023
	flush                              time.Duration
	seed                               int64
	instances, delay                   int
	service                            string
	esURL, esAuth                      string
	indexURL, indexAuth                string
	bench                              bool
	margin                             float64
	days                               string
	errors, transactions               int
	errorInterval, transactionInterval time.Duration
	maxFrames, minFrames               int
	maxSpans, minSpans                 int

	system []dropin.Setting // carronade's flags for the server; with test
}

// The two generations, by the names of --generation.
const (
	hey2018 = "2018"
	hey2023 = "2023"
)

// heyFlags2018 and of2023 are the flags of only one generation; both have -run.
var (
	heyFlags2018 = map[string]bool{
		"base-url": true, "header": true, "profile": true, "requests": true, "timeout": true, "disable-compression": true,
		"disable-keepalive": true, "disable-redirects": true, "describe": true, "dump": true, "server": true,
	}
	heyFlags2023 = map[string]bool{
		"apm-url": true, "apm-secret": true, "api-key": true, "flush": true, "seed": true, "instances": true, "delay": true, "service-name": true,
		"es-url": true, "es-auth": true, "apm-es-url": true, "apm-es-auth": true, "bench": true, "rm": true, "rd": true,
		"e": true, "ef": true, "ex": true, "em": true, "sx": true, "sm": true, "t": true, "tf": true,
	}
)

func (o *heyOptions) flagSet(name string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.DurationVar(&o.run, "run", 0, "stop run after this duration (2018: 10s, 2023: 30s; 0: never)")

	o.bases.list = []string{"http://localhost:8200/"}
	fs.Var(&o.bases, "base-url", "2018: server, repeatable")
	fs.Var(&o.headers, "header", "2018: header(s) added to all requests")
	fs.StringVar(&o.profile, "profile", "heavy", "2018: load profile: one of "+heyProfileNames())
	fs.IntVar(&o.requests, "requests", math.MaxInt32, "2018: maximum requests to make")
	fs.IntVar(&o.timeout, "timeout", 3, "2018: request timeout, seconds")
	fs.BoolVar(&o.uncompressed, "disable-compression", false, "2018: send bodies as they are")
	fs.BoolVar(&o.noKeepAlive, "disable-keepalive", false, "2018: a connection for each request")
	fs.BoolVar(&o.noRedirects, "disable-redirects", false, "2018: do not follow redirects (never followed here)")
	fs.BoolVar(&o.describe, "describe", false, "2018: describe payloads and exit")
	fs.BoolVar(&o.dump, "dump", false, "2018: dump payloads in loadbeat config format and exit")
	fs.BoolVar(&o.shell, "server", false, "2018: the shell, for telnet to port 8234: carronade serve")

	fs.StringVar(&o.url, "apm-url", "http://localhost:8200", "2023: apm server url")
	fs.StringVar(&o.secret, "apm-secret", "", "2023: apm server secret token; here also env:NAME or file:PATH, which keep it out of the process list")
	fs.StringVar(&o.key, "api-key", "", "2023: APM API key; here also env:NAME or file:PATH")
	fs.DurationVar(&o.flush, "flush", 10*time.Second, "2023: wait timeout for requests in flight at the end")
	fs.Int64Var(&o.seed, "seed", 0, "2023: random seed (now)")
	fs.IntVar(&o.instances, "instances", 1, "2023: number of agents")
	fs.IntVar(&o.delay, "delay", 1000, "2023: max delay in milliseconds per agent to start; here all start at once")
	fs.StringVar(&o.service, "service-name", "hey-service", "2023: had no effect, and has none here")
	fs.StringVar(&o.esURL, "es-url", "", "2023, and test: elasticsearch url for reports (default: your own store)")
	fs.StringVar(&o.esAuth, "es-auth", "", "2023, and test: username:password for it; the password may be env:NAME or file:PATH")
	fs.StringVar(&o.indexURL, "apm-es-url", "", "2023, and test: elasticsearch behind the server, to count what was indexed")
	fs.StringVar(&o.indexAuth, "apm-es-auth", "", "2023, and test: username:password for it; the password may be env:NAME or file:PATH")
	fs.BoolVar(&o.bench, "bench", false, "2023: execute a benchmark with fixed parameters")
	fs.Float64Var(&o.margin, "rm", 1.1, "2023: margin of a regression; here carronade verify decides")
	fs.StringVar(&o.days, "rd", "7", "2023: days back to check for regressions; here carronade verify decides")
	fs.IntVar(&o.errors, "e", math.MaxInt, "2023: max errors to generate")
	fs.DurationVar(&o.errorInterval, "ef", time.Nanosecond, "2023: error frequency: up to one in this duration")
	fs.IntVar(&o.maxFrames, "ex", 10, "2023: max frames per error")
	fs.IntVar(&o.minFrames, "em", 0, "2023: min frames per error")
	fs.IntVar(&o.maxSpans, "sx", 10, "2023: max spans per transaction")
	fs.IntVar(&o.minSpans, "sm", 1, "2023: min spans per transaction")
	fs.IntVar(&o.transactions, "t", math.MaxInt, "2023: max transactions to generate")
	fs.DurationVar(&o.transactionInterval, "tf", time.Nanosecond, "2023: transaction frequency: up to one in this duration")
	return fs
}
