package command

import (
	"testing"

	"carronade/test/testkit/assert"
)

// The values of flags are read by name, and an unknown name panics, so that any
// test finds it.
func TestSettingsByName(t *testing.T) {
	var s Settings
	s.Doc.Add("quiet", "--quiet", "false")
	s.Doc.Add("quiet", "quiet in a file", "true")
	s.Doc.Add("label", "--label", "a=b")
	s.Doc.Add("label", "--label", "c=d")
	if !s.Bool("quiet") || s.Bool("json") || s.Last("quiet") != "true" || s.Where("quiet") != "quiet in a file" || s.Last("note") != "" {
		t.Errorf("got %v, %v, %q, %q", s.Bool("quiet"), s.Bool("json"), s.Last("quiet"), s.Where("quiet"))
	}
	all := s.All("label")
	assert.True(t, len(all) == 2 && all[1] == "c=d", "got %v", all)
	for name, ask := range map[string]func(string){
		"Last": func(n string) { s.Last(n) }, "Bool": func(n string) { s.Bool(n) }, "Where": func(n string) { s.Where(n) }, "All": func(n string) { s.All(n) },
	} {
		func() {
			defer func() { assert.True(t, recover() != nil, "%s of no setting: nothing happened", name) }()
			ask("metrics-adr")
		}()
	}
}
