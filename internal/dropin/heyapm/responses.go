package heyapm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"carronade/internal/report"
)

// heyResponses is the table of a part: responses by status, then errors. The counts
// are of the whole run; perS is the rate of responses during sending.
func heyResponses(url string, i int, d *report.Document, perS float64) string {
	var b strings.Builder
	total := answersOf(d)
	fmt.Fprintf(&b, "%s %d\n", url, i)
	for _, s := range d.Totals.Statuses {
		fmt.Fprintf(&b, "  [%d]\t%d responses (%.2f%%) \n", s.Code, s.Batches, 100*float64(s.Batches)/float64(total))
	}
	fmt.Fprintf(&b, "  total\t%d responses (%.2f rps)\n", total, perS)

	errs, count := unansweredRequests(d)
	if count > 0 {
		fmt.Fprintf(&b, "\n  %d errors:\n", count)
		for _, e := range errs {
			fmt.Fprintf(&b, "  [%d]\t%s\n", e.count, e.text)
		}
	}
	return b.String()
}

// answersOf is the number of requests with any response.
func answersOf(d *report.Document) (n uint64) {
	for _, s := range d.Totals.Statuses {
		n += s.Batches
	}
	return n
}

// A requestError is an error that ended requests without a response.
type requestError struct {
	text  string
	count uint64
}

// unansweredRequests are failures without a status, most frequent first. Errors with the
// same known ending are combined, as in the tool.
func unansweredRequests(d *report.Document) (out []requestError, count uint64) {
	for _, f := range d.Failures {
		if hasStatus(f.Text) {
			continue
		}
		count += f.Batches
		text := f.Text
		for _, end := range []string{"read: connection reset by peer", "write: broken pipe"} {
			if strings.HasSuffix(text, end) {
				text = end
			}
		}
		if k := slices.IndexFunc(out, func(m requestError) bool { return m.text == text }); k >= 0 {
			out[k].count += f.Batches
			continue
		}
		out = append(out, requestError{text, f.Batches})
	}
	slices.SortStableFunc(out, func(a, b requestError) int { return cmp.Compare(b.count, a.count) })
	return out, count
}

// hasStatus reports whether a failure's text begins with an answer's status, such
// as "503 Service Unavailable".
func hasStatus(text string) bool {
	head, _, _ := strings.Cut(text, " ")
	return len(head) == 3 && strings.Trim(head, "0123456789") == ""
}
