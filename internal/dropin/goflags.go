package dropin

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// This file has what Go's standard library does for the tools that are written in Go.

// ParseGoFlags parses a command line with Go's package flag. After help or an error it
// prints what the tool printed, and done is true: the program ends with the code. listed are
// the flags that usage lists, and differs ends the help.
func ParseGoFlags(p *Program, fs, listed *flag.FlagSet, differs string) (code int, done bool) {
	var usage bytes.Buffer
	fs.SetOutput(&usage)
	listed.SetOutput(&usage)
	fs.Usage = func() {
		fmt.Fprintf(&usage, "Usage of %s:\n", p.Called)
		listed.PrintDefaults()
	}
	switch err := fs.Parse(p.Args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(p.Err, "%s\n%s%s", usage.String(), CommonHelp, differs)
		return 0, true
	case err != nil:
		p.Err.Write(usage.Bytes()) //nolint:errcheck // stderr is closed
		return 2, true
	}
	return 0, false
}

// GivenFlags are the flags that a command line has, by name.
func GivenFlags(fs *flag.FlagSet) map[string]bool {
	given := make(map[string]bool)
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return given
}

// GoLogf writes a line as Go's package log does.
func GoLogf(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, "%s %s\n", time.Now().Format("2006/01/02 15:04:05"), fmt.Sprintf(format, args...))
}
