package omb

import (
	"fmt"
	"slices"
	"strings"

	"carronade/internal/advice"
	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/kafka/cluster"
	"carronade/internal/layout"
	"carronade/internal/workload"
	"carronade/units"
)

// check prints what each pair becomes: each field, and the command that does the same.
func check(p *dropin.Program, pairs []*pair) (int, error) {
	code := host.ExitOK
	for i, r := range pairs {
		if i > 0 {
			fmt.Fprintln(p.Out)
		}
		fmt.Fprintf(p.Out, "%s with %s: %s\n", r.spec.file, r.driver.file, r.spec.name)
		d, err := r.checked(p)
		if err != nil {
			code = host.ExitFailed
			fmt.Fprintf(p.Out, "  cannot run: %v\n", err)
			if hint := advice.Hint(err); hint != "" {
				fmt.Fprintf(p.Out, "  hint: %s\n", hint)
			}
			continue
		}
		t := &layout.Table{Left: []int{0, 1}}
		for _, one := range r.becomes(&d.Document) {
			t.Row("    "+one[0], one[1])
		}
		for _, line := range t.Lines(0, layout.Style{}) {
			fmt.Fprintln(p.Out, strings.TrimRight(line, " "))
		}
		fmt.Fprintf(p.Out, "  %s\n", r.command(&d.Document))
	}
	return code, nil
}

// checked is the workload of a pair, checked as a run does.
func (r *pair) checked(p *dropin.Program) (*dropin.Draft, error) {
	d, err := r.draft()
	if err != nil {
		return nil, err
	}
	doc := d.Document
	doc.Entries = slices.Clone(doc.Entries)
	return d, p.Resolve(&doc)
}

// becomes is each field with its value, and what it becomes.
func (r *pair) becomes(d *workload.Document) [][2]string {
	settings := map[string][]string{}
	for _, e := range d.Entries {
		settings[e.Where] = append(settings[e.Where], shown(&e)...)
	}
	row := func(field, value, otherwise string) [2]string {
		text := strings.Join(settings[field], " ")
		if text == "" {
			text = otherwise
		}
		return [2]string{field + " = " + value, text}
	}
	n := func(x int) string { return fmt.Sprint(x) }
	rows := [][2]string{
		row("topics", n(r.topics), ""),
		row("partitionsPerTopic", n(r.partitions), ""),
		row("messageSize", n(r.size), "the size of payloadFile"),
	}
	if r.random {
		rows = append(rows, row("randomBytesRatio", shortNumber(r.ratio), ""), row("randomizedPayloadPoolSize", n(r.pool), "the pool of each client (--pool), which has as many or more"))
	} else {
		rows = append(rows, row("payloadFile", r.payload, ""))
	}
	rows = append(rows, row("keyDistributor", r.keys, "no key"), row("producersPerTopic", n(r.producers), "1 client"), row("subscriptionsPerTopic", n(r.groups), ""))
	if r.groups > 0 {
		rows = append(rows, row("consumerPerSubscription", n(r.consumers), "1 reader"))
	}
	rows = append(rows, row("producerRate", n(r.spec.rate), "the rate is searched first, as carronade find does, and then run"))
	if r.backlog > 0 {
		rows = append(rows, row("consumerBacklogSizeGB", shortNumber(r.backlog), "no backlog"), row("backlogDrainRatio", shortNumber(r.drained), ""))
	}
	rows = append(rows, row("warmupDurationMinutes", shortNumber(r.warmup), "no warm-up"), row("testDurationMinutes", shortNumber(r.lasts), "until it is interrupted"))
	if len(r.a.workers) > 0 {
		rows = append(rows, [2]string{"workers = " + strings.Join(r.a.workers, ","), "agents that send; this machine reads"})
	}
	for _, p := range []struct{ field, otherwise string }{{"commonConfig", ""}, {"producerConfig", ""}, {"consumerConfig", "the topics are new, and groups commit what they read"}} {
		if text := strings.Join(settings[p.field], " "); text != "" || p.otherwise != "" {
			rows = append(rows, [2]string{p.field, strings.TrimSpace(text)})
			if text == "" {
				rows[len(rows)-1][1] = p.otherwise
			}
		}
	}
	return rows
}

// shown are the flags of an entry; a target is itself.
func shown(e *workload.Entry) (flags []string) {
	for _, value := range e.Values {
		name, _, _ := strings.Cut(value, "=")
		switch {
		case e.Name == "target":
			flags = append(flags, advice.Quote(value))
		case value == "true":
			flags = append(flags, "--"+e.Name)
		case e.Name == "client-property" && (cluster.PropertySecret(name) || !cluster.PropertyKnown(name)):
			flags = append(flags, "--"+e.Name+" "+advice.Quote(name+"=(not shown)"))
		default:
			flags = append(flags, "--"+e.Name+" "+advice.Quote(value))
		}
	}
	return flags
}

// command is the command that does the same.
func (r *pair) command(d *workload.Document) string {
	words := []string{"carronade", "run"}
	if r.spec.rate == 0 {
		words[1] = "find"
	}
	for _, e := range d.Entries {
		if e.Name == "label" || r.spec.rate == 0 && slices.Contains([]string{"warmup", "for", "interval"}, e.Name) {
			continue
		}
		words = append(words, shown(&e)...)
	}
	if r.spec.rate == 0 {
		words = append(words, "--budget", units.FlagDuration(r.a.budgetOr()))
	}
	return strings.Join(words, " ")
}
