package dropintest

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"carronade/internal/dropin"
	"carronade/test/testkit/assert"
)

// A Case is a command line of a tool and what follows from it, as testdata/cases/TOOL.txt has it:
//
//	== NAME
//	as --strict --generation 4.1
//	$ ARGUMENTS            quoted if they have blanks
//	exit CODE              if it is not 0
//	none                   nothing runs, and stdout is empty
//	set NAME VALUE         a setting of the last workload, absent without a value
//	error TEXT             a part of the error; without it there is none
//	err + TEXT             a part of stderr; err ^ TEXT: its beginning; err ~ REGEXP: all of it
//	table                  stderr has the table of options
//	out ^ TEXT             the beginning of stdout; out + TEXT: a part of it
//	out ~                  all of stdout as regular expressions, or as it is without the ~:
//	| LINE
//	data NAME              what the run measured, for the test
type Case struct {
	Name, Data, Generation string
	Strict                 bool
	Args, Has              []string // Has: the parts of stderr
	none, table, pattern   bool
	out, outHas            []string
	err, begins, outBegins string
	form                   *regexp.Regexp
	code                   int
	set                    map[string]string
}

// Cases reads the cases of a tool.
func Cases(t *testing.T, tool string) (all []*Case) {
	t.Helper()
	f := assert.Value(os.Open(filepath.Join("testdata", "cases", tool+".txt")))(t)
	defer f.Close()
	var c *Case
	for lines := bufio.NewScanner(f); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "", "#":
		case "==":
			c = &Case{Name: rest, set: map[string]string{}}
			all = append(all, c)
		case "as":
			words := strings.Fields(rest)
			for i, w := range words {
				switch w {
				case "--strict":
					c.Strict = true
				case "--generation":
					c.Generation = words[i+1]
				}
			}
		case "$":
			c.Args = wordsOf(t, rest)
		case "exit":
			c.code = assert.Value(strconv.Atoi(rest))(t)
		case "none":
			c.none = true
		case "set":
			name, value, _ := strings.Cut(rest, " ")
			c.set[name] = value
		case "error":
			c.err = rest
		case "data":
			c.Data = rest
		case "err":
			text := unquoted(t, strings.TrimPrefix(rest[1:], " "))
			switch rest[0] {
			case '+':
				c.Has = append(c.Has, text)
			case '^':
				c.begins = text
			case '~':
				c.form = regexp.MustCompile(`\A` + text + `\z`)
			}
		case "table":
			c.table = true
		case "out":
			if text, ok := strings.CutPrefix(rest, "^ "); ok {
				c.outBegins = unquoted(t, text)
			} else if text, ok := strings.CutPrefix(rest, "+ "); ok {
				c.outHas = append(c.outHas, unquoted(t, text))
			} else {
				c.out, c.pattern = []string{}, rest == "~"
			}
		case "|":
			c.out = append(c.out, rest+"\n")
		default:
			t.Fatalf("%s: %s: %q is no word of a case", tool, c.Name, word)
		}
	}
	return all
}

// wordsOf splits a command line at blanks; a word in quotation marks may have some.
func wordsOf(t *testing.T, line string) (out []string) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		word, rest, _ := strings.Cut(line, " ")
		if q, err := strconv.QuotedPrefix(line); err == nil {
			word, rest = q, line[len(q):]
		}
		out, line = append(out, unquoted(t, word)), rest
	}
	return out
}

func unquoted(t *testing.T, text string) string {
	if strings.HasPrefix(text, `"`) {
		return assert.Value(strconv.Unquote(text))(t)
	}
	return text
}

// Check checks what a command line printed, ran and returned. word is in the tool's table of options.
func (c *Case) Check(t *testing.T, got Result, word string) {
	t.Helper()
	errs := strings.ReplaceAll(got.Errs, "warning: count: 1 event missing from the number asked for\n", "")
	table := strings.Contains(errs, "\nOption ") && strings.Contains(errs, "--strict") && strings.Contains(errs, word)
	ok := got.Code == c.code && table == c.table && (got.Err != nil) == (c.err != "") && (len(c.set) == 0 || got.Workloads != nil)
	ok = ok && strings.HasPrefix(errs, c.begins) && (c.form == nil || c.form.MatchString(errs)) && strings.HasPrefix(got.Out, c.outBegins)
	for _, text := range c.Has {
		ok = ok && strings.Contains(errs, text)
	}
	for _, text := range c.outHas {
		ok = ok && strings.Contains(got.Out, text)
	}
	if c.err != "" {
		assert.ErrorHas(t, got.Err, c.err)
	}
	if c.none {
		ok = ok && got.Workloads == nil && (got.Out == "" || c.out != nil || c.outBegins != "" || c.outHas != nil)
	}
	if want := strings.Join(c.out, ""); c.pattern {
		ok = ok && regexp.MustCompile(`\A`+want+`\z`).MatchString(got.Out)
	} else if c.out != nil {
		assert.Equal(t, got.Out, want, "stdout")
	}
	assert.True(t, ok, "exit %d, %v, workloads %v, stderr:\n%s\nstdout:\n%s", got.Code, got.Err, got.Workloads, got.Errs, got.Out)
	for name, want := range c.set {
		assert.Equal(t, got.Last()[name], want, "%s", name)
	}
}

// RunCases runs a tool's cases.
func RunCases(t *testing.T, tool, word string, run func(*testing.T, *Case) Result) {
	for _, c := range Cases(t, tool) {
		t.Run(c.Name, func(t *testing.T) { c.Check(t, run(t, c), word) })
	}
}

// AsPrinted runs the cases of a tool whose error is on stderr.
func AsPrinted(t *testing.T, tool, word string, run func(*testing.T, dropin.Program, ...string) Result) {
	RunCases(t, tool, word, func(t *testing.T, c *Case) Result {
		got := run(t, dropin.Program{Strict: c.Strict, Generation: c.Generation}, c.Args...)
		got.Err = nil
		return got
	})
}
