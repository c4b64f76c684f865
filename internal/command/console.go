package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/internal/system"
	"carronade/internal/workload"
)

// The exit codes, which are those of reports.
const (
	OK          = report.ExitOK
	Broken      = report.ExitBroken
	Failed      = report.ExitFailed
	Untrusted   = report.ExitUntrusted
	CannotTell  = report.ExitCannotTell
	Interrupted = report.ExitInterrupted
)

// A Console is whom a command speaks to.
type Console struct {
	Out  io.Writer                        // results
	Note func(format string, args ...any) // what is worth knowing and no fault
	Warn func(text string)                // what to beware of

	// Style is how results may look.
	Style layout.Style
	// Terminal tells whether results go to a person, and not to a file or to
	// another program.
	Terminal bool
	// Columns is how wide the terminal is that results go to; 0 where they go
	// elsewhere: what reads them there wants them whole.
	Columns int
	In      io.Reader
	// Ask puts a question to the person who types, who answers yes or no; nil:
	// there is nobody.
	Ask func(question string) bool
}

// Words is an error with its way out.
type Words struct {
	Err   error
	Hint  string
	Quiet bool // no fault: said without "error:"
}

// Error implements error.
func (w *Words) Error() string { return w.Err.Error() }

// Unwrap returns the cause.
func (w *Words) Unwrap() error { return w.Err }

// Exit is an error that decides the exit code; Err may be nil when everything
// was said already.
type Exit struct {
	Code int
	Err  error
}

// Error implements error.
func (e Exit) Error() string {
	if e.Err == nil {
		return "done"
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e Exit) Unwrap() error { return e.Err }

// Run makes a command's function; the error of an interrupted one is not an
// error to a person.
func Run(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := f(cmd, args)
		var c Exit
		if err != nil && !errors.As(err, &c) && cmd.Context().Err() != nil && errors.Is(err, context.Canceled) {
			return Exit{Interrupted, &Words{Err: errors.New("interrupted before anything was done"), Quiet: true}}
		}
		return err
	}
}

// Args checks how many arguments a command got; most below 0 is any number.
func Args(least, most int, usage string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return &Words{Err: fmt.Errorf("%s needs %s", cmd.CommandPath(), usage), Hint: "usage: " + cmd.UseLine()}
		case most >= 0 && len(args) > most:
			w := &Words{Err: fmt.Errorf("%s: %q is one argument too many", cmd.CommandPath(), args[most]), Hint: "usage: " + cmd.UseLine()}
			if strings.Contains(args[most], "=") {
				w.Hint = fmt.Sprintf("flags begin with two dashes: --%s", args[most])
			}
			return w
		}
		return nil
	}
}

// Group is a command that only holds others.
func Group(use, short, long string, cmds ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Long: long,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return Unknown(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(cmds...)
	return c
}

// Unknown is the error of a word that is no command.
func Unknown(cmd *cobra.Command, word string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	otherwise := cmd.CommandPath() + " --help lists them"
	if cmd.Parent() == nil && strings.Contains(word, "://") {
		otherwise = fmt.Sprintf("did you mean carronade run %s?", word)
	}
	return &Words{
		Err:  fmt.Errorf("%q is no command of %s", word, cmd.CommandPath()),
		Hint: DidYouMean(word, names, cmd.CommandPath()+" %s", otherwise),
	}
}

// DidYouMean is the hint at the word of a list that somebody who typed another
// most likely meant, in the form in which it is to be typed, such as "--%s"; or
// the other hint where none is near.
func DidYouMean(typed string, among []string, form, otherwise string) string {
	if near := workload.Nearest(typed, among); near != "" {
		return "did you mean " + fmt.Sprintf(form, near) + "?"
	}
	return otherwise
}

// WriteJSON writes v as one indented document.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return errors.Join(errors.New("writing JSON"), err)
	}
	return nil
}

// Reason is the cause of a file's error alone: the path was named before.
func Reason(err error) string { return system.Reason(err).Error() }
