package mongoose

import (
	"fmt"
	"slices"
	"strings"

	"carronade/internal/layout"
)

// effects are the effects of options that a workload has no setting for.
var effects = map[string]string{
	"item-data-input-file":                       "the bytes of records",
	"item-data-input-layer-size":                 "the bytes of records",
	"item-data-input-seed":                       "the bytes of records",
	"item-input-file":                            "its lines are what is read, or the topics",
	"item-naming-length":                         "names of keys, topics and items",
	"item-naming-prefix":                         "names of keys, topics and items",
	"item-naming-radix":                          "names of keys, topics and items",
	"item-naming-seed":                           "names of keys, topics and items",
	"item-naming-step":                           "names of keys, topics and items",
	"item-naming-type":                           "names of keys, topics and items",
	"item-output-delay":                          "an item waits for it before the next context",
	"item-output-file":                           "the list of what succeeded",
	"item-output-queue-limit":                    "items between two contexts",
	"load-batch-size":                            "topics in a request",
	"load-op-limit-count":                        "operations",
	"load-op-limit-fail-count":                   "failures that end the step",
	"load-op-limit-rate":                         "requests a second",
	"load-op-recycle":                            "reading goes on beyond the end",
	"load-op-recycle-mode":                       "reading goes on beyond the end",
	"load-op-weight":                             "the share of the context",
	"load-op-wait-finish":                        "the step waits for answers",
	"load-step-id":                               "a label of the report, and the folder of the files",
	"load-step-limit-time":                       "no request is started after it",
	"output-color":                               "colors of the table",
	"output-metrics-average-period":              "rows of the table and of metrics.csv",
	"output-metrics-average-table-header-period": "rows between two headers of the table",
	"output-metrics-threshold":                   "metrics.threshold.csv",
	"output-metrics-quantiles":                   "quantiles of the results",
	"run-comment":                                "a note of the report",
	"run-id":                                     "a label of the report",
	"load-step-node-addrs":                       "the machines that send, in addition to this one",
	"load-step-node-port":                        "the port of those machines",
	"run-node":                                   "this machine is a node",
	"run-port":                                   "the remote API",
	"run-scenario":                               "the script",
	"storage-driver-create-headers":              "headers of records",
	"storage-driver-create-key-enabled":          "records have keys",
	"storage-driver-limit-concurrency":           "requests in flight",
	"storage-driver-read-timeoutMillis":          "--idle-timeout",
	"storage-driver-record-headers":              "headers of records",
	"storage-driver-record-key-enabled":          "records have keys",
	"storage-driver-record-timeoutMillis":        "--idle-timeout",
	"storage-driver-type":                        "Kafka, or nothing is sent",
	"storage-net-node-addrs":                     "the brokers",
	"storage-net-node-port":                      "the brokers",
}

// ofReads are the options that the context of a pipeline that reads has itself.
var ofReads = []string{
	"item-data-verify", "item-input-path", "item-output-file", "item-type", "load-op-recycle", "load-op-recycle-mode", "load-op-type", "output-metrics-trace-persist",
	"storage-driver-limit-concurrency", "storage-driver-type", "storage-net-node-addrs", "storage-net-node-port",
}

// firstHasIt is why an option of a later context does nothing.
const firstHasIt = "the first context of a " + pipelineLoad + " has it"

