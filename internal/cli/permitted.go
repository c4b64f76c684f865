package cli

import (
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/advice"
	"carronade/internal/cli/cmdutil"

	"carronade/internal/conn"
	"carronade/internal/serve"
	"carronade/internal/workload"
	"carronade/protocol"
)

// permittedCommand checks a command line against the rules of the server whose job this process
// is, if it is one.
func (s *session) permittedCommand(cmd *cobra.Command, args []string) (err error) {
	if s.rules == nil {
		return nil
	}
	path := pathOf(cmd)
	if cmd.Hidden && path != cobra.ShellCompRequestCmd { // a process of our own, under the same rules
		return nil
	}
	if err := s.rules.Command(path, args); err != nil {
		return refusal(err)
	}
	if path == "as" && len(args) > 0 {
		if err := s.rules.Tool(s.Kinds, args[0], args[1:]); err != nil {
			return refusal(err)
		}
	}
	if s.rules.NoLoad && generates(cmd, path, args) {
		return &protocol.Error{Err: errors.New("this command generates load, so it must wait in the queue"), Hint: "submit it as a job"}
	}
	if path == "system build" {
		if f := cmd.Flags().Lookup("make"); f != nil && f.Changed {
			return refusal(s.rules.Make(f.Value.String()))
		}
		return nil
	}
	var doc *workload.Document
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if d := cmdutil.DocumentOf(f); d != nil {
			doc = d
			return
		}
		word, _ := pflag.UnquoteUsage(f)
		if e := s.rules.Flag(f.Name, word, f.Value.String()); e != nil && err == nil {
			err = refusal(e)
		}
	})
	if err != nil || doc == nil {
		return err
	}
	return refusal(s.rules.Document(s.Kinds, doc.Entries))
}

// loads reports whether a command line generates load, so that it waits in a queue. It is safe for
// concurrent use.
func (s *session) loads(args []string) bool {
	parser := &session{Program: &Program{Kinds: s.Kinds}} // flags set its fields
	tree := parser.root()
	tree.SetOut(io.Discard)
	tree.SetErr(io.Discard)
	cmd, rest, err := tree.Find(args)
	if err != nil {
		return false // it ends with an error at once
	}
	if cmd.DisableFlagParsing { // the arguments are a tool's
		return generates(cmd, pathOf(cmd), rest)
	}
	cmd.InitDefaultHelpFlag()
	if cmd.ParseFlags(rest) != nil || isGiven(cmd, "help") || isGiven(cmd, helpAllFlag) {
		return false
	}
	return generates(cmd, pathOf(cmd), cmd.Flags().Args())
}

// checkLine returns what is wrong with a command line, as far as that shows before it runs: its command, its flags and
// their values. It is safe for concurrent use.
func (s *session) checkLine(args []string) (what, way string) {
	parser := &session{Program: &Program{Kinds: s.Kinds}}
	tree := parser.root()
	tree.SetOut(io.Discard)
	tree.SetErr(io.Discard)
	cmd, rest, err := tree.Find(args)
	switch {
	case err != nil || cmd.DisableFlagParsing:
	case cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-"): // whose flags are not known
		err = cmd.ValidateArgs(rest[:1])
	default:
		cmd.InitDefaultHelpFlag()
		if err = cmd.ParseFlags(rest); err != nil {
			err = flagFault(cmd, err)
		} else if err = checkOnce(tree, args); err == nil {
			if rest = cmd.Flags().Args(); !isGiven(cmd, "help") && !isGiven(cmd, helpAllFlag) {
				err = errors.Join(cmd.ValidateArgs(rest), s.checkValues(cmd, rest))
			}
		}
	}
	if err == nil {
		return "", ""
	}
	err = splitErrors(err)[0]
	return oneLine(err.Error()), advice.Hint(err)
}

// checkValues checks the settings of a command whose first argument is a target. Those of a file are known only when
// it runs. The same holds for settings that name files, variables or programs: this process is the server's, which may
// read more than its jobs, and in another folder.
func (s *session) checkValues(cmd *cobra.Command, args []string) error {
	if path := pathOf(cmd); path != "run" && path != "find" || len(args) != 1 {
		return nil
	}
	var t cmdutil.Settings
	doc := &t.Doc
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if d := cmdutil.DocumentOf(f); d != nil {
			doc.Entries = slices.Clone(d.Entries)
		}
	})
	if slices.ContainsFunc(doc.Entries, func(e workload.Entry) bool { return e.Name == "target" }) || isGiven(cmd, "file") {
		return nil
	}
	doc.Add("target", "target", args[0])
	conf, err := s.withConfiguration(&t, nil)
	if err != nil {
		return err
	}
	entries := doc.Entries
	if conf != nil {
		entries = slices.Concat(entries, conf.Entries)
	}
	none := &serve.Rules{} // they allow no file
	if none.Document(s.Kinds, entries) == nil {
		_, err = workload.Resolve(s.Kinds, doc, conf)
	}
	return err
}

// pathOf is the path of a command without the program's name, such as "report show".
func pathOf(cmd *cobra.Command) string {
	return strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()), " ")
}

// isGiven reports whether a flag without a value was given, and not as --NAME=false.
func isGiven(cmd *cobra.Command, name string) bool {
	f := cmd.Flags().Lookup(name)
	return f != nil && f.Changed && f.Value.String() != "false"
}

// generates reports whether a command, whose flags were parsed, generates load, or uses this machine
// as much.
func generates(cmd *cobra.Command, path string, args []string) bool {
	switch path {
	case "run":
		return !isGiven(cmd, "schema")
	case "scenario":
		return !isGiven(cmd, "check") && !isGiven(cmd, "types")
	case "compare":
		return isGiven(cmd, "run")
	case "profile": // it reads a topic as fast as possible, like topics read
		return isGiven(cmd, "check-fit") || len(args) > 0 && strings.Contains(args[0], "://")
	case "find", "demo", "calibrate", "doctor", "report replay", "system build", "topics create", "topics delete", "topics read":
		return true
	case "as":
		return len(args) > 0 && args[0] != "--help" && args[0] != "-h" && serve.ToolLoads(args[0], args[1:])
	}
	return false
}

// permitted checks workloads against the rules. What the configuration gives is the operator's.
func (s *session) permitted(conf *workload.Document, docs ...*workload.Document) error {
	if s.rules == nil {
		return nil
	}
	for _, d := range docs {
		if d == nil {
			continue
		}
		given := slices.DeleteFunc(slices.Clone(d.Entries), func(e workload.Entry) bool {
			return slices.ContainsFunc(conf.Entries, func(c workload.Entry) bool { return reflect.DeepEqual(c, e) })
		})
		if err := s.rules.Document(s.Kinds, given); err != nil {
			return refusal(err)
		}
		if err := s.permitted(conf, d.Parts...); err != nil {
			return err
		}
	}
	return nil
}

// refusal gives the error of the rules its hint.
func refusal(err error) error {
	if r, ok := errors.AsType[*serve.Refusal](err); ok {
		return &protocol.Error{Err: err, Hint: r.Way}
	}
	return err
}

// allowedAddress checks an address before a connection is made to it. A system may announce others
// than those that were given.
func (s *session) allowedAddress(addr string) error {
	return notAllowed(s.rules.Address(addr))
}

// notAllowed is a refusal of the rules as the error of a connection.
func notAllowed(err error) error {
	if r, ok := errors.AsType[*serve.Refusal](err); ok {
		return conn.NotAllowed(r, r.Way)
	}
	return nil
}
