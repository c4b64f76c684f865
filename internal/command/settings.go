package command

import (
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/workload"
	"carronade/target"
)

// Settings collects settings from flags in the order they were typed. Defaults
// are no concern of the flags: the workload fills them in when it is resolved,
// for the kind and the operation it turns out to have.
type Settings struct {
	Doc workload.Document

	bound []string // names of flags of kinds
}

// Bind makes a flag of each setting: of the load's, and of the kinds'.
func (t *Settings) Bind(fs *pflag.FlagSet, kinds []target.Kind) {
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
	f := fs.VarPF(&setting{Setting: *s, into: t}, s.Name, s.Short, s.Help)
	if s.Type == target.Bool {
		f.NoOptDefVal = "true"
	}
}

// Bool reports whether the last value typed for a flag is yes.
func (t *Settings) Bool(name string) bool { return t.Last(name) == "true" }

// Last returns the last value typed for a flag; "" is none. The name of no
// setting is a mistake of the program, and panics.
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

// Where returns how the last value of a setting was given, such as "--rate"; ""
// where none was.
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

// ofLoad are the names of the load's own settings.
var ofLoad = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{"target": true} // which is no flag
	for _, s := range workload.Table(nil) {
		names[s.Name] = true
	}
	return names
})

// check panics where a setting is asked for that is neither the load's nor a
// flag's: it would be empty for ever, and nobody would know.
func (t *Settings) check(name string) {
	if !ofLoad()[name] && !slices.Contains(t.bound, name) {
		panic("no setting is called " + name)
	}
}

// AllSettings is the union of the kinds' tables, each name once.
func AllSettings(kinds []target.Kind) []workload.Setting {
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

// SettingOf returns the setting that a flag is, false when it is none.
func SettingOf(f *pflag.Flag) (*workload.Setting, bool) {
	s, ok := f.Value.(*setting)
	if !ok {
		return nil, false
	}
	return &s.Setting, true
}

// setting is the pflag.Value of one setting.
type setting struct {
	workload.Setting
	into *Settings
}

func (s *setting) Set(text string) error {
	s.into.Doc.Add(s.Name, "--"+s.Name, text)
	return nil
}

func (s *setting) Type() string {
	if s.Setting.Type == target.Bool {
		return "bool" // pflag lets these stand without a value
	}
	return s.Setting.Type.String()
}

func (s *setting) String() string {
	if s.into == nil {
		return "" // pflag asks a zero value what its default is
	}
	return s.into.last(s.Name)
}

// CompleteTarget offers the beginnings of targets to the shell.
func CompleteTarget(kinds []target.Kind) cobra.CompletionFunc {
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
