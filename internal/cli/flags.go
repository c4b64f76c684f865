package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/workload"
	"carronade/target"
)

// typed gathers settings from flags in the order they were typed. Defaults are
// no concern of the flags: the workload fills them in when it is resolved, for
// the kind and the operation it turns out to have.
type typed struct {
	doc workload.Document
}

// bind makes a flag of each setting.
func (t *typed) bind(fs *pflag.FlagSet, kinds []target.Kind) {
	for _, s := range allSettings(kinds) {
		t.bindSetting(fs, &s)
	}
}

// bindSetting makes a flag of one setting.
func (t *typed) bindSetting(fs *pflag.FlagSet, s *workload.Setting) {
	f := fs.VarPF(&setting{Setting: *s, into: t}, s.Name, "", s.Help)
	if s.Type == target.Bool {
		f.NoOptDefVal = "true"
	}
}

// allSettings is the union of the kinds' tables, each name once.
func allSettings(kinds []target.Kind) []workload.Setting {
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

// last returns the last value typed for a flag.
func (t *typed) last(name string) string {
	for _, e := range slices.Backward(t.doc.Entries) {
		if e.Name == name {
			return e.Values[len(e.Values)-1]
		}
	}
	return ""
}

// setting is the pflag.Value of one setting.
type setting struct {
	workload.Setting
	into *typed
}

func (s *setting) Set(text string) error {
	s.into.doc.Add(s.Name, "--"+s.Name, text)
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

// complete offers a setting's choices to the shell.
func complete(cmd *cobra.Command, kinds []target.Kind) {
	for _, s := range allSettings(kinds) {
		var words []string
		switch {
		case len(s.Choices) > 0:
			words = s.Choices
		case s.Word == "FILE":
			continue // files are what shells complete by themselves
		}
		_ = cmd.RegisterFlagCompletionFunc(s.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
}

// completeTarget offers the beginnings of targets.
func completeTarget(kinds []target.Kind) cobra.CompletionFunc {
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

// bindOne makes a flag of one of the load's settings.
func (t *typed) bindOne(fs *pflag.FlagSet, name string) {
	for _, s := range workload.Table(nil) {
		if s.Name == name {
			t.bindSetting(fs, &s)
		}
	}
}
