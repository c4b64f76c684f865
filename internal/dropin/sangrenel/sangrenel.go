// Package sangrenel is the drop-in for sangrenel, with the flags of each of its generations.
package sangrenel

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/load"
)

// Tool is the command line of sangrenel: the five flags and the lines of 2014, those of 2015 and
// 2016, and those of its last version of 2022, depending on the flags. The flags that generations share mean
// the same in all, except that each creates a missing topic with its own number of partitions.
var Tool = dropin.Tool{
	Name: "sangrenel", Short: "Kafka: random messages as fast as possible (2014, 2015 and 2022)", Kind: "kafka",
	OneDash: true,
	Main:    runSangrenel,
}

const sangrenelDiffers = `
"avg latency" is the mean of the slowest tenth, as in sangrenel of 2014. Here
failed messages are not counted as sent, the rate is kept evenly, and after an
interrupt the exit code is 1 when messages failed, 2 or 3 as for carronade run
(--strict: 0). See docs/coming-from/sangrenel.md.
`

func runSangrenel(ctx context.Context, p *dropin.Program) (int, error) {
	var o sangrenelOptions
	fs := o.flagSet(p.Called)
	if code, done := dropin.ParseGoFlags(p, fs, flagsOf(fs, p), sangrenelDiffers); done {
		return code, nil
	}
	o.given, o.rest = dropin.GivenFlags(fs), fs.Args()
	var err error
	if o.lines, err = o.generation(p.Generation); err != nil {
		return 1, err
	}
	if msg := o.check(); msg != "" {
		fmt.Fprintln(p.Out, msg)
		return 1, nil
	}
	o.warn(p)
	pr := sangrenelPrinter(&lines2014{o: &o, p: p})
	switch o.lines {
	case sangrenel2015:
		pr = &lines2015{lines2014{o: &o, p: p}}
	case sangrenel2022:
		pr = &lines2022{o: &o, p: p}
		o.warnOfSmallBatches(p)
	}
	pr.start()
	d, err := p.Run(ctx, o.workload(), dropin.Observer{Opened: pr.opened, Interval: pr.interval, Published: pr.published, ZeroP99: p.Strict})
	if err != nil {
		if ctx.Err() != nil {
			return 0, nil //nolint:nilerr // an interrupt is not an error
		}
		return 1, err
	}
	pr.end()
	dropin.WriteProblems(p.Err, d)
	if o.unanswered() && !o.noop {
		fmt.Fprintln(p.Err, "note: with -required-acks none nothing is answered: times are 0, and messages are the ones sent")
	}
	return o.exit(d, p.Strict), nil
}

// flagsOf are the flags of the generation that --generation names, all without it: those that help lists.
func flagsOf(fs *flag.FlagSet, p *dropin.Program) *flag.FlagSet {
	if !slices.Contains(sangrenelGenerations, p.Generation) {
		return fs
	}
	own := flag.NewFlagSet(p.Called, flag.ContinueOnError)
	fs.VisitAll(func(f *flag.Flag) {
		if hasFlag(p.Generation, f.Name) {
			own.Var(f.Value, f.Name, f.Usage)
		}
	})
	return own
}

// generation is the generation of a name or else of the flags: the oldest that has them all. Without -size
// or a flag of 2015 alone, flags that 2014 does not have are of 2022.
func (o *sangrenelOptions) generation(name string) (string, error) {
	given := slices.Sorted(maps.Keys(o.given))
	lacks := func(generation string) string {
		for _, flag := range given {
			if !hasFlag(generation, flag) {
				return flag
			}
		}
		return ""
	}
	if name != "" {
		if !slices.Contains(sangrenelGenerations, name) {
			return "", fmt.Errorf("--generation %s: sangrenel has 2014, 2015 and 2022", name)
		}
		if flag := lacks(name); flag != "" {
			return "", fmt.Errorf("--generation %s has no -%s", name, flag)
		}
		return name, nil
	}
	order := []string{sangrenel2014, sangrenel2022, sangrenel2015}
	i := slices.IndexFunc(order, func(g string) bool { return lacks(g) == "" })
	if i < 0 {
		return "", fmt.Errorf("-%s is not a flag of 2022 and -%s is none of 2014 or 2015: use flags of one generation", lacks(sangrenel2022), lacks(sangrenel2015))
	}
	return order[i], nil
}

// exit is the exit code of a run. sangrenel runs until an interrupt, which is
// therefore not a failure: the part until then is checked like any other run.
func (o *sangrenelOptions) exit(d *report.Document, strict bool) int {
	if strict {
		return host.ExitOK
	}
	checked := *d
	if checked.Stopped == load.Interrupted {
		checked.Stopped = load.ByTime
	}
	lost := d.Totals.Failed
	if !o.unanswered() && !o.noop { // otherwise unknown is expected
		lost += d.Totals.Unknown
	}
	return dropin.WithLost(checked.ExitCode(), lost)
}
