package cli

import (
	"strings"
	"testing"

	"carronade/internal/workload"
	"carronade/test/testkit/assert"
)

// The limits in the example of help slo, and every name that it lists, can be parsed.
func TestSLOSubject(t *testing.T) {
	limits := 0
	words := strings.Fields(sloExample)
	for i, word := range words {
		if word != "--slo" {
			continue
		}
		limits++
		assert.Value(workload.ParseLimit(strings.Trim(words[i+1], "'")))(t, "%s", words[i+1])
	}
	assert.True(t, limits != 0, "the example has no limit")
	text := sloText(nil)
	for _, r := range workload.LimitResults() {
		assert.True(t, strings.Contains(text, "\n  "+r.Name+" "), "help slo does not list %s", r.Name)
	}
	for _, from := range workload.MetricSources() {
		assert.True(t, strings.Contains(text, "\n  "+from+".NAME "), "help slo does not list the metrics of %s", from)
	}
}

// The usual flags exist: a setting that was renamed must not vanish from help.
func TestUsualSettingsExist(t *testing.T) {
	kinds := Kinds()
	for _, group := range usual {
		for _, name := range group.names {
			assert.True(t, usualSetting(name, kinds) != nil, "--%s is among the usual flags, and does not exist", name)
		}
	}
}
