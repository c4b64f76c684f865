package cmdutil

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"carronade/internal/advice"
	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/protocol"
)

// A Console is where a command writes and asks.
type Console struct {
	Out  io.Writer                        // results
	Note func(format string, args ...any) // prints a note
	Warn func(text string)                // prints a warning

	// Style is the style of results.
	Style layout.Style
	// Terminal reports whether results go to a terminal.
	Terminal bool
	// Columns is the width of the terminal; 0 if results go elsewhere and must not be cut.
	Columns int
	In      io.Reader
	// Ask asks a yes/no question; nil without a terminal.
	Ask func(question string) bool
}

// A Notice is an end that nothing failed in, such as an interruption: it is printed without "error:".
type Notice struct{ error }

// Noticef makes a Notice of a text.
func Noticef(format string, args ...any) Notice { return Notice{fmt.Errorf(format, args...)} }

// Exit is an error that decides the exit code; Err may be nil when everything was printed
// already.
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

// Run adapts a command's function for cobra. The error of an interrupted command is not
// printed.
func Run(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := f(cmd, args)
		var c Exit
		if err != nil && !errors.As(err, &c) && cmd.Context().Err() != nil && errors.Is(err, context.Canceled) {
			return Exit{host.ExitInterrupted, Noticef("interrupted before anything was done")}
		}
		return err
	}
}

// Await runs work that nothing else interrupts, such as reading a large corpus or a terminal's stdin. When
// the context ends, it returns at once with the context's error. The work may then go on until the program
// ends, so it must leave nothing behind.
func Await[T any](ctx context.Context, work func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := work()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// Args checks the number of arguments; most below 0 means any number.
func Args(least, most int, usage string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return &protocol.Error{Err: fmt.Errorf("%s needs %s", cmd.CommandPath(), usage), Hint: "usage: " + cmd.UseLine()}
		case most >= 0 && len(args) > most:
			w := &protocol.Error{Err: fmt.Errorf("%s: unexpected argument %q", cmd.CommandPath(), args[most]), Hint: "usage: " + cmd.UseLine()}
			if strings.Contains(args[most], "=") {
				w.Hint = fmt.Sprintf("flags begin with two dashes: --%s", args[most])
			}
			return w
		}
		return nil
	}
}

// Group is a command that only has subcommands.
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

// Unknown is the error of an unknown command.
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
	return &protocol.Error{
		Err:  fmt.Errorf("unknown command %q of %s", word, cmd.CommandPath()),
		Hint: advice.DidYouMean(word, names, cmd.CommandPath()+" %s", otherwise),
	}
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

// Reason is the cause of a file's error without the path.
func Reason(err error) string { return host.Reason(err).Error() }
