package cli

import (
	"strings"

	"carronade/internal/layout"
	"carronade/internal/workload"
)

// limitsText explains every limit, and what only looks like one.
func limitsText(*session) string {
	var b strings.Builder
	b.WriteString(`Drops, failures, losses and slow answers are results. They change the exit code
only through a limit.

limits
`)
	for _, r := range []row{
		{"--slo LIMIT", "a limit on any result, such as 'p99<20ms' or dropped=0 (see: carronade help slo)"},
		{"--abort-on-fail", "end the run when such a limit breaks; =30s: not in the first 30 s of the measurement"},
		{"--failures N", "end the run when more than N events failed"},
		{"--failure-rate SHARE", "end the run when more than this share failed"},
		{"--verify", "read back what was sent: nothing acked may be lost or altered"},
		{"--count N", "fewer events are a broken limit, unless --count-at-most is given"},
	} {
		writeRow(&b, textColumn, r.name, r.text)
	}
	b.WriteString(`
A run in which the system accepted no event fails without any limit.

timeouts and ends, which are not limits
`)
	for _, r := range []row{
		{"--for, --count, --bytes", "where the run ends"},
		{"--drain", "how long to wait for the last answers; what is not answered by then is unknown"},
		{"--idle-timeout", "reading ends when nothing has arrived for this long"},
		{"--connect-timeout, ...", "a target has timeouts of its own (see: carronade run TARGET --help); events that reach one are failed or unknown"},
	} {
		writeRow(&b, textColumn, r.name, r.text)
	}
	b.WriteString(`
exit codes
`)
	for _, r := range []row{
		{"0", "every limit holds"},
		{"1", "a limit is broken, also in a run that is not trusted"},
		{"3", "no limit is known to be broken, and the run is not trusted"},
		{"4", "the result of a limit is unknown: the generator may have affected it, or not all events could be read back"},
	} {
		writeRow(&b, 8, r.name, r.text)
	}
	return b.String() + "\nAll codes: carronade help exit-codes.\n"
}

// sloText explains the limits of --slo. The names are those of the grammar.
func sloText(*session) string {
	var b strings.Builder
	b.WriteString(`A limit on a result is NAME<VALUE, NAME<=VALUE, NAME=VALUE, NAME>=VALUE or
NAME>VALUE, in quotes for the shell. --slo can be repeated; all limits must
hold. In a file: slo: [p99<20ms, lost=0].

` + sloExample + `
times
`)
	const column = 19
	writeRow(&b, column, "p99, p99.9, ...", "any percentile, max or mean: of the response time, without a schedule of the service time")
	writeRow(&b, column, "service.p99", "of this time: "+strings.Join(workload.LimitTimes(), ", "))
	b.WriteString("\nresults\n")
	for _, r := range workload.Results() {
		text := r.Help
		if r.Kind == workload.VerdictKind {
			text += " (without a value)"
		}
		writeRow(&b, column, r.Name, text)
	}
	b.WriteString(`
metrics, by their names in the report: < limits the maximum, > the minimum
  server.NAME      what the system reports about itself
  system.NAME      what its processes use
  host.NAME        this machine
`)
	b.WriteByte('\n')
	for _, line := range layout.Wrap("Each limit is a line of the report: it holds, is BROKEN (exit code 1) or cannot tell (4). A percentile is broken only "+
		"if the generator's own delays cannot explain it. With --shape steps each step is checked. --abort-on-fail ends the run when a limit breaks. "+
		"Limits on the delivery (lost, not-found, ...) turn on --verify.", helpWidth) {
		b.WriteString(line + "\n")
	}
	return b.String()
}