// printCheck prints what a step would do, and what each of its paths becomes. A step that would do
// the same as one before, as in a loop, is not printed again.
func (r *runner) printCheck(l *loads, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %s", l.name, l.at)
	if err != nil {
		fmt.Fprintf(&b, ": cannot run: %s", err)
	} else if len(l.parts) == 1 {
		fmt.Fprintf(&b, ": %s", l.parts[0].does())
	}
	b.WriteByte('\n')
	lines := func(p *scenarioPart, paths []configured) {
		for _, line := range p.table(paths).Lines(0, layout.Style{}) {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	if len(l.shared) > 0 {
		lines(l.parts[0], l.shared)
	}
	for i, p := range l.parts {
		if len(l.parts) > 1 {
			fmt.Fprintf(&b, "  context %d", i+1)
			if p.step != nil {
				fmt.Fprintf(&b, ": %s", p.does())
			}
			b.WriteByte('\n')
		}
		lines(p, p.paths)
	}
	if text := b.String(); !r.printed[text] {
		r.printed[text] = true
		fmt.Fprintf(r.program.Out, "step %d, %s", l.number, text)
	}
}

// table is each path with its last value and what it becomes.
func (p *scenarioPart) table(paths []configured) *layout.Table {
	t := &layout.Table{Left: []int{0, 1}}
	last := make(map[string]int)
	for k, c := range paths {
		last[c.name] = k
	}
	for k := range paths {
		if c := &paths[k]; last[c.name] == k {
			t.Row("    "+dotted(c.name)+" = "+shown(c.text), p.becomes(c))
		}
	}
	return t
}

// does says what a load does.
func (p *scenarioPart) does() string {
	switch {
	case p.work == noop:
		return "sends nothing"
	case p.work == writeRecords:
		return "writes records to kafka://" + strings.Join(p.brokers, ",") + "/" + p.topic
	case p.work == readRecords:
		return "reads records of kafka://" + strings.Join(p.brokers, ",") + "/" + p.topic
	case p.topicOp == "delete-records":
		return "deletes records of topics at kafka://" + strings.Join(p.brokers, ",")
	}
	return p.topicOp + "s topics at kafka://" + strings.Join(p.brokers, ",")
}

// shown is a value in a check.
func shown(text string) string {
	if text == "" {
		return "null"
	}
	return shortened(text)
}

// becomes says what a path becomes.
func (p *scenarioPart) becomes(c *configured) string {
	text := ""
	switch to := &c.path; {
	case to.refused != "" && c.text != "false":
		text = "refused: " + to.refused
	case to.refused != "":
		text = "nothing"
	case to.ignored != "":
		text = "ignored: " + to.ignored
	case p.step != nil:
		text = p.effect(to.option)
	}
	if c.path.note != "" {
		text += " (" + c.path.note + ")"
	}
	return strings.TrimSpace(text)
}

// effect is what a given option does: nothing for a reason, settings of a run, or another effect.
func (p *scenarioPart) effect(o *option) string {
	for _, note := range p.notes {
		if why, ok := strings.CutPrefix(note, dotted(o.name)+" does nothing: "); ok {
			return "ignored: " + why
		}
		if when, ok := strings.CutPrefix(note, dotted(o.name)+" has no effect when "); ok {
			return "ignored: " + when
		}
	}
	switch {
	case !p.v.has(o.name) && o.name == "item-input-file":
		return "the list that a step before writes"
	case !p.v.has(o.name):
		return "the default"
	case p.later && !slices.Contains(ofReads, o.name):
		return "ignored: " + firstHasIt
	}
	var flags []string
	if p.doc != nil {
		for _, e := range p.doc.Entries {
			if e.Where != "--"+o.name {
				continue
			}
			switch text := strings.Join(e.Values, ","); {
			case e.Name == "target":
				flags = append(flags, text)
			case text == "true":
				flags = append(flags, "--"+e.Name)
			default:
				flags = append(flags, "--"+e.Name+" "+text)
			}
		}
	}
	if text := p.special(o); text != "" {
		return text
	}
	if len(flags) > 0 {
		return strings.Join(flags, " ")
	}
	return effects[o.name]
}

// special is the effect of an option that depends on the load; "" for other options.
func (p *scenarioPart) special(o *option) string {
	written := func(file string) string {
		if p.v.flag(o.name) {
			return file + " is written"
		}
		return file + " is not written"
	}
	switch o.name {
	case "item-input-path", "item-output-path":
		if p.topic != "" {
			return "the topic " + p.topic
		}
		return "the topics"
	case "item-type":
		if p.work == onTopics && p.topicOp != "delete-records" {
			return "topics"
		}
		return "records"
	case "load-op-type":
		if p.work == onTopics {
			return "carronade topics " + p.topicOp
		}
	case "output-metrics-average-persist":
		return written("metrics.csv")
	case "output-metrics-summary-persist":
		return written("metrics.total.csv")
	case "output-metrics-trace-persist":
		return written("op.trace.csv")
	}
	return ""
}
