package cmdutil

import (
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/workload"
	"carronade/protocol"
)

// Settings collects settings from flags in the order they were typed. Flags have no defaults:
// the workload fills them in when it is resolved, since they depend on the kind and the
// operation.
type Settings struct {
	Doc workload.Document

	bound []string // names of flags of kinds
}

// Bind makes a flag of each setting: of the load's, and of the kinds'.
func (t *Settings) Bind(fs *pflag.FlagSet, kinds []protocol.Kind) {
	for _, s := range AllSettings(kinds) {
		t.BindSetting(fs, &s)
	}
}

// BindOne makes a flag of one of the load's settings.
func (t *Settings) BindOne(fs *pflag.FlagSet, name string) {
	for _, s := range workload.Table(nil) {
		if s.Name == name {
			t.BindSetting(fs, &s)
		}
	}
}

// BindSetting makes a flag of one setting.
func (t *Settings) BindSetting(fs *pflag.FlagSet, s *workload.Setting) {
	if s.Kind != "" {
		t.bound = append(t.bound, s.Name)
	}
	f := fs.VarPF(&settingFlag{Setting: *s, into: t}, s.Name, s.Short, s.Help)
	f.NoOptDefVal = s.Bare
	if s.Type == protocol.Bool {
		f.NoOptDefVal = "true"
	}
}

// Bool reports whether the last value of a flag is true.
func (t *Settings) Bool(name string) bool { return t.Last(name) == "true" }

// Last returns the last value of a flag, "" if there is none. An unknown setting is a bug, and
// panics.
func (t *Settings) Last(name string) string {
	t.check(name)
	return t.last(name)
}

func (t *Settings) last(name string) string {
	for _, e := range slices.Backward(t.Doc.Entries) {
		if e.Name == name {
			return e.Values[len(e.Values)-1]
		}
	}
	return ""
}

// Where returns where the last value of a setting came from, such as "--rate"; "" if it has
// none.
func (t *Settings) Where(name string) string {
	t.check(name)
	for _, e := range slices.Backward(t.Doc.Entries) {
		if e.Name == name {
			return e.Where
		}
	}
	return ""
}

// All returns every value typed for a list.
func (t *Settings) All(name string) []string {
	t.check(name)
	var all []string
	for _, e := range t.Doc.Entries {
		if e.Name == name {
			all = append(all, e.Values...)
		}
	}
	return all
}

// ofLoad are the names of the settings of the load.
var ofLoad = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{"target": true} // an argument, not a flag
	for _, s := range workload.Table(nil) {
		names[s.Name] = true
	}
	return names
})

// check panics if a setting is neither of the load nor a bound flag: it would silently be
// empty.
func (t *Settings) check(name string) {
	if !ofLoad()[name] && !slices.Contains(t.bound, name) {
		panic("unknown setting " + name)
	}
}

// AllSettings returns the union of the kinds' tables.
func AllSettings(kinds []protocol.Kind) []workload.Setting {
	out := workload.Table(nil)
	for _, k := range kinds {
		for _, s := range workload.Table(k) {
			if !slices.ContainsFunc(out, func(o workload.Setting) bool { return o.Name == s.Name }) {
				out = append(out, s)
			}
		}
	}
	return out
}

// SettingOf returns the setting of a flag, false if it has none.
func SettingOf(f *pflag.Flag) (*workload.Setting, bool) {
	s, ok := f.Value.(*settingFlag)
	if !ok {
		return nil, false
	}
	return &s.Setting, true
}

// choicesOf is the annotation of a flag with the values that it may have.
const choicesOf = "choices"

// SetChoices says which values a flag that is no setting may have.
func SetChoices(f *pflag.Flag, words []string) {
	f.Annotations = map[string][]string{choicesOf: words}
}

// ChoicesOf returns the values that a flag may have, for completion: none if it takes any text, and
// false if it takes files, or if nothing is known.
func ChoicesOf(f *pflag.Flag) (words []string, ok bool) {
	if words, ok = f.Annotations[choicesOf]; ok {
		return words, true
	}
	s, ok := SettingOf(f)
	if !ok || len(s.Choices) == 0 && s.Word == "FILE" {
		return nil, false
	}
	return s.Choices, true
}

// DocumentOf returns all settings that the flags of a command gave, among them this one; nil if it is
// the flag of no setting.
func DocumentOf(f *pflag.Flag) *workload.Document {
	s, ok := f.Value.(*settingFlag)
	if !ok {
		return nil
	}
	return &s.into.Doc
}

// A settingFlag is the pflag.Value of one setting.
type settingFlag struct {
	workload.Setting
	into *Settings
}

func (s *settingFlag) Set(text string) error {
	s.into.Doc.Add(s.Name, "--"+s.Name, text)
	return nil
}

func (s *settingFlag) Type() string {
	if s.Setting.Type == protocol.Bool {
		return "bool" // pflag allows these without a value
	}
	return s.Setting.Type.String()
}

func (s *settingFlag) String() string {
	if s.into == nil {
		return "" // pflag reads the default from a zero value
	}
	return s.into.last(s.Name)
}

// ForQuery reports whether an option applies to a query of an index: those of the connection do.
func ForQuery(o *workload.Setting) bool {
	return o.Group == "security" || o.Name == "query-address" || o.Name == "connect-timeout"
}

// CompleteTarget completes the schemes of targets in the shell.
func CompleteTarget(kinds []protocol.Kind) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, k := range kinds {
			for _, scheme := range k.Schemes() {
				out = append(out, fmt.Sprintf("%s://\ta %s target", scheme, k.Name()))
			}
		}
		return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
}
