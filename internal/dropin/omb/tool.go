package omb

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/advice"
	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/place"
)

// Tool is OpenMessaging Benchmark.
var Tool = dropin.Tool{
	Name: "omb", Aliases: []string{"openmessaging-benchmark", "messaging-benchmark"},
	Short: "Kafka: OpenMessaging Benchmark's workload and driver files", Kind: "kafka",
	Main: (&tool{now: time.Now, suffix: suffix}).main,
}

// A tool has what tests replace.
type tool struct {
	now    func() time.Time
	suffix func() string
}

// suffix is the random end of the names of topics.
func suffix() string {
	b := make([]byte, 5)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

const differs = `
Latency is since messages were due, and covers messages that got no answer
(--strict: since their batch was sent). Minutes may have fractions. With
producerRate: 0 the rate is searched, then run. See docs/coming-from/omb.md.
`

func help(p *dropin.Program) {
	fmt.Fprintf(p.Out, "Usage: %s --drivers FILE[,FILE...] [FLAGS] WORKLOAD...\n\n", p.Called)
	for _, ours := range []bool{false, true} {
		for _, f := range flags() {
			if f.ours == ours {
				dropin.HelpRow(p.Out, 30, strings.TrimSpace(strings.Join(f.names, ", ")+" "+f.word), f.help)
			}
		}
		fmt.Fprintln(p.Out)
	}
	fmt.Fprint(p.Out, dropin.CommonHelp, differs)
}

func (t *tool) main(ctx context.Context, p *dropin.Program) (int, error) {
	a, err := parseArguments(p.Args)
	switch {
	case err != nil:
		return host.ExitFailed, err
	case a.help || len(p.Args) == 0:
		help(p)
		return host.ExitOK, nil
	case a.csv != "":
		return writeCSV(p, a.csv, t.now)
	}
	if err := a.complete(); err != nil {
		return host.ExitFailed, err
	}
	warned := map[string]bool{}
	warn := func(text string) {
		if !warned[text] {
			fmt.Fprintf(p.Err, "warning: %s\n", text)
		}
		warned[text] = true
	}
	specs, drivers, err := a.read(warn)
	if err != nil {
		return host.ExitFailed, err
	}
	var pairs []*pair
	for _, s := range specs {
		for _, d := range drivers {
			pairs = append(pairs, &pair{spec: s, driver: d, a: a, strict: p.Strict, suffix: t.suffix()})
		}
	}
	if a.check {
		return check(p, pairs)
	}
	return (&session{tool: t, p: p, a: a, log: &logger{w: p.Out, now: t.now}, warn: warn}).runAll(ctx, pairs)
}

// read reads all files. Workloads are in the order of their names, as the tool has them.
func (a *arguments) read(warn func(string)) (specs []*spec, drivers []*driver, err error) {
	for _, file := range a.workloads {
		s, err := readSpec(file, warn)
		if err != nil {
			return nil, nil, err
		}
		specs = append(specs, s)
	}
	slices.SortStableFunc(specs, func(x, y *spec) int { return strings.Compare(x.stem, y.stem) })
	for _, file := range a.drivers {
		d, err := readDriver(file, warn)
		if err != nil {
			return nil, nil, err
		}
		drivers = append(drivers, d)
	}
	return specs, drivers, nil
}

// A session runs the pairs of a command line.
type session struct {
	*tool
	p    *dropin.Program
	a    *arguments
	log  *logger
	warn func(string)
}

func (s *session) runAll(ctx context.Context, pairs []*pair) (int, error) {
	if s.a.extra {
		s.warn("--extra has no effect: one machine reads what all workers send")
	}
	s.log.info(ofBenchmark, "Starting benchmark with config: %s", s.config())
	code := host.ExitOK
	for i, r := range pairs {
		s.log.info(ofBenchmark, "--------------- WORKLOAD : %s --- DRIVER : %s---------------", r.spec.name, r.driver.name)
		one, err := s.run(ctx, r, i)
		if err != nil {
			s.log.line("ERROR", ofBenchmark, "Failed to run the workload '%s' for driver '%s'", r.spec.name, r.driver.file)
			if i == len(pairs)-1 && !s.p.Strict {
				return dropin.NoReport(ctx, host.ExitFailed, err)
			}
			fmt.Fprintf(s.p.Err, "error: %v\n", err)
			if hint := advice.Hint(err); hint != "" {
				fmt.Fprintf(s.p.Err, "hint: %s\n", hint)
			}
			one = host.ExitFailed
		}
		code = host.WorseExit(code, one)
		if ctx.Err() != nil {
			return host.ExitInterrupted, nil //nolint:nilerr // an interrupt is not an error
		}
	}
	if s.p.Strict {
		return host.ExitOK, nil // as the tool, whatever happened
	}
	return code, nil
}

// config is the command line as the tool prints it.
func (s *session) config() string {
	file := any(nil)
	if s.a.workersFile != "" {
		file = s.a.workersFile
	}
	workers, output := any(nil), any(nil)
	if len(s.a.workers) > 0 {
		workers = s.a.workers
	}
	if s.a.output != "" {
		output = s.a.output
	}
	return object{{"drivers", s.a.drivers}, {"workers", workers}, {"workersFile", file}, {"workloads", s.a.workloads}, {"output", output}}.String()
}

// resultFile is the name of a result file.
func (s *session) resultFile(r *pair, i int) string {
	switch ext := filepath.Ext(s.a.output); {
	case s.a.output == "":
		return fmt.Sprintf("%s-%s-%s.json", r.stem, strings.ReplaceAll(r.driver.name, "/", "-"), s.now().Format("2006-01-02-15-04-05"))
	case i == 0:
		return s.a.output
	default:
		return strings.TrimSuffix(s.a.output, ext) + "-" + strconv.Itoa(i+1) + ext
	}
}

// write writes a result file.
func (s *session) write(r *pair, i int, of *result) error {
	file := s.resultFile(r, i)
	s.log.info(ofBenchmark, "Writing test result into %s", file)
	if err := place.WriteFile(file, []byte(of.object().String()+"\n"), 0o644); err != nil {
		return &advice.Error{Err: fmt.Errorf("write the result: %w", err), Hint: "name a file in a folder that you may write to: --output FILE"}
	}
	return nil
}
