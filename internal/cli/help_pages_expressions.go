package cli

import (
	"strings"

	"carronade/payload"
)

const expressionsText = `A text may contain expressions, which are evaluated for events:

  --key 'user-${rnd.nextInt(1000)}'
  --header 'x-part-${math:random(30) + 1}=${date:formatNowIso8601()}'

  ${...}    for each event
  %{...}    once, when the run is prepared
  #{...}    at most once a second
  $${       a literal ${; likewise %%{ and ##{

Random values depend on the seed of the run, the number of the event and the
place in the text: they are the same when the run is repeated. %{...} directly
after ${...} is an initial value: ${this.last() + 1}%{-1} counts from 0.
`

func (s *session) expressionsText() string {
	var b strings.Builder
	b.WriteString(expressionsText)
	b.WriteString("\nwhere they are possible\n")
	for _, k := range s.Kinds {
		if p := entryOf(k); p != nil && p.expressions != "" {
			writeRow(&b, 14, k.Name(), p.expressions)
		}
	}
	for _, part := range []struct {
		title string
		words []payload.ExpressionWord
	}{{"functions", payload.ExpressionFunctions()}, {"values and methods", payload.ExpressionValues()}, {"operators", payload.ExpressionOperators()}} {
		b.WriteString("\n" + part.title + "\n")
		for _, w := range part.words {
			writeRow(&b, 34, w.Form, w.Help)
		}
	}
	return b.String()
}
