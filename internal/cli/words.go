package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/workload"
	"carronade/target"
)

// Everything that is said to a person besides help and reports is said here,
// in three forms: what went wrong, what to do about it, and what to beware of.

// words is an error with its way out.
type words struct {
	err   error
	hint  string
	quiet bool // no fault: said without "error:"
}

func (w *words) Error() string { return w.err.Error() }
func (w *words) Unwrap() error { return w.err }

// say prints an error and its hint; joined errors one after the other, each
// hint once.
func (s *session) say(err error) {
	hinted := make(map[string]bool)
	for _, e := range apart(err) {
		label := "error: "
		var own *words
		if errors.As(e, &own) && own.quiet {
			label = ""
		}
		fmt.Fprintf(s.Err, "%s%s\n", label, oneLine(e.Error()))
		if h := hintOf(e); h != "" && !hinted[h] {
			hinted[h] = true
			fmt.Fprintf(s.Err, "hint: %s\n", oneLine(h))
		}
	}
}

// warn prints what to beware of.
func (s *session) warn(text string) { fmt.Fprintf(s.Err, "warning: %s\n", oneLine(text)) }

// note prints what is worth knowing and no fault.
func (s *session) note(format string, args ...any) { fmt.Fprintf(s.Err, format+"\n", args...) }

// apart takes joined errors apart.
func apart(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok { // only the outermost join is ours
		var out []error
		for _, e := range j.Unwrap() {
			out = append(out, apart(e)...)
		}
		return out
	}
	return []error{err}
}

func hintOf(err error) string {
	var (
		own *words
		doc *workload.Error
		to  *target.Error
	)
	switch {
	case errors.As(err, &own) && own.hint != "":
		return own.hint
	case errors.As(err, &doc) && doc.Hint != "":
		return doc.Hint
	case errors.As(err, &to):
		return to.Hint
	}
	return ""
}

// reason is the cause of a file's error alone: the path was named before.
func reason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		return call.Err.Error()
	}
	return err.Error()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// unknownCommand is the error of a word that is no command.
func unknownCommand(cmd *cobra.Command, word string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	w := &words{
		err:  fmt.Errorf("%q is no command of %s", word, cmd.CommandPath()),
		hint: fmt.Sprintf("%s --help lists them", cmd.CommandPath()),
	}
	if near := workload.Nearest(word, names); near != "" {
		w.hint = fmt.Sprintf("did you mean %s %s?", cmd.CommandPath(), near)
	} else if cmd.Parent() == nil && strings.Contains(word, "://") {
		w.hint = fmt.Sprintf("did you mean carronade run %s?", word)
	}
	return w
}

// flagFault puts the words of the flag parser into ours.
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
		w := &words{
			err:  fmt.Errorf("%s%s: there is no such flag", dashes, name),
			hint: fmt.Sprintf("%s --help lists them all", cmd.CommandPath()),
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if near := workload.Nearest(name, names); near != "" {
			w.hint = fmt.Sprintf("did you mean --%s?", near)
		}
		return w
	case errors.As(err, &bare):
		return &words{
			err:  fmt.Errorf("--%s needs a value", bare.GetFlag().Name),
			hint: fmt.Sprintf("%s --help shows what it takes", cmd.CommandPath()),
		}
	case errors.As(err, &invalid):
		return &words{err: fmt.Errorf("--%s: %w", invalid.GetFlag().Name, errors.Unwrap(invalid)), hint: hintOf(errors.Unwrap(invalid))}
	case errors.As(err, &syntax):
		return &words{err: fmt.Errorf("%q is no flag", syntax.GetSpecifiedFlag()), hint: fmt.Sprintf("%s --help lists them all", cmd.CommandPath())}
	}
	return err
}

// args checks how many arguments a command got.
func args(least, most int, usage string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return &words{err: fmt.Errorf("%s needs %s", cmd.CommandPath(), usage), hint: "usage: " + cmd.UseLine()}
		case most >= 0 && len(args) > most:
			w := &words{err: fmt.Errorf("%s: %q is one argument too many", cmd.CommandPath(), args[most]), hint: "usage: " + cmd.UseLine()}
			if strings.Contains(args[most], "=") {
				w.hint = fmt.Sprintf("flags begin with two dashes: --%s", args[most])
			}
			return w
		}
		return nil
	}
}
