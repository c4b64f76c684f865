package reports

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/place"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/protocol"
)

const importExample = `
  carronade report import report.json
  carronade report export last --as json | carronade report import -
  carronade report import results/*.json`

func (c *commands) importing() *cobra.Command {
	cmd := &cobra.Command{
		Use: "import FILE...", Short: "add reports from JSON files to the store",
		Long: `Adds reports that carronade wrote as JSON (run --json, --json-file, report
export --as json) to the store. A file may hold several; - is stdin. A report
whose hash is wrong was changed or is incomplete, and is refused. A report that
the store already has is left as it is. Prints the ids.`,
		Example: importExample,
		Args:    cmdutil.Args(1, -1, "files with reports"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	c.into(cmd, func(ctx context.Context, s store.Store, args []string) error {
		var problems []error
		for _, path := range args {
			if err := c.importFile(ctx, s, path); err != nil {
				if ctx.Err() != nil {
					return err
				}
				problems = append(problems, err)
			}
		}
		return errors.Join(problems...)
	})
	return cmd
}

func (c *commands) importFile(ctx context.Context, s store.Store, path string) error {
	in, name := c.In, "stdin"
	if path != "-" {
		f, err := place.Open(path)
		if err != nil {
			return &protocol.Error{Err: fmt.Errorf("cannot read %s: %s", path, cmdutil.Reason(err)), Hint: "give files that carronade report export --as json wrote"}
		}
		defer f.Close()
		in, name = f, path
	}
	found := 0
	err := eachReport(ctx, in, func(raw []byte) error {
		found++
		d, err := report.Read(bytes.NewReader(raw))
		if err != nil {
			return err
		}
		if !store.IsID(d.ID) {
			return fmt.Errorf("%.40q is not the id of a report", d.ID)
		}
		if err := s.Put(ctx, d); err != nil {
			return err
		}
		_, err = fmt.Fprintln(c.Out, d.ID)
		return err
	})
	if err == nil && found == 0 {
		err = errors.New("it contains no report")
	}
	return importFault(name, err)
}

// mostReport bounds the JSON of one report, which is read as a whole.
const mostReport = 64 << 20

// A bounded reads a stream of documents, each of at most a number of bytes.
type bounded struct {
	in         io.Reader
	read, most int64
}

var errTooLarge = fmt.Errorf("a report of it has more than %d MiB", mostReport>>20)

func (b *bounded) Read(p []byte) (int, error) {
	if b.read >= b.most {
		return 0, errTooLarge
	}
	n, err := b.in.Read(p[:min(int64(len(p)), b.most-b.read)])
	b.read += int64(n)
	return n, err
}

// eachReport calls f with each JSON document of a stream.
func eachReport(ctx context.Context, in io.Reader, f func(raw []byte) error) error {
	from := &bounded{in: in}
	dec := json.NewDecoder(place.TextReader(from))
	for n := 1; ; n++ {
		from.most = dec.InputOffset() + mostReport
		raw, err := cmdutil.Await(ctx, func() (raw json.RawMessage, err error) {
			err = dec.Decode(&raw)
			return raw, err
		})
		switch {
		case errors.Is(err, errTooLarge), ctx.Err() != nil && err != nil:
			return err
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return errors.New("the file is truncated")
		case err != nil:
			return fmt.Errorf("it is not JSON: %w", err)
		}
		if err := f(raw); err != nil {
			if n > 1 {
				return fmt.Errorf("report %d of it: %w", n, err)
			}
			return err
		}
	}
}

// importFault returns the error of an import, with a hint.
func importFault(name string, err error) error {
	if err == nil {
		return nil
	}
	w := &protocol.Error{Err: fmt.Errorf("%s: %w", name, err), Hint: "give files that carronade report export --as json wrote"}
	var changed *report.Tampered
	switch {
	case errors.As(err, &changed) && changed.Want == "":
		w.Hint = "it was made by a version of carronade without report hashes; run it again"
	case errors.As(err, &changed):
		w.Hint = "copy the file again from its source: nothing was added"
	case errors.Is(err, store.ErrExists):
		w.Hint = "carronade report show shows what is kept under that id"
	}
	return w
}
