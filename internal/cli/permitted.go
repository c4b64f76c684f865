package cli

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/command"
	"carronade/internal/permit"
	"carronade/internal/workload"
)

// permittedCommand checks a command line against the rules of the server whose job this process
// is, if it is one.
func (s *session) permittedCommand(cmd *cobra.Command, args []string) (err error) {
	if s.rules, err = permit.Read(os.Getenv); err != nil || s.rules == nil {
		return err
	}
	// The rules are for this process. A system that it starts may be a carronade, too.
	if err := os.Unsetenv(permit.Variable); err != nil {
		return err
	}
	path := strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()), " ")
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
	if s.rules.NoLoad && generates(cmd, path) {
		return &words{Err: errors.New("this command generates load, so it must wait in the queue"), Hint: "submit it as a job"}
	}
	if path == "system build" {
		if f := cmd.Flags().Lookup("make"); f != nil && f.Changed {
			return refusal(s.rules.Make(f.Value.String()))
		}
		return nil
	}
	var doc *workload.Document
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if v, ok := f.Value.(interface{ Document() *workload.Document }); ok {
			doc = v.Document()
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

// generates reports whether a command generates load, or uses this machine as much.
func generates(cmd *cobra.Command, path string) bool {
	given := func(name string) bool {
		f := cmd.Flags().Lookup(name)
		return f != nil && f.Changed
	}
	switch path {
	case "run":
		return !given("schema")
	case "scenario":
		return !given("check") && !given("types")
	case "compare":
		return given("run")
	case "find", "demo", "calibrate", "report replay", "system build", "topics create", "topics delete", "topics read":
		return true
	case "as":
		return !slices.Contains(cmd.Flags().Args(), "dump")
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
		var given []workload.Entry
		for _, e := range d.Entries {
			if !contains(conf.Entries, e) {
				given = append(given, e)
			}
		}
		if err := s.rules.Document(s.Kinds, given); err != nil {
			return refusal(err)
		}
		if err := s.permitted(conf, d.Parts...); err != nil {
			return err
		}
	}
	return nil
}

func contains(entries []workload.Entry, e workload.Entry) bool {
	for _, c := range entries {
		if c.Name == e.Name && c.Where == e.Where && strings.Join(c.Values, "\x00") == strings.Join(e.Values, "\x00") {
			return true
		}
	}
	return false
}

// refusal gives the error of the rules its hint.
func refusal(err error) error {
	if r := (*permit.Refusal)(nil); errors.As(err, &r) {
		return &command.Words{Err: err, Hint: r.Way}
	}
	return err
}
