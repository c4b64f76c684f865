package judge

import (
	"fmt"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/measure"
	"carronade/units"
)

// machineText says that other programs took processors from the generators of runs, and how many runs are not trusted
// or noisy then; "" if none did.
func machineText(sides ...[]store.Row) string {
	cause, disturbed, all := "", 0, 0
	for _, rows := range sides {
		for i := range rows {
			all++
			if text := rows[i].Text("machine"); text != "" {
				cause = text
				if rows[i].Text("trust_level") != string(measure.Trusted) {
					disturbed++
				}
			}
		}
	}
	switch {
	case cause == "":
		return ""
	case disturbed == 0:
		return cause
	}
	return fmt.Sprintf("%s: %d of %s may be wrong; stop them, or use a quieter machine", cause, disturbed, units.Plural(all, "run"))
}

// machineLine writes that the machine disturbed the runs, if it did. It comes before the numbers.
func machineLine(p *layout.Page, text string) {
	if text != "" {
		p.Pair(layout.Yellow, "machine", text)
	}
}
