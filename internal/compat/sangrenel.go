package compat

import (
	"context"
	"errors"
	"fmt"

	"carronade/internal/report"
	"carronade/internal/system"
	"carronade/load"
)

// Sangrenel is the command line of sangrenel: the five flags and the lines of 2014, and those
// of its last version of 2022, depending on the flags. The flags that both generations share mean
// the same in both, except that each creates a missing topic with its own number of partitions.
var Sangrenel = Tool{
	Name: "sangrenel", Short: "Kafka: random messages as fast as possible (2014 and 2022)", Kind: "kafka",
	OneDash: true,
	Main:    runSangrenel,
}

const sangrenelDiffers = `
"avg latency" is the mean of the slowest tenth, as in sangrenel of 2014. Here
failed messages are not counted as sent, the rate is kept evenly, and after an
interrupt the exit code is 1 when messages failed, 2 or 3 as for carronade run
(--strict: 0). See docs/coming-from/sangrenel.md.
`

func runSangrenel(ctx context.Context, p *Program) (int, error) {
	var o sangrenelOptions
	fs := o.flagSet(p.Called)
	if code, done := parseGoFlags(p, fs, fs, sangrenelDiffers); done {
		return code, nil
	}
	o.given, o.rest = givenFlags(fs), fs.Args()
	is2022, err := o.generation(p.Generation)
	if err != nil {
		return 1, err
	}
	if msg := o.check(is2022); msg != "" {
		fmt.Fprintln(p.Out, msg)
		return 1, nil
	}
	o.warn(p)
	pr := sangrenelPrinter(&lines2014{o: &o, p: p})
	if is2022 {
		pr = &lines2022{o: &o, p: p}
		o.warnOfSmallBatches(p)
	}
	pr.start()
	d, err := p.Run(ctx, o.workload(is2022), Observer{Opened: pr.opened, Interval: pr.interval, Published: pr.published, ZeroP99: p.Strict})
	if err != nil {
		if ctx.Err() != nil {
			return 0, nil //nolint:nilerr // an interrupt is not an error
		}
		return 1, err
	}
	pr.end()
	writeProblems(p.Err, d)
	if o.unanswered() && !o.noop {
		fmt.Fprintln(p.Err, "note: with -required-acks none nothing is answered: times are 0, and messages are the ones sent")
	}
	return o.exit(d, p.Strict), nil
}

// generation reports whether the lines of 2022 are wanted, by a name or else by the
// flags.
func (o *sangrenelOptions) generation(name string) (is2022 bool, err error) {
	for flag := range o.given {
		is2022 = is2022 || !flags2014[flag]
	}
	switch name {
	case "", "2014", "2022":
	default:
		return false, fmt.Errorf("--generation %s: sangrenel has 2014 and 2022", name)
	}
	if name == "2014" && is2022 {
		return false, errors.New("--generation 2014 has -brokers, -noop, -size, -topic and -workers only")
	}
	is2022 = is2022 || name == "2022"
	if is2022 && o.given["size"] {
		return false, errors.New("-size is a flag of 2014 and another flag is of 2022, where it is called -message-size: use flags of one generation")
	}
	return is2022, nil
}

// exit is the exit code of a run. sangrenel runs until an interrupt, which is
// therefore not a failure: the part until then is checked like any other run.
func (o *sangrenelOptions) exit(d *report.Document, strict bool) int {
	if strict {
		return system.ExitOK
	}
	checked := *d
	if checked.Stopped == load.Interrupted {
		checked.Stopped = load.ByTime
	}
	lost := d.Totals.Failed
	if !o.unanswered() && !o.noop { // otherwise unknown is expected
		lost += d.Totals.Unknown
	}
	return WithLost(checked.ExitCode(), lost)
}
