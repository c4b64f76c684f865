package report

import (
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// The citation is a command line for the same workload.
func TestCiteIsACommand(t *testing.T) {
	d := &Document{
		Op: "produce", Target: "kafka://h:9092/t?x=1",
		Workload: map[string]any{"header": []any{"a=1", "b=two words", "c=it's"}, "verify": true, "fresh": false, "rate": "10k", "partitions": "0,1"},
		Settings: []Setting{
			{Name: "target", Value: "kafka://h:9092/t?x=1", Independent: true},
			{Name: "op", Value: "produce", Independent: true},
			{Name: "rate", Value: "10k", Independent: true},
			{Name: "header", Type: "list", Value: "a=1 b=two words c=it's", Independent: true},
			{Name: "verify", Type: "boolean", Value: "true", Independent: true},
			{Name: "fresh", Type: "boolean", Value: "false", Independent: true},
			{Name: "partitions", Value: "0,1", Independent: true},
			{Name: "linger", Value: "5ms", Independent: true, Default: true},
			{Name: "quiet", Value: "true"},
		},
	}
	want := `'kafka://h:9092/t?x=1' --op produce --rate 10k --header a=1 --header 'b=two words' --header 'c=it'\''s' --verify --fresh=false --partitions 0,1`
	assert.Equal(t, d.CommandArgs(), want)
	d.Workload = struct {
		Verify bool `json:"verify"`
	}{true} // as in a report that was just made
	got := d.CommandArgs()
	assert.True(t, strings.Contains(got, " --verify --fresh"), "got %s, want only the switch", got)
}

// Nothing is known about a run that was killed before its first interval, not
// even that nothing failed.
func TestCiteOfNothing(t *testing.T) {
	d := &Document{Op: "produce", Target: "null://"}
	d.Totals.RateOf = RateAcked
	got := Cite(d)
	assert.True(t, !strings.Contains(got, "no failures") && strings.Contains(got, "no event was counted"), "got %s", got)
}
