package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"carronade/internal/command"
	"carronade/internal/publish"
	"carronade/internal/report"
	"carronade/internal/workload"
)

const runLong = `Fires at the target, or reads from it, and reports what it took.

Without --rate, --shape or --callers it goes as fast as the in-flight bound
allows. Without --for, --count or --bytes it goes on until Ctrl-C, which stops,
drains and reports; a second Ctrl-C leaves at once. The report goes to stdout,
progress to stderr.`

// runCommand fires one workload and reports it.
func (s *session) runCommand() *cobra.Command {
	var (
		t      command.Settings
		file   string
		schema bool
	)
	cmd := &cobra.Command{
		Use: "run [TARGET] [-f FILE]", Short: "one workload, one report",
		Long: runLong, Example: runExample,
		Args:              command.Args(0, 1, "at most one target"),
		Annotations:       map[string]string{settingsPage: "all"},
		ValidArgsFunction: command.CompleteTarget(s.Kinds),
		RunE: command.Run(func(cmd *cobra.Command, args []string) error {
			if schema {
				_, err := s.out.Write(workload.Schema(s.Kinds))
				return err
			}
			w, err := s.resolve(&t, args, file)
			if err != nil {
				return err
			}
			o, err := s.outputs(&t, w)
			if err != nil {
				return err
			}
			if o.hub, err = s.publisher(&t); err != nil {
				return err
			}
			defer s.unpublish(o.hub)
			return s.fire(cmd.Context(), w, o)
		}),
	}
	t.Bind(cmd.Flags(), s.Kinds)
	cmd.Flags().StringVarP(&file, "file", "f", "", "read the workload from `FILE` (YAML or JSON; - is stdin); flags go before it")
	cmd.Flags().BoolVar(&schema, "schema", false, "print the JSON schema of workload files, and run nothing")
	complete(cmd, s.Kinds)
	return cmd
}

// resolve makes the workload of what was typed and the file.
func (s *session) resolve(t *command.Settings, args []string, path string) (*workload.Workload, error) {
	if len(args) > 0 {
		t.Doc.Add("target", "target", args[0])
	}
	var file *workload.Document
	if path != "" {
		read := workload.ReadFile
		if path == "-" {
			read = func(string) (*workload.Document, error) { return workload.Read("stdin", s.In) }
		}
		var err error
		if file, err = read(path); err != nil {
			return nil, err
		}
	}
	file, err := s.underlay(t, file)
	if err != nil {
		return nil, err
	}
	w, err := workload.Resolve(s.Kinds, &t.Doc, file)
	if err != nil {
		return nil, err
	}
	for _, text := range w.Warnings {
		s.warn(text)
	}
	return w, nil
}

// outputs says where a run's words and numbers go.
type outputs struct {
	json  bool
	quiet bool
	files []string // a report each, "" for none
	hdr   []string
	trace []string
	hub   *publish.Hub // who is told of a run that goes on; nil: nobody
}

// outputs reads the flags that say so, and tries the files before anything is
// fired: a disk that cannot be written is better found now.
func (s *session) outputs(t *command.Settings, w *workload.Workload) (outputs, error) {
	o := outputs{json: t.Last("json") == "true", quiet: t.Last("quiet") == "true"}
	for i := range w.Repeat() {
		o.files = append(o.files, numbered(t.Last("json-file"), i, w.Repeat()))
		o.hdr = append(o.hdr, numbered(w.HDR(), i, w.Repeat()))
		o.trace = append(o.trace, numbered(w.Trace(), i, w.Repeat()))
	}
	for flag, paths := range map[string][]string{"json-file": o.files, "hdr": o.hdr, "trace": o.trace} {
		for _, path := range paths {
			if path == "" {
				continue
			}
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
			if err != nil {
				return o, &words{
					Err:  fmt.Errorf("--%s: cannot write %s: %s", flag, path, command.Reason(err)),
					Hint: "give a file in a folder that exists and may be written",
				}
			}
			f.Close()
		}
	}
	return o, nil
}

// numbered puts a repetition's number before a file's extension.
func numbered(path string, i, of int) string {
	if path == "" || of < 2 {
		return path
	}
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s.%d%s", strings.TrimSuffix(path, ext), i+1, ext)
}

// deliver prints a finished run and keeps it where it was asked to be kept. The
// error has the exit code.
func (s *session) deliver(d *report.Document, o outputs, i int) error {
	var problems []error
	if path := o.files[i]; path != "" {
		if err := writeFile(path, d.WriteJSON); err != nil {
			problems = append(problems, &words{
				Err:  fmt.Errorf("--json-file: cannot write %s: %s", path, command.Reason(err)),
				Hint: "the report on stdout is whole",
			})
		}
	}
	var err error
	switch {
	case o.json && len(o.files) > 1:
		err = writeLine(s.out, d)
	case o.json:
		err = d.WriteJSON(s.out)
	default:
		if i > 0 {
			fmt.Fprintln(s.out)
		}
		err = d.Text(s.out, s.style())
	}
	if err != nil {
		problems = append(problems, fmt.Errorf("writing the report: %w", err))
	}
	code := d.ExitCode()
	if len(problems) > 0 && code != exitInterrupted {
		code = exitFailed
	}
	for _, p := range d.Problems {
		problems = append(problems, errors.New(p))
	}
	if code == exitOK {
		return nil
	}
	return exitCode{Code: code, Err: errors.Join(problems...)}
}

// writeLine writes a report as one line: several are a stream.
func writeLine(w io.Writer, d *report.Document) error {
	var whole, line bytes.Buffer
	if err := d.WriteJSON(&whole); err != nil {
		return err
	}
	if err := json.Compact(&line, whole.Bytes()); err != nil {
		return err
	}
	line.WriteByte('\n')
	_, err := w.Write(line.Bytes())
	return err
}

// writeFile writes a file whole. Devices and pipes are written in place; a
// regular file is replaced at the end, so that a half report is never found.
func writeFile(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// worst joins the outcomes of repetitions: an interruption before what could
// not be done, that before an untrustworthy run, that before a broken limit.
func worst(a, b error) error {
	rank := func(err error) int {
		var c exitCode
		switch {
		case err == nil:
			return 0
		case !errors.As(err, &c):
			return 3
		}
		return map[int]int{exitBroken: 1, exitUntrusted: 2, exitFailed: 3, exitInterrupted: 4}[c.Code]
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}
