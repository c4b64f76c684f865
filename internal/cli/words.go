package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/advice"
	"carronade/internal/cli/cmdutil"

	"carronade/internal/layout"
	"carronade/internal/secret"
	"carronade/internal/workload"
	"carronade/protocol"
)

// This file prints errors, hints and warnings. Their texts come from where they occur. Progress and
// the lines of old tools are printed elsewhere.

// printError prints an error and its hint; of joined errors each one, and each hint once.
func (s *session) printError(err error) {
	hinted := make(map[string]bool)
	for _, e := range splitErrors(err) {
		label := "error: "
		if _, ok := errors.AsType[cmdutil.Notice](e); ok {
			label = ""
		}
		s.say(label, e.Error())
		if h := advice.Hint(e); h != "" && !hinted[h] {
			hinted[h] = true
			s.say("hint: ", h)
		}
	}
}

// warn prints a warning.
func (s *session) warn(text string) { s.say("warning: ", text) }

// warnWithHint prints a warning and a hint.
func (s *session) warnWithHint(err error, hint string) {
	s.warn(err.Error())
	s.say("hint: ", hint)
}

// say prints a text after a label.
func (s *session) say(label, text string) {
	fmt.Fprintln(s.Err, s.wrapped(label, s.shown(oneLine(text))))
}

// shown is what may be shown of a text: addresses without secrets and, in a job of a server, no names of the
// server's folders.
func (s *session) shown(text string) string {
	text = addresses.ReplaceAllStringFunc(text, new(secret.Mask).Text)
	if s.rules != nil && !s.rules.Everything {
		text = s.withoutFolders(text)
	}
	return text
}

// addresses are those in a text.
var addresses = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s'"]+`)

// withoutFolders replaces the folders of the server whose job this is, and of its user: those of files, which
// jobs name from there, and of its other data.
func (s *session) withoutFolders(text string) string {
	data := filepath.Dir(s.rules.Folder)
	home, _ := os.UserHomeDir()
	for _, r := range [][2]string{
		{s.rules.Folder + string(filepath.Separator), ""}, {s.rules.Folder, "."}, {data, "SERVER"}, {home, "~"},
	} {
		if filepath.IsAbs(r[0]) && filepath.Dir(r[0]) != r[0] {
			text = withoutFolder(text, r[0], r[1])
		}
	}
	return text
}

// withoutFolder replaces a folder in a text, but not the beginning of the name of another.
func withoutFolder(text, folder, by string) string {
	form := regexp.QuoteMeta(folder)
	if !strings.HasSuffix(folder, string(filepath.Separator)) {
		form += `([^\p{L}\p{N}_-]|$)`
		by += "$1"
	}
	return regexp.MustCompile(form).ReplaceAllString(text, by)
}

// wrapped is a line of messages: a text after a label. On a terminal it is wrapped at words.
func (s *session) wrapped(label, text string) string {
	if !interactive(s.Err) {
		return label + text
	}
	return layout.Hang(label, text, cmp.Or(terminal(s.Err).Columns(), layout.Columns))
}

// note prints a note as it is: one has the address and the token of a page.
func (s *session) note(format string, args ...any) { fmt.Fprintf(s.Err, format+"\n", args...) }

// splitErrors splits joined errors.
func splitErrors(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok { // inner joins belong to the errors themselves
		var out []error
		for _, e := range j.Unwrap() {
			out = append(out, splitErrors(e)...)
		}
		return out
	}
	return []error{err}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// allHelp is the command that shows all flags.
func allHelp(cmd *cobra.Command) string {
	if cmd.Flags().Lookup(helpAllFlag) != nil {
		return cmd.CommandPath() + " --" + helpAllFlag
	}
	return cmd.CommandPath() + " --help"
}

// checkOnce returns an error for a flag that takes one value and is given twice: one of them would be ignored.
func checkOnce(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err != nil || cmd.DisableFlagParsing {
		return nil //nolint:nilerr // the run of the command reports it
	}
	cmd.InheritedFlags() // joins them
	given := map[string]bool{}
	var twice error
	_ = cmd.Flags().ParseAll(rest, func(f *pflag.Flag, _ string) error { // an error here is one of the run, too
		if given[f.Name] && !many(f) && twice == nil { // without the values, which may be secrets
			twice = &protocol.Error{Err: fmt.Errorf("--%s is given twice", f.Name), Hint: "it takes one value: leave out one of them"}
		}
		given[f.Name] = true
		return nil
	})
	return twice
}

// many reports whether a flag may be given several times: it makes a list, or it takes no value.
func many(f *pflag.Flag) bool {
	if s, ok := cmdutil.SettingOf(f); ok {
		return s.Type == protocol.List || s.Type == protocol.Bool
	}
	if _, ok := f.Value.(pflag.SliceValue); ok {
		return true
	}
	return slices.Contains([]string{"bool", "count", "func", "boolfunc"}, f.Value.Type()) || strings.Contains(f.Usage, "(repeatable)")
}

// flagFault rewords an error of the flag parser.
func flagFault(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		bare    *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
		syntax  *pflag.InvalidSyntaxError
	)
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		dashes := "--"
		if unknown.GetSpecifiedShortnames() != "" {
			dashes = "-"
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		fault := &protocol.Error{Err: fmt.Errorf("unknown flag %s%s", dashes, name), Hint: allHelp(cmd) + " lists them all"}
		if hint := otherTools[name]; hint != "" && slices.Contains(names, "acks") {
			fault.Hint = hint
		} else if near := workload.NearestSetting(name, names); near != "" {
			fault.Hint = "did you mean --" + near + "?"
		}
		return fault
	case errors.As(err, &bare):
		return &protocol.Error{
			Err:  fmt.Errorf("--%s needs a value", bare.GetFlag().Name),
			Hint: allHelp(cmd) + " shows what it takes",
		}
	case errors.As(err, &invalid) && errors.As(err, new(*strconv.NumError)):
		f := invalid.GetFlag()
		fault := &protocol.Error{Err: fmt.Errorf("--%s: must be a whole number, not %q", f.Name, invalid.GetValue()), Hint: allHelp(cmd) + " shows what it takes"}
		switch f.Value.Type() {
		case "bool":
			fault.Err = fmt.Errorf("--%s: must be true or false, not %q", f.Name, invalid.GetValue())
		case "uint16":
			fault.Err = fmt.Errorf("--%s: must be a port, a number up to 65535, not %q", f.Name, invalid.GetValue())
			fault.Hint = "such as --" + f.Name + " " + f.DefValue
		}
		return fault
	case errors.As(err, &invalid):
		return &protocol.Error{Err: fmt.Errorf("--%s: %w", invalid.GetFlag().Name, errors.Unwrap(invalid)), Hint: advice.Hint(errors.Unwrap(invalid))}
	case errors.As(err, &syntax):
		return &protocol.Error{Err: fmt.Errorf("%q is not a flag", syntax.GetSpecifiedFlag()), Hint: allHelp(cmd) + " lists them all"}
	}
	return err
}
